"""Encodes a record as one bounded line of JSON, and decodes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.journal._payload import cut_text, record_payload
from fairlead.journal._records import MAX_REASON_LENGTH, CommandsRecord, EventRecord, Record

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LINE_BYTES = 32 * 1024
"""Bytes of a line, including its newline."""

_MAX_FIELD_LENGTH = 200
_MAX_STEPS = 20

_LF, _CR = b"\n\r"

_encode = msgspec.json.Encoder().encode
decode: Callable[[bytes], Record] = msgspec.json.Decoder(Record).decode
"""Decode a line. Raises `ValueError` or `RecursionError` if it is not a record."""


def encode(record: Record) -> bytes:
    """Return a record as a line, including its newline."""
    try:
        line = _encode(record)
    except UnicodeEncodeError:  # a path that is not valid text, or a lone surrogate
        return _encode_oversized(record)
    if len(line) >= MAX_LINE_BYTES or _LF in line or _CR in line:
        return _encode_oversized(record)
    return line + b"\n"


def record_key(record: Record) -> str:
    """Return the key that identifies a record, so that it is never stored twice. A `DaemonRecord` has none ("")."""
    if isinstance(record, EventRecord):
        return record.id
    return f"{record.id}.done" if isinstance(record, CommandsRecord) else ""


def _encode_oversized(record: Record) -> bytes:
    """Cut what no client sends: names of thousands of characters, hundreds of commands, multi-line payloads."""
    cut = _cut(record)
    if isinstance(cut, EventRecord):
        payload, is_cut = record_payload(bytes(cut.payload))
        cut = msgspec.structs.replace(cut, payload=payload, cut=cut.cut or is_cut)
    line = _encode(cut)
    if len(line) >= MAX_LINE_BYTES and isinstance(cut, EventRecord):
        line = _encode(msgspec.structs.replace(cut, payload=msgspec.Raw(b"{}"), cut=True))
    return line + b"\n"


def _cut(value: Any, max_length: int = _MAX_FIELD_LENGTH) -> Any:
    if isinstance(value, msgspec.Raw):
        return value
    if isinstance(value, str):
        return cut_text(value, max_length)
    if isinstance(value, tuple):
        return tuple(map(_cut, value[:_MAX_STEPS]))
    if not isinstance(value, msgspec.Struct):
        return value
    fields = msgspec.structs.asdict(value)
    limits = {"reason": MAX_REASON_LENGTH}
    return type(value)(**{name: _cut(field, limits.get(name, _MAX_FIELD_LENGTH)) for name, field in fields.items()})
