"""The daemon's HTTP: events, and by Starlette everything else.

The events of launchers come straight from the socket (`_wire`); those that others send come as ASGI. For events the
router, the request object and the middleware between would take as long as the decision itself, so they go past
Starlette.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from fairlead.daemon.events._handler import HookReply, NotThisDaemon
from fairlead.daemon.events._request import home_of, is_newer, is_same_home, read_request
from fairlead.daemon.events._wire import RequestReader
from fairlead.daemon.http._auth import is_allowed
from fairlead.daemon.http._mail_routes import mail_routes
from fairlead.daemon.http._session_routes import session_routes
from fairlead.daemon.http._wait_routes import wait_routes
from fairlead.errors import FairleadError
from fairlead.events import MAX_PAYLOAD

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from starlette.requests import Request
    from starlette.responses import Response

    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.events._request import HookRequest

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

EVENTS = "/v1/events/"
_UNAUTHORIZED = 401
_NOT_YOURS = 421
_UPGRADE = 426
_UNAVAILABLE = 503


class App:
    """What uvicorn calls. `house` is the daemon's inside."""

    def __init__(self, house: Daemon) -> None:
        self.house = house
        self.reader = RequestReader()
        self._home = home_of(os.environ, "/")
        self._rest = _starlette(house)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Who has gone before it was whole is owed nothing."""
        with suppress(_Gone):
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["client"] is not None and not is_allowed(scope["headers"], self.house.token):  # over loopback
            await _refuse(send, _UNAUTHORIZED, "say the token: authorization: Bearer TOKEN")
        elif scope["path"].startswith(EVENTS) and scope["method"] == "POST":
            await self._event(scope, receive, send)
        else:
            await self._rest(scope, receive, send)

    async def _event(self, scope: Scope, receive: Receive, send: Send) -> None:
        ask = read_request(scope["path"][len(EVENTS) :], scope["query_string"], scope["headers"])
        payload = await _body(receive)
        reply = self.answer_quickly(ask, payload) or await self.answer(ask, payload)
        await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers()})
        await send({"type": "http.response.body", "body": reply.stdout + reply.stderr})

    def answer_quickly(self, ask: HookRequest, payload: bytes) -> HookReply | None:
        """Answer an event at once, if that is known to be quick; else it is for `answer`."""
        refusal = self._refusal(ask)
        if refusal is not None:
            return refusal
        with suppress(FairleadError, OSError):  # `answer` meets it again, and tells it
            return self.house.decide_quickly(ask, payload)
        return None

    async def answer(self, ask: HookRequest, payload: bytes) -> HookReply:
        """Answer an event that takes its time."""
        house = self.house
        try:
            return await house.decide(ask, payload)
        except NotThisDaemon as error:
            house.metrics.elsewhere += 1
            return _refused(_NOT_YOURS, str(error))
        except (FairleadError, OSError) as error:
            house.trouble(f"an event could not be decided: {error}")
            return _refused(_UNAVAILABLE, str(error))

    def _refusal(self, ask: HookRequest) -> HookReply | None:
        house = self.house
        if is_newer(ask.caller.version, house.version):
            house.leave(f"a launcher of version {ask.caller.version} asked")
            return _refused(_UPGRADE, f"this daemon is {house.version}, and goes")
        if ask.launched and not is_same_home(ask, self._home):
            house.metrics.elsewhere += 1
            return _refused(_NOT_YOURS, "this daemon speaks for another home")
        return None


class _Gone(Exception):
    """The other side has closed the connection."""


async def _body(receive: Receive) -> bytes:
    """Read the whole payload; of one that is larger than any client's, a little more than it may have."""
    parts: list[bytes] = []
    size, is_more = 0, True
    while is_more and size <= MAX_PAYLOAD:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        is_more = message.get("more_body", False)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _refused(status: int, text: str) -> HookReply:
    return HookReply(status, stdout=text.encode(errors="replace"))


async def _refuse(send: Send, status: int, text: str) -> None:
    reply = _refused(status, text)
    await send({"type": "http.response.start", "status": status, "headers": reply.headers()})
    await send({"type": "http.response.body", "body": reply.stdout})


def _starlette(house: Daemon) -> Starlette:
    async def status(_: Request) -> Response:
        return JSONResponse(house.status())

    async def metrics(_: Request) -> Response:
        return PlainTextResponse(house.metrics_text(), media_type="text/plain; version=0.0.4")

    async def stop(_: Request) -> Response:
        house.leave("asked to stop")
        return JSONResponse(house.status())

    async def http_hook(request: Request) -> Response:
        """Answer a hook of the client's type `http`: its JSON, and always 200, for anything else opens the gate."""
        ask = read_request(request.path_params["event"], request.url.query.encode(), request.headers.raw)
        return JSONResponse(await house.decide_here(ask, await _body(request.receive)))

    return Starlette(
        routes=[
            Route("/v1/status", status),
            Route("/metrics", metrics),
            Route("/v1/stop", stop, methods=["POST"]),
            Route("/v1/http/{event}", http_hook, methods=["POST"]),
            *session_routes(house),
            *wait_routes(house),
            *mail_routes(house),
        ]
    )
