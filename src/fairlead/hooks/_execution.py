"""For programs that are the agent: lets a tool fire hooks from wherever it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.errors import PayloadError
from fairlead.events import Event, HookEvent, HookOutput
from fairlead.hooks._call import HookResult
from fairlead.hooks._context import HookContext

if TYPE_CHECKING:
    from typing import Self

    from fairlead.hooks._manager import HookManager


class ExecutionContext(msgspec.Struct, frozen=True):
    """What a tool is given: whatever the host uses for security, and the hooks, if there are any."""

    security: Any = None
    manager: HookManager | None = None
    context: HookContext | None = None

    def hooks(self, manager: HookManager, session_id: str) -> Self:
        """Return the same context with hooks."""
        return msgspec.structs.replace(self, manager=manager, context=HookContext(session_id))

    async def fire_hook(self, kind: HookEvent, event: Event) -> HookResult:
        """Fire an event that must be of that kind. Without hooks nothing objects."""
        _same(kind, event)
        if self.manager is None:
            return HookResult(HookOutput.allow(), event)
        return await self.manager.fire(event, self.context)

    def fire_hook_sync(self, kind: HookEvent, event: Event) -> HookResult:
        """Do as `fire_hook` does, without an event loop."""
        _same(kind, event)
        if self.manager is None:
            return HookResult(HookOutput.allow(), event)
        return self.manager.fire_sync(event, self.context)


def _same(kind: HookEvent, event: Event) -> None:
    if event.event_type is not kind:
        raise PayloadError(f"expected {kind.value}, got {event.event_name}", field="hook_event_name")
