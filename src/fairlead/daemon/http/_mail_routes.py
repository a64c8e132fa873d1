"""Mail over HTTP, for the commands: who asks is seen, not told; what goes wrong is said in the mail's own words."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route

from fairlead.daemon.http import _mail_requests as asks
from fairlead.daemon.mail import _operations as work
from fairlead.daemon.mail._caller_identity import Seen, identify
from fairlead.mail import (
    USER,
    BadMessage,
    BadName,
    MailError,
    MailFull,
    MailUnreachable,
    NobodyThere,
    NoSuchAgent,
    NoSuchMessage,
    NotYours,
    TooLarge,
)
from fairlead.process import ancestry_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from fairlead.daemon._runtime import Daemon
    from fairlead.process import Ancestry

    Do = Callable[[work.Visit, Any], dict[str, Any]]

Asked = TypeVar("Asked", bound=asks.Ask)

_LARGEST = 8 * 1024 * 1024
"""Bytes of a request: of the longest message, each character may be written as six."""

_STATUS = {
    MailFull: 507,
    MailUnreachable: 503,
    TooLarge: 413,
    BadMessage: 400,
    BadName: 409,
    NotYours: 403,
    NoSuchAgent: 404,
    NoSuchMessage: 404,
    NobodyThere: 404,
}


def mail_routes(house: Daemon) -> list[Route]:
    """Give the routes."""
    counter = _Counter(house)

    def route(path: str, do: Do, ask: type[asks.Ask], method: str) -> Route:
        return Route(f"/v1/mail/{path}", counter.serving(do, ask), methods=[method])

    return [
        route("send", work.send, asks.Send, "POST"),
        route("inbox", work.inbox, asks.Inbox, "GET"),
        route("search", work.inbox, asks.Inbox, "GET"),
        route("messages/{id:int}", work.read, asks.Ask, "GET"),
        route("messages/{id:int}/ledger", work.ledger, asks.Ask, "GET"),
        route("messages/{id:int}/reply", work.reply, asks.Reply, "POST"),
        route("agents", work.agents, asks.Agents, "GET"),
        route("status", work.status, asks.Ask, "GET"),
        route("heartbeat", work.heartbeat, asks.Heartbeat, "POST"),
        route("identity", work.who, asks.Ask, "GET"),
        route("identity", work.identity, asks.Identity, "POST"),
        route("tasks", work.tasks, asks.Tasks, "GET"),
        route("topics", work.topics, asks.Ask, "GET"),
        route("topics", work.listen, asks.Listen, "POST"),
        Route("/v1/mail/poll", counter.poll, methods=["POST"]),
    ]


class _Counter:
    """Where the mail is asked."""

    def __init__(self, house: Daemon) -> None:
        self._house = house

    def serving(self, do: Do, ask: type[asks.Ask]) -> Callable[[Request], Awaitable[Response]]:
        """Make what serves a route: `do` is done in a thread, for whoever asks."""

        async def serve(request: Request) -> Response:
            try:
                asked = await self._read(request, ask)
                visit = await self._visit(request, asked)
                return _json(await self._house.mail.run(_done, do, visit, asked))
            except MailError as error:
                return _refusal(error)
            except ClientDisconnect:
                return Response()

        return serve

    async def poll(self, request: Request) -> Response:
        """Give what has come, once; wait for it if asked to. Who has gone meanwhile was shown nothing."""
        mail = self._house.mail
        try:
            asked = await self._read(request, asks.Poll)
            visit = await self._visit(request, asked)
            if asked.undo:
                return _json(await mail.run(_done, work.put_back, visit, asked))
            begun = monotonic()
            if not await self._wait(request, visit, asked.wait):
                return Response()
            told = await mail.run(_done, partial(work.poll, begun=begun), visit, asked)
            if await request.is_disconnected():
                await mail.run(visit.office.requeue, asked.id)
            return _json(told)
        except MailError as error:
            return _refusal(error)
        except ClientDisconnect:
            return Response()

    async def _wait(self, request: Request, visit: work.Visit, seconds: float) -> bool:
        """Wait until there is mail, or the time is up; tell whether the caller still waits."""
        if visit.office.queued_count(visit.agent):
            return True
        news = asyncio.ensure_future(self._house.mail.until_mail(visit.agent, seconds))
        gone = asyncio.ensure_future(_hung_up(request))
        try:
            done, _ = await asyncio.wait({news, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
            gone.cancel()
        return gone not in done

    async def _read(self, request: Request, ask: type[Asked]) -> Asked:
        """Read what is asked: from the query, or from a body, which may be large."""
        body = await _body(request)
        try:
            if request.method == "GET":
                return msgspec.convert(dict(request.query_params), ask, strict=False)
            return await self._house.mail.run(partial(msgspec.json.decode, type=ask), body)
        except (ValueError, msgspec.MsgspecError) as error:
            raise BadMessage(f"what was asked cannot be understood: {error}") from None

    async def _visit(self, request: Request, asked: asks.Ask) -> work.Visit:
        """See who asks: what is read from the process table is read in a thread, what is known of sessions is here."""
        mail, tracker = self._house.mail, self._house.tracker
        office = await mail.office()
        claim = asked.claim()
        line, above = await mail.run(_look, request.scope["state"].get("peer", 0))
        process, own = tracker.running_in(line.processes)
        claimed = tracker.get(claim.session or claim.variable)
        seen = Seen(
            own=own,
            is_common=process in above.processes[1:],
            has_terminal=line.has_terminal,
            claimed=claimed if claimed is not None and not claimed.is_child else None,
        )
        caller = await mail.run(identify, office, seen, claim)
        now = time()
        office.mark_seen(USER if caller.is_person else caller.agent, now)
        message = request.path_params.get("id", 0)
        if message > asks.LARGEST_ID:
            raise NoSuchMessage("there is no message of such a number; `fairlead inbox` lists yours")
        return work.Visit(office, caller, tracker.get, mail.tasks, now, message)


def _look(peer: int) -> tuple[Ancestry, Ancestry]:
    """Look up where a caller comes from, and where we do: who is above both proves nothing of the caller."""
    return ancestry_of(peer), ancestry_of(os.getpid())


async def _body(request: Request) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > _LARGEST:
            raise TooLarge(f"more than {_LARGEST} bytes were sent")
        parts.append(part)
    return b"".join(parts)


async def _hung_up(request: Request) -> None:
    """Return when the caller has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _refusal(error: MailError) -> Response:
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
    document = {"error": str(error), "kind": type(error).__name__}
    return Response(msgspec.json.encode(document), status, media_type="application/json")


def _done(do: Do, visit: work.Visit, asked: asks.Ask) -> bytes:
    return msgspec.json.encode({"you": visit.agent.name, "now": visit.now, **do(visit, asked)})


def _json(document: bytes) -> Response:
    return Response(document, media_type="application/json")
