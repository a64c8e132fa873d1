"""The client's status line: its JSON, and a line of our own for those who have none. Pure.

It comes several times a second at worst, with whatever the client has to tell; nothing in it is worth an error, for a
person would read that in place of the line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.events import decode_json
from fairlead.sessions._limits import LONGEST_ID, clean
from fairlead.sessions._usage import Usage, read_duration, read_usage
from fairlead.text import duration, money, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STATUS_LINE = "StatusLine"
"""What the launcher calls it. It is no event of the client's."""
LARGEST_STATUS = 256 * 1024
"""Bytes: a hundred times what a client sends."""

_LONGEST_NAME = 40
_BAR = 10


def read_status(payload: bytes) -> dict[str, Any]:
    """Read the JSON; of what is none, nothing."""
    try:
        status = decode_json(payload) if len(payload) <= LARGEST_STATUS else None
    except (ValueError, RecursionError):
        return {}
    return status if isinstance(status, dict) else {}


def session_of(status: Mapping[str, Any]) -> str:
    """Give the id of the session that it is about; "" if it does not say."""
    name = status.get("session_id")
    return clean(name, LONGEST_ID) if isinstance(name, str) else ""


def line_of(status: Mapping[str, Any], known: Usage | None = None, others: int = 0) -> str:
    """Write a line: the model, how full its context is, what was used, and how many other sessions need the person.

    `known` is what is known of the session, with what this line tells; one alone does not tell everything.
    """
    usage = known or read_usage(status)
    return "  ".join(part for part in _parts(status, usage, others) if part)


def _parts(status: Mapping[str, Any], usage: Usage, others: int) -> Iterator[str]:
    yield _model(status, usage)
    if usage.context_percent is not None:
        filled = round(usage.context_percent / 100 * _BAR)
        yield f"{'█' * filled}{'░' * (_BAR - filled)} {usage.context_percent:.0f}%"
    if usage.cost_usd is not None:
        yield money(usage.cost_usd)
    if (seconds := read_duration(status)) is not None:
        yield duration(seconds)
    if usage.lines_added or usage.lines_removed:
        yield f"+{usage.lines_added or 0} -{usage.lines_removed or 0}"
    if others:
        yield f"! {others} {'other needs' if others == 1 else 'others need'} you"


def _model(status: Mapping[str, Any], usage: Usage) -> str:
    """Name the model as the client does; whatever a terminal would obey is left out."""
    model = status.get("model")
    name = model.get("display_name") if isinstance(model, dict) else None
    text = name if isinstance(name, str) and name else usage.model or ""
    return one_line(text, _LONGEST_NAME)
