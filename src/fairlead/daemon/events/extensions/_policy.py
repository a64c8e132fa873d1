"""The policy as a gate: its guards decide, its commands are planned."""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING

from fairlead.daemon.events._extension import EventExtension, Reaction
from fairlead.decide import GUARDED_EVENTS, NO_OPINION, decide
from fairlead.policy import Guards

if TYPE_CHECKING:
    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.events._extension import EventContext
    from fairlead.daemon.leases._service import LeaseService
    from fairlead.decide import PolicyContext

_MAX_GUARDS = 256


def create(daemon: Daemon) -> PolicyGate:
    """Return the extension."""
    return PolicyGate(daemon.leases)


class PolicyGate(EventExtension):
    """Decides every event by the policy that applies to it. Caches the compiled guards."""

    kind = "gate"

    def __init__(self, watched: LeaseService | None = None) -> None:
        """Compile guards that also list what git changes among the watched files."""
        self._watched = watched
        self._compiled: dict[tuple[object, ...], tuple[PolicyContext, Guards]] = {}
        self._lock = Lock()

    def before_reply(self, context: EventContext) -> Reaction | None:
        """Ask the guards, then plan the policy's commands."""
        if context.event.event_name in GUARDED_EVENTS:
            context.guards = self._guards(context)
        decision = decide(context.event, context.policy, context.guards, context.changes)
        if decision is NO_OPINION:
            return None
        return Reaction(
            output=decision.output, log=decision.log, plan=decision.plan, notifications=decision.notifications
        )

    def _guards(self, context: EventContext) -> Guards:
        """Return the guards of the policy. A changed file is another layer, so it gets other guards."""
        request, policy = context.request, context.policy
        variable = context.client.variables.config_dir
        settings = request.env.get(variable, "")
        settings = settings and os.path.join(request.cwd, settings)
        headless = context.client.is_headless(request.env)
        key = (variable, settings, headless, *map(id, policy.layers))
        cached = self._compiled.get(key)
        if cached is not None:
            return cached[1]
        guards = Guards(policy.layers, {**os.environ, variable: settings}, headless=headless, watched=self._watched)
        with self._lock:
            if len(self._compiled) >= _MAX_GUARDS:
                self._compiled.clear()
            self._compiled[key] = policy, guards  # holds the layers too, so that their ids are not reused
        return guards
