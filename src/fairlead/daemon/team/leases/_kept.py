"""The leases of the other hosts as they were last read, for a daemon that starts while the relay is not reached."""

from __future__ import annotations

import os

import msgspec

from fairlead.paths import make_private, state_folder
from fairlead.team import TeamLease

_MAX_BYTES = 8 * 1024 * 1024


class KeptLeases(msgspec.Struct, frozen=True, kw_only=True):
    """Rows with their signatures, which are verified again: the file is only a copy of what the relay said."""

    offset: float = 0.0
    """Seconds that the relay's clock was ahead of this host's."""
    rows: tuple[TeamLease, ...] = ()


def read_kept() -> KeptLeases:
    """Return what the last daemon has left; nothing if it cannot be read."""
    try:
        with open(_path(), "rb") as file:
            return msgspec.json.decode(file.read(_MAX_BYTES), type=KeptLeases)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return KeptLeases()


def write_kept(kept: KeptLeases) -> None:
    """Replace the file. Raises `OSError`."""
    content = msgspec.json.encode(kept)
    if len(content) > _MAX_BYTES:
        return
    make_private(os.path.dirname(_path()))
    beside = f"{_path()}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(beside, flags, 0o600), "wb") as file:
        file.write(content)
    os.replace(beside, _path())


def remove_kept() -> None:
    """Delete the file, if there is one."""
    if os.path.exists(_path()):
        os.remove(_path())


def _path() -> str:
    return f"{state_folder()}/team/leases.json"
