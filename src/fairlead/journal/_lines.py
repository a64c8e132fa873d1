"""A record as one line of JSON, and back. Whatever a record holds, its line is whole and bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.journal._payload import cut_text, record_payload
from fairlead.journal._records import LONGEST_REASON, CommandsRecord, EventRecord, Record

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST = 32 * 1024
"""Bytes of a line, with its end."""

_LONGEST_FIELD = 200
_MOST_STEPS = 20

_LF, _CR = b"\n\r"

_encode = msgspec.json.Encoder().encode
decode: Callable[[bytes], Record] = msgspec.json.Decoder(Record).decode
"""A record from its line. Raises `ValueError` (or `RecursionError`) if it is none."""


def encode(record: Record) -> bytes:
    """Write a record as a line, with its end."""
    try:
        line = _encode(record)
    except UnicodeEncodeError:  # a path that is no text, or half a surrogate pair
        return _encode_unusual(record)
    if len(line) >= LONGEST or _LF in line or _CR in line:
        return _encode_unusual(record)
    return line + b"\n"


def name_of(record: Record) -> str:
    """Give what tells one record from all others: by it, nothing is taken twice. Turns have none ("")."""
    if isinstance(record, EventRecord):
        return record.id
    return f"{record.id}.done" if isinstance(record, CommandsRecord) else ""


def _encode_unusual(record: Record) -> bytes:
    """Cut what no client sends: a name of thousands of characters, hundreds of commands, a payload on many lines."""
    less = _cut(record)
    if isinstance(less, EventRecord):
        payload, is_cut = record_payload(bytes(less.payload))
        less = msgspec.structs.replace(less, payload=payload, cut=less.cut or is_cut)
    line = _encode(less)
    if len(line) >= LONGEST and isinstance(less, EventRecord):
        line = _encode(msgspec.structs.replace(less, payload=msgspec.Raw(b"{}"), cut=True))
    return line + b"\n"


def _cut(value: Any, longest: int = _LONGEST_FIELD) -> Any:
    if isinstance(value, msgspec.Raw):
        return value
    if isinstance(value, str):
        return cut_text(value, longest)
    if isinstance(value, tuple):
        return tuple(map(_cut, value[:_MOST_STEPS]))
    if not isinstance(value, msgspec.Struct):
        return value
    fields = msgspec.structs.asdict(value)
    longer = {"reason": LONGEST_REASON}
    return type(value)(**{name: _cut(field, longer.get(name, _LONGEST_FIELD)) for name, field in fields.items()})
