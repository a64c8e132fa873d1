"""The status line that Fairlead shows for users who have none of their own. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.text import duration, money, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.clients import StatusLine, Usage

STATUS_LINE = "StatusLine"
"""The launcher's name for the status line. It is not an event of the client."""
MAX_STATUS_BYTES = 256 * 1024
"""The maximum number of bytes of a status line's payload: a hundred times as many as a client sends."""

_MAX_NAME_LENGTH = 40
_BAR = 10


def line_of(status: StatusLine, known: Usage | None = None, others: int = 0) -> str:
    """Return the line: the model, how full its context is, the usage, and how many other sessions need the user.

    `known` is the usage of the session including this payload: one payload alone may not have everything.
    """
    usage = known or status.usage
    return "  ".join(part for part in _parts(status, usage, others) if part)


def _parts(status: StatusLine, usage: Usage, others: int) -> Iterator[str]:
    yield _model(status, usage)
    if usage.context_percent is not None:
        filled = round(usage.context_percent / 100 * _BAR)
        yield f"{'█' * filled}{'░' * (_BAR - filled)} {usage.context_percent:.0f}%"
    if usage.cost_usd is not None:
        yield money(usage.cost_usd)
    if status.seconds is not None:
        yield duration(status.seconds)
    if usage.lines_added or usage.lines_removed:
        yield " ".join(changed_lines(usage))
    if others:
        yield f"! {others} {'other needs' if others == 1 else 'others need'} you"


def changed_lines(usage: Usage) -> Iterator[str]:
    """Yield how many lines were added and removed, as far as the client has reported it: `+156`, `-23`."""
    if usage.lines_added is not None:
        yield f"+{usage.lines_added}"
    if usage.lines_removed is not None:
        yield f"-{usage.lines_removed}"


def _model(status: StatusLine, usage: Usage) -> str:
    """Return the client's name of the model, safe for a terminal."""
    return one_line(status.model or usage.model or "", _MAX_NAME_LENGTH)
