"""The policy as a gate: its guards decide, its commands are planned."""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING

from fairlead.daemon.events._extension import EventExtension, Reaction
from fairlead.decide import GUARDED_EVENTS, Decision, decide
from fairlead.hooks import HookContext, HookManager
from fairlead.policy import register_guards

if TYPE_CHECKING:
    from fairlead.daemon.events._extension import EventContext
    from fairlead.decide import PolicyContext

_MAX_MANAGERS = 256
_NO_HOOKS = HookManager()
_NO_OPINION = Decision()


class PolicyGate(EventExtension):
    """Decides every event by the policy that applies to it. Caches the compiled guards."""

    kind = "gate"

    def __init__(self) -> None:
        self._managers: dict[tuple[object, ...], tuple[PolicyContext, HookManager]] = {}
        self._lock = Lock()

    def before_reply(self, context: EventContext) -> Reaction | None:
        """Ask the guards, then plan the policy's commands."""
        event, policy = context.event, context.policy
        hooks = self._guards(context) if event.event_name in GUARDED_EVENTS else _NO_HOOKS
        decision = decide(event, policy, hooks, HookContext(event.session_id, cwd=event.cwd))
        if decision == _NO_OPINION:
            return None
        return Reaction(
            output=decision.output, log=decision.log, plan=decision.plan, notifications=decision.notifications
        )

    def _guards(self, context: EventContext) -> HookManager:
        """Return the guards of the policy. A changed file is another layer, so it gets other guards."""
        request, policy = context.request, context.policy
        settings = request.env.get("CLAUDE_CONFIG_DIR", "")
        settings = settings and os.path.join(request.cwd, settings)
        key = (settings, *map(id, policy.layers))
        cached = self._managers.get(key)
        if cached is not None:
            return cached[1]
        manager = HookManager()
        register_guards(manager, policy.layers, {**os.environ, "CLAUDE_CONFIG_DIR": settings})
        with self._lock:
            if len(self._managers) >= _MAX_MANAGERS:
                self._managers.clear()
            self._managers[key] = policy, manager  # holds the layers too, so that their ids are not reused
        return manager
