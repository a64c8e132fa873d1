"""The status line that Fairlead shows in the client for users who have not configured one. A pure function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.text import duration, money, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.clients import StatusLine, Usage

STATUS_LINE = "StatusLine"
"""The name by which the launcher asks for the status line, as for an event. It is not an event of the client."""
MAX_STATUS_BYTES = 256 * 1024
"""The maximum size of the payload for a status line in bytes, about a hundred times what a client sends."""

_MAX_NAME_LENGTH = 40
_BAR = 10


def line_of(status: StatusLine, known: Usage | None = None, others: int = 0) -> str:
    """Return the line: model, fill of the context window, cost, duration, changed lines, and other sessions' needs.

    `known` is the usage merged from all payloads of the session, because one payload may not have all figures; `None`
    to use that of `status`. `others` is the number of other sessions that need the user.
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
    """Return the client's name for the model, cut and without control characters."""
    return one_line(status.model or usage.model or "", _MAX_NAME_LENGTH)
