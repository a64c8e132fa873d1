"""The guards as hooks, for a manager that has other hooks too."""

from __future__ import annotations

from fairlead.events import HookOutput, PermissionRequest, PreToolUse
from fairlead.hooks import Hook, HookManager
from fairlead.policy.guards._guards import GUARD_NAME, PERMISSION_NAME, Guards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlead.hooks import HookContext
    from fairlead.policy.config._types import Layer

_PRIORITY = 100


class GuardHook(Hook):
    """Applies the guards to tool calls."""

    name = GUARD_NAME
    events = (PreToolUse,)
    priority = _PRIORITY
    inline = True

    def __init__(self, guards: Guards) -> None:
        self._guards = guards

    def execute(self, event: PreToolUse, ctx: HookContext) -> HookOutput:
        """Return the output of the guards."""
        del ctx
        return self._guards.check(event).output


class PermissionHook(Hook):
    """Applies the guards to permission requests."""

    name = PERMISSION_NAME
    events = (PermissionRequest,)
    priority = _PRIORITY
    inline = True

    def __init__(self, guards: Guards) -> None:
        self._guards = guards

    def execute(self, event: PermissionRequest, ctx: HookContext) -> HookOutput:
        """Return the output of the guards."""
        del ctx
        return self._guards.check_permission(event).output


def register_guards(manager: HookManager, layers: Sequence[Layer], environ: Mapping[str, str] | None = None) -> Guards:
    """Register the guards of a policy, before all other hooks.

    `environ` is the environment of the client, by which its settings are found; by default that of this process.
    """
    guards = Guards(layers, environ)
    manager.register(GuardHook(guards))
    manager.register(PermissionHook(guards))
    return guards
