"""Figures as a person reads them, in few cells. Knows nothing of sessions."""

from __future__ import annotations

_UNITS = ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s"))
_LONG = 10


def span(seconds: float) -> str:
    """Tell a time in at most 5 cells: 42s, 5m07s, 25m, 3h10m, 2d04h. Seconds of a long time would only flicker."""
    whole = max(0, int(seconds))
    for unit, name, part, small in _UNITS:
        if whole >= unit:
            count = whole // unit
            return f"{count}{name}" if count >= _LONG else f"{count}{name}{whole % unit // part:02d}{small}"
    return f"{whole}s"


def money(dollars: float) -> str:
    """Tell a cost in at most 7 cells."""
    return f"${dollars:.2f}" if dollars < 1000 else f"${dollars / 1000:.1f}k"  # noqa: PLR2004 - a thousand
