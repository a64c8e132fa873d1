"""`fairlead sessions`: who is running, for a look, for scripts, for a status bar; and waiting until one needs you."""

from __future__ import annotations

import json
import shutil
from math import inf
from time import monotonic, time
from typing import TYPE_CHECKING

import msgspec

from fairlead.errors import UsageError
from fairlead.ipc import DaemonUnavailable, request, stream_events
from fairlead.sessions import AttentionNeeded, Idle, Session, Working
from fairlead.text import duration, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

USAGE = """\
usage: fairlead sessions [--all] [--tree] [--json]
       fairlead sessions --line
       fairlead sessions wait --until attention|idle|ended [--session ID] [--timeout SECONDS]

  --all               those that have ended, too
  --tree              by project and worktree, with subagents below their sessions, as in `fairlead watch`
  --json              everything, for a program
  --line              one short line, for a status bar; nothing if nothing runs
  wait                wait, and then print the session: until one needs you, until all (or the one named) are
                      idle, until all (or the one named) have ended
  --session ID        the session, by its id or the beginning of it
  --timeout SECONDS   wait at most so long

examples:
  set -g status-right '#(fairlead sessions --line)'            in ~/.tmux.conf
  fairlead sessions wait --until attention && notify-send 'an agent needs you'

exit codes: 0 shown, or it has come true; 1 the command line is wrong, or no daemon answers; 3 the time was up
"""

_SIGNS = {"attention": "! needs you", "working": "> working", "idle": "- idle", "ended": "x ended"}
_TIMED_OUT = 3
_SILENCE = 40.0
_PIPE = 120
_SHOWN_ID = 8


def run(args: Sequence[str]) -> int:
    """Show the sessions, or wait."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    if args[:1] == ["wait"]:
        return _wait(args[1:])
    unknown = [word for word in args if word not in {"--all", "--tree", "--json", "--line"}]
    if unknown:
        raise UsageError(f"unknown option {unknown[0]!r}; see fairlead sessions --help")
    if "--line" in args:
        return _print_line()
    document = request("GET", "/v1/sessions")
    sessions = [session for session in _read(document["sessions"]) if "--all" in args or session.ended is None]
    if "--json" in args:
        print(json.dumps(_as_json(sessions, document["now"])))
    elif "--tree" in args:
        _print_tree(sessions, ended="--all" in args)
    else:
        _print_list(sessions, document["now"])
    return 0


# -- what is shown -------------------------------------------------------------------------------------


def kind_of(session: Session) -> str:
    """Name a session's state in a word."""
    if session.ended is not None:
        return "ended"
    if isinstance(session.state, AttentionNeeded):
        return "attention"
    return "working" if isinstance(session.state, Working) else "idle"


def line_of(sessions: Iterable[Session]) -> str:
    """Say on one line who needs the person, and how many do what; nothing if there is nothing to say."""
    from fairlead.tui import project_of

    live = [session for session in sessions if session.ended is None]
    needing = [session for session in live if isinstance(session.state, AttentionNeeded)]
    roots = [session for session in live if not session.is_child]
    working = sum(isinstance(session.state, Working) for session in roots)
    idle = sum(isinstance(session.state, Idle) for session in roots)
    parts = [f"{working} working"] if working else []
    parts += [f"{idle} idle"] if idle else []
    if needing:
        first = needing[0]
        why = first.state.reason if isinstance(first.state, AttentionNeeded) else ""
        more = f" and {len(needing) - 1} more" if len(needing) > 1 else ""
        parts.insert(0, f"! {project_of(first)}: {one_line(why)}{more}")
    return " | ".join(parts)


def _print_line() -> int:
    try:
        print(line_of(_read(request("GET", "/v1/sessions")["sessions"])))
    except DaemonUnavailable:
        print()
    return 0


def _print_tree(sessions: list[Session], *, ended: bool) -> None:
    from fairlead.tui import View, plain_view

    columns = shutil.get_terminal_size((_PIPE, 24)).columns
    for line in plain_view(sessions, View(show_ended=ended), time(), columns):
        print(line)


def _print_list(sessions: list[Session], now: float) -> None:
    """Print a line for each, what needs the person first."""
    from fairlead.tui import project_of, row_texts

    if not sessions:
        print("no session is running")
        return
    order = list(_SIGNS)
    for session in sorted(sessions, key=lambda s: (order.index(kind_of(s)), s.since)):
        name, what, seen = row_texts(session)
        shown_id = one_line(session.agent_id if session.is_child else session.id)[:_SHOWN_ID]
        lasts = duration(session.in_state(now))
        print(f"{_SIGNS[kind_of(session)]:<11}  {lasts:>7}  {shown_id:<8}  {project_of(session):<16}  {name}")
        if what or seen:
            print(f"{'':<31}{what}{'  ' if what else ''}[{seen}]")


def _as_json(sessions: Iterable[Session], now: float) -> dict[str, object]:
    rows = [
        {
            **msgspec.to_builtins(session),
            "state": msgspec.to_builtins(session.state),
            "is": kind_of(session),
            "stale": session.is_stale(now),
            "duration": round(session.duration(now), 3),
            "in_state": round(session.in_state(now), 3),
        }
        for session in sessions
    ]
    for row in rows:
        row.pop("memory", None)
    return {"now": now, "sessions": rows}


# -- waiting -------------------------------------------------------------------------------------------


class _Wishes(msgspec.Struct, frozen=True):
    until: str
    session: str = ""
    timeout: float = inf


def _wait(args: Sequence[str]) -> int:
    wishes = _wishes(args)
    deadline = monotonic() + wishes.timeout
    document = request("GET", "/v1/sessions")
    known = {session.id: session for session in _read(document["sessions"])}
    _check_name(wishes, known)
    path = f"/v1/sessions/stream?after={document['revision']}"
    look = _CONDITIONS[wishes.until]
    for kind, data in _until(deadline, path):
        if kind == "timeout":
            return _TIMED_OUT
        _take(known, kind, data)
        found = look([s for s in known.values() if s.id.startswith(wishes.session)])
        if found is not None:
            print(found)
            return 0
    raise DaemonUnavailable("the daemon has gone; begin another: fairlead daemon start")


def _until(deadline: float, path: str) -> Iterable[tuple[str, object]]:
    """Follow the stream until the time is up. The first thing that comes is what is there already."""
    yield "", None
    while (left := deadline - monotonic()) > 0:
        try:
            yield from stream_events(path, timeout=min(left, _SILENCE))
        except DaemonUnavailable:
            if monotonic() < deadline:
                raise
    yield "timeout", None


def _take(known: dict[str, Session], kind: str, data: object) -> None:
    if kind == "session":
        session = msgspec.convert(data, Session)
        known[session.id] = session
    elif kind == "gone" and isinstance(data, dict):
        known.pop(data["id"], None)
    elif kind == "reset" and isinstance(data, dict):
        known.clear()
        known.update({session.id: session for session in _read(data["sessions"])})


def _attention(sessions: list[Session]) -> str | None:
    return next((s.id for s in sessions if kind_of(s) == "attention"), None)


def _idle(sessions: list[Session]) -> str | None:
    live = [session for session in sessions if session.ended is None]
    return live[0].id if live and all(kind_of(s) == "idle" for s in live) else None


def _ended(sessions: list[Session]) -> str | None:
    return None if any(session.ended is None for session in sessions) else "ended"


_CONDITIONS: dict[str, Callable[[list[Session]], str | None]] = {
    "attention": _attention,
    "idle": _idle,
    "ended": _ended,
}


def _check_name(wishes: _Wishes, known: dict[str, Session]) -> None:
    if wishes.session and not any(name.startswith(wishes.session) for name in known):
        raise UsageError(f"--session: no session's id begins with {wishes.session!r}; see fairlead sessions --all")


def _wishes(args: Sequence[str]) -> _Wishes:
    given: dict[str, str] = {}
    words = iter(args)
    for word in words:
        key, equals, value = word.partition("=")
        if key not in {"--until", "--session", "--timeout"}:
            raise UsageError(f"unknown option {word!r}; see fairlead sessions --help")
        given[key] = value if equals else next(words, "")
    if given.get("--until") not in _CONDITIONS:
        raise UsageError(f"--until: expected attention, idle or ended, got {given.get('--until', '')!r}")
    return _Wishes(given["--until"], given.get("--session", ""), _seconds(given.get("--timeout")))


def _seconds(text: str | None) -> float:
    try:
        seconds = inf if text is None else float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise UsageError(f"--timeout: expected a number of seconds above 0, got {text!r}")
    return seconds


def _read(rows: object) -> list[Session]:
    return msgspec.convert(rows, list[Session])
