"""`fairlead history`: lists past and running sessions, searches their prompts and commands, or shows one session."""

from __future__ import annotations

import json
import os
import shlex
from datetime import datetime
from time import localtime, strftime, time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import click
import msgspec

from fairlead.cli.support.command import Command
from fairlead.cli.support.completion_values import complete_sessions
from fairlead.cli.support.daemon_client import request_daemon
from fairlead.cli.support.durations import parse_duration
from fairlead.cli.support.invocation import current, print_line, print_lines
from fairlead.cli.support.param_types import Number, Text
from fairlead.errors import UsageError
from fairlead.ipc import RequestRefused
from fairlead.sessions import HistoryPage, SessionHistory
from fairlead.text import ago, cell_width, cost_or_unknown, cost_text, duration, fit, one_line, start_of_day

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.sessions import HistoryMatch, HistorySession, OtherHostsSummary, TimelineEntry

_SINCE = "expected a duration (2h, 7d), today, yesterday, left, or a date such as 2026-11-17 or 2026-11-17T09:30"
_DEFAULT_LIMIT = 20
_DEFAULT_EVENTS = 200
_COLUMNS_WITHOUT_TERMINAL = 120
_REFUSED = frozenset({400, 404, 409, 503})
_SHOWN_ID = 8
_EMPHASIZED = frozenset({"blocked", "failed", "asked"})


class Options(msgspec.Struct, frozen=True):
    """The options of the command line."""

    since: str = "today"
    """A text for `parse_since`."""
    project: str = ""
    search: str = ""
    session: str = ""
    limit: int | None = None
    before: str = ""
    """The cursor of the page to show; "" for the first one."""
    host: str = ""
    here: bool = False
    as_json: bool = False


# -- the request ---------------------------------------------------------------------------------------


def parse_since(text: str, now: float) -> str:
    """Return a time as the daemon's API expects it: `2h`, `today` or a date → Unix time, `left` → `left`.

    Raise `UsageError` if the text is no time.
    """
    if text == "left":
        return text
    if text in {"today", "yesterday"}:
        return repr(start_of_day(now, 1 if text == "yesterday" else 0))
    if (seconds := parse_duration(text)) is not None:
        return repr(now - seconds)
    try:
        return repr(datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError):
        raise UsageError(f"--since: {_SINCE}; got {text!r}") from None


def to_path(options: Options, now: float, cwd: str) -> str:
    """Return the path and query of the request. Raise `UsageError` if options are wrong or contradict each other.

    `now` is the Unix time, `cwd` the folder that `--project` is relative to.
    """
    if options.here and options.host:
        raise UsageError("history: give one of --here and --host")
    team = {"host": options.host} if options.host else {} if options.here else {"team": "true"}
    if options.session:
        fields = {"limit": str(options.limit or _DEFAULT_EVENTS), "before": options.before, **team}
        return f"/v1/history/{quote(options.session, safe='')}?{urlencode(fields)}"
    fields = {"since": parse_since(options.since, now), "limit": str(options.limit or _DEFAULT_LIMIT)}
    fields |= team
    if options.project:
        fields["folder"] = os.path.normpath(os.path.join(cwd, options.project))
    if options.search:
        fields["search"] = options.search
    if options.before:
        fields["before"] = options.before
    return f"/v1/history?{urlencode(fields)}"


def _ask(path: str) -> Any:
    try:
        return request_daemon("GET", path)
    except RequestRefused as error:
        if error.status in _REFUSED:
            raise UsageError(f"history: {error.text}") from None
        raise


# -- text ----------------------------------------------------------------------------------------------


def page_lines(page: HistoryPage, options: Options, columns: int) -> Iterator[str]:
    """Yield the sessions or matches of a page, and how to get the next page."""
    if options.search:
        yield from _match_lines(page, columns)
    else:
        yield _heading(page, options)
        width = max((len(one_line(session.host)) for session in page.sessions), default=0)
        for session in page.sessions:
            yield _cut(_session_line(session, page.now, width), columns)
    if page.others is not None:
        yield from _others_lines(page.others, page.now)
    if page.next:
        yield f"there are more; the next page: --before {shlex.quote(page.next)}"


def _others_lines(others: OtherHostsSummary, now: float) -> Iterator[str]:
    """Yield why sessions of the other hosts are missing or not current; nothing if the list is complete."""
    why = f": {one_line(others.why, 300)}" if others.why else ""
    if others.state == "old":
        yield f"the other hosts are shown as of {ago(others.at, now)}{why}"
    elif others.state == "missing":
        last = f", which were last read {ago(others.at, now)}," if others.at else ""
        yield f"the other hosts{last} are missing{why}"
    if others.refused:
        what = "row on the relay is" if others.refused == 1 else "rows on the relay are"
        yield f"{others.refused} {what} not shown: not signed by the host that is named in it"


def session_lines(history: SessionHistory, now: float, columns: int) -> Iterator[str]:
    """Yield a session's figures, its subagents and its events, the newest last."""
    session = history.session
    names = (one_line(session.id), one_line(session.host), one_line(session.folder))
    yield _cut("  ".join(filter(None, names)), columns)
    if session.prompt:
        yield _cut(f"  {one_line(session.prompt)}", columns)
    span = f"{_clock(session.started)} to {_end(session)}, {_length(session, now)}"
    yield _cut(f"  {span}, {cost_text(session.total_usd)}", columns)
    yield _cut(f"  {', '.join(_counts(session)) or 'no events'}", columns)
    for agent in history.subagents:
        lasted = "runs" if agent.ended is None else duration(agent.ended - agent.started)
        name = f"{one_line(agent.id)}  {one_line(agent.type)}"
        yield _cut(f"  subagent {name}  {_clock(agent.started)}  {lasted}", columns)
    yield ""
    if history.next:
        yield f"there are earlier events: --before {history.next}"
    for entry in history.timeline:
        yield _cut(_entry_line(entry), columns)


def _heading(page: HistoryPage, options: Options) -> str:
    since = f"since {_day(page.since, page.now)}"
    if options.since == "left" and not page.since:
        since = "you have not left yet, so this is all that is kept"
    if not page.sessions:
        where = f" in {one_line(options.project)}" if options.project else ""
        return f"no session{where} since {_day(page.since, page.now)}" if page.since else f"no session{where} yet"
    running = sum(session.ended is None for session in page.sessions)
    number = f"{len(page.sessions)}{' or more' if page.next else ''} session{'' if len(page.sessions) == 1 else 's'}"
    return f"{since}: {number}, {running} running, {cost_text(page.usd, page.unknown)}"


def _session_line(session: HistorySession, now: float, host_width: int = 0) -> str:
    state = ">" if session.ended is None else "x"
    project = fit(one_line(session.folder.rstrip("/").rpartition("/")[2]) or "no folder", 14)
    notes = [f"{session.blocked} blocked"] if session.blocked else []
    notes += [f"{session.subagents} subagents"] if session.subagents else []
    what = "; ".join([*notes, one_line(session.prompt)] if session.prompt else notes)
    figures = f"{_length(session, now):>6}  {cost_or_unknown(session.cost_usd):>7}  {session.tools:>4} calls"
    host = f"{one_line(session.host):<{host_width}}  " if host_width else ""
    name = f"{one_line(session.id)[:_SHOWN_ID]:<8}"
    return f"{state} {_clock(session.started)}  {figures}  {name}  {host}{project}  {what}".rstrip()


def _match_lines(page: HistoryPage, columns: int) -> Iterator[str]:
    """Yield the matching texts, each below the session that contains it."""
    if not page.matches:
        yield "nothing found"
    last = ("", "")
    for match in page.matches:
        if (match.host, match.session) != last:
            last = (match.host, match.session)
            names = (one_line(match.session), one_line(match.host), one_line(match.folder))
            yield _cut("  ".join(filter(None, names)), columns)
        yield _cut(_match_line(match), columns)


def _match_line(match: HistoryMatch) -> str:
    return f"  {_clock(match.at)}  {match.kind:<7}  {one_line(match.text)}"


def _entry_line(entry: TimelineEntry) -> str:
    verdict = entry.verdict if entry.verdict != "none" else ""
    reason = one_line(entry.reason) if entry.verdict in _EMPHASIZED else ""
    agent = f"[{one_line(entry.agent)[:_SHOWN_ID]}] " if entry.agent else ""
    text = " — ".join(part for part in (one_line(entry.text), reason) if part)
    what = f"{fit(one_line(entry.event), 18)}  {fit(one_line(entry.tool), 10)}"
    return f"{_clock(entry.at, with_seconds=True)}  {what}  {verdict:<7}  {agent}{text}".rstrip()


def _counts(session: HistorySession) -> list[str]:
    counted = {
        "events": session.events,
        "prompts": session.prompts,
        "tool calls": session.tools,
        "failed": session.failures,
        "blocked": session.blocked,
        "asked": session.asked,
        "subagents": session.subagents,
    }
    return [f"{number} {name}" for name, number in counted.items() if number]


def _length(session: HistorySession, now: float) -> str:
    return duration((now if session.ended is None else session.ended) - session.started)


def _end(session: HistorySession) -> str:
    if session.ended is None:
        return "now"
    return f"{_clock(session.ended)}{f' ({one_line(session.end_reason)})' if session.end_reason else ''}"


def _clock(at: float, *, with_seconds: bool = False) -> str:
    return strftime("%m-%d %H:%M:%S" if with_seconds else "%m-%d %H:%M", localtime(at))


def _day(at: float, now: float) -> str:
    """Return a time with its year, unless that is the current one."""
    return _clock(at) if localtime(at).tm_year == localtime(now).tm_year else strftime("%Y-%m-%d %H:%M", localtime(at))


def _cut(line: str, columns: int) -> str:
    return fit(line, columns).rstrip() if cell_width(line) > columns else line


# -- the command ---------------------------------------------------------------------------------------


@click.command(
    "history",
    cls=Command,
    examples=(
        "fairlead history --since yesterday --project .",
        "fairlead history --search 'git push'",
        "fairlead history --session 4f3a1c2d",
        "fairlead history --host server",
    ),
    exit_codes=(
        (0, "shown, even if there was nothing"),
        (1, "the command line is wrong, there is no such session, or no daemon answers"),
    ),
)
@click.option(
    "--since",
    metavar="TIME",
    type=Text(),
    default="today",
    help="Since then: 2h, 7d, today (the default), yesterday, left (when you were last seen), or a date.",
)
@click.option("--project", metavar="DIR", type=Text(), default=None, help="Only sessions in this folder or below it.")
@click.option("--search", metavar="TEXT", type=Text(), default=None, help="Prompts, commands and files with this text.")
@click.option(
    "--session",
    metavar="ID",
    type=Text(),
    default=None,
    shell_complete=complete_sessions,
    help="One session with its events, verdicts, subagents and cost; the first characters of its id are enough.",
)
@click.option("--limit", metavar="N", type=Number(1, 1000), help="At most N (default: 20; 200 events of one session).")
@click.option("--before", metavar="PAGE", type=Text(), default=None, help="The page before; the last line names it.")
@click.option("--here", is_flag=True, help="Only sessions of this host, not of the others of its team.")
@click.option("--host", metavar="NAME", type=Text(), default=None, help="Only sessions of this host of the team.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def history(**given: Any) -> int:
    """Show what sessions did and cost, including ended ones.

    The most recently active session comes first: its start, its duration, its cost since the time of `--since`, its
    tool calls, id and project, and its first prompt. The cost is unknown if the client has reported none.

    Shows what was recorded, without secrets, as far back as `journal.keepDays` reaches. In a team, also shows the
    sessions of other hosts that copy events (`team.events`).
    """
    options = Options(**{name: value for name, value in given.items() if value is not None})
    invocation = current()
    document = _ask(to_path(options, time(), invocation.cwd()))
    if options.as_json:
        print_line(json.dumps(document))
        return 0
    columns = invocation.columns(_COLUMNS_WITHOUT_TERMINAL)
    if options.session:
        print_lines(session_lines(msgspec.convert(document, SessionHistory), time(), columns))
    else:
        print_lines(page_lines(msgspec.convert(document, HistoryPage), options, columns))
    return 0
