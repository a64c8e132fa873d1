"""What the doctor says: one value per finding, in words that are safe to print."""

from __future__ import annotations

from typing import Literal

import msgspec

Level = Literal["ok", "warning", "wrong", "skipped"]

_LONGEST = 400


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    check: str
    """Its name, which stays the same from version to version, as `daemon.stuck`."""
    level: Level
    found: str
    advice: str = ""
    """What to do; empty where nothing is to be done."""


def ok(check: str, found: str, advice: str = "") -> Finding:
    """Say that something is as it should be."""
    return Finding(check, "ok", harmless(found), harmless(advice))


def warning(check: str, found: str, advice: str) -> Finding:
    """Say that something works, but not as well as it could, or may not work for long."""
    return Finding(check, "warning", harmless(found), harmless(advice))


def wrong(check: str, found: str, advice: str) -> Finding:
    """Say that something does not work."""
    return Finding(check, "wrong", harmless(found), harmless(advice))


def skipped(check: str, found: str, advice: str = "") -> Finding:
    """Say that something was not looked at, and why."""
    return Finding(check, "skipped", harmless(found), harmless(advice))


def harmless(text: str) -> str:
    """Make a text printable, on one line: paths and answers of others may hold what moves a terminal's cursor."""
    shown = "".join(char if char.isprintable() else _escaped(char) for char in text)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def _escaped(char: str) -> str:
    return char.encode("unicode_escape", "backslashreplace").decode("ascii")
