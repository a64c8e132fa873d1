"""Looks at the daemon of this home: folder, lock, socket, whether it answers, and which others there are."""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fairlead.daemon import MAX_SOCKET_PATH, NO_DAEMON_VARIABLE
from fairlead.doctor._facts import Daemon, Entry, Kind, OtherDaemon
from fairlead.ipc import DaemonUnavailable, request
from fairlead.paths import FOLDER_VARIABLES, runtime_folder, socket_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PATIENCE = 1.0
"""Seconds for an answer that takes a millisecond."""

_LISTENS = "00010000"
"""A flag in /proc/net/unix."""

_KINDS: tuple[tuple[Any, Kind], ...] = (
    (stat.S_ISLNK, "link"),
    (stat.S_ISDIR, "folder"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISREG, "file"),
)


def look_at_daemon(environ: Mapping[str, str]) -> Daemon:
    """Look at everything that is about the daemon. Starts and ends nothing."""
    folder, socket = runtime_folder(), socket_file()
    state, why, status = _ask(socket)
    held, pid = _lock(f"{folder}/daemon.lock")
    return Daemon(
        folder=entry(folder),
        socket=entry(socket),
        lock=entry(f"{folder}/daemon.lock"),
        state=state,
        why=why,
        version=str(status.get("version", "")),
        pid=int(status.get("pid", 0)),
        lock_pid=pid,
        lock_held=held,
        processes=tuple(_processes(socket, environ)),
        longest=MAX_SOCKET_PATH,
        user=os.getuid(),
        wanted=not environ.get(NO_DAEMON_VARIABLE),
    )


def entry(path: str) -> Entry:
    """Look at a file or folder itself, not at what it leads to."""
    try:
        status = os.lstat(path)
    except OSError:
        return Entry(path)
    kind: Kind = next((kind for is_one, kind in _KINDS if is_one(status.st_mode)), "other")
    return Entry(path, kind, stat.S_IMODE(status.st_mode), status.st_uid)


def status_of(socket: str) -> dict[str, Any] | None:
    """Ask a daemon how it is; `None` if there is none."""
    return _ask(socket)[2] or None


def _ask(socket: str) -> tuple[Literal["running", "down", "refused", "silent", "odd"], str, dict[str, Any]]:
    try:
        status: dict[str, Any] = request("GET", "/v1/status", timeout=PATIENCE, at=socket)
    except DaemonUnavailable as error:
        cause = error.__context__
        if isinstance(cause, FileNotFoundError | NotADirectoryError) or len(os.fsencode(socket)) > MAX_SOCKET_PATH:
            return "down", "", {}
        if isinstance(cause, ConnectionRefusedError):
            return "refused", str(error), {}
        return ("silent" if isinstance(cause, TimeoutError) else "odd"), str(error), {}
    except (ValueError, OSError) as error:
        return "odd", f"what answers at {socket} is no daemon: {error}", {}
    return ("running", "", status) if isinstance(status, dict) else ("odd", f"{socket}: {status!r}", {})


def _lock(path: str) -> tuple[bool, int]:
    """Tell whether a process holds the lock, and which pid is written there. For that it is held for a moment."""
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


# -- other daemons: only where there is /proc ------------------------------------------------------------


def _processes(socket: str, environ: Mapping[str, str]) -> Iterator[OtherDaemon]:
    """Find the daemons of this user that listen for this home, or that were meant to and found other folders."""
    ours = _listeners(socket)
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            if process.stat().st_uid != os.getuid() or not _is_daemon(process):
                continue
            theirs = _environment_of(process)
            differs = tuple(name for name in FOLDER_VARIABLES if theirs.get(name, "") != environ.get(name, ""))
            is_split = differs and not {"HOME", "FAIRLEAD_HOME", "XDG_STATE_HOME"} & set(differs)
            listens = bool(_sockets(process) & ours)
            if is_split or listens:
                yield OtherDaemon(int(process.name), listens, differs)


def _is_daemon(process: Path) -> bool:
    words = (process / "cmdline").read_bytes().split(b"\0")
    return b"fairlead.daemon" in words or (b"daemon" in words and b"run" in words)


def _environment_of(process: Path) -> dict[str, str]:
    pairs = (os.fsdecode(line).partition("=") for line in (process / "environ").read_bytes().split(b"\0"))
    return {name: value for name, _, value in pairs if name in FOLDER_VARIABLES}


def _listeners(socket: str) -> set[str]:
    """List the sockets that were made for this home. The kernel keeps the name that each had before it was moved."""
    found = set()
    with suppress(OSError):
        for line in Path("/proc/net/unix").read_text(errors="replace").splitlines()[1:]:
            *_, flags, _, _, inode, path = [*line.split(maxsplit=7), ""][:8]
            if flags == _LISTENS and path.startswith((f"{socket}.", f"{os.path.dirname(socket)}/.")):
                found.add(f"socket:[{inode}]")
    return found


def _sockets(process: Path) -> set[str]:
    found = set()
    for descriptor in (process / "fd").iterdir():
        with suppress(OSError):
            found.add(os.readlink(descriptor))
    return found
