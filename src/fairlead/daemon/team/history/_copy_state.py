"""What is to be remembered of copying events: since where the user wants it, and what was given up.

How far it is stands on the relay, with what was copied: so a relay from an old backup is given the rest again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fairlead.journal import Position
from fairlead.paths import make_private, state_folder

if TYPE_CHECKING:
    from fairlead.journal import JournalReader
    from fairlead.team import JournalMark

_START = Position(0, 0)


class CopyState(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the file."""

    host: str = ""
    """The identity with which it was copied: another one begins anew."""
    events: str = "off"
    """The setting."""
    start: Position = _START
    """Where the journal ended when the setting was turned on: what was before is not copied."""
    skipped: Position = _START
    """Up to where events were given up."""
    reached: Position = _START
    """Up to where it was copied, or a little less: to count what waits while there is no relay."""
    given_up: int = 0
    """Events that were never copied, because the relay was gone for too long."""

    def follow(self, host: str, events: str, journal: JournalReader) -> CopyState:
        """Return the state under a setting: turned on, or with another identity, it begins at the journal's end."""
        is_new = events != "off" and (self.events == "off" or self.host != host)
        end = journal.end()
        if is_new:
            return CopyState(host=host, events=events, start=end, skipped=end, reached=end)
        if events != "off" and max(self.start, self.skipped) > end:  # another journal than before
            return CopyState(host=host, events=events, given_up=self.given_up)
        return replace(self, host=host, events=events)

    def position(self, mark: JournalMark | None, journal: JournalReader) -> Position:
        """Return where to go on, by what the relay has."""
        least = max(self.start, self.skipped)
        marked = Position(mark.segment, mark.offset) if mark is not None else _START
        return least if marked > journal.end() else max(least, marked)


def load_state() -> CopyState:
    """Return what is remembered; nothing if the file is missing or damaged."""
    try:
        with open(copy_state_file(), "rb") as file:
            return msgspec.json.decode(file.read(), type=CopyState)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return CopyState()


def save_state(state: CopyState) -> None:
    """Replace the file. Raises `OSError`."""
    write_private(copy_state_file(), msgspec.json.encode(state))


def write_private(path: str, content: bytes) -> None:
    """Replace a file that only this user can read. After a crash it has the old content or the new one."""
    make_private(os.path.dirname(path))
    beside = f"{path}.new"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
    os.replace(beside, path)


def copy_state_file() -> str:
    """Return the path of the file."""
    return f"{state_folder()}/team/copying.json"
