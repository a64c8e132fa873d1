"""Checks of the daemon: it need not run, but its files must be intact and private to the user."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fairlead.doctor._findings import ok, warning, wrong

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.doctor._facts import DaemonFacts, Facts, FileFacts
    from fairlead.doctor._findings import Finding

_OTHER_USERS = 0o077
_RESTART = "fairlead daemon stop; the next event starts a new one"


def check_daemon(facts: Facts) -> Iterator[Finding]:
    """Yield findings about the daemon, and about causes that keep hooks from reaching it."""
    daemon = facts.daemon
    yield from _check_path(daemon)
    yield from _check_permissions(daemon)
    yield from _check_answer(daemon, facts.version)
    yield from _check_other_daemons(daemon)
    yield from _check_reach(facts)
    yield from _check_integrity(facts)


def _check_path(daemon: DaemonFacts) -> Iterator[Finding]:
    if len(os.fsencode(daemon.socket.path)) > daemon.max_socket_path:
        yield wrong(
            "daemon.path_too_long",
            f"{daemon.socket.path} is too long for a socket (at most {daemon.max_socket_path} bytes), "
            "so no daemon can run",
            "set FAIRLEAD_HOME to a shorter folder, for the client too",
        )


def _check_permissions(daemon: DaemonFacts) -> Iterator[Finding]:
    for entry, kind in ((daemon.folder, "folder"), (daemon.socket, "socket"), (daemon.lock, "file")):
        yield from _check_entry(entry, kind, daemon.user)


def _check_entry(entry: FileFacts, kind: str, user: int) -> Iterator[Finding]:
    if entry.kind == "missing":
        return
    is_linked_folder = entry.kind == "link" and kind == "folder"
    if entry.kind != kind and not is_linked_folder:
        yield wrong(
            f"daemon.no_{kind}", f"{entry.path} is not a {kind}", f"move it away: mv {entry.path} {entry.path}.old"
        )
    elif entry.owner != user:
        yield wrong(
            "daemon.owner",
            f"{entry.path} belongs to another user (uid {entry.owner}, this is {user})",
            f"remove it, or set FAIRLEAD_HOME: sudo rm -r {entry.path}",
        )
    elif entry.mode & _OTHER_USERS and not is_linked_folder:
        mode = "700" if kind == "folder" else "600"
        yield wrong(
            "daemon.mode",
            f"{entry.path} is open to other users (mode {entry.mode:o})",
            f"chmod {mode} {entry.path}",
        )


def _check_answer(daemon: DaemonFacts, version: str) -> Iterator[Finding]:
    holder = f"pid {daemon.lock_pid}" if daemon.lock_pid else "a process"
    stop = f"kill {daemon.lock_pid}, and kill -9 if it stays" if daemon.lock_pid else f"fuser {daemon.lock.path}"
    if daemon.state == "running":
        yield from _check_version(daemon, version)
    elif daemon.state in {"silent", "not a daemon"}:
        yield wrong("daemon.stuck", f"{daemon.error.partition(';')[0]} ({holder})", f"end it: {stop}")
    elif daemon.lock_held:
        yield wrong(
            "daemon.lock", f"{holder} holds the lock {daemon.lock.path}, but does not answer", f"end it: {stop}"
        )
    elif not daemon.starts_on_demand:
        yield ok("daemon", "not running; FAIRLEAD_NO_DAEMON is set, so events are handled without one")
    elif daemon.state == "refused":
        yield ok("daemon.left", "not running; a killed one left its socket, which the next event replaces")
    else:
        yield ok("daemon", "not running, which is fine: the next event starts it")


def _check_version(daemon: DaemonFacts, version: str) -> Iterator[Finding]:
    if daemon.version == version:
        yield ok("daemon", f"running: pid {daemon.pid}, version {version}, at {daemon.socket.path}")
    else:
        yield warning(
            "daemon.version",
            f"the daemon (pid {daemon.pid}) has version {daemon.version}, and this is {version}",
            _RESTART,
        )


def _check_other_daemons(daemon: DaemonFacts) -> Iterator[Finding]:
    listening = [other.pid for other in daemon.processes if other.listens]
    if len(listening) > 1:
        pids = " and ".join(map(str, sorted(listening)))
        spare = " ".join(str(pid) for pid in listening if pid != daemon.pid)
        yield wrong("daemon.two", f"{len(listening)} daemons run for this home: pid {pids}", f"kill {spare}")
    for other in daemon.processes:
        if other.different_variables:
            pid, names = other.pid, ", ".join(other.different_variables)
            yield warning(
                "daemon.environment",
                f"the daemon with pid {pid} was started with a different {names}, so it declines events from here",
                f"give {names} the same value where the client and you are started, then: kill {pid}",
            )


def _check_reach(facts: Facts) -> Iterator[Finding]:
    if facts.moved_variables:
        names = ", ".join(facts.moved_variables)
        yield warning(
            "environment.moved",
            f"the client's settings give hooks a different {names}, so they use other folders than this terminal",
            f"to check those, set {names} as in the settings and run the doctor again",
        )
    hook_runs = facts.hook_runs
    if hook_runs.started_daemon and not hook_runs.daemon_came_up:
        log = f": {facts.state.last_log_line}" if facts.state.last_log_line else ""
        yield wrong(
            "daemon.does_not_come",
            f"an event started a daemon, but it did not come up{log}",
            "run it in the foreground to see why: fairlead daemon run",
        )
    routes = {run.route for run in hook_runs.runs if run.is_ours and run.route in {"daemon", "no daemon"}}
    is_same_version = facts.daemon.state == "running" and facts.daemon.version == facts.version
    if is_same_version and routes == {"no daemon"}:
        yield wrong(
            "daemon.not_reached",
            "a daemon is running, but it answered no hook: each was handled without it",
            _RESTART,
        )


def _check_integrity(facts: Facts) -> Iterator[Finding]:
    """Yield findings about causes that keep the integrity check from covering all protected files."""
    mode, daemon = facts.policy.integrity, facts.daemon
    if mode != "off" and not daemon.starts_on_demand and daemon.state != "running":
        yield warning(
            "integrity.no_daemon",
            f"preToolUse.integrity is {mode}, but only the daemon checks protected files, "
            "and FAIRLEAD_NO_DAEMON keeps it from starting",
            "unset FAIRLEAD_NO_DAEMON where the client is started",
        )
    for limit in daemon.integrity_limits:
        yield warning(
            "integrity.limit",
            f"the integrity check does not cover all protected files: {limit}",
            "name fewer files in preToolUse.uneditableFiles, or the folders that they are in",
        )
