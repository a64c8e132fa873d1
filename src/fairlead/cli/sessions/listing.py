"""`fairlead sessions`: lists the sessions for people, scripts and status bars, or waits for one of them."""

from __future__ import annotations

import json
from math import inf
from time import monotonic, time
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead.cli.support.command import Command
from fairlead.cli.support.completion_values import complete_sessions
from fairlead.cli.support.daemon_client import request_daemon, user_mail
from fairlead.cli.support.invocation import current, print_error, print_line, print_lines
from fairlead.cli.support.param_types import Duration, OneOf
from fairlead.errors import UsageError
from fairlead.ipc import DaemonUnavailable, stream_events
from fairlead.sessions import AttentionNeeded, Costs, HostSessions, Session, Working, team_sessions
from fairlead.text import duration, money, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_LABELS = {"attention": "! needs you", "working": "> working", "idle": "- idle", "ended": "x ended"}
"""The label of each state, in the order of the list."""

_TIMED_OUT = 3
_HAS_ENDED = 4
_STREAM_TIMEOUT = 40.0
_COLUMNS_WITHOUT_TERMINAL = 120
_SHOWN_ID = 8
_MAX_QUESTION = 60
"""How many characters of a question a status bar shows."""


# -- text ----------------------------------------------------------------------------------------------


def state_name(session: Session) -> str:
    """Return a session's state in one word: `working`, `idle`, `attention` or `ended`."""
    if session.ended is not None:
        return "ended"
    if isinstance(session.state, AttentionNeeded):
        return "attention"
    return "working" if isinstance(session.state, Working) else "idle"


def running_sessions(sessions: Iterable[Session]) -> list[Session]:
    """Return the sessions that have not ended.

    A subagent whose parent has ended gets the nearest ancestor that has not ended as its parent.
    """
    by_id = {session.id: session for session in sessions}
    live = []
    for session in by_id.values():
        above = by_id.get(session.parent)
        while above is not None and above.ended is not None:
            above = by_id.get(above.parent)
        if session.ended is None:
            parent = above.id if above is not None else session.parent
            live.append(session if parent == session.parent else msgspec.structs.replace(session, parent=parent))
    return live


def to_line(sessions: Iterable[Session], now: float, costs: Costs = Costs()) -> str:  # noqa: B008 - a frozen value
    """Return one line for a status bar: the session that needs the user, counts by state, and the cost of today.

    It is "" if no session runs. The sessions are counted as in `fairlead watch`.
    """
    from fairlead.tui import count_sessions, folder_name, row_texts

    totals, needing = count_sessions(sessions, now)
    counts = ((totals.working, "working"), (totals.idle, "idle"), (totals.stale, "stale"))
    parts = [f"{count} {label}" for count, label in counts if count]
    if needing:
        first = needing[0]
        more = f" and {len(needing) - 1} more" if len(needing) > 1 else ""
        parts.insert(0, f"! {folder_name(first)}: {one_line(row_texts(first)[1], _MAX_QUESTION)}{more}")
    parts += [f"{'≤ ' if costs.at_most else ''}{money(costs.usd)} today"] if costs.usd and parts else []
    return " | ".join(parts)


def to_text(sessions: Sequence[Session], now: float) -> Iterator[str]:
    """Yield one or two lines for each session, those that need the user first."""
    from fairlead.tui import folder_name, row_texts

    if not sessions:
        yield "no session is running"
    order = list(_LABELS)
    for session in sorted(sessions, key=lambda s: (order.index(state_name(s)), s.since)):
        name, activity, source = row_texts(session)
        shown_id = one_line(session.agent_id if session.is_child else session.id)[:_SHOWN_ID]
        lasts = duration(session.in_state(now))
        yield f"{_LABELS[state_name(session)]:<11}  {lasts:>7}  {shown_id:<8}  {folder_name(session):<16}  {name}"
        if activity or source:
            yield f"{'':<31}{activity}{'  ' if activity else ''}[{source}]"


def hosts_to_text(hosts: Iterable[HostSessions], now: float) -> Iterator[str]:
    """Yield the sessions of other hosts, below the name of each host and the age of its last update."""
    for host in hosts:
        yield ""
        stale = "; NO CONTACT since, its last update" if host.is_stale else ""
        yield f"{one_line(host.host)}, as of {duration(host.age)} ago{stale}:"
        yield from (f"  {line}" for line in to_text(running_sessions(host.sessions), now))
        if host.left_out:
            yield f"  and {host.left_out} more"


def hosts_to_line(hosts: Iterable[HostSessions], now: float) -> Iterator[str]:
    """Yield the status bar text of each other host on which a session runs."""
    for host in hosts:
        if line := to_line(team_sessions([host]), now):
            yield f"{one_line(host.host)}: {line}"


def to_tree(
    sessions: Sequence[Session],
    *,
    show_ended: bool,
    now: float,
    columns: int,
    costs: Costs | None = None,
    hosts: Iterable[HostSessions] = (),
) -> Iterable[str]:
    """Return the rows of `fairlead watch` as plain text, each at most `columns` cells wide."""
    from fairlead.tui import View, plain_view

    return plain_view(sessions, View(show_ended=show_ended), now, columns, costs, hosts=hosts)


def to_document(sessions: Iterable[Session], now: float, costs: object = None) -> dict[str, object]:
    """Return the document that `--json` prints. It has `costs` only if they are given."""
    return {"now": now, **({"costs": costs} if costs else {}), "sessions": _rows(sessions, now)}


def _rows(sessions: Iterable[Session], now: float) -> list[dict[str, object]]:
    rows = [
        {
            **msgspec.to_builtins(session),
            "state": msgspec.to_builtins(session.state),
            "is": state_name(session),
            "stale": session.is_stale(now),
            "duration": round(session.duration(now), 3),
            "in_state": round(session.in_state(now), 3),
        }
        for session in sessions
    ]
    for row in rows:
        row.pop("memory", None)
    return rows


# -- waiting -------------------------------------------------------------------------------------------


class WaitOptions(msgspec.Struct, frozen=True):
    """The options of `wait`."""

    until: str
    """`attention`, `idle` or `ended`."""
    session: str = ""
    """The first characters of a session's id; "" for all sessions."""
    timeout: float = inf
    """Seconds until the wait ends without a result."""


def find_attention(sessions: list[Session]) -> str | None:
    """Return the id of the first session that needs the user; `None` if none does."""
    return next((s.id for s in sessions if state_name(s) == "attention"), None)


def find_idle(sessions: list[Session]) -> str | None:
    """Return the id of the first running session if all running ones are idle; `None` if one is not, or none runs."""
    live = [session for session in sessions if session.ended is None]
    return live[0].id if live and all(state_name(s) == "idle" for s in live) else None


def find_ended(sessions: list[Session]) -> str | None:
    """Return `ended` if all sessions have ended, else `None`."""
    return None if any(session.ended is None for session in sessions) else ENDED


ENDED = "ended"

_CONDITIONS: dict[str, Callable[[list[Session]], str | None]] = {
    "attention": find_attention,
    "idle": find_idle,
    "ended": find_ended,
}


def update_sessions(known: dict[str, Session], kind: str, data: Any) -> None:
    """Apply one event of the daemon's stream to `known`, the sessions by id.

    `kind` is `session`, `gone` or `reset`; any other, such as a heartbeat, is ignored.
    """
    if kind == "session":
        session = msgspec.convert(data, Session)
        known[session.id] = session
    elif kind == "gone":
        known.pop(data["id"], None)
    elif kind == "reset":
        known.clear()
        known.update({session.id: session for session in _to_sessions(data["sessions"])})


def _wait_until(options: WaitOptions) -> tuple[str | None, list[Session]]:
    """Return what `wait` prints, and the sessions that meet the condition; `None` and `[]` if the time is up.

    Raise `UsageError` if no id starts with the given one, and `DaemonUnavailable` if no daemon answers.
    """
    deadline = monotonic() + options.timeout
    document = request_sessions()
    known = {session.id: session for session in _to_sessions(document["sessions"])}
    if options.session and not any(name.startswith(options.session) for name in known):
        raise UsageError(f"--session: no session's id starts with {options.session!r}; see fairlead sessions --all")
    for kind, data in _stream(f"/v1/sessions/stream?after={document['revision']}", deadline):
        update_sessions(known, kind, data)
        watched = [session for session in known.values() if session.id.startswith(options.session)]
        result = _CONDITIONS[options.until](watched)
        if result is None and options.session:
            result = find_ended(watched)  # an ended session meets no other condition
        if result is not None:
            return result, [session for session in watched if result in {session.id, ENDED}]
    return None, []


def _stream(path: str, deadline: float) -> Iterator[tuple[str, Any]]:
    """Yield the kind and the data of each event of the stream, until the deadline. Raise `DaemonUnavailable`.

    The first event has the kind "", so that the caller checks the current sessions first.
    """
    yield "", None
    while monotonic() < deadline:
        try:
            yield from stream_events(path, timeout=_STREAM_TIMEOUT, deadline=deadline)
        except DaemonUnavailable:
            if monotonic() < deadline:
                raise


def request_sessions() -> Any:
    """Return the daemon's document of all sessions. Start a daemon if there is none."""
    return request_daemon("GET", "/v1/sessions")


def _to_costs(document: dict[str, Any]) -> Costs | None:
    """Return the costs of today; `None` if the daemon is of an earlier version, which does not send them."""
    return msgspec.convert(document["costs"], Costs) if "costs" in document else None


def _to_hosts(document: dict[str, Any]) -> tuple[HostSessions, ...]:
    """Return the sessions of other hosts; `()` if the daemon is of an earlier version, which does not send them."""
    return msgspec.convert(document.get("hosts", ()), tuple[HostSessions, ...])


def _to_sessions(rows: object) -> list[Session]:
    return msgspec.convert(rows, list[Session])


# -- the commands --------------------------------------------------------------------------------------


@click.command(
    "list",
    cls=Command,
    examples=("fairlead sessions", "set -g status-right '#(fairlead sessions --line)'            in ~/.tmux.conf"),
    exit_codes=((0, "shown, even if none runs"), (1, "no daemon answers")),
)
@click.option("--all", "show_all", is_flag=True, help="Also list sessions that have ended.")
@click.option("--tree", is_flag=True, help="By project and worktree, subagents below their session, as `watch` does.")
@click.option("--line", is_flag=True, help="One short line for a status bar; empty if nothing runs.")
@click.option("--here", is_flag=True, help="Only the sessions of this host, not those of your team.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_sessions(*, show_all: bool, tree: bool, line: bool, here: bool, as_json: bool) -> int:
    """List the sessions and their subagents.

    Sessions that need you come first. In a team, those of each other host follow, with the age of its last update.
    """
    if line:
        try:
            document = current().request("GET", "/v1/sessions")
            text = to_line(_to_sessions(document["sessions"]), time(), _to_costs(document) or Costs())
            host_texts = hosts_to_line(() if here else _to_hosts(document), time())
            print_line(" | ".join(filter(None, (user_mail(), text, *host_texts))))
        except DaemonUnavailable:
            print_line("")
        return 0
    document = request_sessions()
    known = _to_sessions(document["sessions"])
    hosts = () if here else _to_hosts(document)
    sessions = known if show_all else running_sessions(known)
    if as_json:
        host_rows = [{**msgspec.to_builtins(host), "sessions": _rows(host.sessions, document["now"])} for host in hosts]
        print_line(json.dumps({**to_document(sessions, document["now"], document.get("costs")), "hosts": host_rows}))
    elif tree:
        columns = current().columns(_COLUMNS_WITHOUT_TERMINAL)
        costs = _to_costs(document)
        print_lines(to_tree(known, show_ended=show_all, now=time(), columns=columns, costs=costs, hosts=hosts))
    else:
        print_lines(to_text(sessions, document["now"]))
        print_lines(hosts_to_text(hosts, document["now"]))
    return 0


@click.command(
    "wait",
    cls=Command,
    examples=("fairlead sessions wait --until attention && notify-send 'an agent needs you'",),
    exit_codes=(
        (0, "the condition holds; the session's id is printed"),
        (1, "the command line is wrong, or no daemon answers"),
        (3, "the time is up"),
        (4, "the session ended before it met the condition"),
        (130, "interrupted"),
    ),
)
@click.option(
    "--until",
    metavar="CONDITION",
    type=OneOf(tuple(_CONDITIONS)),
    help="attention: one needs you; idle: all are idle; ended: all have ended.",
)
@click.option(
    "--session",
    metavar="ID",
    default="",
    shell_complete=complete_sessions,
    help="Wait for this session only; the first characters of its id are enough.",
)
@click.option(
    "--timeout", metavar="DURATION", type=Duration(positive=True), default=inf, help="Wait at most this long."
)
@click.option("--json", "as_json", is_flag=True, help="Print the sessions that the condition is about as JSON.")
def wait(*, until: str | None, as_json: bool, **given: Any) -> int:
    """Wait until a session needs you, is idle, or has ended.

    Then it prints the session's id. With --session it also returns when that session has ended, and prints `ended`.
    Without --until it waits for the end of the session.
    """
    if until is None and not given["session"]:
        raise UsageError(f"sessions wait: until when? Give --until with one of {', '.join(_CONDITIONS)}")
    options = WaitOptions(until or ENDED, **given)
    result, sessions = _wait_until(options)
    if result is None:
        print_error("fairlead: sessions wait: the time is up")
        return _TIMED_OUT
    print_line(json.dumps(to_document(sessions, time())) if as_json else result)
    return _HAS_ENDED if result == ENDED and options.until == "attention" else 0
