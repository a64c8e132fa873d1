"""When the user was last seen: by a key in `watch`, by closing it, or by a prompt in any session."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from fairlead.paths import state_folder

if TYPE_CHECKING:
    from fairlead.daemon._error_log import ErrorLog

_SAVE_INTERVAL = 60.0
"""Seconds by which the file may be behind if the daemon is killed."""


class _Saved(msgspec.Struct, frozen=True):
    seen: float = 0.0


class Presence:
    """The last time, kept in a file. Thread-safe: the latest time wins."""

    def __init__(self, errors: ErrorLog) -> None:
        self._errors = errors
        self._saved = 0.0
        self.seen = 0.0
        """Unix time; 0 if the user was never seen."""

    def open(self) -> None:
        """Read what the last daemon has noted."""
        with suppress(OSError, ValueError), open(_file(), "rb") as file:
            self.seen = self._saved = msgspec.json.decode(file.read(), type=_Saved).seen

    def note(self, at: float) -> float:
        """Note that the user was there, and return when they were seen before."""
        before = self.seen
        self.seen = max(before, at)
        if self.seen > self._saved + _SAVE_INTERVAL:
            self.save()
        return before

    def save(self) -> None:
        """Write the file, if it is behind. Raises nothing."""
        if self.seen == self._saved:
            return
        beside = f"{_file()}.{os.getpid()}"
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(descriptor, "wb") as file:
                file.write(msgspec.json.encode(_Saved(self.seen)))
            os.replace(beside, _file())
            self._saved = self.seen
        except OSError as error:
            self._errors.report(f"when you were last seen cannot be saved: {error}")


def _file() -> str:
    return f"{state_folder()}/presence.json"
