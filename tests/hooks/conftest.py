"""Both ways of firing. A rule of the manager is tested on each."""

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
    """Fires an event at a manager, in an event loop of its own or without one."""
    return HookManager.fire_sync if request.param == "fire_sync" else _fire_in_a_loop


def _fire_in_a_loop(hooks: HookManager, event: Event, ctx: HookContext | None = None) -> HookResult:
    unnoticed: list[dict[str, Any]] = []

    async def main() -> HookResult:
        asyncio.get_running_loop().set_exception_handler(lambda _, problem: unnoticed.append(problem))
        result = await hooks.fire(event, ctx)
        await asyncio.sleep(0)  # what was left for the loop to do is done, or noticed
        return result

    result = asyncio.run(main())
    assert unnoticed == []
    return result
