"""The user's hooks as a gate: asks the hooks that the policy lists, in their worker processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.daemon.events._extension import EventExtension, NeedsLongWait
from fairlead.decide import HookCall, ask_user_hooks

if TYPE_CHECKING:
    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.events._extension import EventContext
    from fairlead.daemon.workers._pool import HookWorkers
    from fairlead.decide import Decision


def create(daemon: Daemon) -> UserHooks:
    """Return the extension."""
    return UserHooks(daemon.hook_workers)


class UserHooks(EventExtension):
    """Asks the hooks that the policy of an event lists."""

    kind = "gate"

    def __init__(self, workers: HookWorkers) -> None:
        self._workers = workers

    def before_reply(self, context: EventContext) -> Decision | None:
        """Ask the hooks; return `None` if there are none. Raises `NeedsLongWait` where it must not wait for them."""
        policy = context.policy
        if not policy.lists_hooks:
            return None
        if not context.may_wait_long:
            raise NeedsLongWait
        context.has_waited_long = True
        call = HookCall(
            event=context.event,
            payload=context.payload,
            client=context.request.client,
            cwd=context.cwd,
            env=context.request.env,
            is_blocked=context.is_blocked,
        )
        decision, context.hook_cause = ask_user_hooks(call, policy, context.guards, self._workers.ask, context.changes)
        return decision
