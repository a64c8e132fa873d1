"""The sessions of the other hosts of the team, as updates for the view: the daemon's stream of what they tell."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from fairlead.ipc import DaemonUnavailable, RequestRefused, open_stream
from fairlead.sessions import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.ipc import ServerSentEvent

_PATH = "/v1/team/stream"
_RETRY_DELAY = 1.0
_NO_TEAM_DELAY = 30.0
"""Seconds until the next look whether this host has joined a team."""
_SILENCE_TIMEOUT = 40.0


class HostChanged(msgspec.Struct, frozen=True):
    """What another host has told of its sessions."""

    host: str
    heard: float
    sessions: tuple[Session, ...] = ()
    left_out: int = 0


class HostsHeard(msgspec.Struct, frozen=True):
    """When each host was heard of. The team has no others."""

    heard: dict[str, float]


TeamUpdate: TypeAlias = HostChanged | HostsHeard

_KINDS: dict[str, type[TeamUpdate]] = {"host": HostChanged, "hosts": HostsHeard}


class TeamSource:
    """Follows the daemon at a socket."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path

    async def run(self, deliver: Callable[[TeamUpdate], None]) -> None:
        """Deliver what other hosts tell, and reconnect when the daemon goes, until cancelled."""
        while True:
            delay = _RETRY_DELAY
            try:
                async with open_stream(self._socket_path, _PATH) as response:
                    async for event in response.events(_SILENCE_TIMEOUT):
                        _deliver(event, deliver)
            except RequestRefused:  # this host is in no team, or the daemon is of an earlier version
                deliver(HostsHeard({}))
                delay = _NO_TEAM_DELAY
            except DaemonUnavailable:
                pass  # the view says itself that there is no daemon
            await asyncio.sleep(delay)


def _deliver(event: ServerSentEvent, deliver: Callable[[TeamUpdate], None]) -> None:
    """Deliver one server-sent event. Unknown kinds are skipped, and those that cannot be read."""
    if event.kind in _KINDS:
        with suppress(msgspec.DecodeError):
            deliver(msgspec.json.decode(event.data, type=_KINDS[event.kind]))
