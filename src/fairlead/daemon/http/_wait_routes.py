"""The HTTP routes that start the waits of hooks whose event the daemon has not decided.

`POST /v1/waits` continues a `Stop` event that its caller has decided. `POST /v1/wakes/EVENT` starts the wait of a hook
that only wakes the agent. Both reply like an event, with the output or with the token of a wait (303).
`events._listener` serves the wait itself (`GET /v1/waits/TOKEN`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from fairlead.daemon.events._messages import (
    BAD_REQUEST,
    NOT_THIS_DAEMON,
    UNAVAILABLE,
    HookReply,
    HookRequest,
    error_reply,
    home_of,
    is_same_home,
    read_request,
    read_target,
)
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from fairlead.daemon._runtime import Daemon

_MAX_BODY = 80 * 1024 * 1024


class ResumedStop(msgspec.Struct, frozen=True):
    """An event that its caller has decided, usually `Stop`. In JSON, `request` is `ask` and `stdout` is `said`."""

    payload: msgspec.Raw
    request: HookRequest = msgspec.field(name="ask")
    stdout: str = msgspec.field(name="said", default="")
    """The output of the caller's decision, which must be printed in any case."""
    wakes: bool = False
    """Whether the hook only wakes the agent, so that the client does not wait for it."""


def wait_routes(daemon: Daemon) -> list[Route]:
    """Return the routes that start waits."""
    home = home_of(os.environ, "/")

    async def resume(request: Request) -> Response:
        try:
            stop = msgspec.json.decode(await _body(request), type=ResumedStop)
        except (msgspec.DecodeError, ValueError) as error:
            return _response(error_reply(BAD_REQUEST, str(error)))
        payload, stdout = bytes(stop.payload), stop.stdout.encode()
        return await _answer(daemon, lambda: daemon.resume(payload, stop.request, stdout, wakes=stop.wakes))

    async def wake(request: Request) -> Response:
        event = request.path_params.get("event", "Stop")  # a launcher of version 0.1.0 sends wakes only for Stop
        hook = read_request(*read_target(event, request.url.query.encode()), request.headers.raw)
        try:
            payload = await _body(request)
        except ValueError as error:
            return _response(error_reply(BAD_REQUEST, str(error)))
        if hook.launched and not is_same_home(hook, home):
            return _response(error_reply(NOT_THIS_DAEMON, "this daemon serves another home"))
        return await _answer(daemon, lambda: daemon.idle.wake(payload, hook))

    return [
        Route("/v1/waits", resume, methods=["POST"]),
        Route("/v1/wakes", wake, methods=["POST"]),
        Route("/v1/wakes/{event}", wake, methods=["POST"]),
    ]


async def _answer(daemon: Daemon, work: Callable[[], HookReply]) -> Response:
    try:
        return _response(await daemon.mail.run(work))
    except (FairleadError, OSError) as error:
        return _response(error_reply(UNAVAILABLE, str(error)))


async def _body(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > _MAX_BODY:
            raise ValueError("larger than any payload")
        parts.append(part)
    return b"".join(parts)


def _response(reply: HookReply) -> Response:
    response = Response(reply.stdout + reply.stderr, reply.status)
    response.raw_headers = reply.headers()
    return response
