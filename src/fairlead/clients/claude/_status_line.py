"""Parses the JSON that Claude Code sends to its status line command.

It may arrive several times a second. An error would be shown instead of the status line, so values that are missing,
null or of an unexpected type are ignored.
"""

from __future__ import annotations

from fairlead.clients._reports import StatusLine, Usage
from fairlead.clients.claude._fields import MAX_ID, MAX_PATH, object_of, text_of
from fairlead.events import decode_json
from fairlead.text import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MAX_SIZE = 256 * 1024
"""The maximum size of a payload in bytes, a hundred times what the client sends."""

_MAX_FIGURE = 1e15


def read_status_line(payload: bytes) -> StatusLine:
    """Parse the payload of a status line; return an empty value if it is no JSON object or above `MAX_SIZE`."""
    try:
        document = decode_json(payload) if len(payload) <= MAX_SIZE else None
    except (ValueError, RecursionError):
        document = None
    return status_line_of(document) if isinstance(document, dict) else StatusLine()


def status_line_of(document: Mapping[str, Any]) -> StatusLine:
    """Convert the decoded payload of a status line."""
    milliseconds = _number(object_of(document, "cost"), "total_duration_ms")
    return StatusLine(
        session_id=cut(text_of(document, "session_id"), MAX_ID),
        model=text_of(object_of(document, "model"), "display_name"),
        usage=usage_of(document),
        seconds=None if milliseconds is None else milliseconds / 1000,
        cwd=cut(text_of(document, "cwd"), MAX_PATH),
        transcript=cut(text_of(document, "transcript_path"), MAX_PATH),
    )


def usage_of(document: Mapping[str, Any]) -> Usage:
    """Return the usage in the decoded payload of a status line."""
    context = object_of(document, "context_window")
    cost = object_of(document, "cost")
    limits = object_of(document, "rate_limits")
    window = _number(context, "context_window_size")
    return Usage(
        model=text_of(object_of(document, "model"), "id")[:200] or None,
        context_percent=_context_percent(context, window),
        context_window=int(window) if window else None,
        cost_usd=_number(cost, "total_cost_usd"),
        lines_added=_whole(cost, "total_lines_added"),
        lines_removed=_whole(cost, "total_lines_removed"),
        five_hour_percent=_number(object_of(limits, "five_hour"), "used_percentage"),
        five_hour_resets=_number(object_of(limits, "five_hour"), "resets_at"),
        seven_day_percent=_number(object_of(limits, "seven_day"), "used_percentage"),
        seven_day_resets=_number(object_of(limits, "seven_day"), "resets_at"),
    )


def _context_percent(context: Mapping[str, Any], window: float | None) -> float | None:
    """Return how many percent of the context window are used; `None` if that is not known.

    If the client does not send it, it is computed from the tokens.
    """
    percent = _number(context, "used_percentage")
    if percent is None and window:
        used = object_of(context, "current_usage")
        parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        tokens = [figure for name in parts if (figure := _number(used, name)) is not None]
        percent = 100 * sum(tokens) / window if tokens else None
    return None if percent is None else min(100.0, percent)


def _number(document: Mapping[str, Any], key: str) -> float | None:
    value = document.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _MAX_FIGURE else None


def _whole(document: Mapping[str, Any], key: str) -> int | None:
    value = _number(document, key)
    return None if value is None else int(value)
