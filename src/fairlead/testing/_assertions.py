"""Assertions about whether hooks block an event. Their messages list the outcome of each hook."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fairlead.hooks import Hook, HookManager, HookResult

if TYPE_CHECKING:
    from fairlead.events import Event


def assert_blocks(hooks: HookManager | Hook, event: Event, reason: str | re.Pattern[str] | None = None) -> HookResult:
    """Assert that the hooks block the event and that none of them failed, and return the result.

    `reason` is the expected reason of the block: a string must equal it, a pattern must be found in it.
    """
    result = _fire(hooks, event)
    _raise_on_failure(result)
    if not result.blocked:
        raise AssertionError(f"expected a block, but {event.event_name} was allowed{_rows(result)}")
    actual = result.reason or ""
    if isinstance(reason, re.Pattern) and not reason.search(actual):
        raise AssertionError(f"blocked, but its reason {actual!r} does not match {reason.pattern!r}")
    if isinstance(reason, str) and actual != reason:
        raise AssertionError(f"blocked, but its reason is {actual!r}, not {reason!r}")
    return result


def assert_allows(hooks: HookManager | Hook, event: Event) -> HookResult:
    """Assert that the hooks do not block the event and that none of them failed, and return the result."""
    result = _fire(hooks, event)
    _raise_on_failure(result)
    if result.blocked:
        raise AssertionError(f"expected {event.event_name} to be allowed, but: {result.reason}{_rows(result)}")
    return result


def _fire(hooks: HookManager | Hook, event: Event) -> HookResult:
    if isinstance(hooks, Hook):
        manager = HookManager()
        manager.register(hooks)
        hooks = manager
    return hooks.fire_sync(event)


def _raise_on_failure(result: HookResult) -> None:
    for run in result.failures:
        raise AssertionError(f"hook {run.name!r} {run.outcome}{_rows(result)}") from run.error


def _rows(result: HookResult) -> str:
    rows = [f"  {run.name}: {run.outcome} ({run.seconds * 1000:.1f} ms)" for run in result.runs]
    return "\n".join(["", *(rows or ["  no hook matched"])])
