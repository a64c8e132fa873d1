"""The file in which a daemon saves the sessions and their costs for the next daemon."""

from __future__ import annotations

import msgspec

from fairlead.files import write_private
from fairlead.journal import Position
from fairlead.paths import state_folder
from fairlead.sessions import CostEntry


class SavedState(msgspec.Struct, frozen=True):
    """The saved sessions and costs, with the position in the journal up to which they are saved."""

    position: Position
    registry: msgspec.Raw
    """The snapshot of the registry, for `sessions.restore`."""
    costs: dict[str, CostEntry] = {}
    """The entries of the `CostLedger`."""


def read_saved_state() -> SavedState:
    """Return the state that the last daemon has saved. Raise `OSError` or `ValueError` if it cannot be read."""
    with open(_file(), "rb") as file:
        return msgspec.json.decode(file.read(), type=SavedState)


def write_saved_state(state: SavedState) -> None:
    """Replace the file in one step. Raise `OSError` if that fails, and `FairleadError` if there is no state folder."""
    write_private(_file(), msgspec.json.encode(state))


def _file() -> str:
    return f"{state_folder()}/sessions.json"
