"""Snapshots of the policy files of each session, taken when it began. On disk, for this user alone.

A person who starts a session in a folder trusts the policy there, with its contents at that time. Changes during the
session are not trusted.
"""

from __future__ import annotations

import os
from time import time

from fairlead.files import read_private, write_private
from fairlead.lazy import suppress
from fairlead.paths import make_private, state_folder
from fairlead.policy.config._disk_cache import short_name
from fairlead.process import is_alive
from fairlead.structs import LIGHT, Struct, decode_msgpack, encode_msgpack, replace

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:
    from typing import Any  # msgspec reads the annotations
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.policy.config._types import Layer

MAX_SNAPSHOTS = 500
MAX_AGE = 30 * 24 * 3600.0
"""Seconds after which a snapshot may be removed, if there are too many."""


class SessionCaller(Struct, frozen=True):
    """The session that an event belongs to, as the client describes it."""

    id: str
    project: str = ""
    """The project's folder, as the client reports it to its hooks; empty if it does not."""
    pid: int = 0
    start: int = 0
    """The client's process is identified by `pid` and `start`, its start time."""
    begins: bool = False
    """Whether the event says that a person has started, resumed or cleared the session."""


class SnapshotFile(Struct, frozen=True, array_like=True):
    """The contents of a policy file when a session began."""

    digest: str
    document: dict[str, Any]


class PolicySnapshot(Struct, frozen=True, array_like=True):
    """A session, and the policy files that it trusts, with their contents when it began."""

    session: str
    at: float
    pid: int
    start: int
    projects: tuple[str, ...]
    """The folders that the session began in."""
    files: dict[str, SnapshotFile]
    notified: tuple[str, ...] = ()
    """Digests of the later versions, and of other files, that the person was notified of."""


def snapshot_path(session: str) -> str:
    """Return the path of the snapshot of a session."""
    return f"{_folder()}/{short_name(session)}.msgpack"


def read_snapshot(session: str) -> PolicySnapshot | None:
    """Return the snapshot of a session; `None` if there is none. A damaged one is returned without files."""
    path = snapshot_path(session)
    snapshot = _read(path)
    if snapshot is None and os.path.lexists(path):
        return PolicySnapshot(session, 0.0, 0, 0, (), {})
    return snapshot if snapshot is not None and snapshot.session == session else None


def may_renew(snapshot: PolicySnapshot, caller: SessionCaller) -> bool:
    """Return whether an event may replace the snapshot: it starts the session, and the client sent it or has ended.

    An agent can send such an event too. It is ignored while the client runs, because the client has not sent it.
    """
    if not caller.begins:
        return False
    own = (snapshot.pid, snapshot.start)
    return own == (caller.pid, caller.start) or not (snapshot.pid and is_alive(*own))


def take_snapshot(caller: SessionCaller, projects: tuple[str, ...], layers: Iterable[Layer]) -> PolicySnapshot:
    """Return a snapshot of these layers.

    A session that an agent has started trusts only the files that the agent's own session trusts.
    """
    files = {layer.file: SnapshotFile(layer.digest, layer.given or {}) for layer in layers if layer.digest}
    above = _session_above(caller)
    if above is not None:
        known = {file: recorded.digest for file, recorded in above.files.items()}
        files = {file: recorded for file, recorded in files.items() if known.get(file) == recorded.digest}
    return PolicySnapshot(caller.id, time(), caller.pid, caller.start, projects, files)


def write_snapshot(snapshot: PolicySnapshot) -> None:
    """Write a snapshot to disk, and remove old ones if there are too many. Raises `OSError` if it cannot be written."""
    make_private(_folder())
    write_private(snapshot_path(snapshot.session), encode_msgpack(snapshot))
    _prune()


def mark_notified(session: str, digests: Iterable[str]) -> None:
    """Record that the person was notified of the files with these digests. A failure to write is ignored.

    Does nothing for a session without a snapshot.
    """
    snapshot = read_snapshot(session)
    if snapshot is not None:
        notified = tuple(dict.fromkeys((*snapshot.notified, *digests)))
        with suppress(OSError):
            write_snapshot(replace(snapshot, notified=notified))


def was_notified(session: str, digest: str) -> bool:
    """Return whether the person was notified of the file with this digest in a session."""
    snapshot = read_snapshot(session)
    return snapshot is not None and digest in snapshot.notified


def snapshots_of_running_sessions() -> tuple[PolicySnapshot, ...]:
    """Return the snapshots of the sessions whose client still runs."""
    return tuple(snapshot for snapshot in _all() if snapshot.pid and is_alive(snapshot.pid, snapshot.start))


def _folder() -> str:
    return (
        f"{state_folder()}/beginnings"  # the name that earlier builds gave it, with the snapshots of running sessions
    )


def _read(path: str) -> PolicySnapshot | None:
    try:
        return decode_msgpack(read_private(path), type=PolicySnapshot)
    except (OSError, ValueError):
        return None


def _session_above(caller: SessionCaller) -> PolicySnapshot | None:
    """Return the snapshot of the session whose client is an ancestor of this one's client; `None` if there is none.

    If there is such a session, a command of its agent may have started this client.
    """
    if caller.pid <= 0:
        return None
    from fairlead.process import ancestry_of

    ancestors = set(ancestry_of(caller.pid).processes[1:])
    snapshots = (snapshot for snapshot in _all() if (snapshot.pid, snapshot.start) in ancestors)
    return max(snapshots, key=lambda snapshot: snapshot.at, default=None) if ancestors else None


def _all() -> Iterable[PolicySnapshot]:
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(_folder())
    for name in names:
        if (snapshot := _read(f"{_folder()}/{name}")) is not None:
            yield snapshot


def _prune() -> None:
    """Remove the snapshots older than `MAX_AGE`, if there are more than `MAX_SNAPSHOTS`."""
    with suppress(OSError):
        entries = list(os.scandir(_folder()))
        if len(entries) > MAX_SNAPSHOTS:
            for entry in entries:
                if time() - entry.stat().st_mtime > MAX_AGE:
                    os.unlink(entry.path)
