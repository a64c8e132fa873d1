"""Delivers the sessions of the other hosts of the team to the view, from a stream of the daemon."""

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
"""Seconds until the next try, if this host has not joined a team."""
_SILENCE_TIMEOUT = 40.0


class HostChanged(msgspec.Struct, frozen=True):
    """The sessions of another host have changed."""

    host: str
    last_contact: float = msgspec.field(name="heard")
    """When the host was last in contact, in Unix time."""
    sessions: tuple[Session, ...] = ()
    left_out: int = 0
    """The number of sessions of the host that are not listed."""


class LastContacts(msgspec.Struct, frozen=True):
    """The Unix time of the last contact with each other host. A host that is missing has left the team."""

    last_contact: dict[str, float] = msgspec.field(name="heard")


TeamUpdate: TypeAlias = HostChanged | LastContacts

_KINDS: dict[str, type[TeamUpdate]] = {"host": HostChanged, "hosts": LastContacts}


class TeamSource:
    """Follows the daemon's stream of the team's sessions."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path

    async def run(self, deliver: Callable[[TeamUpdate], None]) -> None:
        """Deliver the updates about other hosts until cancelled. Reconnects when the connection breaks."""
        while True:
            delay = _RETRY_DELAY
            try:
                async with open_stream(self._socket_path, _PATH) as response:
                    async for event in response.events(_SILENCE_TIMEOUT):
                        _deliver(event, deliver)
            except RequestRefused:  # this host is in no team, or the daemon is of an earlier version
                deliver(LastContacts({}))
                delay = _NO_TEAM_DELAY
            except DaemonUnavailable:
                pass  # `SessionSource` reports a missing daemon
            await asyncio.sleep(delay)


def _deliver(event: ServerSentEvent, deliver: Callable[[TeamUpdate], None]) -> None:
    """Deliver one server-sent event. Unknown kinds and unreadable events are skipped."""
    if event.kind in _KINDS:
        with suppress(msgspec.DecodeError):
            deliver(msgspec.json.decode(event.data, type=_KINDS[event.kind]))
