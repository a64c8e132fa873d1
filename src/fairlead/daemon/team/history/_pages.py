"""Merges pages of this host's store and of the relay into one history."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.team import TeamError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.daemon.team.history._reader import HistoryReader
    from fairlead.daemon.team.history._rows import RemoteResult, RowKey
    from fairlead.sessions import (
        HistoryMatch,
        HistoryPage,
        HistoryQuery,
        HistorySession,
        OtherHostsSummary,
        SessionHistory,
    )

    Find = Callable[[HistoryQuery], HistoryPage]

_END = "end"
"""The cursor of a source (store or relay) that has no more rows."""


class NoSuchSession(TeamError):
    """No session has an id with this beginning."""


class SeveralSessions(TeamError):
    """Several sessions have an id with this beginning."""


def merged_page(find: Find, reader: HistoryReader, query: HistoryQuery, host: str = "") -> HistoryPage:
    """Return a page of all hosts, or of the host named `host`. `find` reads a page from the store of this host.

    Raises `TeamError` for a host that does not exist, and `ValueError` for an invalid cursor.
    """
    if host == reader.own_name:
        return _with_host(find(query), host)
    hosts = reader.hosts(host)
    return (_merged_matches if query.search else _merged_sessions)(find, reader, query, hosts, only_others=bool(host))


def find_on_other_hosts(reader: HistoryReader, name: str, host: str, limit: int, before: str) -> SessionHistory:
    """Return the session of another host whose id begins with `name`, with its events.

    `host` is the name of a host, or "" for all. Returns at most `limit` events before the cursor `before`. Raises
    `NoSuchSession`, `SeveralSessions`, or another `TeamError`.
    """
    hosts = reader.hosts(host)
    sessions = reader.find_one(name, hosts) if hosts else []
    if not sessions:
        raise NoSuchSession(f"no session's id begins with {name!r}; see fairlead history")
    if len(sessions) > 1:
        ids = " and ".join(f"{session.id} on {session.host}" for _, session in sessions)
        raise SeveralSessions(f"several ids begin with {name!r}, such as {ids}; give more of it, or --host")
    (where, session), *_ = sessions
    return reader.timeline(where, session, limit, before)


def _with_host(page: HistoryPage, host: str) -> HistoryPage:
    return replace(
        page,
        sessions=[replace(session, host=host) for session in page.sessions],
        matches=[replace(match, host=host) for match in page.matches],
    )


def _merged_sessions(
    find: Find, reader: HistoryReader, query: HistoryQuery, hosts: tuple[str, ...], *, only_others: bool
) -> HistoryPage:
    """Merge sessions by the time of their last event. The cursor of the next page is that time and the id.

    With `only_others`, the sessions of this host are left out.
    """
    last, _, name = query.before.partition(",")
    before = (float(last), name, "") if query.before else None
    local, (others, state) = _ask_both(
        find, query if not only_others else None, lambda: reader.sessions(query, hosts, before), query
    )
    local = _with_host(local, reader.own_name)
    rows: list[HistorySession] = sorted(
        [*local.sessions, *(result.session for result in others)],
        key=lambda session: (session.last, session.id),
        reverse=True,
    )
    page = rows[: query.limit]
    has_more = len(rows) + state.refused > query.limit or bool(local.next)
    shown = {(session.id, session.host) for session in page}
    costs = [result.session.cost_usd for result in others if (result.session.id, result.session.host) in shown]
    known = [cost for cost in costs if cost is not None]
    is_known = bool(local.usd) or not page or any(session.cost_usd is not None for session in page)
    return replace(
        local,
        usd=(local.usd or 0.0) + sum(known) if is_known else None,
        unknown=local.unknown + len(costs) - len(known),
        sessions=page,
        next=f"{page[-1].last!r},{page[-1].id}" if has_more and page else "",
        others=state,
    )


def _merged_matches(
    find: Find, reader: HistoryReader, query: HistoryQuery, hosts: tuple[str, ...], *, only_others: bool
) -> HistoryPage:
    """Merge matches by their time. The cursor has a part for the store and a part for the relay.

    With `only_others`, the matches of this host are left out.
    """
    local_cursor, remote_cursor = _cursors(query.before)
    if only_others:
        local_cursor = _END
    local_query = replace(query, before=local_cursor) if local_cursor != _END else None
    before = _row_key(remote_cursor) if remote_cursor not in {"", _END} else None
    asked = hosts if remote_cursor != _END else ()
    local, (others, state) = _ask_both(find, local_query, lambda: reader.search(query, asked, before), query)
    local = _with_host(local, reader.own_name)
    matches, used = _interleave(local.matches, others, query.limit)
    taken = others[: len(matches) - used]
    next_local = local_cursor
    if used == len(local.matches):
        next_local = local.next or _END
    elif used:
        next_local = find(replace(query, before=local_cursor, limit=used)).next or _END
    is_remote_over = len(taken) == len(others) and len(others) + state.refused <= query.limit
    next_remote = _END if is_remote_over or not others else remote_cursor
    if taken and not is_remote_over:
        next_remote = _cursor(taken[-1].key)
    names = {match.session for match in matches}
    sessions = [session for session in local.sessions if session.id in names]
    sessions += {result.session.id: result.session for result in taken}.values()
    is_over = next_local == next_remote == _END
    return replace(
        local, sessions=sessions, matches=matches, next="" if is_over else f"{next_local};{next_remote}", others=state
    )


def _ask_both(
    find: Find,
    local: HistoryQuery | None,
    ask: Callable[[], tuple[list[RemoteResult], OtherHostsSummary]],
    query: HistoryQuery,
) -> tuple[HistoryPage, tuple[list[RemoteResult], OtherHostsSummary]]:
    """Return a page of the store and the result of `ask`, run in parallel; an empty page if `local` is `None`."""
    from fairlead.sessions import HistoryPage

    if local is None:
        return HistoryPage(since=query.since), ask()
    with ThreadPoolExecutor(1, "history") as pool:
        others = pool.submit(ask)
        return find(local), others.result()


def _interleave(local: list[HistoryMatch], others: list[RemoteResult], limit: int) -> tuple[list[HistoryMatch], int]:
    """Return the newest `limit` matches of two sorted lists, and how many of them are local."""
    merged: list[HistoryMatch] = []
    remote = [result.match for result in others if result.match is not None]
    used = 0
    while len(merged) < limit and (used < len(local) or len(merged) - used < len(remote)):
        taken = len(merged) - used
        is_local = taken == len(remote) or (used < len(local) and local[used].at >= remote[taken].at)
        merged.append(local[used] if is_local else remote[taken])
        used += is_local
    return merged, used


def _cursors(before: str) -> tuple[str, str]:
    """Return the two parts of a cursor: a number of the store or `end`, and the key of a remote row or `end`.

    Both are "" for the first page. Raises `ValueError` for an invalid first part.
    """
    local, _, remote = before.partition(";")
    if local not in {"", _END}:
        int(local)
    return local, remote


def _cursor(key: RowKey) -> str:
    at, name, host = key
    return f"{at!r},{host},{name}"


def _row_key(cursor: str) -> RowKey:
    at, host, name = cursor.split(",", 2)
    return float(at), name, host
