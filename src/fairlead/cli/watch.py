"""`fairlead watch`: the live view of every session, and who of them needs the person."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from time import localtime, mktime, monotonic, sleep, time
from typing import TYPE_CHECKING

import msgspec

from fairlead.daemon.remote import NoDaemon, ask
from fairlead.daemon.starting import start
from fairlead.errors import FairleadError, UsageError
from fairlead.places import socket_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.tui import View

USAGE = """\
usage: fairlead watch [--project DIR] [--all] [--theme light|dark] [--start] [--once]

Shows every session and its subagents, live: what needs you first, with why and for how long; then project by project
what each is doing, how that is known, its model, context, cost and age. Press ? in it for all keys; Enter goes to the
session's tmux pane, / filters, q leaves.

  --project DIR        only the project to which that folder belongs, with all its worktrees
  --all                those that have ended, too
  --theme light|dark   the colours (default: by the terminal's COLORFGBG, else dark)
  --start              begin a daemon if none is running; otherwise the view waits for one
  --once               print the rows as plain text and end; so it does where there is no terminal

example:
  fairlead watch --project .

exit codes: 0 shown; 1 the command line is wrong, or (with --once) no daemon answers
"""

_PATIENCE = 10.0
_TURN = 0.02
_PIPE = 120
"""Columns where there is no terminal to ask."""


_COLLECTED = (20_000, 20, 50)
"""When Python looks for garbage: 10 000 rows are made anew by one key, and nearly all of it stays."""


class Wishes(msgspec.Struct, frozen=True):
    """What the command line asks for."""

    project: str = ""
    theme: str = ""
    all: bool = False
    start: bool = False
    once: bool = False


def run(args: Sequence[str]) -> int:
    """Show the view and return the exit code."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    wishes = _wishes(args)
    if wishes.start:
        _begin(wait=wishes.once)
    if wishes.once:
        return _print(wishes)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("fairlead: no terminal here, so this is the view as it is now, as of --once", file=sys.stderr)
        return _print(wishes)
    return _watch(wishes)


def _watch(wishes: Wishes) -> int:
    from fairlead.tui import Source, WatchApp  # noqa: PLC0415 - heavy, and only here

    for size in ("COLUMNS", "LINES"):  # where a shell exports them, the view would keep that size for ever
        os.environ.pop(size, None)
    gc.set_threshold(*_COLLECTED)
    app = WatchApp(Source(socket_file()), _view(wishes), theme=wishes.theme or _usual_theme())
    app.run()
    return app.return_code or 0


def _print(wishes: Wishes) -> int:
    from fairlead.tui import fetch_once, plain_view  # noqa: PLC0415 - likewise

    now = time()
    columns = shutil.get_terminal_size((_PIPE, 24)).columns
    for line in plain_view(fetch_once(socket_file()), _view(wishes), now, columns):
        print(line)
    return 0


def _view(wishes: Wishes) -> View:
    from fairlead.tui import View, find_place  # noqa: PLC0415 - likewise

    day = localtime()
    today = mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1))
    project = find_place(os.path.abspath(wishes.project)).project if wishes.project else ""  # noqa: PTH100 - text
    return View(project=project, show_ended=wishes.all, today=today)


def _begin(*, wait: bool) -> None:
    """Begin a daemon if there is none. The view finds it by itself; what is printed once must wait for it."""
    if _answers():
        return
    start()
    deadline = monotonic() + _PATIENCE
    while wait and not _answers():
        if monotonic() > deadline:
            raise FairleadError(f"the daemon did not come up within {_PATIENCE:g} s; see: fairlead doctor")
        sleep(_TURN)


def _answers() -> bool:
    try:
        ask("GET", "/v1/status")
    except NoDaemon:
        return False
    return True


def _usual_theme() -> str:
    """Some terminals say which colours they have: `15;0` is light on dark."""
    ground = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if ground in {"7", "15"} else "dark"


def _wishes(args: Sequence[str]) -> Wishes:
    given: dict[str, object] = {}
    words = iter(args)
    for word in words:
        key, equals, value = word.partition("=")
        if word in {"--all", "--start", "--once"}:
            given[word.removeprefix("--")] = True
            continue
        if key not in {"--project", "--theme"}:
            raise UsageError(f"unknown option {word!r}; see fairlead watch --help")
        value = value if equals else next(words, "")
        if not value:
            raise UsageError(f"{key} needs a value")
        if key == "--theme" and value not in {"light", "dark"}:
            raise UsageError(f"--theme: expected light or dark, got {value!r}")
        if key == "--project" and not os.path.isdir(value):  # noqa: PTH112 - text
            raise UsageError(f"--project: no such folder: {value}")
        given[key.removeprefix("--")] = value
    return msgspec.convert(given, Wishes)
