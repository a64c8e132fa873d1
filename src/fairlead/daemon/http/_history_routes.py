"""The HTTP routes for the history of sessions, for what happened while the user was away, and for their presence."""

from __future__ import annotations

import asyncio
from time import time
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fairlead.daemon.http._responses import BAD_REQUEST, CONFLICT, NOT_FOUND, UNAVAILABLE, NoTeam, json_response
from fairlead.daemon.store._messages import StoreUnavailable
from fairlead.errors import FairleadError
from fairlead.sessions import AttentionNeeded, HistoryQuery
from fairlead.text import start_of_day

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.sessions._tracker import SessionTracker
    from fairlead.daemon.team.history._reader import HistoryReader
    from fairlead.sessions import HistoryPage, HistorySession

_MAX_PAGE = 1000
_MAX_ENDED = 20
_MAX_ACTIVE = 200


def history_routes(daemon: Daemon) -> list[Route]:
    """Return the routes for the history and the user's presence."""
    api = _HistoryApi(daemon)
    return [
        Route("/v1/history", api.find),
        Route("/v1/history/{id:path}", api.find_one),
        Route("/v1/absence", api.absence),
        Route("/v1/presence", api.presence, methods=["POST"]),
    ]


class InvalidRequest(FairleadError):
    """A time or a page of a request is invalid."""


class _HistoryApi:
    """The endpoints. They read sessions from the store's process, and add what the tracker knows about their ends."""

    def __init__(self, daemon: Daemon) -> None:
        self._presence = daemon.presence
        self._store = daemon.store
        self._team = daemon.team
        self._tracker = daemon.tracker

    async def find(self, request: Request) -> Response:
        """Return a page of sessions, or of matching events if the request searches a text."""
        try:
            query = _query(request, self._presence.left_at(time()))
            await self._tracker.wait_until_replayed()
            page = await self._page(query, request)
        except (StoreUnavailable, FairleadError) as error:
            return _refusal(error)
        return json_response(replace(page, now=time(), left=self._presence.left_at(time())))

    async def _page(self, query: HistoryQuery, request: Request) -> HistoryPage:
        """Return a page of this host's history, or of the team's if the request asks for that."""
        reader, host = self._reader(request)
        if reader is None:
            page: HistoryPage = await _in_thread(self._find_here, query)
            return replace(page, sessions=[with_end(session, self._tracker) for session in page.sessions])
        from fairlead.daemon.team.history._pages import merged_page

        try:
            page = await _in_thread(merged_page, self._find_here, reader, query, host)
        except ValueError:
            raise _no_page(query.before) from None
        own = reader.own_name
        sessions = [with_end(session, self._tracker) if session.host == own else session for session in page.sessions]
        return replace(page, sessions=sessions)

    def _find_here(self, query: HistoryQuery) -> HistoryPage:
        if query.before:
            _check_page(query.before, int if query.search else float)
        return self._store.find_history(query)

    def _reader(self, request: Request) -> tuple[HistoryReader | None, str]:
        """Return the reader of other hosts' history, and the name of the only host that is requested.

        The reader is None if the request does not ask for other hosts, or this host is in no team. The name is empty
        for all hosts. Raise `NoTeam` if a host is named and this host is in no team.
        """
        host, service = request.query_params.get("host", ""), self._team.service
        if host and service is None:
            raise NoTeam(f"this host is in no team, so it knows no host {host!r}")
        wants_all = host or request.query_params.get("team")
        return (service.history if service is not None and wants_all else None), host

    async def find_one(self, request: Request) -> Response:
        """Return the session whose id begins with the name in the path, and a page of its events.

        The status is 404 if no id begins with that name, and 409 if several do.
        """
        limit, name = _number(request.query_params.get("limit"), 200), request.path_params["id"]
        before = request.query_params.get("before", "")
        await self._tracker.wait_until_replayed()
        try:
            _check_page(before or "0", float)
            reader, host = self._reader(request)
            is_here = reader is None or host in {"", reader.own_name}
            matches = await _in_thread(self._store.history_of, name, limit, before) if is_here else []
            if not matches and reader is not None:
                return await self._find_on_other_hosts(reader, name, host, limit, before)
        except (StoreUnavailable, FairleadError) as error:
            return _refusal(error)
        if not matches:
            return PlainTextResponse(f"no session's id begins with {name!r}; see fairlead history", NOT_FOUND)
        if len(matches) > 1:
            ids = " and ".join(match.session.id for match in matches)
            return PlainTextResponse(f"several ids begin with {name!r}, such as {ids}; give more of it", CONFLICT)
        session = replace(with_end(matches[0].session, self._tracker), host=reader.own_name if reader else "")
        return json_response(replace(matches[0], session=session))

    @staticmethod
    async def _find_on_other_hosts(reader: HistoryReader, name: str, host: str, limit: int, before: str) -> Response:
        from fairlead.daemon.team.history._pages import NoSuchSession, find_on_other_hosts
        from fairlead.team import RelayUnreachable

        try:
            return json_response(await _in_thread(find_on_other_hosts, reader, name, host, limit, before))
        except NoSuchSession as error:
            return PlainTextResponse(str(error), NOT_FOUND)
        except RelayUnreachable as error:
            text = f"no session's id begins with {name!r} on this host, and the others cannot be asked: {error}"
            return PlainTextResponse(text, NOT_FOUND)

    async def absence(self, request: Request) -> Response:
        """Return a summary of what happened since a Unix time, or by default since the user left."""
        given = request.query_params.get("since", "left")
        try:
            since = self._presence.left_at(time()) if given == "left" else float(given)
        except ValueError:
            return PlainTextResponse("since: expected a Unix time, or left", BAD_REQUEST)
        await self._tracker.wait_until_replayed()
        try:
            summary = await _in_thread(self._store.summarize, since)
            page = await _in_thread(self._store.find_history, HistoryQuery(since=since, limit=_MAX_ACTIVE))
        except StoreUnavailable as error:
            return PlainTextResponse(str(error), UNAVAILABLE)
        sessions = [with_end(session, self._tracker) for session in page.sessions]
        ended = [session for session in sessions if session.ended is not None and session.ended >= since]
        needing = (session for session in self._tracker.live() if isinstance(session.state, AttentionNeeded))
        waiting = {self._tracker.root_of(session).id for session in needing}
        return json_response(replace(summary, ended=ended[:_MAX_ENDED], waiting=sorted(waiting)))

    async def presence(self, _: Request) -> Response:
        """Record that the user is present. Return when they last left, and whether they have just come back."""
        was_away = self._presence.note(time())
        return json_response({"left": self._presence.left_at(time()), "was_away": was_away})


def with_end(session: HistorySession, tracker: SessionTracker) -> HistorySession:
    """Return a session of this host with its end as the tracker knows it.

    The journal does not contain the end if the client did not report it, for example because its process was killed. A
    session that the tracker does not know has ended at its last event.
    """
    known = tracker.known(session.id)
    if known is not None:
        return replace(
            session, ended=known.ended, end_reason=known.end_reason, prompt=session.prompt or known.first_prompt
        )
    return session if session.ended is not None else replace(session, ended=session.last)


def _query(request: Request, left: float) -> HistoryQuery:
    given = request.query_params
    since = given.get("since") or "today"
    now, until = time(), given.get("until") or "0"
    times = {"today": start_of_day(now), "yesterday": start_of_day(now, 1), "left": left}
    try:
        period = times[since] if since in times else float(since), float(until)
    except ValueError:
        raise InvalidRequest("since, until: expected a Unix time, today, yesterday or left") from None
    return HistoryQuery(
        since=period[0],
        until=period[1],
        folder=given.get("folder", ""),
        search=given.get("search", ""),
        limit=_number(given.get("limit"), 50),
        before=given.get("before", ""),
    )


def _check_page(before: str, kind: Callable[[str], object]) -> None:
    """Raise `InvalidRequest` unless the name of a page, up to its first comma, is a number of the type `kind`."""
    try:
        kind(before.partition(",")[0])
    except ValueError:
        raise _no_page(before) from None


def _no_page(before: str) -> InvalidRequest:
    return InvalidRequest(
        f"there is no page {before!r}; the last line of a page, or its `next`, names the one before it"
    )


def _refusal(error: Exception) -> Response:
    """Return the response to a request that cannot be answered, with the error as its text.

    The status is 400 for an `InvalidRequest`, 503 for `StoreUnavailable`, else 409.
    """
    is_invalid = isinstance(error, InvalidRequest)
    status = BAD_REQUEST if is_invalid else UNAVAILABLE if isinstance(error, StoreUnavailable) else CONFLICT
    return PlainTextResponse(str(error), status)


async def _in_thread(question: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, question, *arguments)


def _number(text: str | None, default: int) -> int:
    return max(1, min(int(text), _MAX_PAGE)) if text and text.isdigit() else default
