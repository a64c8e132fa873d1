"""The command line of the daemon's process, as a hook or `fairlead daemon` starts it."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from fairlead.errors import FairleadError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOCK_TIMEOUT = 10.0
"""Seconds that a daemon started on demand waits for an older one to exit."""

_LAST_PORT = 65535


def main(args: Sequence[str]) -> int:
    """Run until shutdown: `[--on-demand] [--idle SECONDS] [--port N]`. Returns the exit code.

    With `--on-demand` the code is 0 even if the daemon cannot run, and a daemon that runs already is no error.
    """
    on_demand = "--on-demand" in args
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # our parent may ignore it, and git's exit code would be lost
    try:
        idle, port = read_options([word for word in args if word != "--on-demand"])
        from fairlead.daemon import _server

        options = _server.ServerOptions(idle or _server.DEFAULT_IDLE, port, _LOCK_TIMEOUT if on_demand else 0.0)
        _server.run(options, lambda where: print(f"fairlead: listening at {where}", file=sys.stderr, flush=True))  # noqa: T201
    except (FairleadError, OSError) as error:
        if not (on_demand and type(error).__name__ == "AlreadyRunning"):
            print(f"fairlead: {error}", file=sys.stderr)  # noqa: T201 - its log, or the terminal
        return 0 if on_demand else 1
    return 0


def read_options(args: Sequence[str]) -> tuple[float | None, int | None]:
    """Return the values of `--idle` (seconds) and `--port`; `None` for an option that is not given.

    Raises `UsageError` for an unknown option or a wrong value.
    """
    given: dict[str, str] = {}
    rest = iter(args)
    for word in rest:
        key, equals, value = word.partition("=")
        if key not in {"--idle", "--port"}:
            raise UsageError(f"unknown option {word!r}; options are --idle SECONDS and --port N")
        given[key] = value if equals else next(rest, "")
    return _idle(given.get("--idle")), _port(given.get("--port"))


def _idle(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise UsageError(f"--idle: expected a number of seconds above 0, got {text!r}")
    return seconds


def _port(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdigit() or int(text) > _LAST_PORT:
        raise UsageError(f"--port: expected a number from 0 to {_LAST_PORT}, got {text!r}")
    return int(text)
