"""Finds out about the daemon of this home: folder, lock, socket, whether it answers, and other daemons."""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fairlead.daemon import MAX_SOCKET_PATH, NO_DAEMON_VARIABLE
from fairlead.doctor._facts import DaemonFacts, EntryKind, FileFacts, OtherDaemonFacts
from fairlead.ipc import DaemonUnavailable, request
from fairlead.paths import FOLDER_VARIABLES, runtime_folder, socket_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_DaemonState: TypeAlias = Literal["running", "down", "refused", "silent", "not a daemon"]

_TIMEOUT = 3.0
"""Seconds to wait for an answer. It usually takes a millisecond, but longer if a daemon has just started."""

_LISTENING = "00010000"
"""The flags of a listening socket in /proc/net/unix."""

_KINDS: tuple[tuple[Any, EntryKind], ...] = (
    (stat.S_ISLNK, "link"),
    (stat.S_ISDIR, "folder"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISREG, "file"),
)


def probe_daemon(environ: Mapping[str, str]) -> DaemonFacts:
    """Return the facts about the daemon. Starts and ends no process."""
    folder, socket = runtime_folder(), socket_file()
    state, error, status = _request_status(socket)
    held, pid = _read_lock(f"{folder}/daemon.lock")
    return DaemonFacts(
        folder=entry(folder),
        socket=entry(socket),
        lock=entry(f"{folder}/daemon.lock"),
        state=state,
        error=error,
        version=str(status.get("version", "")),
        pid=int(status.get("pid", 0)),
        lock_pid=pid,
        lock_held=held,
        processes=tuple(_processes(socket, environ)),
        max_socket_path=MAX_SOCKET_PATH,
        user=os.getuid(),
        starts_on_demand=not environ.get(NO_DAEMON_VARIABLE),
        integrity_limits=tuple(_integrity_limits(status)),
    )


def _integrity_limits(status: Mapping[str, Any]) -> Iterator[str]:
    projects = status.get("integrity")
    for project in projects if isinstance(projects, list) else ():
        folders = ", ".join(map(str, project.get("folders", ())))
        limits = [project.get("problem", ""), *project.get("limits", ())]
        yield from (f"{folders}: {limit}" for limit in limits if limit)


def entry(path: str) -> FileFacts:
    """Return the kind, permissions and owner of a directory entry. Links are not followed."""
    try:
        status = os.lstat(path)
    except OSError:
        return FileFacts(path)
    kind: EntryKind = next((kind for is_kind, kind in _KINDS if is_kind(status.st_mode)), "other")
    return FileFacts(path, kind, stat.S_IMODE(status.st_mode), status.st_uid)


def status_of(socket: str) -> dict[str, Any] | None:
    """Return the status of the daemon at this socket; `None` if none answers."""
    return _request_status(socket)[2] or None


def _request_status(socket: str) -> tuple[_DaemonState, str, dict[str, Any]]:
    try:
        status: dict[str, Any] = request("GET", "/v1/status", timeout=_TIMEOUT, at=socket)
    except DaemonUnavailable as error:
        cause = error.__context__
        if isinstance(cause, FileNotFoundError | NotADirectoryError) or len(os.fsencode(socket)) > MAX_SOCKET_PATH:
            return "down", "", {}
        if isinstance(cause, ConnectionRefusedError):
            return "refused", str(error), {}
        return ("silent" if isinstance(cause, TimeoutError) else "not a daemon"), str(error), {}
    except (ValueError, OSError) as error:
        return "not a daemon", f"what answers at {socket} is not a daemon: {error}", {}
    return ("running", "", status) if isinstance(status, dict) else ("not a daemon", f"{socket}: {status!r}", {})


def _read_lock(path: str) -> tuple[bool, int]:
    """Return whether a process holds the lock, and the pid in the lock file; `False` and 0 if it cannot be opened.

    The pid is 0 if the file has none. Takes a free lock for a moment.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False, 0
    try:
        text = os.pread(descriptor, 20, 0).strip()
        pid = int(text) if text.isdigit() else 0
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True, pid
    finally:
        os.close(descriptor)
    return False, pid


# -- other daemons: only with /proc ----------------------------------------------------------------------


def _processes(socket: str, environ: Mapping[str, str]) -> Iterator[OtherDaemonFacts]:
    """Yield the daemons of this user that listen for this home, or have this home but other folder variables."""
    listeners = _listeners(socket)
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            if process.stat().st_uid != os.getuid() or not _is_daemon(process) or _is_forked(process):
                continue
            theirs = _environment_of(process)
            different = tuple(name for name in FOLDER_VARIABLES if theirs.get(name, "") != environ.get(name, ""))
            is_split = different and not {"HOME", "FAIRLEAD_HOME", "XDG_STATE_HOME"} & set(different)
            listens = bool(_sockets(process) & listeners)
            if is_split or listens:
                yield OtherDaemonFacts(int(process.name), listens, different)


def _is_forked(process: Path) -> bool:
    """Return whether a process that looks like a daemon is a fork of one, which has not started its program yet."""
    parent = (process / "stat").read_bytes().rpartition(b")")[2].split()[1].decode()
    with suppress(OSError):
        return _is_daemon(process.parent / parent)
    return False


def _is_daemon(process: Path) -> bool:
    words = (process / "cmdline").read_bytes().split(b"\0")
    return b"fairlead.daemon" in words or (b"daemon" in words and b"run" in words)


def _environment_of(process: Path) -> dict[str, str]:
    pairs = (os.fsdecode(line).partition("=") for line in (process / "environ").read_bytes().split(b"\0"))
    return {name: value for name, _, value in pairs if name in FOLDER_VARIABLES}


def _listeners(socket: str) -> set[str]:
    """Return the listening sockets of this home, as `socket:[INODE]`.

    The kernel lists a socket by the name that it had before it was renamed.
    """
    inodes = set()
    with suppress(OSError):
        for line in Path("/proc/net/unix").read_text(errors="replace").splitlines()[1:]:
            *_, flags, _, _, inode, path = [*line.split(maxsplit=7), ""][:8]
            if flags == _LISTENING and path.startswith((f"{socket}.", f"{os.path.dirname(socket)}/.")):
                inodes.add(f"socket:[{inode}]")
    return inodes


def _sockets(process: Path) -> set[str]:
    links = set()
    for descriptor in (process / "fd").iterdir():
        with suppress(OSError):
            links.add(os.readlink(descriptor))
    return links
