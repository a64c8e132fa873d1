"""`fairlead watch`: the live view of every session, and which of them need the user."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
from contextlib import contextmanager
from io import TextIOWrapper
from time import localtime, mktime, time
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead.cli.support.command import Command
from fairlead.cli.support.daemon_client import ensure_daemon
from fairlead.cli.support.invocation import print_lines
from fairlead.cli.support.param_types import OneOf, Text
from fairlead.daemon import NO_DAEMON_VARIABLE
from fairlead.errors import INTERRUPTED, UsageError
from fairlead.paths import socket_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from fairlead.tui import View, WatchApp

_COLUMNS_WITHOUT_TERMINAL = 120
_SIGNALLED = 128
"""The exit code of a process that a signal ends is this and the number of the signal, as a shell reports it."""

_GC_THRESHOLDS = (20_000, 20, 50)
"""For `gc.set_threshold`. A key press may build 10 000 rows that stay alive, so frequent collections free nothing."""


class Options(msgspec.Struct, frozen=True):
    """The options of the command line."""

    project: str = ""
    """A folder of the project to show; "" for all projects."""
    theme: str = ""
    """`light`, `dark` or `plain`; "" for the one that suits the terminal."""
    show_all: bool = False
    """Whether to show sessions that have ended, too."""
    here: bool = False
    """Whether to leave out the sessions of other hosts."""
    start: bool = False
    """Accepted for scripts, without an effect."""
    once: bool = False
    """Whether to print the rows and exit."""


@click.command(
    "watch",
    cls=Command,
    examples=("fairlead watch --project .",),
    exit_codes=(
        (0, "shown"),
        (1, "the command line is wrong, or (with --once) no daemon answers"),
        (130, "Ctrl-C ended the live view"),
    ),
)
@click.option(
    "--project",
    metavar="DIR",
    type=Text(),
    help="Only the project that this folder belongs to, with all its worktrees.",
)
@click.option("--here", is_flag=True, help="Only the sessions of this host, not those of your team.")
@click.option("--all", "show_all", is_flag=True, help="Also show sessions that have ended.")
@click.option(
    "--theme",
    metavar="THEME",
    type=OneOf(("light", "dark", "plain")),
    help=(
        "light, dark or plain, which has no colours (default: plain if NO_COLOR is set, light if the terminal's "
        "COLORFGBG says so, else dark)."
    ),
)
@click.option("--start", is_flag=True, hidden=True)  # for scripts: a daemon is always started now
@click.option(
    "--once", is_flag=True, help="Print the rows as plain text and exit. The same happens without a terminal."
)
def watch(*, project: str | None, theme: str | None, **given: Any) -> int:
    """Show every session and subagent, live.

    Sessions that need you come first, with the reason and for how long. Then, by project, what each session is doing,
    how that is known, its model, context, cost and age. In a team, the sessions of each other host follow, with the age
    of its last update. Press ? for all keys; Enter goes to the session's tmux pane, / filters, q quits. A daemon is
    started if none runs.
    """
    if project is not None and not os.path.isdir(project):
        raise UsageError(f"--project: no such folder: {project}")
    options = Options(project=project or "", theme=theme or "", **given)
    if not os.environ.get(NO_DAEMON_VARIABLE):
        ensure_daemon(wait=options.once or bool(_no_live_view()))
    if options.once:
        return _print(options)
    if reason := _no_live_view():
        print(f"fairlead: {reason}, so this is the view as it is now, as with --once", file=sys.stderr)
        return _print(options)
    return _watch(options)


def _no_live_view() -> str:
    """Return why a live view is impossible here; "" if it is possible."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "there is no terminal"
    return "this terminal cannot move its cursor (TERM=dumb)" if os.environ.get("TERM") == "dumb" else ""


def _watch(options: Options) -> int:
    from fairlead.tui import SessionSource, WatchApp

    for size in ("COLUMNS", "LINES"):  # where a shell exports them, the view would never change its size
        os.environ.pop(size, None)
    for stream in (sys.__stdout__, sys.__stderr__):  # without a locale Python would write escapes, of another width
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    gc.set_threshold(*_GC_THRESHOLDS)
    source, theme = SessionSource(socket_file()), options.theme or _default_theme()
    app = WatchApp(source, to_view(options), theme=theme, shows_team=not options.here)
    with _exiting_on_signals(app):
        app.run()
    if app.return_code == INTERRUPTED:
        raise KeyboardInterrupt
    return app.return_code or 0


@contextmanager
def _exiting_on_signals(app: WatchApp) -> Iterator[None]:
    """Context manager in which SIGINT and SIGTERM close the view, so that it restores the terminal.

    Ctrl-C is a key in the view: these signals come from other processes.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        app.leave(INTERRUPTED if number == signal.SIGINT else _SIGNALLED + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print(options: Options) -> int:
    from fairlead.tui import fetch_sessions, plain_view

    now = time()
    columns = shutil.get_terminal_size((_COLUMNS_WITHOUT_TERMINAL, 24)).columns
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a character that the encoding lacks is no error
    listed = fetch_sessions(socket_file())
    hosts = () if options.here else listed.hosts
    print_lines(plain_view(listed.sessions, to_view(options), now, columns, listed.costs, hosts=hosts))
    return 0


def to_view(options: Options) -> View:
    """Return the view that the options select. Its `today` is the last midnight in local time."""
    from fairlead.tui import View, find_location

    day = localtime()
    today = mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1))
    project = find_location(os.path.abspath(options.project)).project if options.project else ""
    return View(project=project, show_ended=options.show_all, today=today)


def _default_theme() -> str:
    """Return the theme that suits the terminal: plain if NO_COLOR is set, else light or dark.

    Some terminals set COLORFGBG to their two colours: `15;0` is light text on a dark background.
    """
    if os.environ.get("NO_COLOR"):
        return "plain"
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if background in {"7", "15"} else "dark"
