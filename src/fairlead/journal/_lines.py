"""Creates the record of an event, encodes records as lines of JSON of limited size, and decodes them.

A record contains all of an ordinary payload, but only the beginnings of the texts and lists of a large one.
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
"""The maximum number of bytes that a record keeps of a payload. The record stays below twice that size."""

MAX_DEPTH = 60
"""The number of nesting levels that are kept of a payload.

A far deeper value could be decoded in one process, and not in another one with a smaller stack.
"""

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
    """Return the record of an event.

    `name` is the id that the launcher gave the event. `event` is the parsed payload; `None` if it could not be parsed,
    and then `kind` is the event's name. `seconds` is how long the decision took, and `steps` the number of commands to
    run. With `is_valid`, the payload was decoded in full by `fairlead.events.parse`, and is not checked again.
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
    """Return the Unix time with which a launcher's event id begins; for any other id, the time now."""
    try:
        return int(name[:_TIME_DIGITS], 16) / 1e9
    except ValueError:
        return time()


def record_payload(raw: bytes, *, is_valid: bool = False) -> tuple[Raw, bool]:
    """Return the part of a payload that a record keeps, and whether anything was cut.

    That part is one line of valid JSON of at most `MAX_PAYLOAD_BYTES`. Invalid JSON becomes a string. With `is_valid`,
    the payload was decoded in full before, and is not checked again.
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
    """Return a text without lone surrogates, cut after `max_length` characters: `abcdef` → `abc… (3 more)`."""
    if len(text) > max_length:
        text = f"{text[:max_length]}… ({len(text) - max_length} more)"
    return replace_surrogates(text)


def _record_oversized(raw: bytes) -> tuple[Raw, bool]:
    """Return what `record_payload` returns, for a payload that is large, deeply nested or invalid."""
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
    """Return the payload as the client wrote it, on one line.

    Return `decoded`, the payload decoded and encoded again, if `compact_json` refuses the payload. It may have a key
    twice, with a lone surrogate in the value that decoding has dropped.
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
    """Limits the texts, lists, objects and nesting of a JSON value, and notes whether anything was cut."""

    def __init__(self, max_length: int, max_items: int) -> None:
        self._max_length = max_length
        self._max_items = max_items
        self.has_cut = False
        """Whether anything was left out."""
        self.has_changed = False
        """Whether anything was left out, or replaced because it cannot be encoded."""

    def cut(self, value: Any, depth: int = 1) -> Any:
        """Return as much of a value as the limits allow, with marks where something was left out."""
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
"""The maximum size of a line in bytes, including its newline."""

_MAX_FIELD_LENGTH = 200
_MAX_STEPS = 20

decode: Callable[[bytes], Record] = json_decoder(Record)  # type: ignore[arg-type]  # a union
"""Returns the record of a line. Raises `ValueError` or `RecursionError` if the line is not a record."""


def encode(record: Record, *, brief: bool = False) -> bytes:
    """Return the line of a record, with its newline, and with secrets replaced.

    With `brief`, or if this process keeps no payloads, only the identifying fields of an event's payload are kept.
    """
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
    """Return the key by which a record is recognized, so that it is not recorded twice; "" if it has none.

    For an event it is `ID`, for the results of its commands `ID.done`.
    """
    if isinstance(record, EventRecord):
        return record.id
    return f"{record.id}.done" if isinstance(record, CommandsRecord) else ""


def _encode_oversized(record: Record) -> bytes:
    """Return the line of a record that is too large, or cannot be encoded, with all of its fields cut.

    No client sends such a record, for instance one with hundreds of commands.
    """
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
