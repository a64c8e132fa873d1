"""Spans of the day, as `22:00-07:00`. Knows no clock."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SPAN = re.compile(r"\s*(\d{1,2}):(\d\d)\s*-\s*(\d{1,2}):(\d\d)\s*")
_HOUR = 60
_DAY = 24 * _HOUR


def read_span(text: str) -> tuple[int, int] | None:
    """Give the minutes of the day at which a span begins and ends; `None` if the text is none."""
    found = _SPAN.fullmatch(text)
    if found is None:
        return None
    hours, minutes = (int(found[1]), int(found[3])), (int(found[2]), int(found[4]))
    begins, ends = (hour * _HOUR + minute for hour, minute in zip(hours, minutes, strict=True))
    return (begins, ends) if begins < _DAY and ends <= _DAY and max(minutes) < _HOUR else None


def is_within_hours(spans: Iterable[str], minute: int) -> bool:
    """Tell whether a minute of the day lies in one of the spans. One that ends before it begins goes over midnight."""
    for begins, ends in filter(None, map(read_span, spans)):
        if begins <= minute < ends or (ends < begins and (minute >= begins or minute < ends)):
            return True
    return False
