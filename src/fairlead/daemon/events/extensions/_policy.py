"""The policy as a gate: its guards decide, its commands are planned."""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING

from fairlead.daemon.events._extension import EventExtension
from fairlead.decide import GUARDED_EVENTS, decide
from fairlead.policy import Guards

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.events._extension import EventContext
    from fairlead.daemon.leases._service import LeaseService
    from fairlead.decide import Decision
    from fairlead.policy import Layer

_MAX_GUARDS = 256


def create(daemon: Daemon) -> PolicyGate:
    """Return the extension."""
    return PolicyGate(daemon.leases)


class PolicyGate(EventExtension):
    """Decides every event by the policy that applies to it. Caches the compiled guards."""

    kind = "gate"

    def __init__(self, watched: LeaseService | None = None) -> None:
        """`watched` knows the leased files. The guards list the leased files that a git command changes."""
        self._watched = watched
        self._compiled: dict[tuple[object, ...], tuple[Sequence[Layer], Guards]] = {}
        self._lock = Lock()

    def before_reply(self, context: EventContext) -> Decision:
        """Ask the guards, then plan the policy's commands."""
        if context.event.event_name in GUARDED_EVENTS:
            context.guards = self._guards(context)
        return decide(context.event, context.policy, context.guards, context.changes, may_wait=context.may_wait)

    def _guards(self, context: EventContext) -> Guards:
        """Return the compiled guards of the policy. A changed file is a new layer, and gets new guards."""
        request, layers = context.request, context.policy.layers
        key = request.client, request.client_folder, request.is_headless, *map(id, layers)
        cached = self._compiled.get(key)
        if cached is not None:
            return cached[1]
        environ = {**os.environ, context.client.variables.config_dir: request.client_folder}
        guards = Guards(layers, environ, headless=request.is_headless, watched=self._watched)
        with self._lock:
            if len(self._compiled) >= _MAX_GUARDS:
                self._compiled.clear()
            self._compiled[key] = layers, guards  # holds the layers, so that their ids are not reused
        return guards
