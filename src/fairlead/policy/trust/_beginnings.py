"""How the policy files of each session were when it began. On disk, for this user alone.

A person who starts a session in a folder trusts the policy that is there, as it is then. What the files become during
the session is not covered by that.
"""

from __future__ import annotations

import os
from time import time

from fairlead.lazy import suppress
from fairlead.paths import make_private, state_folder
from fairlead.policy.config._disk_cache import read_private_file, short_name, write_private_file
from fairlead.process import is_alive
from fairlead.structs import LIGHT, Struct, decode_msgpack, encode_msgpack, replace

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:
    from typing import Any  # msgspec reads the annotations
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.policy.config._types import Layer

MAX_BEGINNINGS = 500
MAX_AGE = 30 * 24 * 3600.0
"""Seconds after which the record of a session may be removed, if there are too many."""


class SessionCaller(Struct, frozen=True):
    """The session that an event belongs to, as the client describes it."""

    id: str
    project: str = ""
    """The project's folder, as the client tells its hooks; empty if it does not."""
    pid: int = 0
    start: int = 0
    """The process of the client."""
    begins: bool = False
    """The event says that a person has started, resumed or cleared the session."""


class BegunFile(Struct, frozen=True, array_like=True):
    """A policy file as it was when a session began."""

    digest: str
    document: dict[str, Any]


class Beginning(Struct, frozen=True, array_like=True):
    """The beginning of a session."""

    session: str
    at: float
    pid: int
    start: int
    projects: tuple[str, ...]
    """The folders that the session began in."""
    files: dict[str, BegunFile]
    told: tuple[str, ...] = ()
    """Digests of the later versions, and of other files, that the person was told of."""


def beginning_path(session: str) -> str:
    """Return the path of the record of a session."""
    return f"{_folder()}/{short_name(session)}.msgpack"


def read_beginning(session: str) -> Beginning | None:
    """Return how a session began; `None` if it is not recorded. With a record that is damaged, no file is trusted."""
    path = beginning_path(session)
    beginning = _read(path)
    if beginning is None and os.path.lexists(path):
        return Beginning(session, 0.0, 0, 0, (), {})
    return beginning if beginning is not None and beginning.session == session else None


def may_renew(beginning: Beginning, caller: SessionCaller) -> bool:
    """Return whether a session begins anew: its client says so, or has ended.

    An agent can send an event that says so, but not while the client that it works for runs, and not in its name.
    """
    if not caller.begins:
        return False
    own = (beginning.pid, beginning.start)
    return own == (caller.pid, caller.start) or not (beginning.pid and is_alive(*own))


def begin(caller: SessionCaller, projects: tuple[str, ...], layers: Iterable[Layer]) -> Beginning:
    """Return the beginning of a session with these layers.

    A session that an agent has started has no person behind it: it trusts only what the agent's own session does.
    """
    files = {layer.file: BegunFile(layer.digest, layer.given or {}) for layer in layers if layer.digest}
    above = _session_above(caller)
    if above is not None:
        known = {file: begun.digest for file, begun in above.files.items()}
        files = {file: begun for file, begun in files.items() if known.get(file) == begun.digest}
    return Beginning(caller.id, time(), caller.pid, caller.start, projects, files)


def write_beginning(beginning: Beginning) -> None:
    """Record the beginning of a session. Raises `OSError` if that fails."""
    make_private(_folder())
    write_private_file(beginning_path(beginning.session), encode_msgpack(beginning))
    _prune()


def mark_told(session: str, digests: Iterable[str]) -> None:
    """Record that the person was told of some files; without a record there is nothing to mark."""
    beginning = read_beginning(session)
    if beginning is not None:
        told = tuple(dict.fromkeys((*beginning.told, *digests)))
        with suppress(OSError):
            write_beginning(replace(beginning, told=told))


def was_told(session: str, digest: str) -> bool:
    """Return whether the person was told of something in a session."""
    beginning = read_beginning(session)
    return beginning is not None and digest in beginning.told


def running_sessions() -> tuple[Beginning, ...]:
    """Return the sessions whose client still runs."""
    return tuple(one for one in _all() if one.pid and is_alive(one.pid, one.start))


def _folder() -> str:
    return f"{state_folder()}/beginnings"


def _read(path: str) -> Beginning | None:
    try:
        return decode_msgpack(read_private_file(path), type=Beginning)
    except (OSError, ValueError):
        return None


def _session_above(caller: SessionCaller) -> Beginning | None:
    """Return the session whose client has started, perhaps through an agent's command, the client of this one."""
    if caller.pid <= 0:
        return None
    from fairlead.process import ancestry_of

    ancestors = set(ancestry_of(caller.pid).processes[1:])
    found = (beginning for beginning in _all() if (beginning.pid, beginning.start) in ancestors)
    return max(found, key=lambda beginning: beginning.at, default=None) if ancestors else None


def _all() -> Iterable[Beginning]:
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(_folder())
    for name in names:
        if (beginning := _read(f"{_folder()}/{name}")) is not None:
            yield beginning


def _prune() -> None:
    """Remove the oldest records, if there are too many."""
    with suppress(OSError):
        entries = list(os.scandir(_folder()))
        if len(entries) > MAX_BEGINNINGS:
            for entry in entries:
                if time() - entry.stat().st_mtime > MAX_AGE:
                    os.unlink(entry.path)
