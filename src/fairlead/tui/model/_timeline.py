"""A session's events as lines: time, event, tool, verdict."""

from __future__ import annotations

from time import localtime, strftime
from typing import TYPE_CHECKING

from fairlead.text import cell_width, fit, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.tui._source import TimelineEvent
    from fairlead.tui.model._layout import StyledText, StyleName

_EMPHASIZED = {"blocked", "failed", "asked"}
_EVENT_WIDTH, _TOOL_WIDTH = 18, 12


def timeline_lines(events: Sequence[TimelineEvent]) -> list[list[StyledText]]:
    """Return a line for each event, the newest last."""
    return [list(_event_line(event)) for event in events] or [[(" no events yet", "dim")]]


def _event_line(event: TimelineEvent) -> Iterator[StyledText]:
    verdict = one_line(event.verdict or "")
    emphasis: StyleName = "needs" if verdict in _EMPHASIZED else "dim"
    yield f" {strftime('%H:%M:%S', localtime(event.at))}  ", "dim"
    yield f"{fit(one_line(event.event), _EVENT_WIDTH)} ", "plain"
    tool = one_line(event.tool or event.agent or "")
    yield fit(tool, max(_TOOL_WIDTH, min(cell_width(tool), 2 * _TOOL_WIDTH))), "plain"
    if verdict not in ("", "none"):
        yield f" {verdict}", emphasis
    if event.exit:
        yield f" exit {event.exit}", emphasis
    if event.seconds and event.seconds >= 1:
        yield f" {event.seconds:.0f}s", "dim"
    if event.reason:
        yield f" {one_line(event.reason)}", "dim"
