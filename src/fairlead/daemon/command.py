"""The daemon's own command line, as a hook or `fairlead daemon` starts it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fairlead.errors import FairleadError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_PATIENCE = 10.0
"""Seconds that a daemon begun on demand waits for an older one to go."""

_LAST_PORT = 65535


def main(args: Sequence[str]) -> int:
    """Run until told to go: `[--on-demand] [--idle SECONDS] [--port N]`. Returns the exit code."""
    on_demand = "--on-demand" in args
    try:
        idle, port = read_options([word for word in args if word != "--on-demand"])
        from fairlead.daemon import _server as _serve

        options = _serve.Options(idle or _serve.IDLE, port, _PATIENCE if on_demand else 0.0)
        _serve.run(options, lambda where: print(f"fairlead: listening at {where}", file=sys.stderr, flush=True))  # noqa: T201
    except (FairleadError, OSError) as error:
        if not (on_demand and type(error).__name__ == "AlreadyRunning"):
            print(f"fairlead: {error}", file=sys.stderr)  # noqa: T201 - its log, or the terminal
        return 0 if on_demand else 1
    return 0


def read_options(words: Sequence[str]) -> tuple[float | None, int | None]:
    """Read the seconds of idleness and the port, as far as they are given."""
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        key, equals, value = word.partition("=")
        if key not in {"--idle", "--port"}:
            raise UsageError(f"unknown option {word!r}; options are --idle SECONDS and --port N")
        found[key] = value if equals else next(rest, "")
    return _idle(found.get("--idle")), _port(found.get("--port"))


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
