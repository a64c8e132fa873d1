"""What is kept of a payload: all of a usual one, the beginnings of a large one. Whatever comes becomes one line."""

from __future__ import annotations

from typing import Any

import msgspec

from fairlead.events import decode_json
from fairlead.text import replace_surrogates

LARGEST = 16 * 1024
"""Bytes of a payload that are kept. With all else, a record stays below twice as much."""

DEEPEST = 60
"""Levels that are kept. Far more would be read by one process and refused by another that has a deeper stack."""

_MANNERS = ((500, 50), (200, 20), (80, 8), (30, 3))
"""The longest text and the longest list that are kept; the next pair is for what is still too large."""

_LONGEST_NONSENSE = 2000

_LF, _CR, _LIST = b"\n\r["  # to look for a number among bytes is quicker by far

_as_raw = msgspec.json.Decoder(msgspec.Raw).decode
_compact = msgspec.json.format
_encode = msgspec.json.encode


def record_payload(raw: bytes) -> tuple[msgspec.Raw, bool]:
    """Give what a record keeps of a payload, and whether something was cut.

    It is one line of valid JSON and has at most `LARGEST` bytes. What is no JSON becomes a string.
    """
    if len(raw) <= LARGEST:
        try:
            kept = _as_raw(raw)
            if not raw.isascii():
                raw.decode()  # a skipped string is not checked for its encoding
            if raw.count(b"{") + (_LIST in raw and raw.count(b"[")) <= DEEPEST:
                return (msgspec.Raw(_compact(raw, indent=-1)) if _LF in raw or _CR in raw else kept), False
        except (ValueError, RecursionError):
            pass
    return _record_unusual(raw)


def cut_text(text: str, longest: int) -> str:
    """Cut a text, with a mark that says how much is gone; make half a surrogate pair something that can be written."""
    if len(text) > longest:
        text = f"{text[:longest]}… ({len(text) - longest} more)"
    return replace_surrogates(text)


def _record_unusual(raw: bytes) -> tuple[msgspec.Raw, bool]:
    """Record what is large, deep, or broken."""
    try:
        value = decode_json(raw)
    except (ValueError, RecursionError):  # of which UnicodeError is one
        return _record_nonsense(raw)
    whole = ((len(raw), len(raw)),) if len(raw) <= 4 * LARGEST else ()  # much of it may be blanks
    for longest, most in whole + _MANNERS:
        cutter = _Cutter(longest, most)
        less = _encode(cutter.cut(value))
        if len(less) <= LARGEST:
            same = less if cutter.has_changed else _compact(raw, indent=-1)
            return msgspec.Raw(same if len(same) <= LARGEST else less), cutter.has_cut
    return _record_nonsense(raw)


def _record_nonsense(raw: bytes) -> tuple[msgspec.Raw, bool]:
    # A byte becomes four characters at most, and a character six bytes.
    text = raw[: _LONGEST_NONSENSE + 1].decode("utf-8", "backslashreplace")
    is_cut = len(raw) > _LONGEST_NONSENSE or len(text) > _LONGEST_NONSENSE
    return msgspec.Raw(_encode(text[:_LONGEST_NONSENSE] + "…" * is_cut)), is_cut


class _Cutter:
    """Bounds a JSON value: texts, lists, objects, levels."""

    def __init__(self, longest: int, most: int) -> None:
        self._longest = longest
        self._most = most
        self.has_cut = False
        """Something was left out."""
        self.has_changed = False
        """It was, or something could not be written as it came."""

    def cut(self, value: Any, depth: int = 1) -> Any:
        """Give the same value, or as much of it as may stay."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            return self._text(str(value))  # msgspec writes no larger ones
        if not isinstance(value, list | dict):
            return value
        if depth > DEEPEST:
            self.has_cut = self.has_changed = True
            return "…"
        if isinstance(value, list):
            return [self.cut(item, depth + 1) for item in value[: self._most]] + self._rest(len(value))
        kept = {self._text(key): self.cut(value[key], depth + 1) for key in list(value)[: self._most]}
        return kept | dict.fromkeys(self._rest(len(value)), True)

    def _rest(self, size: int) -> list[str]:
        if size <= self._most:
            return []
        self.has_cut = self.has_changed = True
        return [f"… ({size - self._most} more)"]

    def _text(self, text: str) -> str:
        kept = cut_text(text, self._longest)
        self.has_cut |= len(text) > self._longest
        self.has_changed |= kept != text
        return kept
