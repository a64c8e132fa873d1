"""Formats durations, times, costs and counts as text of a few cells."""

from __future__ import annotations

from time import localtime, mktime, strftime

_UNITS = ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s"))
_WITHOUT_PART = 10
"""From ten of a unit on the smaller one is left out (`9m59s`, `10m`): a figure that always changes distracts."""


def duration(seconds: float) -> str:
    """Return a duration in at most 5 cells, such as 42s, 5m07s, 25m, 3h10m or 2d04h. A negative one is `0s`."""
    whole = max(0, int(seconds))
    for unit, name, part, part_name in _UNITS:
        if whole >= unit:
            count = whole // unit
            return f"{count}{name}" if count >= _WITHOUT_PART else f"{count}{name}{whole % unit // part:02d}{part_name}"
    return f"{whole}s"


def ago(at: float, now: float) -> str:
    """Return how long ago a time was, such as `5m07s ago`; `now` for less than a second, and for a later time."""
    return f"{duration(now - at)} ago" if now - at >= 1 else "now"


def clock(at: float, now: float) -> str:
    """Return a Unix time as a local time of day, such as `12:03`, with the date before it unless it is today."""
    return strftime("%H:%M" if start_of_day(at) == start_of_day(now) else "%Y-%m-%d %H:%M", localtime(at))


def start_of_day(at: float, days_ago: int = 0) -> float:
    """Return the time at which the local day of `at` began, or the day `days_ago` days earlier. All in Unix time."""
    day = localtime(at)
    return mktime((day.tm_year, day.tm_mon, day.tm_mday - days_ago, 0, 0, 0, 0, 0, -1))


def money(dollars: float) -> str:
    """Return a cost in at most 7 cells, such as `$12.50` or `$1.2k`."""
    return f"${dollars:.2f}" if dollars < 1000 else f"${dollars / 1000:.1f}k"  # noqa: PLR2004 - a thousand


def cost_or_unknown(dollars: float | None) -> str:
    """Return a cost in at most 7 cells; `unknown` for `None`."""
    return "unknown" if dollars is None else money(dollars)


def cost_text(dollars: float | None, unknown: int = 0) -> str:
    """Return a cost for a sentence: `None` → `cost unknown`, 1.2 → `$1.20`, 1.2 and 2 → `$1.20, cost of 2 unknown`."""
    if dollars is None:
        return "cost unknown"
    return f"{money(dollars)}, cost of {unknown} unknown" if unknown else money(dollars)


def compact_number(number: int) -> str:
    """Return a number in a few cells, rounded to thousands, tenths of a million or millions: 999, 31k, 1.2M, 12M."""
    if number < 1000:  # noqa: PLR2004 - a thousand
        return str(number)
    if number < 999_500:  # noqa: PLR2004 - rounds to less than a million
        return f"{number / 1000:.0f}k"
    return f"{number / 1e6:.1f}M" if number < 9_950_000 else f"{number / 1e6:.0f}M"  # noqa: PLR2004 - to ten millions
