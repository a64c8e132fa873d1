"""A file with the leases of the other hosts, for a daemon that starts while the relay cannot be reached."""

from __future__ import annotations

import os

import msgspec

from fairlead.files import write_private
from fairlead.paths import make_private, state_folder
from fairlead.team import TeamLease

_MAX_BYTES = 8 * 1024 * 1024


class CachedLeases(msgspec.Struct, frozen=True, kw_only=True):
    """Rows as they were last read from the relay. Their signatures are verified again."""

    offset: float = 0.0
    """How many seconds the relay's clock was ahead of this host's."""
    rows: tuple[TeamLease, ...] = ()


def read_cached_leases() -> CachedLeases:
    """Return the content of the file; no leases if it cannot be read."""
    try:
        with open(_path(), "rb") as file:
            return msgspec.json.decode(file.read(_MAX_BYTES), type=CachedLeases)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return CachedLeases()


def write_cached_leases(leases: CachedLeases) -> None:
    """Write the file; if it would be larger than 8 MiB, the old one stays. Raises `OSError` if that fails."""
    content = msgspec.json.encode(leases)
    if len(content) > _MAX_BYTES:
        return
    make_private(os.path.dirname(_path()))
    write_private(_path(), content)


def remove_cached_leases() -> None:
    """Delete the file if it exists."""
    if os.path.exists(_path()):
        os.remove(_path())


def _path() -> str:
    return f"{state_folder()}/team/leases.json"
