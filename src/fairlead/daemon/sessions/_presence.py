"""Records when the user was last seen: by a key in `watch`, by closing it, or by a prompt in any session."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import client_or_default
from fairlead.daemon.events._extension import EventExtension
from fairlead.events import UserPromptSubmit
from fairlead.files import write_private
from fairlead.paths import state_folder

if TYPE_CHECKING:
    from fairlead.daemon._error_log import ErrorLog
    from fairlead.events import Event
    from fairlead.journal import EventRecord

AWAY_AFTER = 600.0
"""Seconds after which a user who was not seen counts as away."""
_SAVE_INTERVAL = 60.0
"""Seconds between two writes of the file. If the daemon is killed, the times of at most this period are lost."""


class _Saved(msgspec.Struct, frozen=True):
    seen: float = 0.0
    left: float = 0.0


class Presence(EventExtension):
    """The Unix times at which the user was last seen and last left, saved in a file. Thread-safe."""

    recorded_events = frozenset({"UserPromptSubmit"})

    def __init__(self, errors: ErrorLog) -> None:
        self._errors = errors
        self._saved = 0.0
        self._seen = 0.0
        """When the user was last seen; 0 if never."""
        self._left = 0.0
        """When the user was last seen before their latest absence that has ended; 0 if there was none."""

    def open(self) -> None:
        """Load the times that the last daemon has saved. If they cannot be read, the user counts as never seen."""
        with suppress(OSError, ValueError), open(_file(), "rb") as file:
            saved = msgspec.json.decode(file.read(), type=_Saved)
            self._seen, self._left, self._saved = saved.seen, saved.left, saved.seen

    def left_at(self, now: float) -> float:
        """Return the Unix time at which the user left; 0 if that is not known.

        If the user is away, this is when they were last seen; if not, when they were last seen before their latest
        absence.
        """
        return self._seen if now - self._seen > AWAY_AFTER else self._left

    def after_record(self, record: EventRecord, event: Event | None) -> None:
        """Note that the user was seen at the time of a prompt, unless the client wrote it."""
        if isinstance(event, UserPromptSubmit) and not client_or_default(record.client).is_automatic(event.prompt):
            self.note(record.at)

    def note(self, at: float) -> bool:
        """Note that the user was seen at a Unix time. Return whether they were away until then."""
        was_away = self._seen > 0 and at - self._seen > AWAY_AFTER
        if was_away:
            self._left = self._seen
        self._seen = max(self._seen, at)
        if self._seen > self._saved + _SAVE_INTERVAL:
            self.save()
        return was_away

    def save(self) -> None:
        """Write the times to the file if they have changed. An error is only reported."""
        if self._seen == self._saved:
            return
        try:
            write_private(_file(), msgspec.json.encode(_Saved(self._seen, self._left)))
            self._saved = self._seen
        except OSError as error:
            self._errors.report(f"when you were last seen cannot be saved: {error}")


def _file() -> str:
    return f"{state_folder()}/presence.json"
