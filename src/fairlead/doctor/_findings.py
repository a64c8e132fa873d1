"""The findings that the doctor reports, with texts that are safe to print."""

from __future__ import annotations

from typing import Literal

import msgspec

from fairlead.text import printable, truncate

Level = Literal["ok", "warning", "wrong", "skipped"]
"""The level of a finding. The functions below describe what each means."""

_MAX_LENGTH = 400


class Finding(msgspec.Struct, frozen=True):
    """The result of one check."""

    check: str
    """The name of the check, such as `daemon.stuck`. It is the same in all versions."""
    level: Level
    found: str
    """The state that was found, as text."""
    advice: str = ""
    """What to do; empty if there is nothing to do."""


def ok(check: str, found: str, advice: str = "") -> Finding:
    """Return a finding without a problem."""
    return _finding(check, "ok", found, advice)


def warning(check: str, found: str, advice: str) -> Finding:
    """Return a finding about something that works, but not well, or perhaps not for long."""
    return _finding(check, "warning", found, advice)


def wrong(check: str, found: str, advice: str) -> Finding:
    """Return a finding about something that does not work."""
    return _finding(check, "wrong", found, advice)


def skipped(check: str, found: str, advice: str = "") -> Finding:
    """Return a finding about something that was not checked, with the reason."""
    return _finding(check, "skipped", found, advice)


def _finding(check: str, level: Level, found: str, advice: str) -> Finding:
    return Finding(check, level, truncate(printable(found), _MAX_LENGTH), truncate(printable(advice), _MAX_LENGTH))
