"""The HTTP route that streams the sessions of the other hosts, for `fairlead watch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.team._feed import TeamFeed

_NOT_FOUND = 404


def team_stream_routes(daemon: Daemon) -> list[Route]:
    """Return the route."""

    async def stream(_: Request) -> Response:
        team = daemon.team.service
        if team is None:
            return PlainTextResponse("this host is in no team", _NOT_FOUND)
        headers = {"cache-control": "no-store"}
        return StreamingResponse(_events(team.feed), media_type="text/event-stream", headers=headers)

    return [Route("/v1/team/stream", stream)]


async def _events(feed: TeamFeed) -> AsyncIterator[bytes]:
    async for events in feed.follow():
        yield b"".join(b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(data)) for kind, data in events)
