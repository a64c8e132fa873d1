"""Hooks for agents that are built with `claude-agent-sdk`: converts a manager to the `hooks=` of the SDK's options.

There is one callback per event, because the client runs callbacks in parallel, which would break priorities, phases and
the merging of outputs. The SDK is imported on first use: it takes more than a second.
"""

from __future__ import annotations

import logging
import warnings
from time import monotonic
from typing import TYPE_CHECKING, Any, get_args

from fairlead.clients import client_named
from fairlead.errors import FairleadError
from fairlead.events import HookEvent, HookOutput, OtherEvent, parse
from fairlead.hooks import HookContext, HookManager

if TYPE_CHECKING:
    from claude_agent_sdk import HookMatcher
    from claude_agent_sdk.types import HookEvent as SdkEvent

__all__ = ["sdk_hooks"]

_log = logging.getLogger("fairlead.sdk")
_MARGIN = 5.0
"""Seconds that the client waits longer than we do, so that our answer applies, not its timeout."""


def sdk_hooks(
    manager: HookManager, *, timeout: float = 30.0, fail_closed: bool = True
) -> dict[SdkEvent, list[HookMatcher]]:
    """Return the `hooks=` of `ClaudeAgentOptions` for a manager.

    Each event is answered within `timeout` seconds; on a gate, a timeout or failure denies. `fail_closed` also makes
    the client itself block if it gets no answer (clients before 2.1.295 refuse to start with it). Hooks that are
    registered later are called only for events that have a hook now.

    Warns about hooks for events that the SDK does not have. Raises `FairleadError` if the SDK is not installed.
    """
    matcher_type, names = _sdk()
    _warn_about_missing_callbacks(manager, names)
    hooks: dict[Any, list[HookMatcher]] = {}
    for name in names:
        kind = HookEvent.find(name)
        if kind is None or not manager.hooks_for_event(kind):
            continue
        matcher = matcher_type(hooks=[_callback(manager, kind, timeout)], timeout=timeout + _MARGIN)
        if fail_closed and kind.can_block and hasattr(matcher, "on_failure"):
            matcher.on_failure = "block"
        hooks[name] = [matcher]
    return hooks


def _sdk() -> tuple[type[HookMatcher], list[str]]:
    try:
        from claude_agent_sdk import HookMatcher
        from claude_agent_sdk.types import HookEvent as SdkEvent
    except ImportError as error:
        raise FairleadError(f"the SDK is not installed: {error}; run: pip install 'fairlead[sdk]'") from None
    return HookMatcher, [name for literal in get_args(SdkEvent) for name in (get_args(literal) or (literal,))]


def _warn_about_missing_callbacks(manager: HookManager, names: list[str]) -> None:
    """Warn about hooks for events that the SDK has no callback for, except hooks for all events."""
    events_of: dict[str, list[str]] = {}
    for kind in HookEvent:
        for hook in manager.hooks_for_event(kind):
            events_of.setdefault(hook, []).append(kind.value)
    for hook, events in events_of.items():
        missing = [event for event in events if event not in names]
        if missing and len(events) < len(HookEvent):  # a hook for all events is called for those of the SDK
            text = f"hook {hook!r} will not be called for {', '.join(missing)}: the SDK has no callback for it"
            warnings.warn(text, RuntimeWarning, stacklevel=3)


def _callback(manager: HookManager, kind: HookEvent, timeout: float) -> Any:
    async def answer(payload: Any, _tool_use_id: str | None, _context: Any) -> dict[str, Any]:
        try:
            event = parse(payload, kind)
            ctx = HookContext(event.session_id, cwd=event.cwd, deadline=monotonic() + timeout)
            result = await manager.fire(event, ctx)
            return client_named("claude").to_json(result.event, result.output)
        except Exception as error:  # noqa: BLE001 - the SDK would report it to the client, which would continue
            _log.exception("%s could not be decided", kind.value)
            return _refusal(kind, error) if kind.can_block else {}

    return answer


def _refusal(kind: HookEvent, error: Exception) -> dict[str, Any]:
    output = HookOutput.deny(f"{kind.value} could not be decided, so it is denied: {type(error).__name__}: {error}")
    event = OtherEvent(session_id="", event_name=kind.value)  # the payload may be invalid; a denial needs the name only
    return client_named("claude").to_json(event, output)
