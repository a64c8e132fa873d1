"""`fairlead daemon`: runs the daemon here, starts it in the background, stops it, or shows its status."""

from __future__ import annotations

import json
import os
import sys
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import click

from fairlead import __version__
from fairlead.cli.support.command import Command
from fairlead.cli.support.daemon_client import start_failure
from fairlead.cli.support.invocation import current, print_line, print_lines
from fairlead.cli.support.param_types import Duration, Number
from fairlead.cli.support.person import refuse_below_session, require_person, yes_option
from fairlead.daemon import daemon_log_file, start_daemon
from fairlead.errors import FairleadError
from fairlead.ipc import DaemonNotResponding, DaemonUnavailable, daemon_pid, request
from fairlead.paths import runtime_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TIMEOUT = 10.0
"""Seconds for a daemon to start or to stop."""

_POLL_INTERVAL = 0.02
_NOT_RUNNING = 3
_MAX_PORT = 65535
_LOG_TAIL = 4096


# -- options and text ----------------------------------------------------------------------------------


def to_arguments(idle: float | None, port: int | None) -> list[str]:
    """Return the command-line arguments of the daemon's process. `idle` is in seconds; `None` leaves an option out."""
    args = [] if idle is None else ["--idle", str(idle)]
    return args if port is None else [*args, "--port", str(port)]


def status_lines(status: dict[str, Any], python_launcher: str = "") -> Iterator[str]:
    """Yield the lines of `daemon status`. `status` is the daemon's answer to `/v1/status`.

    `python_launcher` is a remark that the launcher is the slow one, written in Python; "" if it is not.
    """
    other = "" if status["version"] == __version__ else f" (this is {__version__}: it stops at the next event)"
    yield f"running    pid {status['pid']}, version {status['version']}{other}, for {_span(status['uptime'])}"
    yield from (f"listens    {address}" for address in status["listens"])
    yield f"events     {status['events']} answered, {status['spool']} waiting in the spool, {status['stored']} stored"
    yield f"memory     {status['memory'] / 1e6:.0f} MB"
    yield f"loop       delayed by at most {status['loop_lag'] * 1000:.0f} ms in the last minute"
    yield from _attention_lines(status.get("attention"))
    yield from _integrity_lines(status.get("integrity"))
    if status["troubles"]:
        yield f"errors     {status['troubles']}; see: fairlead events --last 50"
    if python_launcher:
        yield f"launcher   {python_launcher}"


def _attention_lines(fields: dict[str, Any] | None) -> list[str]:
    if not fields:  # an older daemon
        return []
    remark = "" if fields["can_tell"] else "; you cannot be notified: no desktop here, and no channels"
    wait = "session waits" if fields["waiting"] == 1 else "sessions wait"
    return [f"attention  {fields['waiting']} {wait} for you; you were notified of {fields['told']}{remark}"]


def _integrity_lines(projects: list[dict[str, Any]] | None) -> Iterator[str]:
    for project in projects or ():
        copies = f", {project['copies'] / 1e6:.1f} MB of copies" if project["mode"] == "restore" else ""
        files = "1 protected file" if project["files"] == 1 else f"{project['files']} protected files"
        yield f"integrity  {project['mode']}: {files}{copies} in {', '.join(project['folders'])}"


def _span(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours} h {rest // 60} min" if hours else f"{rest // 60} min {rest % 60} s" if rest >= 60 else f"{rest} s"  # noqa: PLR2004 - a minute


# -- the commands --------------------------------------------------------------------------------------


def _run_options(function: Callable[..., Any]) -> Callable[..., Any]:
    function = click.option(
        "--port",
        metavar="N",
        type=Number(0, _MAX_PORT),
        help=(
            "Also listen on a port of this machine, for programs that know the token in the runtime folder; 0 takes "
            "any free port (default: off)."
        ),
    )(function)
    return click.option(
        "--idle",
        metavar="DURATION",
        type=Duration(positive=True),
        help="Stop after this time without an event (default: 30m).",
    )(function)


@click.command(
    "run",
    cls=Command,
    examples=("fairlead daemon run --idle 1d",),
    exit_codes=((0, "it was stopped"), (1, "it cannot run; stderr says why")),
)
@_run_options
def run(*, idle: float | None, port: int | None) -> int:
    """Run the daemon in the foreground.

    It answers events until Ctrl-C. This is how to run it as a service.
    """
    from fairlead.daemon.command import main

    return main(to_arguments(idle, port))


@click.command(
    "start",
    cls=Command,
    examples=("fairlead daemon start && fairlead daemon status",),
    exit_codes=((0, "it answers"), (1, "it cannot be started; stderr says why")),
)
@_run_options
def start(*, idle: float | None, port: int | None) -> int:
    """Start the daemon in the background."""
    running = _ask_status()
    if running is not None:
        print(f"running already: pid {running['pid']}, version {running['version']}")
        return 0
    started_at = monotonic()
    try:
        pid = start_daemon(*to_arguments(idle, port))
    except OSError as error:
        raise start_failure(error) from None
    status = _wait(lambda: _ask_status() or _has_ended(pid))
    if not isinstance(status, dict):
        raise FairleadError(f"the daemon did not start: {_last_log_line()}; see {daemon_log_file()}")
    seconds = monotonic() - started_at
    print(f"started: pid {status['pid']}, in {seconds:.1f} s, listens at {' and '.join(status['listens'])}")
    return 0


@click.command(
    "stop",
    cls=Command,
    examples=("fairlead daemon stop",),
    exit_codes=((0, "stopped, or none was running"), (1, "it does not answer or stop; stderr says why")),
)
@yes_option
def stop(*, yes: bool) -> int:
    """Stop the daemon after it has finished its current work.

    Asks for a confirmation while sessions run, and refuses below an agent's session.
    """
    refuse_below_session("stop the daemon")
    if daemon_pid(runtime_folder()) is not None and (running := _running_sessions()):
        require_person(f"stop the daemon while sessions run ({running})", assume_yes=yes)
    try:
        pid = request("POST", "/v1/stop")["pid"]
    except DaemonNotResponding:
        raise
    except DaemonUnavailable:
        print("no daemon is running")
        return 0
    if _wait(lambda: daemon_pid(runtime_folder()) != pid or None) is None:
        raise FairleadError(f"the daemon (pid {pid}) did not stop within {_TIMEOUT:g} s; end it with kill {pid}")
    print(f"stopped: pid {pid}")
    return 0


@click.command(
    "status",
    cls=Command,
    examples=("fairlead daemon status", "fairlead daemon status --json"),
    exit_codes=((0, "it runs"), (1, "it does not answer"), (3, "no daemon is running")),
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(*, as_json: bool) -> int:
    """Show whether the daemon runs, and its load."""
    try:
        document = current().request("GET", "/v1/status")
    except DaemonUnavailable as error:
        print_line(json.dumps({"running": False, "why": str(error)}) if as_json else error)
        return 1 if isinstance(error, DaemonNotResponding) else _NOT_RUNNING
    if as_json:
        print_line(json.dumps({"running": True, **document}))
    else:
        print_lines(status_lines(document, _python_launcher()))
    return 0


def _running_sessions() -> int:
    """Return how many of the sessions that the clients list have a living process."""
    from fairlead.clients import known_clients
    from fairlead.process import is_alive

    sessions = [session for client in known_clients() for session in client.find_sessions()]
    return sum(is_alive(session.pid, session.start) for session in sessions)


def _python_launcher() -> str:
    """Return a remark if the launcher is the slow one in Python; "" if it is compiled or missing."""
    if _is_compiled(os.path.join(os.path.dirname(sys.executable), "fairlead-hook")):
        return ""  # the usual case: the imports below take 50 ms
    from fairlead import clients

    try:
        launcher = clients.find_launcher(clients.launcher_folders(), sys.executable).hook
    except clients.InstallError:
        return ""
    return f"{clients.PYTHON_LAUNCHER}; {clients.COMPILE_LAUNCHER}" if clients.is_python_launcher(launcher) else ""


def _is_compiled(program: str) -> bool:
    try:
        with open(program, "rb") as file:
            return file.read(2) != b"#!"
    except OSError:
        return False


def _ask_status() -> dict[str, Any] | None:
    try:
        document: dict[str, Any] = request("GET", "/v1/status")
    except DaemonUnavailable:
        return None
    return document


def _has_ended(pid: int) -> str | None:
    done, _ = os.waitpid(pid, os.WNOHANG)
    return "ended" if done else None


def _wait(poll: Callable[[], Any]) -> Any:
    """Call `poll` until its value is not `None`, and return that value; `None` after `_TIMEOUT` seconds."""
    deadline = monotonic() + _TIMEOUT
    while (result := poll()) is None and monotonic() < deadline:
        sleep(_POLL_INTERVAL)
    return result


def _last_log_line() -> str:
    try:
        with open(daemon_log_file(), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LOG_TAIL))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "its log is empty"
