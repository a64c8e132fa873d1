"""Makes the record of an event, encodes records as bounded lines of JSON, and decodes them.

A record keeps all of an ordinary payload, but only the beginnings of the texts and lists of a large one.
"""

from __future__ import annotations

from time import time

from fairlead.events import decode_json
from fairlead.journal._records import MAX_REASON_LENGTH, Caller, CommandsRecord, EventRecord, Record
from fairlead.journal._redact import redactor
from fairlead.structs import Raw, Struct, asdict, compact_json, json_decoder, replace
from fairlead.structs import encode_json as _encode
from fairlead.text import replace_surrogates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fairlead.events import Event
    from fairlead.journal._records import Route, Verdict

MAX_PAYLOAD_BYTES = 16 * 1024
"""Bytes kept of a payload. The whole record stays below twice that size."""

MAX_DEPTH = 60
"""Nesting levels kept. A far deeper value would decode in one process and fail in another with a smaller stack."""

_LIMITS = ((500, 50), (200, 20), (80, 8), (30, 3))
"""Pairs of maximum text length and maximum list length, tried in order until the payload fits."""

_MAX_INVALID_LENGTH = 2000

_LF, _CR, _LIST = b"\n\r["  # searching bytes for an integer is much faster than for a one-byte string

_as_raw = json_decoder(Raw)
_NO_CALLER = Caller()
_TIME_DIGITS = 16


def event_record(
    name: str,
    kind: str,
    payload: bytes,
    event: Event | None,
    *,
    client: str,
    route: Route,
    verdict: Verdict,
    exit_code: int,
    reason: str = "",
    seconds: float = 0.0,
    steps: int = 0,
    hook: str = "",
    caller: Caller = _NO_CALLER,
    is_valid: bool = False,
) -> EventRecord:
    """Return the record of an event. `event` is `None` if the payload could not be parsed.

    `is_valid` says that all of the payload was decoded as JSON before, by `fairlead.events.parse`.
    """
    recorded, cut = record_payload(payload, is_valid=is_valid)
    session = agent = tool = cwd = ""
    if event is not None:
        kind, session, agent, tool = event.event_name, event.session_id, event.agent_id or "", event.tool_name or ""
        cwd = event.cwd or ""
    return EventRecord(
        id=name,
        at=started_at(name),
        event=kind,
        client=client,
        session=session,
        agent=agent,
        tool=tool,
        cwd=cwd,
        route=route,
        verdict=verdict,
        exit=exit_code,
        reason=reason[:MAX_REASON_LENGTH],
        seconds=int(seconds * 1e6) / 1e6,  # `round` takes ten times as long
        steps=steps,
        hook=hook,
        caller=caller,
        payload=recorded,
        cut=cut,
    )


def started_at(name: str) -> float:
    """Return when an event started: an id made by a launcher begins with that time. For any other id, return now."""
    try:
        return int(name[:_TIME_DIGITS], 16) / 1e9
    except ValueError:
        return time()


def record_payload(raw: bytes, *, is_valid: bool = False) -> tuple[Raw, bool]:
    """Return the part of a payload that a record keeps, and whether anything was cut.

    The result is one line of valid JSON of at most `MAX_PAYLOAD_BYTES`. Invalid JSON becomes a string. `is_valid` says
    that all of the payload was decoded before.
    """
    if len(raw) <= MAX_PAYLOAD_BYTES:
        try:
            if is_valid and b"\\u" not in raw:  # a lone surrogate, which some decoders accept, is not kept
                kept = Raw(raw)
            else:
                kept = _as_raw(raw)
                if not raw.isascii():
                    raw.decode()  # msgspec does not check the encoding of strings that it skips
            if raw.count(b"{") + (_LIST in raw and raw.count(b"[")) <= MAX_DEPTH:
                if _LF not in raw and _CR not in raw:
                    return kept, False
                line = raw.strip()  # nearly always there is only one line break, at the end
                return Raw(compact_json(line) if _LF in line or _CR in line else line), False
        except (ValueError, RecursionError):
            pass
    return _record_oversized(raw)


def cut_text(text: str, max_length: int) -> str:
    """Cut a text, with a mark that says how much was removed, and replace lone surrogates."""
    if len(text) > max_length:
        text = f"{text[:max_length]}… ({len(text) - max_length} more)"
    return replace_surrogates(text)


def _record_oversized(raw: bytes) -> tuple[Raw, bool]:
    """Record a payload that is large, deep or invalid."""
    try:
        value = decode_json(raw)
    except (ValueError, RecursionError):  # UnicodeError is a ValueError
        return _record_invalid(raw)
    whole = ((len(raw), len(raw)),) if len(raw) <= 4 * MAX_PAYLOAD_BYTES else ()  # much of it may be whitespace
    for max_length, max_items in whole + _LIMITS:
        truncator = _Truncator(max_length, max_items)
        cut = _encode(truncator.cut(value))
        if len(cut) <= MAX_PAYLOAD_BYTES:
            kept = cut if truncator.has_changed else _as_written(raw, cut)
            return Raw(kept if len(kept) <= MAX_PAYLOAD_BYTES else cut), truncator.has_cut
    return _record_invalid(raw)


def _as_written(raw: bytes, decoded: bytes) -> bytes:
    """Return the payload without its line breaks.

    If a repeated key contains a lone surrogate that decoding drops, return `decoded`.
    """
    try:
        return compact_json(raw)
    except ValueError:
        return decoded


def _record_invalid(raw: bytes) -> tuple[Raw, bool]:
    # A byte becomes at most four characters, and a character at most six bytes.
    text = raw[: _MAX_INVALID_LENGTH + 1].decode("utf-8", "backslashreplace")
    is_cut = len(raw) > _MAX_INVALID_LENGTH or len(text) > _MAX_INVALID_LENGTH
    return Raw(_encode(text[:_MAX_INVALID_LENGTH] + "…" * is_cut)), is_cut


class _Truncator:
    """Bounds the texts, lists, objects and nesting of a JSON value."""

    def __init__(self, max_length: int, max_items: int) -> None:
        self._max_length = max_length
        self._max_items = max_items
        self.has_cut = False
        """Something was left out."""
        self.has_changed = False
        """Something was left out, or had to be replaced because it cannot be encoded."""

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


# -- lines -----------------------------------------------------------------------------------------------

MAX_LINE_BYTES = 32 * 1024
"""Bytes of a line, including its newline."""

_MAX_FIELD_LENGTH = 200
_MAX_STEPS = 20

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
