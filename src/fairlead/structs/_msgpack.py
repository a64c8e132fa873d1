"""Reads MessagePack, of the kinds that msgspec writes for the caches of policies."""

from __future__ import annotations

import struct
from struct import unpack_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FIXED = ((0x80, "number"), (0x90, "dict"), (0xA0, "list"), (0xC0, "text"))
"""Below which first byte it holds the kind, and the number or size itself."""
_FIXED_SIZE = {"dict": 0x0F, "list": 0x0F, "text": 0x1F}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    0xCC: (">B", 1),
    0xCD: (">H", 2),
    0xCE: (">I", 4),
    0xCF: (">Q", 8),
    0xD0: (">b", 1),
    0xD1: (">h", 2),
    0xD2: (">i", 4),
    0xD3: (">q", 8),
    0xCB: (">d", 8),
}
_SIZED = {
    0xD9: ("text", ">B", 1),
    0xDA: ("text", ">H", 2),
    0xDB: ("text", ">I", 4),
    0xC4: ("bytes", ">B", 1),
    0xC5: ("bytes", ">H", 2),
    0xC6: ("bytes", ">I", 4),
    0xDC: ("list", ">H", 2),
    0xDD: ("list", ">I", 4),
    0xDE: ("dict", ">H", 2),
    0xDF: ("dict", ">I", 4),
}


def unpack(data: bytes) -> Any:
    """Return the value that data encodes. Raise `ValueError` if it is damaged."""
    try:
        value, end = _read(data, 0)
    except (IndexError, KeyError, TypeError, RecursionError, struct.error) as error:
        raise ValueError(f"not MessagePack: {error}") from None
    if end != len(data):
        raise ValueError("not MessagePack: data behind the value")
    return value


def _read(data: bytes, at: int) -> tuple[Any, int]:
    first = data[at]
    at += 1
    for end, kind in _FIXED:
        if first < end:
            return (first, at) if kind == "number" else _read_sized(data, at, kind, first & _FIXED_SIZE[kind])
    if first in _CONSTANTS:
        return _CONSTANTS[first], at
    if first in _NUMBERS:
        form, size = _NUMBERS[first]
        return unpack_from(form, data, at)[0], at + size
    if first in _SIZED:
        kind, form, size = _SIZED[first]
        return _read_sized(data, at + size, kind, unpack_from(form, data, at)[0])
    return first - 256, at  # a small negative number


def _read_sized(data: bytes, at: int, kind: str, size: int) -> tuple[Any, int]:
    if kind in {"text", "bytes"}:
        end = at + size
        if end > len(data):
            raise IndexError("the end is missing")
        part = data[at:end]
        return (part.decode() if kind == "text" else part), end
    if kind == "list":
        items = []
        for _ in range(size):
            item, at = _read(data, at)
            items.append(item)
        return items, at
    pairs = {}
    for _ in range(size):
        key, at = _read(data, at)
        pairs[key], at = _read(data, at)
    return pairs, at
