"""Parses time spans of a day, such as `22:00-07:00`, and tests whether a given time is within quiet hours."""

from __future__ import annotations

import re
from time import localtime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.policy.config._types import Attention

_SPAN = re.compile(r"\s*(\d{1,2}):(\d\d)\s*-\s*(\d{1,2}):(\d\d)\s*")
_HOUR = 60
_DAY = 24 * _HOUR


def parse_span(text: str) -> tuple[int, int] | None:
    """Return the minutes of the day at which a span starts and ends; `None` if the text is not a span."""
    match = _SPAN.fullmatch(text)
    if match is None:
        return None
    hours, minutes = (int(match[1]), int(match[3])), (int(match[2]), int(match[4]))
    start, end = (hour * _HOUR + minute for hour, minute in zip(hours, minutes, strict=True))
    return (start, end) if start < _DAY and end <= _DAY and max(minutes) < _HOUR else None


def is_quiet(settings: Attention, now: float) -> bool:
    """Return whether a time (seconds since the epoch) is within the quiet hours, which are in local time."""
    here = localtime(now)
    spans = [settings.quiet_hours] if isinstance(settings.quiet_hours, str) else settings.quiet_hours
    return is_within_hours(spans, here.tm_hour * 60 + here.tm_min)


def is_within_hours(spans: Iterable[str], minute: int) -> bool:
    """Return whether a minute of the day is in one of the spans; the end of a span is not part of it.

    A span that ends before it starts spans midnight. A text that is not a span is ignored.
    """
    for start, end in filter(None, map(parse_span, spans)):
        if start <= minute < end or (end < start and (minute >= start or minute < end)):
            return True
    return False
