"""An execution context for custom agents, from which a tool fires hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.events import Event, HookEvent, HookOutput
from fairlead.hooks._call import HookResult
from fairlead.hooks._context import HookContext
from fairlead.hooks._hook import check_kind

if TYPE_CHECKING:
    from typing import Self

    from fairlead.hooks._manager import HookManager


class ExecutionContext(msgspec.Struct, frozen=True):
    """The context of a tool: the host's security context and, optionally, hooks."""

    security: Any = None
    manager: HookManager | None = None
    context: HookContext | None = None

    def hooks(self, manager: HookManager, session_id: str) -> Self:
        """Return a copy of the context that fires the hooks of a manager."""
        return msgspec.structs.replace(self, manager=manager, context=HookContext(session_id))

    async def fire_hook(self, kind: HookEvent, event: Event) -> HookResult:
        """Fire an event, which must be of the given kind. Without a manager the result allows it."""
        check_kind(kind, event)
        if self.manager is None:
            return HookResult(HookOutput.allow(), event)
        return await self.manager.fire(event, self.context)

    def fire_hook_sync(self, kind: HookEvent, event: Event) -> HookResult:
        """Fire an event as `fire_hook` does, without an event loop."""
        check_kind(kind, event)
        if self.manager is None:
            return HookResult(HookOutput.allow(), event)
        return self.manager.fire_sync(event, self.context)
