"""The HTTP routes for the list of sessions, one session, its events, and a stream of changes that can be resumed."""

from __future__ import annotations

import asyncio
from time import time
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from fairlead.daemon.http._responses import BAD_REQUEST, NOT_FOUND, json_response
from fairlead.sessions import public_session
from fairlead.text import start_of_day

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.sessions._tracker import SessionTracker
    from fairlead.daemon.store._messages import SessionEvent
    from fairlead.sessions import Costs

_MAX_EVENTS = 1000


def session_routes(daemon: Daemon) -> list[Route]:
    """Return the routes for sessions."""
    tracker = daemon.tracker

    async def all_sessions(_: Request) -> Response:
        await tracker.wait_until_replayed()
        await daemon.token_usage.refresh()
        costs = costs_of_today(tracker)
        hosts = daemon.team.session_documents()
        everything = {"costs": costs, "sessions": tracker.sessions(), "hosts": hosts}
        return json_response({"revision": tracker.revision, "now": time(), **everything})

    async def get_session(request: Request) -> Response:
        await tracker.wait_until_replayed()
        await daemon.token_usage.refresh()
        session = tracker.get(request.path_params["id"], is_whole=True)
        return json_response(session) if session else PlainTextResponse("no such session", NOT_FOUND)

    async def events(request: Request) -> Response:
        limit = _number(request.query_params.get("limit"), 100, _MAX_EVENTS)
        session_id, _, agent = request.path_params["id"].partition("/")
        loop = asyncio.get_running_loop()
        stored = await loop.run_in_executor(None, daemon.events_of, session_id, limit)
        rows = [_row(event) for event in reversed(stored) if not agent or event.event.agent == agent]
        return json_response({"events": rows})

    async def stream(request: Request) -> Response:
        given = request.headers.get("last-event-id") or request.query_params.get("after") or str(tracker.revision)
        if not given.isdigit():
            return PlainTextResponse("after: expected the number of a revision", BAD_REQUEST)
        headers = {"cache-control": "no-store"}
        return StreamingResponse(_events(daemon, int(given)), media_type="text/event-stream", headers=headers)

    return [
        Route("/v1/sessions", all_sessions),
        Route("/v1/sessions/stream", stream),
        Route("/v1/sessions/{id:path}/events", events),
        Route("/v1/sessions/{id:path}", get_session),
    ]


def costs_of_today(tracker: SessionTracker) -> Costs:
    """Return the costs of all sessions since midnight, local time, and how many active sessions have no known cost."""
    midnight = start_of_day(time())
    active = (one for one in tracker.sessions() if not one.parent and one.last_activity >= midnight)
    unknown = sum(tracker.costs.total(session.id) is None for session in active)
    return replace(tracker.costs.since(midnight), unknown=unknown)


async def _events(daemon: Daemon, after: int) -> AsyncIterator[bytes]:
    tracker, shown = daemon.tracker, (0, 0.0)
    yield b": hello\n\n"
    async for changes in tracker.follow(after):
        if changes is None:
            costs = costs_of_today(tracker)
            everything = {"revision": tracker.revision, "costs": costs, "sessions": tracker.sessions()}
            yield _event(tracker.revision, "reset", everything)
        elif not changes:
            yield b": alive\n\n"
        else:
            yield b"".join(
                _event(change.revision, "gone", {"id": change.session.id})
                if change.gone
                else _event(change.revision, "session", public_session(change.session))
                for change in changes
            )
        state = tracker.costs.changes, start_of_day(time())
        if state != shown and changes is not None:
            yield b"event: costs\ndata: %s\n\n" % msgspec.json.encode(costs_of_today(tracker))
        shown = state


def _event(revision: int, kind: str, data: object) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (revision, kind.encode(), msgspec.json.encode(data))


def _row(event: SessionEvent) -> dict[str, Any]:
    recorded, commands = event.event, event.commands
    return {
        "at": recorded.at,
        "event": recorded.event,
        "tool": recorded.tool,
        "agent": recorded.agent,
        "verdict": commands.verdict if commands else recorded.verdict,
        "reason": (commands.reason if commands else "") or recorded.reason,
        "exit": commands.exit if commands else recorded.exit,
        "seconds": recorded.seconds + (commands.seconds if commands else 0.0),
    }


def _number(text: str | None, default: int, limit: int) -> int:
    return min(int(text), limit) if text and text.isdigit() else default
