"""`HookManager`, which registers hooks and calls them for events."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, Self, TypedDict, TypeVar, overload

import msgspec

from fairlead.errors import RegistrationError
from fairlead.events import NO_OPINION, Event, HookEvent, HookOutput
from fairlead.hooks._call import OBSERVE, CallResult, HookResult, HookRun, call_hooks, describe
from fairlead.hooks._context import HookContext
from fairlead.hooks._hook import (
    DEFAULT_TIMEOUT,
    PHASES,
    Answer,
    Hook,
    Phase,
    RegisteredHook,
    check_kind,
    validate_events,
    validate_hook,
    validate_timeout,
)
from fairlead.hooks._limits import time_left
from fairlead.hooks._quick import NoOpinionRuns, call_quickly, is_quick, is_quick_async, step_quickly
from fairlead.hooks._sync import await_answer, call_sync

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Unpack

    from fairlead.hooks._match import Matcher

E = TypeVar("E", bound=Event)
E1 = TypeVar("E1", bound=Event)
E2 = TypeVar("E2", bound=Event)
E3 = TypeVar("E3", bound=Event)
R = TypeVar("R", bound="Answer | Awaitable[Answer]")

_MAX_CACHED = 4096
_REWRITE = PHASES.index("rewrite")


class HookOptions(TypedDict, total=False):
    """The options of a function that is registered as a hook: attributes of `Hook`, and `replace`."""

    name: str
    """The name, unique in a manager; by default that of the function."""
    matcher: Matcher | None
    """A pattern on the event's subject, or a function of the event; by default all subjects match."""
    priority: int
    """Within a phase, hooks of a higher priority run first.

    Hooks of the same priority run in the order of registration.
    """
    timeout: float
    """Seconds that one call may take, at most the manager's timeout, which is the default."""
    phase: Phase
    """`rewrite`, `check` (the default) or `observe`."""
    inline: bool
    """Whether a sync function runs in the caller's thread. This is faster, but its timeout is not enforced."""
    replace: bool
    """Whether to replace a hook of the same name, instead of raising `RegistrationError`."""


class Registration:
    """A registered hook. Call `remove`, or use it as a context manager, to remove the hook."""

    def __init__(self, manager: HookManager, hook: RegisteredHook) -> None:
        """Created by the methods of `HookManager` that register hooks."""
        self._manager = manager
        self._hook = hook

    @property
    def name(self) -> str:
        """The hook's name."""
        return self._hook.name

    def remove(self) -> bool:
        """Remove the hook. Return `False` if it was removed or replaced before."""
        return self._manager._drop(lambda hook: hook is self._hook)  # noqa: SLF001 - same module

    def __enter__(self) -> Self:
        """Return the registration."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the hook."""
        self.remove()


class Decorator(Protocol[E]):
    """The decorator that `on` returns. It registers a function, which takes the event and optionally the context."""

    @overload
    def __call__(self, function: Callable[[E, HookContext], R]) -> Callable[[E, HookContext], R]: ...
    @overload
    def __call__(self, function: Callable[[E], R]) -> Callable[[E], R]: ...


class _MatchedHooks:
    """The hooks that may match an event type and subject, in order. Matchers that are functions are not called yet."""

    __slots__ = ("async_timeout", "calls", "hooks", "quick_timeout")

    def __init__(self, hooks: Iterable[RegisteredHook]) -> None:
        self.hooks = tuple(hooks)
        self.calls = tuple(hook.call for hook in self.hooks)
        timeouts = {hook.timeout for hook in self.hooks}
        shared = timeouts.pop() if len(timeouts) == 1 else None
        self.quick_timeout = shared if all(map(is_quick, self.hooks)) else None
        """The common timeout of the hooks in seconds; `None` if they have different ones, or not all are `is_quick`."""
        self.async_timeout = shared if all(map(is_quick_async, self.hooks)) else None
        """The common timeout in seconds; `None` if they have different ones, or not all are `is_quick_async`."""


class _HookIndex:
    """All hooks of a manager in order, with a cache of those that may match by event type and subject.

    It is replaced when a hook is registered or removed.
    """

    __slots__ = ("cache", "hooks")

    def __init__(self, hooks: tuple[RegisteredHook, ...]) -> None:
        self.hooks = hooks
        self.cache: dict[tuple[type[Event], str], _MatchedHooks] = {}

    def for_event(self, event: Event) -> _MatchedHooks:
        key = type(event), event.subject
        matched = self.cache.get(key)
        if matched is None:
            matched = _MatchedHooks(h for h in self.hooks if isinstance(event, h.events) and _may_match(h, event))
            if len(self.cache) >= _MAX_CACHED:
                self.cache = {}
            self.cache[key] = matched
        return matched


def _may_match(hook: RegisteredHook, event: Event) -> bool:
    return hook.matches is None or not hook.on_subject or hook.matches(event)


class HookManager:
    """Registers hooks and fires events. Thread-safe, and usable by several tasks at once."""

    def __init__(self, *, timeout: float = DEFAULT_TIMEOUT, strict: bool = False) -> None:
        """Create a manager without hooks. Each hook may run for at most `timeout` seconds.

        With `strict`, a hook fails if it changes a tool's input in another phase than `rewrite`. So no input can be
        changed after it was checked.
        """
        self.timeout = validate_timeout(timeout, "the manager")
        self.strict = strict
        self._index = _HookIndex(())
        self._lock = Lock()

    # -- registration ----------------------------------------------------------------------------------

    def register(self, hook: Hook, *, replace: bool = False) -> Registration:
        """Register a hook. With `replace`, replace one of the same name.

        Raise `RegistrationError` if an attribute of the hook is invalid or its name is taken, and `MatcherError` for an
        invalid matcher.
        """
        name = hook.name or type(hook).__name__
        registered = validate_hook(
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
        """Return a decorator that registers a function for these events. `Event` means all events.

        Raise `RegistrationError` or `MatcherError` as `register` does. The decorator returns the function unchanged.
        """
        validate_events(events, "on")  # here, because a bare `@hooks.on` would replace the function

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self.add(function, *events, **options)
            return function

        return register

    def add(self, function: Callable[..., Any], *events: type[Event], **options: Unpack[HookOptions]) -> Registration:
        """Register a sync or async function for these events.

        Raise `RegistrationError` or `MatcherError` as `register`.
        """
        merged: dict[str, Any] = {"timeout": self.timeout, **options}
        replace = merged.pop("replace", False)
        name = merged.pop("name", None) or getattr(function, "__name__", type(function).__name__)
        return self._add(validate_hook(function, events, name=name, **merged), replace=replace)

    def include(self, other: HookManager, *, prefix: str = "") -> list[Registration]:
        """Register the hooks that another manager has now, each limited by that manager's timeout.

        `prefix` is put before their names. Raise `RegistrationError` if a name is taken; the hooks before that one stay
        registered.
        """
        return [
            self._add(
                msgspec.structs.replace(hook, name=prefix + hook.name, timeout=min(hook.timeout, other.timeout)),
                replace=False,
            )
            for hook in other._index.hooks
        ]

    def unregister(self, name: str) -> bool:
        """Remove the hook with a name. Return `False` if there is none."""
        return self._drop(lambda hook: hook.name == name)

    def has_hook(self, name: str) -> bool:
        """Return whether a hook with a name is registered."""
        return name in self.hook_names()

    def hook_names(self) -> list[str]:
        """Return the names of the hooks in the order in which they run."""
        return [hook.name for hook in self._index.hooks]

    def hooks_for_event(self, event: HookEvent | type[Event]) -> list[str]:
        """Return the names of the hooks for an event type in their order, whatever their matchers."""
        kind = event.type if isinstance(event, HookEvent) else event
        return [hook.name for hook in self._index.hooks if issubclass(kind, hook.events)]

    def _add(self, hook: RegisteredHook, *, replace: bool) -> Registration:
        if self.strict and hook.phase != _REWRITE:
            hook = msgspec.structs.replace(hook, may_rewrite=False)
        with self._lock:
            hooks = self._index.hooks
            if replace:
                hooks = tuple(h for h in hooks if h.name != hook.name)
            elif any(h.name == hook.name for h in hooks):
                raise RegistrationError(f"a hook named {hook.name!r} is registered; give another name, or replace=True")
            in_order = sorted(
                (*hooks, hook), key=lambda h: (h.phase, -h.priority)
            )  # stable: equal hooks keep their order
            self._index = _HookIndex(tuple(in_order))
        return Registration(self, hook)

    def _drop(self, unwanted: Callable[[RegisteredHook], bool]) -> bool:
        with self._lock:
            kept = tuple(hook for hook in self._index.hooks if not unwanted(hook))
            dropped = len(kept) < len(self._index.hooks)
            if dropped:
                self._index = _HookIndex(kept)
        return dropped

    # -- firing ----------------------------------------------------------------------------------------

    async def fire(self, event: Event, ctx: HookContext | None = None) -> HookResult:
        """Call the hooks that match an event, in order, and return the merged result.

        Once the event is blocked, only observers are called. A hook that fails denies an event that can be blocked;
        other failures are logged. `ctx` is by default a new context with the event's session and working directory.
        """
        matched = self._index.for_event(event)
        if not matched.hooks:
            return HookResult(NO_OPINION, event)
        ctx = ctx or _context_of(event)
        if matched.async_timeout is None or ctx.deadline is not None:
            return await self._await_rest(matched.hooks, event, ctx, None)
        timeout = min(matched.async_timeout, self.timeout)
        times, first_step = step_quickly(matched.calls, event, ctx, timeout)
        first_runs = NoOpinionRuns(matched.hooks, times)
        if len(times) > len(matched.hooks):
            return HookResult(NO_OPINION, event, first_runs)
        from fairlead.hooks._async import finish_async

        first = None if first_step is None else await finish_async(first_step, ctx, timeout)
        result = await self._await_rest(matched.hooks[len(first_runs) :], event, ctx, first)
        return msgspec.structs.replace(result, runs=(*first_runs, *result.runs))

    async def _await_rest(
        self, hooks: tuple[RegisteredHook, ...], event: Event, ctx: HookContext, called: CallResult | None
    ) -> HookResult:
        """Call hooks, and return the merged result.

        `called` is the result of the first hook if that was called before; `None` if not.
        """
        from fairlead.hooks._async import call_async

        calls = call_hooks(hooks, event)
        try:
            hook, current = next(calls)
            while True:
                called = called or await call_async(hook, current, ctx, time_left(hook, ctx, self.timeout))
                (hook, current), called = calls.send(called), None
        except StopIteration as stop:
            return _log_failures(stop.value, hooks)

    def fire_sync(self, event: Event, ctx: HookContext | None = None) -> HookResult:
        """Fire an event like `fire`, from sync code. `asyncio` is imported only if a hook is async."""
        matched = self._index.for_event(event)
        if not matched.hooks:
            return HookResult(NO_OPINION, event)
        ctx = ctx or _context_of(event)
        if matched.quick_timeout is None or ctx.deadline is not None:
            return self._call_rest(matched.hooks, event, ctx, None)
        timeout = min(matched.quick_timeout, self.timeout)
        times, called = call_quickly(matched.calls, event, ctx, timeout)
        first_runs = NoOpinionRuns(matched.hooks, times)
        if len(times) > len(matched.hooks):
            return HookResult(NO_OPINION, event, first_runs)
        first = None if called is None else await_answer(called, ctx, timeout)
        result = self._call_rest(matched.hooks[len(first_runs) :], event, ctx, first)
        return msgspec.structs.replace(result, runs=(*first_runs, *result.runs))

    def _call_rest(
        self, hooks: tuple[RegisteredHook, ...], event: Event, ctx: HookContext, called: CallResult | None
    ) -> HookResult:
        """Call hooks, and return the merged result.

        `called` is the result of the first hook if that was called before; `None` if not.
        """
        calls = call_hooks(hooks, event)
        try:
            hook, current = next(calls)
            while True:
                called = called or call_sync(hook, current, ctx, time_left(hook, ctx, self.timeout))
                (hook, current), called = calls.send(called), None
        except StopIteration as stop:
            return _log_failures(stop.value, hooks)

    async def execute(self, kind: HookEvent, event: Event, ctx: HookContext | None = None) -> HookOutput:
        """Fire an event, and return only the merged output. Raise `PayloadError` if it is not of the given kind."""
        check_kind(kind, event)
        return (await self.fire(event, ctx)).output


def _context_of(event: Event) -> HookContext:
    return HookContext(event.session_id, cwd=event.cwd)


def _log_failures(result: HookResult, hooks: tuple[RegisteredHook, ...]) -> HookResult:
    """Log the failures of hooks that have not denied the event, and return the result."""
    for run in result.failures:
        if not result.event.can_block or any(hook.name == run.name and hook.phase == OBSERVE for hook in hooks):
            _log(run, result.event)
    return result


def _log(run: HookRun, event: Event) -> None:
    import logging

    assert run.error is not None
    text = "hook %r failed on %s: %s"
    logging.getLogger("fairlead.hooks").warning(text, run.name, event.event_name, describe(run.error))
