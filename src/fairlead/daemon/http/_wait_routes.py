"""Waiting over HTTP: what a launcher asks that lets an agent stay.

`POST /v1/waits` takes up a stop that its caller has decided, `POST /v1/wakes` begins a wake. Both are answered as an
event is: by what to print, or by what to wait for (303). The waiting itself (`GET /v1/waits/TOKEN`) is `_wire_waits`'.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from fairlead.daemon.events._handler import HookReply
from fairlead.daemon.events._request import HookRequest, home_of, is_same_home, read_request
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from fairlead.daemon._runtime import Daemon

_BAD = 400
_NOT_YOURS = 421
_UNAVAILABLE = 503
_LARGEST = 80 * 1024 * 1024


class Asked(msgspec.Struct, frozen=True):
    """A stop that was decided by its caller."""

    ask: HookRequest
    payload: msgspec.Raw
    said: str = ""
    """What is to be printed whatever comes."""
    wakes: bool = False
    """The client does not wait for it."""


def wait_routes(house: Daemon) -> list[Route]:
    """Give the routes."""
    home = home_of(os.environ, "/")

    async def begin(request: Request) -> Response:
        try:
            asked = msgspec.json.decode(await _body(request), type=Asked)
        except (msgspec.DecodeError, ValueError) as error:
            return _response(HookReply(_BAD, stdout=str(error).encode(errors="replace")))
        payload, said = bytes(asked.payload), asked.said.encode()
        return await _answer(house, lambda: house.stays.again(payload, asked.ask, said, wakes=asked.wakes))

    async def wake(request: Request) -> Response:
        ask, payload = read_request("Stop", request.url.query.encode(), request.headers.raw), await _body(request)
        if ask.launched and not is_same_home(ask, home):
            return _response(HookReply(_NOT_YOURS, stdout=b"this daemon speaks for another home"))
        return await _answer(house, lambda: house.stays.wake(payload, ask))

    return [
        Route("/v1/waits", begin, methods=["POST"]),
        Route("/v1/wakes", wake, methods=["POST"]),
    ]


async def _answer(house: Daemon, decide: Callable[[], HookReply]) -> Response:
    try:
        return _response(await house.mail.run(decide))
    except (FairleadError, OSError) as error:
        return _response(HookReply(_UNAVAILABLE, stdout=str(error).encode(errors="replace")))


async def _body(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > _LARGEST:
            raise ValueError("larger than any payload")
        parts.append(part)
    return b"".join(parts)


def _response(reply: HookReply) -> Response:
    response = Response(reply.stdout + reply.stderr, reply.status)
    response.raw_headers = reply.headers()
    return response
