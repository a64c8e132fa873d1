"""`fairlead watch`: the live view of every session, and who of them needs the person."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from io import TextIOWrapper
from time import localtime, mktime, time
from typing import TYPE_CHECKING

import msgspec

from fairlead.cli.beginning import begin
from fairlead.errors import UsageError
from fairlead.paths import socket_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.tui import View

USAGE = """\
usage: fairlead watch [--project DIR] [--all] [--theme light|dark|plain] [--start] [--once]

Shows every session and its subagents, live: what needs you first, with why and for how long; then project by project
what each is doing, how that is known, its model, context, cost and age. Press ? in it for all keys; Enter goes to the
session's tmux pane, / filters, q leaves.

  --project DIR        only the project to which that folder belongs, with all its worktrees
  --all                those that have ended, too
  --theme light|dark|plain
                       the colours; plain has none (default: plain if NO_COLOR is set, light if the terminal's
                       COLORFGBG says so, else dark)
  --start              begin a daemon if none is running; otherwise the view waits for one
  --once               print the rows as plain text and end; so it does where there is no terminal, or a dumb one

example:
  fairlead watch --project .

exit codes: 0 shown; 1 the command line is wrong, or (with --once) no daemon answers
"""

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
        begin(wait=wishes.once)
    if wishes.once:
        return _print(wishes)
    if lacking := _what_is_lacking():
        print(f"fairlead: {lacking}, so this is the view as it is now, as of --once", file=sys.stderr)
        return _print(wishes)
    return _watch(wishes)


def _what_is_lacking() -> str:
    """Say why there can be no live view here; "" if there can."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "no terminal here"
    return "this terminal cannot move its cursor (TERM=dumb)" if os.environ.get("TERM") == "dumb" else ""


def _watch(wishes: Wishes) -> int:
    from fairlead.tui import SessionSource, WatchApp

    for size in ("COLUMNS", "LINES"):  # where a shell exports them, the view would keep that size for ever
        os.environ.pop(size, None)
    for stream in (sys.__stdout__, sys.__stderr__):  # without a locale Python would write escapes, of another width
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    gc.set_threshold(*_COLLECTED)
    app = WatchApp(SessionSource(socket_file()), _view(wishes), theme=wishes.theme or _usual_theme())
    app.run()
    return app.return_code or 0


def _print(wishes: Wishes) -> int:
    from fairlead.tui import fetch_sessions, plain_view

    now = time()
    columns = shutil.get_terminal_size((_PIPE, 24)).columns
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a sign that its encoding has not is no reason to fall
    for line in plain_view(fetch_sessions(socket_file()), _view(wishes), now, columns):
        print(line)
    return 0


def _view(wishes: Wishes) -> View:
    from fairlead.tui import View, find_location

    day = localtime()
    today = mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1))
    project = find_location(os.path.abspath(wishes.project)).project if wishes.project else ""
    return View(project=project, show_ended=wishes.all, today=today)


def _usual_theme() -> str:
    """Some terminals say which colours they have: `15;0` is light on dark."""
    if os.environ.get("NO_COLOR"):
        return "plain"
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
        if key == "--theme" and value not in {"light", "dark", "plain"}:
            raise UsageError(f"--theme: expected light, dark or plain, got {value!r}")
        if key == "--project" and not os.path.isdir(value):
            raise UsageError(f"--project: no such folder: {value}")
        given[key.removeprefix("--")] = value
    return msgspec.convert(given, Wishes)
