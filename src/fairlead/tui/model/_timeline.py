"""A session's events as lines: when, what, with which tool, what was answered. No screen."""

from __future__ import annotations

from time import localtime, strftime
from typing import TYPE_CHECKING

from fairlead.text import fit, harmless, width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.tui._source import Happening
    from fairlead.tui.model._layout import Part, Piece

_LOUD = {"blocked", "failed", "asked"}
_EVENT, _TOOL = 18, 12


def timeline(events: Sequence[Happening]) -> list[list[Piece]]:
    """Give a line for each event, the newest last."""
    return [list(_line(event)) for event in events] or [[(" no events are known", "dim")]]


def _line(event: Happening) -> Iterator[Piece]:
    verdict = harmless(event.verdict or "")
    loud: Part = "needs" if verdict in _LOUD else "dim"
    yield f" {strftime('%H:%M:%S', localtime(event.at))}  ", "dim"
    yield f"{fit(harmless(event.event), _EVENT)} ", "plain"
    tool = harmless(event.tool or event.agent or "")
    yield fit(tool, max(_TOOL, min(width(tool), 2 * _TOOL))), "plain"
    if verdict not in ("", "none"):
        yield f" {verdict}", loud
    if event.exit:
        yield f" exit {event.exit}", loud
    if event.seconds and event.seconds >= 1:
        yield f" {event.seconds:.0f}s", "dim"
    if event.reason:
        yield f" {harmless(event.reason)}", "dim"
