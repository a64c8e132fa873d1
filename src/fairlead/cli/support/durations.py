"""Durations on the command line: `30s`, `10m`, `2h`, `1d`, or a plain number of seconds. Standard library only."""

from __future__ import annotations

from fairlead.errors import UsageError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MAX_DIGITS = 9


def parse_duration(text: str) -> float | None:
    """Return the seconds; `None` if the text is not a duration."""
    unit = _UNITS.get(text[-1:])
    whole, _, fraction = (text[:-1] if unit else text).partition(".")
    digits = whole + fraction
    if not (digits.isascii() and digits.isdecimal()) or max(len(whole), len(fraction)) > _MAX_DIGITS:
        return None
    return float(f"{whole or 0}.{fraction or 0}") * (unit or 1)


def read_duration(option: str, text: str, *, positive: bool = False) -> float:
    """Return the seconds. Raise `UsageError` if the text is not a duration, or if it is 0 and `positive` is set."""
    seconds = parse_duration(text)
    if seconds is None or (positive and not seconds):
        above = " above 0" if positive else ""
        raise UsageError(
            f"{option}: expected a duration such as 30s, 10m, 2h or 1d, or a number of seconds{above}, got {text!r}"
        )
    return seconds
