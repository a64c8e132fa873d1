"""Durations on the command line: `30s`, `10m`, `2h`, `1d`, `1h30m`, or a number of seconds. Standard library only."""

from __future__ import annotations

from fairlead.errors import UsageError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MAX_DIGITS = 9


def parse_duration(text: str) -> float | None:
    """Return a duration in seconds; `None` if the text is not one. Of several units, the largest comes first."""
    if text[-1:] not in _UNITS:
        return _number(text)
    seconds, number, smallest = 0.0, "", float("inf")
    for character in text:
        unit = _UNITS.get(character)
        if unit is None:
            number += character
            continue
        value = _number(number)
        if value is None or unit >= smallest:
            return None
        seconds, number, smallest = seconds + value * unit, "", unit
    return seconds


def _number(text: str) -> float | None:
    whole, _, fraction = text.partition(".")
    digits = whole + fraction
    if not (digits.isascii() and digits.isdecimal()) or max(len(whole), len(fraction)) > _MAX_DIGITS:
        return None
    return float(f"{whole or 0}.{fraction or 0}")


def read_duration(option: str, text: str, *, positive: bool = False) -> float:
    """Return a duration in seconds. Raise `UsageError` if the text is not one, or if it is 0 and `positive` is set.

    `option` is the name that begins the error's message.
    """
    seconds = parse_duration(text)
    if seconds is None or (positive and not seconds):
        above = " above 0" if positive else ""
        raise UsageError(
            f"{option}: expected a duration such as 30s, 10m, 2h or 1d, or a number of seconds{above}, got {text!r}"
        )
    return seconds
