"""The definition of hooks, and their validation at registration."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Literal, TypeAlias, cast

import msgspec

from fairlead.errors import PayloadError, RegistrationError
from fairlead.events import Event, HookEvent, HookOutput
from fairlead.hooks._context import HookContext
from fairlead.hooks._match import Matcher, check_subjects, compile_matcher, is_on_subject

Phase = Literal["rewrite", "check", "observe"]
"""When a hook runs: `rewrite` first, so that no input changes after a `check`; `observe` last, even after a block."""

PHASES: tuple[Phase, ...] = ("rewrite", "check", "observe")

DEFAULT_TIMEOUT = 60.0
"""Seconds that a hook may run if it sets no timeout."""

Answer: TypeAlias = "HookOutput | None"
Handler: TypeAlias = Callable[[Any, HookContext], "Answer | Awaitable[Answer]"]

_CO_VARARGS, _CO_COROUTINE = 0x04, 0x80  # as in `inspect`, which is slower to import than this whole package
_WITH_CONTEXT = 2  # parameters: the event and the context
_CONTEXT_NAMES = frozenset({"ctx", "context", ""})
"""The names, without underscores, by which a second parameter with a default is recognized as the context.

A parameter with another name keeps its default, as in `lambda event, n=n: …`.
"""


class Hook:
    """The base class of hooks. Override `execute`, as a sync or async method, and the attributes that differ."""

    name: str = ""
    """The name, unique in a manager; "" for the name of the class."""
    events: Iterable[type[Event] | HookEvent] = ()
    """The events for which the hook is called. `Event` means all events."""
    matcher: Matcher | None = None
    """A pattern on the event's subject, or a function of the event; `None` for every event of `events`."""
    timeout: float = DEFAULT_TIMEOUT
    """Seconds that one call may take. The manager's timeout also applies."""
    priority: int = 0
    """Within a phase, hooks of a higher priority run first.

    Hooks of the same priority run in the order of registration.
    """
    phase: Phase = "check"
    inline: bool = False
    """Whether a sync `execute` runs in the caller's thread. This is faster, but its timeout is not enforced."""
    keeps_deadline: bool = False
    """Whether `execute` returns by `ctx.deadline` on its own, so that the manager need not enforce the timeout."""

    def execute(self, event: Any, ctx: HookContext) -> Answer | Awaitable[Answer]:
        """Return the output for an event; `None` for no opinion. An exception denies the event if it can be blocked."""
        raise NotImplementedError


class RegisteredHook(msgspec.Struct, frozen=True, eq=False):
    """A validated hook, as plain data for the call loop."""

    name: str
    call: Handler
    """Takes the event and the context, whatever the hook itself takes."""
    events: tuple[type[Event], ...]
    matches: Callable[[Event], bool] | None
    """The compiled matcher; `None` accepts all `events`."""
    on_subject: bool
    """Whether the matcher depends on the event's subject only, so that its result can be cached."""
    priority: int
    timeout: float
    phase: int
    """The index in `PHASES`."""
    is_async: bool
    inline: bool
    keeps_deadline: bool
    may_rewrite: bool = True
    """Whether the hook may change the tool's input. `False` in a strict manager for the phases after `rewrite`."""


def validate_hook(
    function: Callable[..., Any],
    events: Iterable[type[Event] | HookEvent],
    *,
    name: str,
    matcher: Matcher | None = None,
    priority: int = 0,
    timeout: float = DEFAULT_TIMEOUT,
    phase: Phase = "check",
    inline: bool = False,
    keeps_deadline: bool = False,
) -> RegisteredHook:
    """Return a hook that was validated. Raise `RegistrationError` or `MatcherError` if an argument is invalid.

    `function` takes the event, and optionally the context; it may be async. The other arguments are the attributes of
    `Hook`.
    """
    owner = f"hook {name!r}"
    types = validate_events(events, owner)
    if phase not in PHASES:
        raise RegistrationError(f"{owner}: phase must be one of {', '.join(PHASES)}, not {phase!r}")
    if not isinstance(priority, int):
        raise RegistrationError(f"{owner}: priority must be a whole number, not {priority!r}")
    check_subjects(matcher, types)
    call, is_async = _adapted(function, owner)
    return RegisteredHook(
        name=name,
        call=call,
        events=types,
        matches=compile_matcher(matcher),
        on_subject=is_on_subject(matcher),
        priority=priority,
        timeout=validate_timeout(timeout, owner),
        phase=PHASES.index(phase),
        is_async=is_async,
        inline=inline,
        keeps_deadline=keeps_deadline,
    )


def validate_timeout(timeout: object, owner: str) -> float:
    """Return a timeout as float. Raise `RegistrationError`, which names `owner`, unless it is a number above 0."""
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not timeout > 0:
        raise RegistrationError(f"{owner}: timeout must be a number of seconds above 0, not {timeout!r}")
    return float(timeout)


def check_kind(kind: HookEvent, event: Event) -> None:
    """Raise `PayloadError` if an event is not of the type `kind`."""
    if event.event_type is not kind:
        raise PayloadError(f"expected {kind.value}, got {event.event_name}", field="hook_event_name")


def validate_events(events: Iterable[type[Event] | HookEvent], owner: str) -> tuple[type[Event], ...]:
    """Return the types of events.

    Raise `RegistrationError`, which names `owner`, if there are none or one is invalid.
    """
    if not isinstance(events, list | tuple | set | frozenset):
        raise RegistrationError(f"{owner}: events must be a list or tuple of event types, not {events!r}")
    if not events:
        raise RegistrationError(f"{owner}: it has no event; name at least one, or Event for all")
    return tuple(_event_type(event, owner) for event in events)


def _event_type(event: object, owner: str) -> type[Event]:
    if isinstance(event, HookEvent):
        return event.type
    if isinstance(event, type) and issubclass(event, Event):
        return event
    raise RegistrationError(f"{owner}: {event!r} is not an event type")


# -- handlers ------------------------------------------------------------------------------------------


def _adapted(function: Callable[..., Any], owner: str) -> tuple[Handler, bool]:
    """Return a handler that takes the event and the context, and whether the function is async.

    Raise `RegistrationError`, which names `owner`, if the function cannot be called so.
    """
    if not callable(function):
        raise RegistrationError(f"{owner}: {function!r} cannot be called")
    target, bound, bound_names = _target(function)
    if not isinstance(target, FunctionType):
        return _adapted_builtin(function), False
    is_async = bool(target.__code__.co_flags & _CO_COROUTINE)
    return _with_context(function, target, bound, bound_names, owner), is_async


def _target(function: Any) -> tuple[Any, int, set[str]]:
    """Return the Python function behind a callable, the number of its bound arguments, and its bound keywords.

    If no Python function is behind it, as for a builtin, the first element is another object or `None`.
    """
    bound, bound_names = 0, set[str]()
    while isinstance(function, partial):
        bound += len(function.args)
        bound_names |= function.keywords.keys()
        function = function.func
    if isinstance(function, MethodType):
        return function.__func__, bound + 1, bound_names
    if isinstance(function, FunctionType):
        return function, bound, bound_names
    return getattr(type(function), "__call__", None), bound + 1, bound_names  # noqa: B004 - the method itself is wanted


def _with_context(function: Any, target: FunctionType, bound: int, bound_names: set[str], owner: str) -> Handler:
    code, defaults = target.__code__, len(target.__defaults__ or ())
    if code.co_flags & _CO_VARARGS:
        return cast("Handler", function)
    names = code.co_varnames[: code.co_argcount]
    needed = [name for name in names[bound : code.co_argcount - defaults] if name not in bound_names]
    optional = [name for name in names[max(bound, code.co_argcount - defaults) :] if name not in bound_names]
    keywords = set(code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount])
    if (
        keywords - (target.__kwdefaults__ or {}).keys() - bound_names
        or len(needed) > _WITH_CONTEXT
        or not needed + optional
    ):
        raise RegistrationError(f"{owner}: it must take the event, may take the context, and nothing else")
    second = (needed + optional)[1:2]
    if len(needed) == _WITH_CONTEXT or (second and second[0].strip("_") in _CONTEXT_NAMES):
        return cast("Handler", function)
    return lambda event, _ctx: function(event)


def _adapted_builtin(function: Callable[..., Any]) -> Handler:
    """Return a handler for a function that is not written in Python.

    The function gets the context, too, if its signature has two parameters or more, or is not known.
    """
    from inspect import signature

    try:
        parameters = len(signature(function).parameters)
    except (TypeError, ValueError):
        parameters = _WITH_CONTEXT
    return function if parameters >= _WITH_CONTEXT else lambda event, _ctx: function(event)
