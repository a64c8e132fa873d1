"""Encodes a record as one bounded line of JSON, and decodes it."""

from __future__ import annotations

from fairlead.journal._event_record import cut_text, record_payload
from fairlead.journal._records import MAX_REASON_LENGTH, CommandsRecord, EventRecord, Record
from fairlead.journal._redact import redactor
from fairlead.structs import Raw, Struct, asdict, json_decoder, replace
from fairlead.structs import encode_json as _encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_LINE_BYTES = 32 * 1024
"""Bytes of a line, including its newline."""

_MAX_FIELD_LENGTH = 200
_MAX_STEPS = 20

_LF, _CR = b"\n\r"

decode: Callable[[bytes], Record] = json_decoder(Record)  # type: ignore[arg-type]  # a union
"""Decode a line. Raises `ValueError` or `RecursionError` if it is not a record."""


def encode(record: Record, *, brief: bool = False) -> bytes:
    """Return a record as a line with its newline, secrets redacted; with `brief`, with only the ids of its payload."""
    current = redactor()
    if (brief or current.payloads == "none") and isinstance(record, EventRecord):
        record = replace(record, payload=current.identifying(record.payload))
    return current.redact(_encode_line(record))


def _encode_line(record: Record) -> bytes:
    try:
        line = _encode(record)
    except UnicodeEncodeError:  # a path that is not valid text, or a lone surrogate
        return _encode_oversized(record)
    if len(line) >= MAX_LINE_BYTES or _LF in line or _CR in line:
        return _encode_oversized(record)
    return line + b"\n"


def record_key(record: Record) -> str:
    """Return the key that identifies a record, so that it is never stored twice; "" if it has none."""
    if isinstance(record, EventRecord):
        return record.id
    return f"{record.id}.done" if isinstance(record, CommandsRecord) else ""


def _encode_oversized(record: Record) -> bytes:
    """Encode a record that is larger than any from a client: names of thousands of characters, hundreds of commands."""
    cut = _cut(record)
    if isinstance(cut, EventRecord):
        payload, is_cut = record_payload(bytes(cut.payload))
        cut = replace(cut, payload=payload, cut=cut.cut or is_cut)
    line = _encode(cut)
    if len(line) >= MAX_LINE_BYTES and isinstance(cut, EventRecord):
        line = _encode(replace(cut, payload=Raw(b"{}"), cut=True))
    return line + b"\n"


def _cut(value: Any, max_length: int = _MAX_FIELD_LENGTH) -> Any:
    if isinstance(value, Raw):
        return value
    if isinstance(value, str):
        return cut_text(value, max_length)
    if isinstance(value, tuple):
        return tuple(map(_cut, value[:_MAX_STEPS]))
    if not isinstance(value, Struct):
        return value
    fields = asdict(value)
    limits = {"reason": MAX_REASON_LENGTH}
    return type(value)(**{name: _cut(field, limits.get(name, _MAX_FIELD_LENGTH)) for name, field in fields.items()})
