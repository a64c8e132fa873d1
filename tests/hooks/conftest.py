"""Both ways to fire an event. The rules of the manager are tested with each."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from fairlead.hooks import HookManager, HookResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.events import Event
    from fairlead.hooks import HookContext


@pytest.fixture(params=["fire", "fire_sync"])
def fire(request: pytest.FixtureRequest) -> Callable[..., HookResult]:
    """Fire an event, in a new event loop or without one."""
    return HookManager.fire_sync if request.param == "fire_sync" else _fire_in_loop


def _fire_in_loop(hooks: HookManager, event: Event, ctx: HookContext | None = None) -> HookResult:
    unhandled: list[dict[str, Any]] = []

    async def main() -> HookResult:
        asyncio.get_running_loop().set_exception_handler(lambda _, problem: unhandled.append(problem))
        result = await hooks.fire(event, ctx)
        await asyncio.sleep(0)  # callbacks that are left in the loop run now, or are reported
        return result

    result = asyncio.run(main())
    assert unhandled == []
    return result
