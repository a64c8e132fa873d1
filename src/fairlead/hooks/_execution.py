"""`ExecutionContext`, by which a tool of a custom agent fires hooks."""

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
    """The context in which a custom agent executes a tool."""

    security: Any = None
    """The agent's own security context, which Fairlead does not use."""
    manager: HookManager | None = None
    """The hooks to fire; `None` for none."""
    context: HookContext | None = None
    """The context for the hooks; `None` to create one for each event."""

    def hooks(self, manager: HookManager, session_id: str) -> Self:
        """Return a copy of this context that fires the hooks of a manager, with a new `HookContext` for the session."""
        return msgspec.structs.replace(self, manager=manager, context=HookContext(session_id))

    async def fire_hook(self, kind: HookEvent, event: Event) -> HookResult:
        """Fire an event, and return the result. Without a manager the event is allowed.

        Raise `PayloadError` if the event is not of the given kind.
        """
        check_kind(kind, event)
        if self.manager is None:
            return HookResult(HookOutput.allow(), event)
        return await self.manager.fire(event, self.context)

    def fire_hook_sync(self, kind: HookEvent, event: Event) -> HookResult:
        """Fire an event like `fire_hook`, from sync code."""
        check_kind(kind, event)
        if self.manager is None:
            return HookResult(HookOutput.allow(), event)
        return self.manager.fire_sync(event, self.context)
