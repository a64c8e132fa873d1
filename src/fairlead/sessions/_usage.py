"""What a session has used, as the client's status line tells, or the transcript of a subagent.

It never tells the state: it comes late, after Stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping


_HUGE = 1e15


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Figures of one session. `None` is what was never told."""

    model: str | None = None
    context_percent: float | None = None
    """Of the context window, 0 to 100."""
    context_window: int | None = None
    """Tokens: 200 000 or 1 000 000. It can change within a session."""
    cost_usd: float | None = None
    """An estimate of the client."""
    lines_added: int | None = None
    lines_removed: int | None = None
    five_hour_percent: float | None = None
    seven_day_percent: float | None = None
    tokens: int | None = None
    """All that the model read and wrote for a subagent, message by message, as its transcript tells."""
    output_tokens: int | None = None
    """Of these, what it wrote."""
    cached_tokens: int | None = None
    """Of these, what it read from its cache."""
    context_tokens: int | None = None
    """What the last message took of the context window: the figure that the client itself shows of a subagent."""

    def merged(self, newer: Usage) -> Usage:
        """Take over what the newer one tells, and keep what it leaves out."""
        told = {name: value for name in self.__struct_fields__ if (value := getattr(newer, name)) is not None}
        return msgspec.structs.replace(self, **told)


def read_usage(status: Mapping[str, Any]) -> Usage:
    """Read the figures out of a status line's JSON. Whatever is absent, null or of another shape is left out."""
    context = _part(status, "context_window")
    cost = _part(status, "cost")
    limits = _part(status, "rate_limits")
    model = _part(status, "model").get("id")
    window = _number(context, "context_window_size")
    return Usage(
        model=model[:200] if isinstance(model, str) and model else None,
        context_percent=_context_percent(context, window),
        context_window=int(window) if window else None,
        cost_usd=_number(cost, "total_cost_usd"),
        lines_added=_whole(cost, "total_lines_added"),
        lines_removed=_whole(cost, "total_lines_removed"),
        five_hour_percent=_number(_part(limits, "five_hour"), "used_percentage"),
        seven_day_percent=_number(_part(limits, "seven_day"), "used_percentage"),
    )


def read_duration(status: Mapping[str, Any]) -> float | None:
    """Read for how many seconds the client has been running. It is told each time, so it is no news of the session."""
    figure = _number(_part(status, "cost"), "total_duration_ms")
    return None if figure is None else figure / 1000


def _context_percent(context: Mapping[str, Any], window: float | None) -> float | None:
    """Take the client's own figure; compute it only for clients that give none, by the window of this very line."""
    percent = _number(context, "used_percentage")
    if percent is None and window:
        used = _part(context, "current_usage")
        parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        tokens = [figure for name in parts if (figure := _number(used, name)) is not None]
        percent = 100 * sum(tokens) / window if tokens else None
    return None if percent is None else min(100.0, percent)


def _part(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = of.get(name)
    return part if isinstance(part, dict) else {}


def _number(of: Mapping[str, Any], name: str) -> float | None:
    figure = of.get(name)
    if isinstance(figure, bool) or not isinstance(figure, int | float):
        return None
    return float(figure) if 0 <= figure < _HUGE else None


def _whole(of: Mapping[str, Any], name: str) -> int | None:
    figure = _number(of, name)
    return None if figure is None else int(figure)
