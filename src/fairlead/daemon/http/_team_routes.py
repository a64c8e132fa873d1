"""The HTTP routes for `fairlead team`, and the stream of other hosts' sessions for `fairlead watch`.

Processes below an agent's session may not change the team.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from fairlead.clients import client_above
from fairlead.daemon.http._responses import BAD_REQUEST, CONFLICT, FORBIDDEN, NOT_FOUND, UNAVAILABLE, NoTeam
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.requests import Request

    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.team._connection import TeamConnection
    from fairlead.daemon.team._feed import TeamFeed
    from fairlead.daemon.team._service import TeamService
    from fairlead.daemon.team._service_holder import TeamServiceHolder
    from fairlead.team import MemberStatus

    Serve = Callable[[Request], Awaitable[Response]]

_TIMEOUT = 20.0


class HostRequest(msgspec.Struct, frozen=True):
    """The host that a person confirms or removes."""

    name: str
    fingerprint: str = ""
    """The fingerprint of the host's key that the person has compared; empty for no check."""


def team_routes(daemon: Daemon) -> list[Route]:
    """Return the routes for the state of the team and its changes."""
    api = _TeamApi(daemon.team)
    changes = {
        "refresh": api.refresh,
        "reload": api.reload,
        "forget": api.forget,
        "confirm": api.confirm,
        "remove": api.remove,
        "leave": api.leave,
    }
    return [
        Route("/v1/team", api.status),
        *(Route(f"/v1/team/{name}", _for_person(serve), methods=["POST"]) for name, serve in changes.items()),
    ]


class _TeamApi:
    """The endpoints of the team."""

    def __init__(self, team: TeamServiceHolder) -> None:
        self._team = team

    async def status(self, _: Request) -> Response:
        """Return the state of the team."""
        return JSONResponse(self._team.status())

    async def refresh(self, _: Request) -> Response:
        """Read the hosts from the relay, if it can be reached in time, and return the state of the team."""
        if self._team.service is not None:
            with suppress(FairleadError, TimeoutError):
                async with asyncio.timeout(_TIMEOUT):
                    await asyncio.wrap_future(self._team.service.submit(lambda connection: connection.refresh()))
        return JSONResponse(self._team.status())

    async def reload(self, _: Request) -> Response:
        """Read the membership file again, after `fairlead team join`, and return the state of the team."""
        await self._team.reopen()
        return JSONResponse(self._team.status())

    async def forget(self, _: Request) -> Response:
        """Delete the membership of this host, because this machine is a copy of another machine."""
        if self._team.service is not None:
            await asyncio.to_thread(self._team.service.delete_membership)
        await self._team.reopen()
        return JSONResponse({})

    async def confirm(self, request: Request) -> Response:
        """Make a host a member, with a certificate that this host signs."""
        return await self._certify(request, "member")

    async def remove(self, request: Request) -> Response:
        """Remove a host from the team, with a certificate that this host signs."""
        return await self._certify(request, "removed")

    async def leave(self, _: Request) -> Response:
        """Leave the team. Return whether the other hosts were notified in time."""
        are_notified = await asyncio.to_thread(self._service().leave, _TIMEOUT)
        await self._team.reopen()
        return JSONResponse({"told": are_notified})

    async def _certify(self, request: Request, status: MemberStatus) -> Response:
        asked = msgspec.json.decode(await request.body(), type=HostRequest)

        def certify(connection: TeamConnection) -> dict[str, Any]:
            return connection.certify(asked.name, status, asked.fingerprint)

        async with asyncio.timeout(_TIMEOUT):
            return JSONResponse(await asyncio.wrap_future(self._service().submit(certify)))

    def _service(self) -> TeamService:
        if self._team.service is None:
            raise NoTeam("this host is in no team; run: fairlead team join URL")
        return self._team.service


def _for_person(serve: Serve) -> Serve:
    """Return an endpoint that refuses processes below an agent's session, and turns errors into responses."""

    async def checked(request: Request) -> Response:
        peer = request.scope.get("state", {}).get("peer", 0)
        client = await asyncio.to_thread(client_above, {}, peer) if peer else None
        if client is not None:
            return PlainTextResponse(f"only a person can change the team, not a session of {client.title}", FORBIDDEN)
        try:
            return await serve(request)
        except (msgspec.DecodeError, ValueError) as error:
            return PlainTextResponse(str(error), BAD_REQUEST)
        except TimeoutError:
            return PlainTextResponse(f"the relay has not answered within {_TIMEOUT:g} s; try again", UNAVAILABLE)
        except FairleadError as error:
            return PlainTextResponse(str(error), CONFLICT)

    return checked


def team_stream_routes(daemon: Daemon) -> list[Route]:
    """Return the route for the stream of other hosts' sessions."""

    async def stream(_: Request) -> Response:
        team = daemon.team.service
        if team is None:
            return PlainTextResponse("this host is in no team", NOT_FOUND)
        headers = {"cache-control": "no-store"}
        return StreamingResponse(_events(team.feed), media_type="text/event-stream", headers=headers)

    return [Route("/v1/team/stream", stream)]


async def _events(feed: TeamFeed) -> AsyncIterator[bytes]:
    async for events in feed.follow():
        yield b"".join(b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(data)) for kind, data in events)
