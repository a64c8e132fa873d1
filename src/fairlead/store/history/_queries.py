"""The queries of the history. A page is read through an index, so its cost does not grow with what is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, func, literal, or_, select, tuple_

from fairlead.journal import DOCTOR_SESSION
from fairlead.sessions import AbsenceSummary, HistoryMatch, HistoryPage, HistorySession, TimelineEntry
from fairlead.store._trigrams import trigram_query
from fairlead.store.events._rows import clean_text
from fairlead.store.events._tables import events
from fairlead.store.history import _search as search
from fairlead.store.history._tables import HAS_COST, IS_BLOCKED, costs, sessions, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import ColumnElement, Connection, Row, Select

    from fairlead.sessions import HistoryQuery

_MAX_EXAMPLES = 5
_MAX_TEXT = 400


def find_sessions(connection: Connection, query: HistoryQuery) -> HistoryPage:
    """Return a page of the sessions in a period and folder, the most recently active one first, with their costs."""
    requested = [sessions.c.last >= query.since, *_in_folder(query.folder)]
    if query.until:
        requested.append(sessions.c.started < query.until)
    statement = select(sessions, HAS_COST).where(*requested)
    if query.before:
        last, _, name = query.before.partition(",")
        statement = statement.where(tuple_(sessions.c.last, sessions.c.session) < tuple_(literal(float(last)), name))
    statement = statement.order_by(sessions.c.last.desc(), sessions.c.session.desc()).limit(query.limit + 1)
    rows = connection.execute(statement).all()
    page = rows[: query.limit]
    spent = _costs_of(connection, [row.session for row in page], query)
    usd, unknown = _known_costs(connection, _sum_of_costs(connection, query), requested)
    return HistoryPage(
        since=query.since,
        usd=usd,
        unknown=unknown,
        sessions=[session_of_row(row, spent.get(row.session, 0.0)) for row in page],
        next=f"{page[-1].last!r},{page[-1].session}" if len(rows) > query.limit else "",
    )


def find_session(connection: Connection, name: str) -> list[HistorySession]:
    """Return the session with the id `name`, or at most two whose ids start with it: two mean that it is ambiguous.

    Their costs are those of all time.
    """
    exact = sessions.c.session == clean_text(name)
    begins = sessions.c.session.like(search.like_pattern(clean_text(name))[1:], escape="\\")
    query = select(sessions, HAS_COST).where(or_(exact, begins)).order_by(exact.desc(), sessions.c.last.desc()).limit(2)
    rows = connection.execute(query).all()
    if rows and rows[0].session == clean_text(name):
        rows = rows[:1]
    return [session_of_row(row, row.usd) for row in rows]


def find_texts(connection: Connection, query: HistoryQuery) -> HistoryPage:
    """Return a page of the texts that contain the searched text, newest first, and the sessions of these texts.

    The page has no sum of costs.
    """
    text = clean_text(query.search)
    trigrams = trigram_query(text) if search.has_index(connection) else ""
    source, number, conditions = search.candidates(trigrams)
    statement = (
        select(texts.c.id, texts.c.session, texts.c.at, texts.c.kind, texts.c.text, sessions.c.folder)
        .select_from(source.join(sessions, texts.c.session == sessions.c.session))
        .where(texts.c.at >= query.since, texts.c.text.like(search.like_pattern(text), escape="\\"))
        .where(*conditions, *_in_folder(query.folder))
    )
    if query.until:
        statement = statement.where(texts.c.at < query.until)
    if query.before:
        statement = statement.where(number < int(query.before))
    rows = connection.execute(statement.order_by(number.desc()).limit(query.limit + 1)).all()
    page = rows[: query.limit]
    matches = [HistoryMatch(row.session, row.folder, row.at, row.kind, row.text[:_MAX_TEXT]) for row in page]
    return HistoryPage(
        since=query.since,
        sessions=_sessions_named(connection, {match.session for match in matches}, query),
        matches=matches,
        next=str(page[-1].id) if len(rows) > query.limit else "",
    )


def summarize(connection: Connection, since: float, now: float) -> AbsenceSummary:
    """Return a summary of the events from `since` on. The caller adds the sessions that have ended or wait."""
    blocked = select(events).where(IS_BLOCKED, *_since(since))
    newest = blocked.order_by(events.c.at.desc()).limit(_MAX_EXAMPLES)
    spent = connection.execute(select(func.sum(costs.c.usd)).where(costs.c.at >= since)).scalar_one() or 0.0
    usd, unknown = _known_costs(connection, spent, [sessions.c.last >= since])
    return AbsenceSummary(
        since=since,
        now=now,
        asked=_count_kind(connection, "PermissionRequest", since) + _count_kind(connection, "Elicitation", since),
        blocked=connection.execute(select(func.count()).select_from(blocked.subquery())).scalar_one(),
        examples=[_example(row) for row in connection.execute(newest)],
        prompts=_count_kind(connection, "UserPromptSubmit", since),
        active=connection.execute(select(func.count()).where(sessions.c.last >= since)).scalar_one(),
        usd=usd,
        unknown=unknown,
    )


def _count_kind(connection: Connection, event: str, since: float) -> int:
    return connection.execute(select(func.count()).where(events.c.event == event, *_since(since))).scalar_one()


def _since(time: float) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for events from a time on, without the test events of `fairlead doctor`."""
    return (events.c.at >= time, events.c.session != DOCTOR_SESSION)


def _sessions_named(connection: Connection, names: set[str], query: HistoryQuery) -> list[HistorySession]:
    found = select(sessions, HAS_COST).where(sessions.c.session.in_(names))
    rows = connection.execute(found).all() if names else []
    spent = _costs_of(connection, names, query)
    return [session_of_row(row, spent.get(row.session, 0.0)) for row in rows]


def _in_folder(folder: str) -> tuple[ColumnElement[bool], ...]:
    """Return the condition that a session is in a folder or below it, as a tuple of one; () if `folder` is ""."""
    if not folder:
        return ()
    path = clean_text(folder.rstrip("/"))
    below = sessions.c.folder.like(f"{search.like_pattern(path)[1:-1]}/%", escape="\\")
    return (or_(sessions.c.folder == path, below),)


def _in_period(query: HistoryQuery) -> ColumnElement[bool]:
    period = costs.c.at >= query.since
    return and_(period, costs.c.at < query.until) if query.until else period


def _costs_of(connection: Connection, names: Iterable[str], query: HistoryQuery) -> dict[str, float]:
    statement = select(costs.c.session, func.sum(costs.c.usd)).where(costs.c.session.in_(list(names)))
    rows = connection.execute(statement.where(_in_period(query)).group_by(costs.c.session))
    return {row[0]: row[1] for row in rows}


def _sum_of_costs(connection: Connection, query: HistoryQuery) -> float:
    statement: Select[Any] = select(func.sum(costs.c.usd)).where(_in_period(query))
    if query.folder:
        joined = statement.join_from(costs, sessions, costs.c.session == sessions.c.session)
        statement = joined.where(*_in_folder(query.folder))
    return connection.execute(statement).scalar_one() or 0.0


def _known_costs(
    connection: Connection, usd: float, requested: Sequence[ColumnElement[bool]]
) -> tuple[float | None, int]:
    """Return the sum `usd`, and the number of requested sessions whose cost is not known.

    The sum is `None` instead if it would be 0 although sessions were found, because none of their costs is known.
    """
    statement = select(HAS_COST, func.count()).select_from(sessions).where(*requested).group_by(HAS_COST)
    numbers = {bool(row[0]): row[1] for row in connection.execute(statement)}
    unknown = numbers.get(False, 0)
    return None if unknown and not usd and True not in numbers else usd, unknown


def session_of_row(row: Row[Any], usd: float, *, prompt: str | None = None) -> HistorySession:
    """Return the session of a row that includes `HAS_COST`.

    `usd` is its cost in the queried period, which is dropped if the cost is not known. `prompt` replaces the stored
    one.
    """
    return HistorySession(
        id=row.session,
        client=row.client,
        folder=row.folder,
        prompt=row.prompt if prompt is None else prompt,
        started=row.started,
        last=row.last,
        ended=row.ended or None,
        end_reason=row.end_reason,
        events=row.events,
        prompts=row.prompts,
        tools=row.tools,
        blocked=row.blocked,
        asked=row.asked,
        failures=row.failures,
        subagents=row.subagents,
        cost_usd=usd if row.has_cost else None,
        total_usd=row.usd if row.has_cost else None,
    )


def _example(row: Row[Any]) -> TimelineEntry:
    return TimelineEntry(
        at=row.at,
        event=row.event,
        session=row.session,
        tool=row.tool,
        agent=row.agent,
        verdict=row.verdict,
        reason=row.reason,
        exit=row.exit,
        seconds=row.seconds,
    )
