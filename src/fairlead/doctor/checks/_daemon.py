"""Judges the daemon: it need not run, but what is there must be whole, and the user's alone. Pure."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fairlead.doctor._findings import ok, warning, wrong

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.doctor._facts import Daemon, Entry, Facts
    from fairlead.doctor._findings import Finding

_OTHERS = 0o077


def check_daemon(facts: Facts) -> Iterator[Finding]:
    """Say how the daemon is, and what keeps hooks from it."""
    daemon = facts.daemon
    yield from _room(daemon)
    yield from _rights(daemon)
    yield from _life(daemon, facts.version)
    yield from _others(daemon)
    yield from _reach(facts)


def _room(daemon: Daemon) -> Iterator[Finding]:
    if len(os.fsencode(daemon.socket.path)) > daemon.longest:
        yield wrong(
            "daemon.path_too_long",
            f"{daemon.socket.path} is too long for a socket ({daemon.longest} bytes), so no daemon can run",
            "set FAIRLEAD_HOME to a shorter folder, for the client too",
        )


def _rights(daemon: Daemon) -> Iterator[Finding]:
    for entry, kind in ((daemon.folder, "folder"), (daemon.socket, "socket"), (daemon.lock, "file")):
        yield from _right(entry, kind, daemon.user)


def _right(entry: Entry, kind: str, user: int) -> Iterator[Finding]:
    if entry.kind == "missing":
        return
    is_linked_folder = entry.kind == "link" and kind == "folder"
    if entry.kind != kind and not is_linked_folder:
        yield wrong(
            f"daemon.no_{kind}", f"{entry.path} is no {kind}", f"move it away: mv {entry.path} {entry.path}.old"
        )
    elif entry.owner != user:
        yield wrong(
            "daemon.owner",
            f"{entry.path} belongs to another user (uid {entry.owner}, this is {user})",
            f"remove it, or set FAIRLEAD_HOME: sudo rm -r {entry.path}",
        )
    elif entry.mode & _OTHERS and not is_linked_folder:
        right = "700" if kind == "folder" else "600"
        yield wrong(
            "daemon.mode",
            f"{entry.path} is open to other users (mode {entry.mode:o})",
            f"chmod {right} {entry.path}",
        )


def _life(daemon: Daemon, version: str) -> Iterator[Finding]:
    held = f"pid {daemon.lock_pid}" if daemon.lock_pid else "a process"
    end = f"kill {daemon.lock_pid}, and kill -9 if it stays" if daemon.lock_pid else f"fuser {daemon.lock.path}"
    if daemon.state == "running":
        yield from _running(daemon, version)
    elif daemon.state in {"silent", "odd"}:
        yield wrong("daemon.stuck", f"{daemon.why.partition(';')[0]} ({held})", f"end it: {end}")
    elif daemon.lock_held:
        yield wrong("daemon.lock", f"{held} holds {daemon.lock.path}, but nobody answers", f"end it: {end}")
    elif not daemon.wanted:
        yield ok("daemon", "not running, and FAIRLEAD_NO_DAEMON keeps events from starting one: Python decides each")
    elif daemon.state == "refused":
        yield ok("daemon.left", "not running; one that was killed left its socket, which the next event replaces")
    else:
        yield ok("daemon", "not running, which is fine: an event starts it")


def _running(daemon: Daemon, version: str) -> Iterator[Finding]:
    if daemon.version == version:
        yield ok("daemon", f"running: pid {daemon.pid}, version {version}, at {daemon.socket.path}")
    else:
        yield warning(
            "daemon.version",
            f"the daemon (pid {daemon.pid}) is of version {daemon.version}, and this is {version}",
            "fairlead daemon stop; the next event starts another",
        )


def _others(daemon: Daemon) -> Iterator[Finding]:
    listening = [one for one in daemon.processes if one.listens]
    if len(listening) > 1:
        pids = " and ".join(str(one.pid) for one in sorted(listening, key=lambda one: one.pid))
        spare = " ".join(str(one.pid) for one in listening if one.pid != daemon.pid)
        yield wrong("daemon.two", f"{len(listening)} daemons run for this home: pid {pids}", f"kill {spare}")
    for one in daemon.processes:
        if one.differs:
            names = ", ".join(one.differs)
            yield warning(
                "daemon.environment",
                f"the daemon with pid {one.pid} was started with another {names}: it answers no event from here",
                f"set {names} alike where the client and you are started, then: kill {one.pid}",
            )


def _reach(facts: Facts) -> Iterator[Finding]:
    if facts.settles:
        names = ", ".join(facts.settles)
        yield warning(
            "environment.moved",
            f"the client's settings give hooks another {names} than this terminal has: they use other folders",
            f"look at those: set {names} as in the settings, and run the doctor again",
        )
    played = facts.played
    if played.awaited and not played.came:
        words = f": {facts.state.last_words}" if facts.state.last_words else ""
        yield wrong(
            "daemon.does_not_come",
            f"an event started a daemon, but none came up{words}",
            "start it where you see why: fairlead daemon run",
        )
    roads = {run.road for run in played.runs if run.is_ours and run.road in {"daemon", "cold"}}
    is_same = facts.daemon.state == "running" and facts.daemon.version == facts.version
    if is_same and roads == {"cold"}:
        yield wrong(
            "daemon.not_reached",
            "a daemon runs, but no hook was answered by it: Python decided each",
            "fairlead daemon stop; the next event starts another",
        )
