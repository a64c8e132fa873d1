"""Registers hooks and calls them for events."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, Self, TypedDict, TypeVar, overload

import msgspec

from fairlead.errors import PayloadError, RegistrationError
from fairlead.events import Event, HookEvent, HookOutput
from fairlead.hooks._call import OBSERVE, Called, HookResult, HookRun, call_hooks, describe
from fairlead.hooks._context import HookContext
from fairlead.hooks._hook import DEFAULT_TIMEOUT, PHASES, Answer, Hook, Phase, Registered, checked, event_types, seconds
from fairlead.hooks._limits import time_left
from fairlead.hooks._quick import Silence, call_quickly, is_quick, is_quick_async, step_quickly
from fairlead.hooks._sync import call_sync, settled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Unpack

    from fairlead.hooks._match import Matcher

E = TypeVar("E", bound=Event)
E1 = TypeVar("E1", bound=Event)
E2 = TypeVar("E2", bound=Event)
E3 = TypeVar("E3", bound=Event)
R = TypeVar("R", bound="Answer | Awaitable[Answer]")

_MAX_PLANS = 4096
_REWRITE = PHASES.index("rewrite")
_NO_OPINION = HookOutput()


class HookOptions(TypedDict, total=False):
    """The options of a registered function; the same as the attributes of `Hook`."""

    name: str
    """Unique in a manager; by default the function's name."""
    matcher: Matcher | None
    """A pattern on the event's subject, or a function of the event."""
    priority: int
    """Higher runs first; equals run in the order of registration."""
    timeout: float
    """Seconds, at most the manager's."""
    phase: Phase
    """`rewrite`, `check` or `observe`."""
    inline: bool
    """Run a sync function in the caller's thread: faster, but its timeout cannot be enforced."""
    replace: bool
    """Replace a hook of the same name."""


class Registration:
    """A registered hook. `remove()` it, or use it as a context manager that removes it on exit."""

    def __init__(self, manager: HookManager, hook: Registered) -> None:
        """Created by the methods of `HookManager`."""
        self._manager = manager
        self._hook = hook

    @property
    def name(self) -> str:
        """The hook's name."""
        return self._hook.name

    def remove(self) -> bool:
        """Remove the hook; return `False` if it was removed before."""
        return self._manager._drop(lambda hook: hook is self._hook)  # noqa: SLF001 - the other half of one thing

    def __enter__(self) -> Self:
        """Return the registration."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the hook."""
        self.remove()


class Decorator(Protocol[E]):
    """The decorator that `on` returns: it registers a function of the event, and optionally the context."""

    @overload
    def __call__(self, function: Callable[[E, HookContext], R]) -> Callable[[E, HookContext], R]: ...
    @overload
    def __call__(self, function: Callable[[E], R]) -> Callable[[E], R]: ...


class _Plan:
    """The hooks of an event, in order."""

    __slots__ = ("async_timeout", "calls", "hooks", "quick_timeout")

    def __init__(self, hooks: Iterable[Registered]) -> None:
        self.hooks = tuple(hooks)
        self.calls = tuple(hook.call for hook in self.hooks)
        timeouts = {hook.timeout for hook in self.hooks}
        shared = timeouts.pop() if len(timeouts) == 1 else None
        self.quick_timeout = shared if all(map(is_quick, self.hooks)) else None
        """The timeout of each of them, if all are quick and have the same."""
        self.async_timeout = shared if all(map(is_quick_async, self.hooks)) else None
        """The same, if all are async."""


class _Plans:
    """The hooks in order, and a cache of those that match an event type and subject. Replaced at each registration."""

    __slots__ = ("hooks", "known")

    def __init__(self, hooks: tuple[Registered, ...]) -> None:
        self.hooks = hooks
        self.known: dict[tuple[type[Event], str], _Plan] = {}

    def for_event(self, event: Event) -> _Plan:
        key = type(event), event.subject
        plan = self.known.get(key)
        if plan is None:
            plan = _Plan(h for h in self.hooks if isinstance(event, h.events) and _may_match(h, event))
            if len(self.known) >= _MAX_PLANS:
                self.known = {}
            self.known[key] = plan
        return plan


def _may_match(hook: Registered, event: Event) -> bool:
    return hook.matches is None or not hook.on_subject or hook.matches(event)


class HookManager:
    """Registers hooks and fires events. Safe to use from several threads and tasks."""

    def __init__(self, *, timeout: float = DEFAULT_TIMEOUT, strict: bool = False) -> None:
        """Create a manager whose hooks have at most `timeout` seconds each.

        With `strict`, a hook fails that changes a tool's input in any phase but `rewrite`: no input can be changed
        after it was checked.
        """
        self.timeout = seconds(timeout, "the manager")
        self.strict = strict
        self._plans = _Plans(())
        self._lock = Lock()

    # -- registration ----------------------------------------------------------------------------------

    def register(self, hook: Hook, *, replace: bool = False) -> Registration:
        """Register an instance of `Hook`."""
        name = hook.name or type(hook).__name__
        registered = checked(
            hook.execute,
            hook.events,
            name=name,
            matcher=hook.matcher,
            priority=hook.priority,
            timeout=hook.timeout,
            phase=hook.phase,
            inline=hook.inline,
            keeps_deadline=hook.keeps_deadline,
        )
        return self._add(registered, replace=replace)

    @overload
    def on(self, event: type[E], /, **options: Unpack[HookOptions]) -> Decorator[E]: ...
    @overload
    def on(self, event: type[E1], event2: type[E2], /, **options: Unpack[HookOptions]) -> Decorator[E1 | E2]: ...
    @overload
    def on(
        self, event: type[E1], event2: type[E2], event3: type[E3], /, **options: Unpack[HookOptions]
    ) -> Decorator[E1 | E2 | E3]: ...
    @overload
    def on(self, *events: type[Event], **options: Unpack[HookOptions]) -> Decorator[Any]: ...
    def on(self, *events: type[Event], **options: Unpack[HookOptions]) -> Any:
        """Return a decorator that registers a function for these events; `Event` stands for all."""
        event_types(events, "on")  # here, because a bare `@hooks.on` would replace the function

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self.add(function, *events, **options)
            return function

        return register

    def add(self, function: Callable[..., Any], *events: type[Event], **options: Unpack[HookOptions]) -> Registration:
        """Register a function, sync or async, as `on` does."""
        merged: dict[str, Any] = {"timeout": self.timeout, **options}
        replace = merged.pop("replace", False)
        name = merged.pop("name", None) or getattr(function, "__name__", type(function).__name__)
        return self._add(checked(function, events, name=name, **merged), replace=replace)

    def include(self, other: HookManager, *, prefix: str = "") -> list[Registration]:
        """Register the current hooks of another manager, with its timeout as a limit; `prefix` makes names unique."""
        return [
            self._add(
                msgspec.structs.replace(hook, name=prefix + hook.name, timeout=min(hook.timeout, other.timeout)),
                replace=False,
            )
            for hook in other._plans.hooks
        ]

    def unregister(self, name: str) -> bool:
        """Remove the hook of that name; return `False` if there is none."""
        return self._drop(lambda hook: hook.name == name)

    def has_hook(self, name: str) -> bool:
        """Return whether a hook of that name is registered."""
        return name in self.hook_names()

    def hook_names(self) -> list[str]:
        """Return the names of the hooks in the order in which they run."""
        return [hook.name for hook in self._plans.hooks]

    def hooks_for_event(self, event: HookEvent | type[Event]) -> list[str]:
        """Return the names of the hooks of an event, whatever their matchers."""
        kind = event.type if isinstance(event, HookEvent) else event
        return [hook.name for hook in self._plans.hooks if issubclass(kind, hook.events)]

    def _add(self, hook: Registered, *, replace: bool) -> Registration:
        if self.strict and hook.phase != _REWRITE:
            hook = msgspec.structs.replace(hook, may_rewrite=False)
        with self._lock:
            hooks = self._plans.hooks
            if replace:
                hooks = tuple(h for h in hooks if h.name != hook.name)
            elif any(h.name == hook.name for h in hooks):
                raise RegistrationError(f"a hook named {hook.name!r} is registered; give another name, or replace=True")
            in_order = sorted(
                (*hooks, hook), key=lambda h: (h.phase, -h.priority)
            )  # stable: equal hooks keep their order
            self._plans = _Plans(tuple(in_order))
        return Registration(self, hook)

    def _drop(self, unwanted: Callable[[Registered], bool]) -> bool:
        with self._lock:
            kept = tuple(hook for hook in self._plans.hooks if not unwanted(hook))
            dropped = len(kept) < len(self._plans.hooks)
            if dropped:
                self._plans = _Plans(kept)
        return dropped

    # -- firing ----------------------------------------------------------------------------------------

    async def fire(self, event: Event, ctx: HookContext | None = None) -> HookResult:
        """Call every hook that matches the event, in order, and return the merged result."""
        plan = self._plans.for_event(event)
        if not plan.hooks:
            return HookResult(_NO_OPINION, event)
        ctx = ctx or _context_of(event)
        if plan.async_timeout is None or ctx.deadline is not None:
            return await self._await_rest(plan.hooks, event, ctx, None)
        timeout = min(plan.async_timeout, self.timeout)
        times, stepped = step_quickly(plan.calls, event, ctx, timeout)
        silent = Silence(plan.hooks, times)
        if len(times) > len(plan.hooks):
            return HookResult(_NO_OPINION, event, silent)
        from fairlead.hooks._async import finish_async

        first = None if stepped is None else await finish_async(stepped, ctx, timeout)
        result = await self._await_rest(plan.hooks[len(silent) :], event, ctx, first)
        return msgspec.structs.replace(result, runs=(*silent, *result.runs))

    async def _await_rest(
        self, plan: tuple[Registered, ...], event: Event, ctx: HookContext, called: Called | None
    ) -> HookResult:
        """Call the hooks that are left; `called` is what came of the first of them, if it was called."""
        from fairlead.hooks._async import call_async

        calls = call_hooks(plan, event)
        try:
            hook, current = next(calls)
            while True:
                called = called or await call_async(hook, current, ctx, time_left(hook, ctx, self.timeout))
                (hook, current), called = calls.send(called), None
        except StopIteration as stop:
            return _reported(stop.value, plan)

    def fire_sync(self, event: Event, ctx: HookContext | None = None) -> HookResult:
        """Fire an event as `fire` does, without an event loop; imports no asyncio unless a hook is async."""
        plan = self._plans.for_event(event)
        if not plan.hooks:
            return HookResult(_NO_OPINION, event)
        ctx = ctx or _context_of(event)
        if plan.quick_timeout is None or ctx.deadline is not None:
            return self._call_rest(plan.hooks, event, ctx, None)
        timeout = min(plan.quick_timeout, self.timeout)
        times, called = call_quickly(plan.calls, event, ctx, timeout)
        silent = Silence(plan.hooks, times)
        if len(times) > len(plan.hooks):
            return HookResult(_NO_OPINION, event, silent)
        first = None if called is None else settled(called, ctx, timeout)
        result = self._call_rest(plan.hooks[len(silent) :], event, ctx, first)
        return msgspec.structs.replace(result, runs=(*silent, *result.runs))

    def _call_rest(
        self, plan: tuple[Registered, ...], event: Event, ctx: HookContext, called: Called | None
    ) -> HookResult:
        """Call the hooks that are left; `called` is what came of the first of them, if it was called."""
        calls = call_hooks(plan, event)
        try:
            hook, current = next(calls)
            while True:
                called = called or call_sync(hook, current, ctx, time_left(hook, ctx, self.timeout))
                (hook, current), called = calls.send(called), None
        except StopIteration as stop:
            return _reported(stop.value, plan)

    async def execute(self, kind: HookEvent, event: Event, ctx: HookContext | None = None) -> HookOutput:
        """Fire an event, which must be of that kind, and return the merged output only."""
        if event.event_type is not kind:
            raise PayloadError(f"expected {kind.value}, got {event.event_name}", field="hook_event_name")
        return (await self.fire(event, ctx)).output


def _context_of(event: Event) -> HookContext:
    return HookContext(event.session_id, cwd=event.cwd)


def _reported(result: HookResult, plan: tuple[Registered, ...]) -> HookResult:
    """Log the failures that cause no denial, and return the result."""
    for run in result.failures:
        if not result.event.can_block or any(hook.name == run.name and hook.phase == OBSERVE for hook in plan):
            _log(run, result.event)
    return result


def _log(run: HookRun, event: Event) -> None:
    import logging

    assert run.error is not None  # noqa: S101 - checked by the caller
    text = "hook %r failed on %s: %s"
    logging.getLogger("fairlead.hooks").warning(text, run.name, event.event_name, describe(run.error))
