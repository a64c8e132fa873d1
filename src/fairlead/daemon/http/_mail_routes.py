"""The HTTP routes of the mail, which the commands use. The caller is identified by its process."""

from __future__ import annotations

import asyncio
import os
import re
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route

from fairlead.daemon._loop_calls import call_in_loop
from fairlead.daemon.events._messages import is_receipt_name
from fairlead.daemon.http import _mail_documents as documents
from fairlead.daemon.http._lease_routes import lease_routes
from fairlead.daemon.http._responses import BAD_REQUEST, CONFLICT, FORBIDDEN, NOT_FOUND, UNAVAILABLE
from fairlead.daemon.leases._operations import LeaseHeld
from fairlead.daemon.mail import _operations as operations
from fairlead.daemon.mail._caller_identity import Observation, identify
from fairlead.ipc import DaemonNotResponding
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
from fairlead.process import ancestries_of, command_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.mail._caller_identity import Claim
    from fairlead.mail import MessageService
    from fairlead.process import Ancestry, Process
    from fairlead.sessions import Session

    Operation = Callable[[operations.MailCall, Any], dict[str, Any]]

AnyRequest = TypeVar("AnyRequest", bound=documents.MailRequest)

_MAX_BODY = 8 * 1024 * 1024
"""The maximum size of a request in bytes. Each byte of the longest message may be escaped with six characters."""
_SMALL_BODY = 64 * 1024
"""Requests below this size in bytes are parsed in the event loop."""
_NUMBER = re.compile(r"(?<=/)[0-9]+")
_OK = 200

_STATUS = {
    MailFull: 507,
    MailUnreachable: UNAVAILABLE,
    TooLarge: 413,
    BadMessage: BAD_REQUEST,
    BadName: CONFLICT,
    NotYours: FORBIDDEN,
    NoSuchAgent: NOT_FOUND,
    NoSuchMessage: NOT_FOUND,
    NobodyThere: NOT_FOUND,
    LeaseHeld: CONFLICT,
}


def mail_routes(daemon: Daemon) -> list[Route]:
    """Return the routes for mail and leases."""
    api = MailApi(daemon)
    daemon.commands.answer_in_thread = api.answer_in_thread
    return [
        api.route("send", operations.send, documents.SendRequest, "POST"),
        api.route("inbox", operations.inbox, documents.InboxRequest, "GET"),
        api.route("search", operations.inbox, documents.InboxRequest, "GET"),
        api.route("messages/{id:int}", operations.read, documents.MailRequest, "GET"),
        api.route("messages/{id:int}/ledger", operations.ledger, documents.MailRequest, "GET"),
        api.route("messages/{id:int}/reply", operations.reply, documents.ReplyRequest, "POST"),
        api.route("agents", operations.agents, documents.AgentsRequest, "GET"),
        Route("/v1/mail/user", api.user, methods=["GET"]),
        api.route("status", operations.status, documents.MailRequest, "GET"),
        api.route("heartbeat", operations.heartbeat, documents.HeartbeatRequest, "POST"),
        api.route("identity", operations.show_identity, documents.MailRequest, "GET"),
        api.route("identity", operations.identity, documents.IdentityRequest, "POST"),
        api.route("tasks", operations.tasks, documents.TasksRequest, "GET"),
        api.route("topics", operations.topics, documents.MailRequest, "GET"),
        api.route("topics", operations.listen, documents.ListenRequest, "POST"),
        Route("/v1/mail/poll", api.poll, methods=["POST"]),
        *lease_routes(daemon, api),
    ]


class _ThreadRoute(NamedTuple):
    """The function that a route runs in a thread, and the type of its request."""

    run: Callable[[MessageService, Any, _Target], bytes]
    kind: type[documents.MailRequest]


class _Target(NamedTuple):
    """The pid of the caller (`peer`, 0 if unknown), and the id of the message in the path (`message`, 0 for none)."""

    peer: int
    message: int = 0


class MailApi:
    """Runs operations in a thread of the mail service, or in the thread of a command that the daemon runs."""

    def __init__(self, daemon: Daemon) -> None:
        self._mail = daemon.mail
        self._tracker = daemon.tracker
        self._turns = daemon.idle.turns
        self._team = daemon.team
        self._thread_routes = {("POST", "/v1/mail/poll"): _ThreadRoute(self._poll_now, documents.PollRequest)}

    def route(self, path: str, operation: Operation, kind: type[documents.MailRequest], method: str) -> Route:
        """Return the route below `/v1/mail/` that runs an operation on requests of the type `kind`.

        `answer_in_thread` serves it, too.
        """
        path = f"/v1/mail/{path}"
        self._thread_routes[method, path] = _ThreadRoute(partial(self._run, operation), kind)
        return Route(path, self._serving(operation, kind), methods=[method])

    def _serving(
        self, operation: Operation, kind: type[documents.MailRequest]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint that runs an operation in a thread."""

        async def serve(request: Request) -> Response:
            try:
                mail_request = await self._read(request, kind)
                service = await self._service()
                return _json(await self._mail.run(self._run, operation, service, mail_request, _target(request)))
            except MailError as error:
                return _response(_error(error))
            except ClientDisconnect:
                return Response()

        return serve

    def answer_in_thread(self, method: str, path: str, body: bytes, peer: int) -> tuple[int, bytes] | None:
        """Return the HTTP status and the JSON document for a request.

        Call it in a thread, because it may wait for the disk. `peer` is the pid of the caller. Return `None` if the
        event loop has to answer: for a route without a function for a thread, and until mail and sessions are loaded.
        """
        path, _, query = path.partition("?")
        number = _NUMBER.search(path)
        route = self._thread_routes.get((method, _NUMBER.sub("{id:int}", path)))
        if route is None or not self._tracker.all_replayed.is_set():
            return None
        try:
            service = self._mail.service_now()
            if service is None:
                return None
            mail_request = _parse(method, dict(parse_qsl(query, keep_blank_values=True)), body, route.kind)
            return _OK, route.run(service, mail_request, _Target(peer, int(number[0]) if number else 0))
        except MailError as error:
            return _error(error)

    async def user(self, request: Request) -> Response:
        """Return the mail counts of the user. Every process may request them, because status lines have no terminal."""
        del request
        try:
            service = await self._mail.service()
            return _json(msgspec.json.encode(await self._mail.run(operations.user_counts, service)))
        except MailError as error:
            return _response(_error(error))

    async def poll(self, request: Request) -> Response:
        """Return the queued mail, and wait for mail if the request says so.

        If the caller disconnects, the mail is queued again.
        """
        mail, target = self._mail, _target(request)
        try:
            poll = await self._read(request, documents.PollRequest)
            service = await self._service()
            if poll.undo or not poll.wait:
                document = await mail.run(self._poll_now, service, poll, target)
            else:
                call = await mail.run(self._begin_poll, service, poll, target)
                started = monotonic()
                if not await self._wait(request, call, poll.wait):
                    return Response()
                document = await mail.run(self._take, call, poll, target, started)
            if not poll.undo and await request.is_disconnected():
                await mail.run(mail.requeue_unprinted, service, poll.id)
            return _json(document)
        except MailError as error:
            return _response(_error(error))
        except ClientDisconnect:
            return Response()

    def _poll_now(self, service: MessageService, poll: documents.PollRequest, target: _Target) -> bytes:
        """Return the queued mail, or queue the mail of an earlier poll again (`undo`). Called in a thread."""
        call = self._begin_poll(service, poll, target)
        if poll.undo:
            return msgspec.json.encode({"undone": self._mail.requeue_all(service, poll.undo)})
        return self._take(call, poll, target, monotonic())

    def _begin_poll(self, service: MessageService, poll: documents.PollRequest, target: _Target) -> operations.MailCall:
        call = self._identify(service, poll, target)
        if not poll.undo:
            if self._mail.has_pending_undo:
                self._mail.retry_undo(service)
            # If this poll is repeated, its first reply was lost with a daemon or connection, and was not printed.
            self._mail.requeue_all(service, poll.id)
        return call

    def _take(self, call: operations.MailCall, poll: documents.PollRequest, target: _Target, started: float) -> bytes:
        gives_receipt = poll.receipt and is_receipt_name(poll.id)
        take = partial(self._mail.take, pid=target.peer if gives_receipt else None)
        return _document(call, operations.poll(call, poll, started=started, take=take))

    async def _wait(self, request: Request, call: operations.MailCall, seconds: float) -> bool:
        """Wait until there is mail or the time is up. Return whether the caller is still connected."""
        if call.service.queued_count(call.agent):
            return True
        mail = asyncio.ensure_future(self._mail.wait_for_mail(call.agent, seconds))
        disconnect = asyncio.ensure_future(_disconnected(request))
        try:
            done, _ = await asyncio.wait({mail, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            mail.cancel()
            disconnect.cancel()
        return disconnect not in done

    async def _read(self, request: Request, kind: type[AnyRequest]) -> AnyRequest:
        """Return the request in the query of a GET or the body of a POST. A large body is parsed in a thread.

        Raise `BadMessage` if it cannot be parsed, and `TooLarge` if the body has more than `_MAX_BODY` bytes.
        """
        body, query = await _body(request), dict(request.query_params)
        parse = partial(_parse, request.method, query, body, kind)
        return parse() if len(body) < _SMALL_BODY else await self._mail.run(parse)

    async def _service(self) -> MessageService:
        """Return the message service once the sessions of the previous daemon are known.

        Raise `MailUnreachable` if the mail cannot be opened.
        """
        if not self._tracker.all_replayed.is_set():
            await self._tracker.wait_until_replayed()
        return await self._mail.service()

    def _run(
        self, operation: Operation, service: MessageService, request: documents.MailRequest, target: _Target
    ) -> bytes:
        """Identify the caller, run an operation, and return its document as JSON. Called in a thread."""
        call = self._identify(service, request, target)
        return _document(call, operation(call, request))

    def _identify(
        self, service: MessageService, mail_request: documents.MailRequest, target: _Target
    ) -> operations.MailCall:
        """Identify the caller, mark it as seen, and return what its operation needs.

        Called in a thread, because it reads the process table. It reads the sessions in the event loop. Raise
        `NoSuchMessage` for an id that no message can have, `MailUnreachable` if the event loop does not answer.
        """
        mail, claim = self._mail, mail_request.claim()
        ancestry, own_ancestry = ancestries_of(target.peer, os.getpid())
        known = self._sessions_of(ancestry, claim)
        caller = identify(
            service,
            Observation(
                agent_ids=mail.shell_calls.callers(
                    known.ids, partial(_shell_above, ancestry, known.process), known.shells
                ),
                own=known.own,
                is_common=known.process in own_ancestry.processes[1:],
                has_terminal=ancestry.has_terminal,
                claimed=known.claimed if known.claimed is not None and not known.claimed.is_child else None,
            ),
            claim,
        )
        now = time()
        service.mark_seen(USER if caller.is_person else caller.agent, now)
        if target.message > documents.MAX_ID:
            raise NoSuchMessage("there is no message with that number; `fairlead inbox` lists yours")
        listening = mail.waiters.waiting_agents()  # read first, because sending a message ends waits
        return operations.MailCall(
            service,
            caller,
            self._tracker.get,
            mail.tasks,
            now,
            target.message,
            self._turns.withheld,
            listening.__contains__,
            self._team.service,
        )

    def _sessions_of(self, ancestry: Ancestry, claim: Claim) -> _KnownSessions:
        """Return the sessions that a caller may belong to. Called in a thread, waits for the event loop.

        Raise `MailUnreachable` if the event loop does not answer.
        """
        assert self._mail.loop is not None, "there is a service"  # the loop has opened it
        try:
            return call_in_loop(self._mail.loop, self._find_sessions, ancestry, claim)
        except DaemonNotResponding as error:
            raise MailUnreachable(f"the mail cannot be reached: {error}") from None

    def _find_sessions(self, ancestry: Ancestry, claim: Claim) -> _KnownSessions:
        """Return the sessions that a caller may belong to. Called in the event loop."""
        tracker = self._tracker
        process, own = tracker.running_in(ancestry.processes)
        claimed = tracker.get(claim.session or claim.variable)
        ids = [session.id for session in own or filter(None, [claimed])]
        return _KnownSessions(process, own, claimed, ids, tracker.subagents_running_shells(ids))


class _KnownSessions(NamedTuple):
    """The sessions that a caller may belong to."""

    process: Process
    """The nearest ancestor of the caller that has sessions."""
    own: tuple[Session, ...]
    """The sessions of that process."""
    claimed: Session | None
    """The session that the caller claims to be; None if it is not known."""
    ids: list[str]
    """The ids of the sessions in `own`, or of `claimed` if `own` is empty."""
    shells: set[str]
    """The ids of the subagents of these sessions that have running shell calls."""


def _shell_above(ancestry: Ancestry, client: Process) -> str:
    """Return the command line of the client's child process above the caller; "" if there is none."""
    index = ancestry.processes.index(client) if client in ancestry.processes else 0
    return " ".join(command_line(ancestry.processes[index - 1][0])) if index else ""


def _target(request: Request) -> _Target:
    return _Target(request.scope["state"].get("peer", 0), request.path_params.get("id", 0))


def _parse(method: str, query: dict[str, str], body: bytes, kind: type[AnyRequest]) -> AnyRequest:
    try:
        if method == "GET":
            return msgspec.convert(query, kind, strict=False)
        return msgspec.json.decode(body, type=kind)
    except (ValueError, msgspec.MsgspecError) as error:
        raise BadMessage(f"the request cannot be parsed: {error}") from None


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
    """Wait until the caller has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _error(error: MailError) -> tuple[int, bytes]:
    """Return the HTTP status and the JSON document of an error."""
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
    return status, msgspec.json.encode({"error": str(error), "kind": type(error).__name__})


def _document(call: operations.MailCall, fields: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"you": call.agent.name, "now": call.now, **fields})


def _json(document: bytes) -> Response:
    return _response((_OK, document))


def _response(answer: tuple[int, bytes]) -> Response:
    status, document = answer
    return Response(document, status, media_type="application/json")
