"""Bounds what a record keeps of a payload: all of an ordinary one, the beginnings of a large one, always one line."""

from __future__ import annotations

from typing import Any

import msgspec

from fairlead.events import decode_json
from fairlead.text import replace_surrogates

MAX_PAYLOAD_BYTES = 16 * 1024
"""Bytes kept of a payload. The whole record stays below twice that."""

MAX_DEPTH = 60
"""Nesting levels kept. A far deeper value would decode in one process and fail in another with a smaller stack."""

_LIMITS = ((500, 50), (200, 20), (80, 8), (30, 3))
"""Pairs of maximum text length and maximum list length, tried in order until the payload fits."""

_MAX_INVALID_LENGTH = 2000

_LF, _CR, _LIST = b"\n\r["  # searching bytes for an integer is much faster than for a one-byte string

_as_raw = msgspec.json.Decoder(msgspec.Raw).decode
_compact = msgspec.json.format
_encode = msgspec.json.encode


def record_payload(raw: bytes) -> tuple[msgspec.Raw, bool]:
    """Return what a record keeps of a payload, and whether anything was cut.

    The result is one line of valid JSON of at most `MAX_PAYLOAD_BYTES`. Invalid JSON becomes a string.
    """
    if len(raw) <= MAX_PAYLOAD_BYTES:
        try:
            kept = _as_raw(raw)
            if not raw.isascii():
                raw.decode()  # msgspec does not check the encoding of strings that it skips
            if raw.count(b"{") + (_LIST in raw and raw.count(b"[")) <= MAX_DEPTH:
                return (msgspec.Raw(_compact(raw, indent=-1)) if _LF in raw or _CR in raw else kept), False
        except (ValueError, RecursionError):
            pass
    return _record_oversized(raw)


def cut_text(text: str, max_length: int) -> str:
    """Cut a text, with a mark that says how much was removed, and replace lone surrogates."""
    if len(text) > max_length:
        text = f"{text[:max_length]}… ({len(text) - max_length} more)"
    return replace_surrogates(text)


def _record_oversized(raw: bytes) -> tuple[msgspec.Raw, bool]:
    """Record a payload that is large, deep or invalid."""
    try:
        value = decode_json(raw)
    except (ValueError, RecursionError):  # UnicodeError is a ValueError
        return _record_invalid(raw)
    whole = ((len(raw), len(raw)),) if len(raw) <= 4 * MAX_PAYLOAD_BYTES else ()  # much of it may be whitespace
    for max_length, max_items in whole + _LIMITS:
        cutter = _Cutter(max_length, max_items)
        cut = _encode(cutter.cut(value))
        if len(cut) <= MAX_PAYLOAD_BYTES:
            kept = cut if cutter.has_changed else _compact(raw, indent=-1)
            return msgspec.Raw(kept if len(kept) <= MAX_PAYLOAD_BYTES else cut), cutter.has_cut
    return _record_invalid(raw)


def _record_invalid(raw: bytes) -> tuple[msgspec.Raw, bool]:
    # A byte becomes at most four characters, and a character at most six bytes.
    text = raw[: _MAX_INVALID_LENGTH + 1].decode("utf-8", "backslashreplace")
    is_cut = len(raw) > _MAX_INVALID_LENGTH or len(text) > _MAX_INVALID_LENGTH
    return msgspec.Raw(_encode(text[:_MAX_INVALID_LENGTH] + "…" * is_cut)), is_cut


class _Cutter:
    """Bounds the texts, lists, objects and nesting of a JSON value."""

    def __init__(self, max_length: int, max_items: int) -> None:
        self._max_length = max_length
        self._max_items = max_items
        self.has_cut = False
        """Something was left out."""
        self.has_changed = False
        """Something was left out, or could not be written as it was."""

    def cut(self, value: Any, depth: int = 1) -> Any:
        """Return the value, or as much of it as the limits allow."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            return self._text(str(value))  # msgspec cannot write larger integers
        if not isinstance(value, list | dict):
            return value
        if depth > MAX_DEPTH:
            self.has_cut = self.has_changed = True
            return "…"
        if isinstance(value, list):
            return [self.cut(item, depth + 1) for item in value[: self._max_items]] + self._mark_cut(len(value))
        kept = {self._text(key): self.cut(value[key], depth + 1) for key in list(value)[: self._max_items]}
        return kept | dict.fromkeys(self._mark_cut(len(value)), True)

    def _mark_cut(self, size: int) -> list[str]:
        if size <= self._max_items:
            return []
        self.has_cut = self.has_changed = True
        return [f"… ({size - self._max_items} more)"]

    def _text(self, text: str) -> str:
        kept = cut_text(text, self._max_length)
        self.has_cut |= len(text) > self._max_length
        self.has_changed |= kept != text
        return kept
