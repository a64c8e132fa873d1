"""Mail over HTTP, for the commands. The caller is identified by its process; errors keep their own messages."""

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

from fairlead.daemon.events._messages import is_receipt_name
from fairlead.daemon.http import _mail_requests as requests
from fairlead.daemon.http._lease_routes import lease_routes
from fairlead.daemon.leases._operations import LeaseHeld
from fairlead.daemon.mail import _operations as operations
from fairlead.daemon.mail._caller_identity import Observation, identify
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
from fairlead.process import ancestry_of, command_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from fairlead.daemon._runtime import Daemon
    from fairlead.process import Ancestry, Process

    Operation = Callable[[operations.MailCall, Any], dict[str, Any]]

AnyRequest = TypeVar("AnyRequest", bound=requests.MailRequest)

_MAX_BODY = 8 * 1024 * 1024
"""Bytes of a request: each character of the longest message may be escaped as six."""

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
    LeaseHeld: 409,
}


def mail_routes(daemon: Daemon) -> list[Route]:
    """Return the routes."""
    api = MailApi(daemon)

    def route(path: str, operation: Operation, kind: type[requests.MailRequest], method: str) -> Route:
        return Route(f"/v1/mail/{path}", api.serving(operation, kind), methods=[method])

    return [
        route("send", operations.send, requests.Send, "POST"),
        route("inbox", operations.inbox, requests.Inbox, "GET"),
        route("search", operations.inbox, requests.Inbox, "GET"),
        route("messages/{id:int}", operations.read, requests.MailRequest, "GET"),
        route("messages/{id:int}/ledger", operations.ledger, requests.MailRequest, "GET"),
        route("messages/{id:int}/reply", operations.reply, requests.Reply, "POST"),
        route("agents", operations.agents, requests.Agents, "GET"),
        Route("/v1/mail/user", api.user, methods=["GET"]),
        route("status", operations.status, requests.MailRequest, "GET"),
        route("heartbeat", operations.heartbeat, requests.Heartbeat, "POST"),
        route("identity", operations.show_identity, requests.MailRequest, "GET"),
        route("identity", operations.identity, requests.Identity, "POST"),
        route("tasks", operations.tasks, requests.Tasks, "GET"),
        route("topics", operations.topics, requests.MailRequest, "GET"),
        route("topics", operations.listen, requests.Listen, "POST"),
        Route("/v1/mail/poll", api.poll, methods=["POST"]),
        *lease_routes(daemon, api),
    ]


class MailApi:
    """Runs the operations."""

    def __init__(self, daemon: Daemon) -> None:
        self._mail = daemon.mail
        self._tracker = daemon.tracker
        self._turns = daemon.idle.turns

    def serving(
        self, operation: Operation, kind: type[requests.MailRequest]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint that runs an operation in a thread."""

        async def serve(request: Request) -> Response:
            try:
                mail_request = await self._read(request, kind)
                call = await self._identify(request, mail_request)
                return _json(await self._mail.run(_run, operation, call, mail_request))
            except MailError as error:
                return _error(error)
            except ClientDisconnect:
                return Response()

        return serve

    async def user(self, request: Request) -> Response:
        """Return how much mail the person has, to anybody: it is for status lines, which have no terminal."""
        del request
        try:
            service = await self._mail.service()
            return _json(msgspec.json.encode(await self._mail.run(operations.user_counts, service)))
        except MailError as error:
            return _error(error)

    async def poll(self, request: Request) -> Response:
        """Return new mail, once; wait for it if asked to. A caller that has gone meanwhile was shown nothing."""
        mail = self._mail
        try:
            poll = await self._read(request, requests.Poll)
            call = await self._identify(request, poll)
            if poll.undo:
                return _json(
                    msgspec.json.encode({"undone": await mail.run(mail.take_back_all, call.service, poll.undo)})
                )
            if mail.has_pending_undo:
                await mail.run(mail.retry_undo, call.service)
            # The same poll again: its answer was lost with another daemon or connection, and nothing of it printed.
            await mail.run(mail.take_back_all, call.service, poll.id)
            started = monotonic()
            if not await self._wait(request, call, poll.wait):
                return Response()
            gives_receipt = poll.receipt and is_receipt_name(poll.id)
            take = partial(mail.take, pid=request.scope["state"].get("peer", 0) if gives_receipt else None)
            document = await mail.run(_run, partial(operations.poll, started=started, take=take), call, poll)
            if await request.is_disconnected():
                await mail.run(mail.take_back, call.service, poll.id)
            return _json(document)
        except MailError as error:
            return _error(error)
        except ClientDisconnect:
            return Response()

    async def _wait(self, request: Request, call: operations.MailCall, seconds: float) -> bool:
        """Wait until there is mail or the time is up. Returns whether the caller is still connected."""
        if call.service.queued_count(call.agent):
            return True
        mail = asyncio.ensure_future(self._mail.until_mail(call.agent, seconds))
        disconnect = asyncio.ensure_future(_disconnected(request))
        try:
            done, _ = await asyncio.wait({mail, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            mail.cancel()
            disconnect.cancel()
        return disconnect not in done

    async def _read(self, request: Request, kind: type[AnyRequest]) -> AnyRequest:
        """Parse the query of a GET, or the body of a POST, which may be large."""
        body = await _body(request)
        try:
            if request.method == "GET":
                return msgspec.convert(dict(request.query_params), kind, strict=False)
            return await self._mail.run(partial(msgspec.json.decode, type=kind), body)
        except (ValueError, msgspec.MsgspecError) as error:
            raise BadMessage(f"the request cannot be parsed: {error}") from None

    async def _identify(self, request: Request, mail_request: requests.MailRequest) -> operations.MailCall:
        """Find out who calls: the process table is read in a thread, the sessions are known here."""
        mail, tracker = self._mail, self._tracker
        await tracker.replayed()
        service = await mail.service()
        claim = mail_request.claim()
        ancestry, own_ancestry = await mail.run(_ancestries, request.scope["state"].get("peer", 0))
        process, own = tracker.running_in(ancestry.processes)
        claimed = tracker.get(claim.session or claim.variable)
        sessions = [one.id for one in own or filter(None, [claimed])]
        shell = await mail.run(_shell_above, ancestry, process)
        observed = Observation(
            agent_ids=mail.shell_calls.callers(sessions, shell, tracker.running_shells(sessions)),
            own=own,
            is_common=process in own_ancestry.processes[1:],
            has_terminal=ancestry.has_terminal,
            claimed=claimed if claimed is not None and not claimed.is_child else None,
        )
        caller = await mail.run(identify, service, observed, claim)
        now = time()
        service.mark_seen(USER if caller.is_person else caller.agent, now)
        message = request.path_params.get("id", 0)
        if message > requests.MAX_ID:
            raise NoSuchMessage("there is no message with that number; `fairlead inbox` lists yours")
        listening = mail.waiters.waiting_agents()  # before anything is done: a message ends the wait of who gets it
        return operations.MailCall(
            service, caller, tracker.get, mail.tasks, now, message, self._turns.held, listening.__contains__
        )


def _ancestries(peer: int) -> tuple[Ancestry, Ancestry]:
    """Return the ancestors of the caller and our own: a common one proves nothing about the caller."""
    return ancestry_of(peer), ancestry_of(os.getpid())


def _shell_above(ancestry: Ancestry, client: Process) -> str:
    """Return the command line of the process that the client has started, and below which the caller runs."""
    at = ancestry.processes.index(client) if client in ancestry.processes else 0
    return " ".join(command_line(ancestry.processes[at - 1][0])) if at else ""


async def _body(request: Request) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > _MAX_BODY:
            raise TooLarge(f"more than {_MAX_BODY} bytes were sent")
        parts.append(part)
    return b"".join(parts)


async def _disconnected(request: Request) -> None:
    """Return when the caller has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _error(error: MailError) -> Response:
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
    document = {"error": str(error), "kind": type(error).__name__}
    return Response(msgspec.json.encode(document), status, media_type="application/json")


def _run(operation: Operation, call: operations.MailCall, request: requests.MailRequest) -> bytes:
    return msgspec.json.encode({"you": call.agent.name, "now": call.now, **operation(call, request)})


def _json(document: bytes) -> Response:
    return Response(document, media_type="application/json")
