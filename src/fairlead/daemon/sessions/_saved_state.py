"""The file in which a daemon leaves the sessions and their costs for the next one."""

from __future__ import annotations

import os

import msgspec

from fairlead.journal import Position
from fairlead.paths import state_folder
from fairlead.sessions import CostEntry


class SavedState(msgspec.Struct, frozen=True):
    """The registry as bytes, and the position in the journal that it includes."""

    position: Position
    registry: msgspec.Raw
    costs: dict[str, CostEntry] = {}


def read_saved_state() -> SavedState:
    """Read the state of the last daemon. Raises `OSError` and `ValueError`."""
    with open(_file(), "rb") as file:
        return msgspec.json.decode(file.read(), type=SavedState)


def write_saved_state(state: SavedState) -> None:
    """Replace the file as a whole. Raises `OSError`, and `FairleadError` if there is no state folder."""
    temporary_file = f"{_file()}.{os.getpid()}"
    descriptor = os.open(temporary_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(msgspec.json.encode(state))
    os.replace(temporary_file, _file())


def _file() -> str:
    return f"{state_folder()}/sessions.json"
