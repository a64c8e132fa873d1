"""Reads MessagePack, of the kinds that msgspec writes for the caches of policies."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FIXED = ((0x80, "number"), (0x90, "dict"), (0xA0, "list"), (0xC0, "text"))
"""The kinds of values whose first byte contains the number or size, each with the exclusive limit of that byte."""
_FIXED_SIZE = {"dict": 0x0F, "list": 0x0F, "text": 0x1F}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_FLOAT = 0xCB
_NUMBERS = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
"""First byte → the size of the integer in bytes."""
_FIRST_SIGNED = 0xD0
_SIZED = {
    0xD9: ("text", 1),
    0xDA: ("text", 2),
    0xDB: ("text", 4),
    0xC4: ("bytes", 1),
    0xC5: ("bytes", 2),
    0xC6: ("bytes", 4),
    0xDC: ("list", 2),
    0xDD: ("list", 4),
    0xDE: ("dict", 2),
    0xDF: ("dict", 4),
}


def unpack(data: bytes) -> Any:
    """Return the value that data encodes. Raise `ValueError` if it is damaged."""
    try:
        value, end = _read(data, 0)
    except (IndexError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not MessagePack: {error}") from None
    if end != len(data):
        raise ValueError("not MessagePack: data behind the value")
    return value


def _read(data: bytes, offset: int) -> tuple[Any, int]:
    first = data[offset]
    offset += 1
    for end, kind in _FIXED:
        if first < end:
            return (first, offset) if kind == "number" else _read_sized(data, offset, kind, first & _FIXED_SIZE[kind])
    if first in _CONSTANTS:
        return _CONSTANTS[first], offset
    if first in _NUMBERS:
        end = offset + _NUMBERS[first]
        return _integer(data, offset, end, signed=first >= _FIRST_SIGNED), end
    if first in _SIZED:
        kind, size = _SIZED[first]
        return _read_sized(data, offset + size, kind, _integer(data, offset, offset + size))
    if first == _FLOAT:
        return _float(_integer(data, offset, offset + 8)), offset + 8
    return first - 256, offset  # a small negative number


def _integer(data: bytes, offset: int, end: int, *, signed: bool = False) -> int:
    if end > len(data):
        raise IndexError("the end is missing")
    return int.from_bytes(data[offset:end], "big", signed=signed)


def _float(bits: int) -> float:
    """Return the number with these bits. Uses a `memoryview`, because importing `struct` takes time."""
    return memoryview(bits.to_bytes(8, sys.byteorder)).cast("d")[0]


def _read_sized(data: bytes, offset: int, kind: str, size: int) -> tuple[Any, int]:
    if kind in {"text", "bytes"}:
        end = offset + size
        if end > len(data):
            raise IndexError("the end is missing")
        part = data[offset:end]
        return (part.decode() if kind == "text" else part), end
    if kind == "list":
        items = []
        for _ in range(size):
            item, offset = _read(data, offset)
            items.append(item)
        return items, offset
    pairs = {}
    for _ in range(size):
        key, offset = _read(data, offset)
        pairs[key], offset = _read(data, offset)
    return pairs, offset
