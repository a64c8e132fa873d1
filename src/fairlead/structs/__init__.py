"""The base class of the types that deciding an event needs: msgspec's `Struct`, or an equivalent without msgspec.

Importing msgspec takes longer than deciding an event. So a process that decides one event and ends may call
`fairlead.lazy.use_light_structs` before anything else: it then has the same types, which are constructed but never
validated. Operations that need msgspec raise `NeedsMsgspec`, and a process with msgspec decides the event.
"""

from __future__ import annotations

from fairlead.lazy import has_light_structs
from fairlead.structs._errors import NeedsMsgspec

TYPE_CHECKING = False
LIGHT = has_light_structs()
"""Whether this process uses the equivalent without msgspec."""

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

if TYPE_CHECKING or not LIGHT:
    from enum import Enum

    from msgspec import Raw, Struct, ValidationError, convert, field, to_builtins
    from msgspec.json import Decoder
    from msgspec.json import encode as encode_json
    from msgspec.msgpack import decode as decode_msgpack
    from msgspec.structs import asdict, force_setattr, replace

    decode_json = Decoder().decode

    def json_decoder(kind: type[T]) -> Callable[[bytes], T]:
        """Return a function that decodes JSON to a type."""
        return Decoder(kind).decode
else:
    from fairlead.structs._light import (
        Raw,
        Struct,
        ValidationError,
        asdict,
        convert,
        decode_msgpack,
        field,
        force_setattr,
        replace,
        to_builtins,
    )
    from fairlead.structs._light_enum import Enum
    from fairlead.structs._light_json import decode_json, encode_json, json_decoder

__all__ = [
    "LIGHT",
    "Enum",
    "NeedsMsgspec",
    "Raw",
    "Struct",
    "ValidationError",
    "asdict",
    "compact_json",
    "convert",
    "decode_json",
    "decode_msgpack",
    "encode_json",
    "encode_msgpack",
    "field",
    "force_setattr",
    "json_decoder",
    "replace",
    "require_msgspec",
    "to_builtins",
]


def compact_json(data: bytes) -> bytes:
    """Return JSON without its whitespace. Raise `ValueError` if it is not valid."""
    from msgspec.json import format as format_json

    return format_json(data, indent=-1)


def encode_msgpack(value: object) -> bytes:
    """Encode a value as MessagePack. Raise `NeedsMsgspec` in a process with light structs."""
    require_msgspec()
    from msgspec.msgpack import encode

    return encode(value)


def require_msgspec() -> None:
    """Raise `NeedsMsgspec` in a process with light structs."""
    if LIGHT:
        raise NeedsMsgspec
