"""Starts the team's service if this host is in a team. Every daemon imports this module, but no other one of `team`."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from fairlead.paths import state_folder

if TYPE_CHECKING:
    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.team._service import TeamService

_TICK = 0.25
_NOT_IN_TEAM: dict[str, Any] = {"in_team": False}


class TeamServiceHolder:
    """Holds the service of the team, which is `None` on a host without a team. Used in the event loop."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.service: TeamService | None = None
        self._changed = asyncio.Event()
        self._notifying: asyncio.Future[None] | None = None

    def open(self) -> None:
        """Start the service if this host is in a team and the service is not running."""
        if self.service is None and os.path.exists(membership_path()):
            from fairlead.daemon.sessions._attention import AttentionNotifier
            from fairlead.daemon.team._service import TeamService, has_joined

            daemon = self._daemon
            if not has_joined():
                return
            self.service = TeamService(
                daemon.mail,
                daemon.tracker,
                daemon.answers,
                daemon.leases,
                daemon.store,
                daemon.errors,
                daemon.version,
            )
            daemon.leases.team = self.service.leases
            self.service.start()
            # Channels reach the user anywhere, so only the host of the session uses them.
            notifier = AttentionNotifier(
                self.service.feed, daemon.errors, file="attention-team.json", by_channels=False
            )
            notifier.open()
            self._notifying = asyncio.ensure_future(notifier.run_forever())
            self._changed.set()

    def close(self) -> None:
        """Stop the service. Does not wait for a relay that does not answer."""
        self.end_streams()
        if self.service is not None:
            self.service.close()
        self.service = None

    def end_streams(self) -> None:
        """Stop the streams of other hosts' sessions, and the notifications about them."""
        if self._notifying is not None:
            self._notifying.cancel()
        if self.service is not None:
            self.service.feed.close()

    async def reopen(self) -> None:
        """Start the service again with the current membership: this host has joined or left a team."""
        self.end_streams()
        service, self.service = self.service, None
        if service is not None:
            await asyncio.get_running_loop().run_in_executor(None, service.close)
        self._daemon.leases.team = None
        self.open()

    async def run_forever(self) -> None:
        """Check repeatedly whether agents or sessions of this host have changed. Sleeps on a host without a team."""
        while True:
            if self.service is None:
                self._changed.clear()
                await self._changed.wait()
            await asyncio.sleep(_TICK)
            if self.service is not None:
                self.service.check_sessions()

    @property
    def is_needed(self) -> bool:
        """Whether a team keeps the daemon running: there are running sessions, or unacknowledged packets."""
        return self.service is not None and self.service.is_needed

    def status(self) -> dict[str, Any]:
        """Return the document of `fairlead team status`."""
        return _NOT_IN_TEAM if self.service is None else self.service.status()

    def session_documents(self) -> list[dict[str, Any]]:
        """Return the sessions of the other hosts; none on a host without a team."""
        return [] if self.service is None else self.service.session_documents()

    def gauges(self) -> dict[str, float]:
        """Return the gauges for `/metrics`; none on a host without a team."""
        return {} if self.service is None else self.service.gauges()


def membership_path() -> str:
    """Return the path of the membership file, without importing the package that reads it."""
    return f"{state_folder()}/team/membership.json"
