"""One history of the team: pages of this host's store and of the relay, merged."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.team import TeamError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.daemon.team.history._reader import HistoryReader
    from fairlead.daemon.team.history._rows import Found, RowKey
    from fairlead.sessions import HistoryMatch, HistoryPage, HistoryQuery, HistorySession, OtherHosts, SessionHistory

    Find = Callable[[HistoryQuery], HistoryPage]

_END = "end"
"""The cursor of a part that has no more."""


class NoSuchSession(TeamError):
    """No session's id begins like this."""


class SeveralSessions(TeamError):
    """Several ids begin like this."""


def merged_page(find: Find, reader: HistoryReader, query: HistoryQuery, host: str = "") -> HistoryPage:
    """Return a page of this host and the others, or of one host. `find` asks the store of this host.

    Raises `TeamError` for a host that does not exist, and `ValueError` for a page that cannot be.
    """
    if host == reader.own_name:
        return _with_host(find(query), host)
    hosts = reader.hosts(host)
    return (_merged_matches if query.search else _merged_sessions)(find, reader, query, hosts, only_others=bool(host))


def find_elsewhere(reader: HistoryReader, name: str, host: str, limit: int, before: str) -> SessionHistory:
    """Return a session of another host with its events. Raises `TeamError`."""
    hosts = reader.hosts(host)
    found = reader.find_one(name, hosts) if hosts else []
    if not found:
        raise NoSuchSession(f"no session's id begins with {name!r}; see fairlead history")
    if len(found) > 1:
        ids = " and ".join(f"{session.id} on {session.host}" for _, session in found)
        raise SeveralSessions(f"several ids begin with {name!r}, such as {ids}; give more of it, or --host")
    (where, session), *_ = found
    return reader.timeline(where, session, limit, before)


def _with_host(page: HistoryPage, host: str) -> HistoryPage:
    return replace(
        page,
        sessions=[replace(one, host=host) for one in page.sessions],
        matches=[replace(one, host=host) for one in page.matches],
    )


def _merged_sessions(
    find: Find, reader: HistoryReader, query: HistoryQuery, hosts: tuple[str, ...], *, only_others: bool
) -> HistoryPage:
    """Merge sessions by the time of their last event, which is also where the next page begins."""
    last, _, name = query.before.partition(",")
    before = (float(last), name, "") if query.before else None
    local, (others, state) = _both(
        find, query if not only_others else None, lambda: reader.sessions(query, hosts, before), query
    )
    local = _with_host(local, reader.own_name)
    rows: list[HistorySession] = sorted(
        [*local.sessions, *(one.session for one in others)], key=lambda one: (one.last, one.id), reverse=True
    )
    page = rows[: query.limit]
    has_more = len(rows) + state.refused > query.limit or bool(local.next)
    shown = {(one.id, one.host) for one in page}
    spent = sum(one.session.cost_usd for one in others if (one.session.id, one.session.host) in shown)
    return replace(
        local,
        usd=local.usd + spent,
        sessions=page,
        next=f"{page[-1].last!r},{page[-1].id}" if has_more and page else "",
        others=state,
    )


def _merged_matches(
    find: Find, reader: HistoryReader, query: HistoryQuery, hosts: tuple[str, ...], *, only_others: bool
) -> HistoryPage:
    """Merge what was found by its time. Each part goes on where its own last row of the page is."""
    local_cursor, remote_cursor = _cursors(query.before)
    if only_others:
        local_cursor = _END
    local_query = replace(query, before=local_cursor) if local_cursor != _END else None
    before = _row_key(remote_cursor) if remote_cursor not in {"", _END} else None
    asked = hosts if remote_cursor != _END else ()
    local, (others, state) = _both(find, local_query, lambda: reader.search(query, asked, before), query)
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
    names = {one.session for one in matches}
    sessions = [one for one in local.sessions if one.id in names]
    sessions += {one.session.id: one.session for one in taken}.values()
    is_over = next_local == next_remote == _END
    return replace(
        local, sessions=sessions, matches=matches, next="" if is_over else f"{next_local};{next_remote}", others=state
    )


def _both(
    find: Find,
    local: HistoryQuery | None,
    ask: Callable[[], tuple[list[Found], OtherHosts]],
    query: HistoryQuery,
) -> tuple[HistoryPage, tuple[list[Found], OtherHosts]]:
    """Ask the store and the relay at once."""
    from fairlead.sessions import HistoryPage

    if local is None:
        return HistoryPage(since=query.since), ask()
    with ThreadPoolExecutor(1, "history") as pool:
        others = pool.submit(ask)
        return find(local), others.result()


def _interleave(local: list[HistoryMatch], others: list[Found], limit: int) -> tuple[list[HistoryMatch], int]:
    """Return the newest of two lists, each in its own order, and how many of them are local."""
    found: list[HistoryMatch] = []
    remote = [one.match for one in others if one.match is not None]
    used = 0
    while len(found) < limit and (used < len(local) or len(found) - used < len(remote)):
        taken = len(found) - used
        is_local = taken == len(remote) or (used < len(local) and local[used].at >= remote[taken].at)
        found.append(local[used] if is_local else remote[taken])
        used += is_local
    return found, used


def _cursors(before: str) -> tuple[str, str]:
    """Return where each part goes on: a number of the store, or `end`; the key of a row, or `end`."""
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
