"""The stored state of copying events: where it started, and how many events were given up.

The position up to which events are copied is on the relay. So if the relay is restored from a backup, the missing
events are copied again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fairlead.files import write_private
from fairlead.journal import Position
from fairlead.paths import make_private, state_folder

if TYPE_CHECKING:
    from fairlead.journal import JournalReader
    from fairlead.team import JournalMark

_START = Position(0, 0)


class CopyState(msgspec.Struct, frozen=True, kw_only=True):
    """The state, as the file `copy_state_file()` stores it."""

    host: str = ""
    """The host id with which events were copied. With another id, copying starts again."""
    events: str = "off"
    """The setting `team.events`."""
    start: Position = _START
    """The end of the journal when the setting was turned on. Earlier events are not copied."""
    skipped: Position = _START
    """The position up to which events were given up."""
    reached: Position = _START
    """The position up to which events were copied, or a little less. Used to count the backlog without a relay."""
    given_up: int = 0
    """How many events were never copied, because the relay was gone for too long."""

    def with_settings(self, host: str, events: str, journal: JournalReader) -> CopyState:
        """Return the state for a host id and a value of `team.events`.

        If the setting was turned on or the id has changed, copying starts at the end of the journal. If the journal was
        replaced, copying starts at its beginning.
        """
        is_new = events != "off" and (self.events == "off" or self.host != host)
        end = journal.end()
        if is_new:
            return CopyState(host=host, events=events, start=end, skipped=end, reached=end)
        if events != "off" and max(self.start, self.skipped) > end:  # the journal was replaced
            return CopyState(host=host, events=events, given_up=self.given_up)
        return replace(self, host=host, events=events)

    def position(self, mark: JournalMark | None, journal: JournalReader) -> Position:
        """Return the position at which copying continues. `mark` is that on the relay, `None` if the relay has none."""
        least = max(self.start, self.skipped)
        marked = Position(mark.segment, mark.offset) if mark is not None else _START
        return least if marked > journal.end() else max(least, marked)


def load_state() -> CopyState:
    """Return the stored state; an empty one if the file is missing or damaged."""
    try:
        with open(copy_state_file(), "rb") as file:
            return msgspec.json.decode(file.read(), type=CopyState)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return CopyState()


def save_state(state: CopyState) -> None:
    """Write the state to the file. Raises `OSError` if that fails."""
    make_private(os.path.dirname(copy_state_file()))
    write_private(copy_state_file(), msgspec.json.encode(state))


def copy_state_file() -> str:
    """Return the path of the file with the state."""
    return f"{state_folder()}/team/copying.json"
