"""The daemon's ASGI application, which handles events itself and passes all other requests to Starlette.

It gets no requests of launchers, because `events._listener` reads these directly from the socket. Events of other
senders bypass Starlette, because its router, request object and middleware would take as long as the decision itself.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from fairlead.clients import client_above
from fairlead.daemon.events._messages import error_reply, read_request, read_target
from fairlead.daemon.http._answer_routes import answer_routes
from fairlead.daemon.http._auth import is_allowed
from fairlead.daemon.http._history_routes import history_routes
from fairlead.daemon.http._mail_routes import mail_routes
from fairlead.daemon.http._responses import FORBIDDEN
from fairlead.daemon.http._session_routes import session_routes
from fairlead.daemon.http._team_routes import team_routes, team_stream_routes
from fairlead.daemon.http._wait_routes import wait_routes
from fairlead.events import MAX_PAYLOAD

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from starlette.requests import Request
    from starlette.responses import Response

    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.events._messages import HookReply

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

_EVENTS = "/v1/events/"
_REPORTS = "/v1/plans/"
_UNAUTHORIZED = 401


class App:
    """The ASGI application of a daemon."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._starlette = _starlette(daemon)
        daemon.commands.app = self._starlette

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Send no reply if the client disconnects before the request is complete."""
        with suppress(_Disconnected):
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["client"] is not None and not is_allowed(scope["headers"], self._daemon.token):  # over loopback
            await _send(send, error_reply(_UNAUTHORIZED, "the token is missing: authorization: Bearer TOKEN"))
        elif scope["path"].startswith((_EVENTS, _REPORTS)) and scope["method"] == "POST":
            await self._event(scope, receive, send)
        else:
            await self._starlette(scope, receive, send)

    async def _event(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_report = scope["path"].startswith(_REPORTS)
        name = scope["path"].removeprefix(_REPORTS if is_report else _EVENTS)
        request = read_request(*read_target(name, scope["query_string"]), scope["headers"], is_report=is_report)
        payload = await _body(receive)
        endpoint = self._daemon.endpoint
        await _send(send, endpoint.reply_in_loop(request, payload) or await endpoint.reply_in_thread(request, payload))


class _Disconnected(Exception):
    """The client closed the connection before its request was complete."""


async def _send(send: Send, reply: HookReply) -> None:
    await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers()})
    await send({"type": "http.response.body", "body": reply.stdout + reply.stderr})


async def _body(receive: Receive) -> bytes:
    """Return the body of a request, or its first parts if it is larger than `MAX_PAYLOAD`.

    Raise `_Disconnected` if the client closes the connection before the request is complete.
    """
    parts: list[bytes] = []
    size, is_more = 0, True
    while is_more and size <= MAX_PAYLOAD:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Disconnected
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        is_more = message.get("more_body", False)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _starlette(daemon: Daemon) -> Starlette:
    async def status(_: Request) -> Response:
        return JSONResponse(daemon.status())

    async def metrics(_: Request) -> Response:
        return PlainTextResponse(daemon.metrics_text(), media_type="text/plain; version=0.0.4")

    async def stop(request: Request) -> Response:
        """Stop the daemon, unless the calling process is below an agent's session."""
        peer = request.scope.get("state", {}).get("peer", 0)
        client = await asyncio.to_thread(client_above, {}, peer) if peer else None
        if client is not None:
            return PlainTextResponse(f"only a person can stop the daemon, not a session of {client.title}", FORBIDDEN)
        daemon.shutdown.request("asked to stop")
        return JSONResponse(daemon.status())

    async def http_hook(request: Request) -> Response:
        """Reply to a hook that the client calls over HTTP (its hook type `http`).

        The status is always 200, because the client allows a tool call at any other status.
        """
        hook = read_request(*read_target(request.path_params["event"], request.url.query.encode()), request.headers.raw)
        return JSONResponse(await daemon.endpoint.reply_as_json(hook, await _body(request.receive)))

    return Starlette(
        routes=[
            Route("/v1/status", status),
            Route("/metrics", metrics),
            Route("/v1/stop", stop, methods=["POST"]),
            Route("/v1/http/{event}", http_hook, methods=["POST"]),
            *session_routes(daemon),
            *history_routes(daemon),
            *wait_routes(daemon),
            *answer_routes(daemon),
            *team_routes(daemon),
            *team_stream_routes(daemon),
            *mail_routes(daemon),
        ]
    )
