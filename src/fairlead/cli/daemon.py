"""`fairlead daemon`: run it here, begin it in the background, stop it, or ask how it is."""

from __future__ import annotations

import json
import os
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from fairlead import __version__
from fairlead.daemon import daemon_log_file, start_daemon
from fairlead.errors import FairleadError, UsageError
from fairlead.ipc import DaemonNotResponding, DaemonUnavailable, daemon_pid, request
from fairlead.paths import runtime_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

USAGE = """\
usage: fairlead daemon run [--idle SECONDS] [--port N]     answer events here, until Ctrl-C
       fairlead daemon start [--idle SECONDS] [--port N]   the same in the background
       fairlead daemon stop                                finish what is under way, and go
       fairlead daemon status [--json]                     say how it is

Events start a daemon by themselves, and it stops when none has come for half an hour: there is no need
to run any of this. FAIRLEAD_NO_DAEMON=1 keeps events from starting one; they are then decided one by one.

options:
  --idle SECONDS   stop after so many seconds without an event (default: 1800)
  --port N         answer on a port of this machine too, for those who know the token in the runtime folder
                   (0: any free one); off by default

example:
  fairlead daemon start && fairlead daemon status

exit codes: 0 done, or running; 1 it cannot be done, or it does not answer; 3 status: no daemon is running
"""

_PATIENCE = 10.0
"""Seconds for a daemon to come or go."""

_TURN = 0.02
_NOT_RUNNING = 3


def run(args: Sequence[str]) -> int:
    """Do what the first word says."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    commands: dict[str, Callable[[Sequence[str]], int]] = {
        "run": _run,
        "start": _start,
        "stop": _stop,
        "status": _status,
    }
    word = args[0] if args else ""
    if word not in commands:
        raise UsageError(f"daemon: expected run, start, stop or status, got {word!r}")
    return commands[word](args[1:])


def _run(args: Sequence[str]) -> int:
    from fairlead.daemon.command import main

    return main(args)


def _start(args: Sequence[str]) -> int:
    from fairlead.daemon.command import read_options

    read_options(args)
    running = _ask_status()
    if running is not None:
        print(f"running already: pid {running['pid']}, version {running['version']}")
        return 0
    begun = monotonic()
    try:
        pid = start_daemon(*args)
    except OSError as error:
        raise FairleadError(f"the daemon cannot be begun: {error.filename}: {error.strerror}") from None
    status = _wait(lambda: _ask_status() or _gone(pid))
    if not isinstance(status, dict):
        raise FairleadError(f"the daemon did not come up: {_last_words()}; see {daemon_log_file()}")
    print(f"started: pid {status['pid']}, in {monotonic() - begun:.1f} s, listens at {' and '.join(status['listens'])}")
    return 0


def _stop(args: Sequence[str]) -> int:
    _no_more(args)
    try:
        pid = request("POST", "/v1/stop")["pid"]
    except DaemonNotResponding:
        raise
    except DaemonUnavailable:
        print("no daemon is running")
        return 0
    if _wait(lambda: daemon_pid(runtime_folder()) != pid or None) is None:
        raise FairleadError(f"the daemon (pid {pid}) has not gone within {_PATIENCE:g} s; end it with kill {pid}")
    print(f"stopped: pid {pid}")
    return 0


def _status(args: Sequence[str]) -> int:
    _no_more([word for word in args if word != "--json"])
    try:
        status = request("GET", "/v1/status")
    except DaemonUnavailable as error:
        print(json.dumps({"running": False, "why": str(error)}) if "--json" in args else error)
        return 1 if isinstance(error, DaemonNotResponding) else _NOT_RUNNING
    if "--json" in args:
        print(json.dumps({"running": True, **status}))
        return 0
    for line in _told(status):
        print(line)
    return 0


def _told(status: dict[str, Any]) -> list[str]:
    other = "" if status["version"] == __version__ else f" (this is {__version__}: it goes at the next event)"
    return [
        f"running    pid {status['pid']}, version {status['version']}{other}, for {_span(status['uptime'])}",
        *(f"listens    {place}" for place in status["listens"]),
        f"events     {status['events']} answered, {status['spool']} waiting in the spool, {status['stored']} stored",
        f"memory     {status['memory'] / 1e6:.0f} MB",
        f"loop       late by {status['loop_lag'] * 1000:.0f} ms at most in the last minute",
        *_attention(status.get("attention")),
        *([f"troubles   {status['troubles']}; see: fairlead events --last 50"] if status["troubles"] else []),
    ]


def _attention(told: dict[str, Any] | None) -> list[str]:
    if not told:  # an older daemon
        return []
    barred = "" if told["can_tell"] else "; you cannot be told: no desktop here, and no channels"
    wait = "session waits" if told["waiting"] == 1 else "sessions wait"
    return [f"attention  {told['waiting']} {wait} for you; you were told of {told['told']}{barred}"]


def _span(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours} h {rest // 60} min" if hours else f"{rest // 60} min {rest % 60} s" if rest >= 60 else f"{rest} s"  # noqa: PLR2004 - a minute


def _ask_status() -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = request("GET", "/v1/status")
    except DaemonUnavailable:
        return None
    return found


def _gone(pid: int) -> str | None:
    """Tell whether a daemon that was just begun has ended already."""
    done, _ = os.waitpid(pid, os.WNOHANG)
    return "gone" if done else None


def _wait(look: Callable[[], Any]) -> Any:
    deadline = monotonic() + _PATIENCE
    while (found := look()) is None and monotonic() < deadline:
        sleep(_TURN)
    return found


def _last_words() -> str:
    try:
        with open(daemon_log_file(), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "it left no word"


def _no_more(args: Sequence[str]) -> None:
    if args:
        raise UsageError(f"unknown option {args[0]!r}; see fairlead daemon --help")
