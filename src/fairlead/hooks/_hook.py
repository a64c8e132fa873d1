"""What a hook is: a name, the events it wants, when it runs, and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Literal, TypeAlias, cast

import msgspec

from fairlead.errors import RegistrationError
from fairlead.events import Event, HookEvent, HookOutput
from fairlead.hooks._context import HookContext
from fairlead.hooks._match import Matcher, check_subjects, compile_matcher, is_on_subject

Phase = Literal["rewrite", "check", "observe"]
"""Rewrites run first, so that nothing is changed after it was checked; observers run last, and always."""

PHASES: tuple[Phase, ...] = ("rewrite", "check", "observe")

DEFAULT_TIMEOUT = 60.0
"""Seconds."""

Answer: TypeAlias = "HookOutput | None"
Handler: TypeAlias = Callable[[Any, HookContext], "Answer | Awaitable[Answer]"]

_CO_VARARGS, _CO_COROUTINE = 0x04, 0x80  # as in `inspect`, which costs more to import than all of this package
_BOTH = 2  # the event and the context
_CONTEXT_NAMES = frozenset({"ctx", "context", ""})
"""A second parameter with a default is the context only under such a name: `lambda event, n=n: …` is no slip."""


class Hook:
    """Base of hooks that are objects. Override `execute`, plain or `async`, and what else differs."""

    name: str = ""
    """Unique in a manager; the class's name if left empty."""
    events: Iterable[type[Event] | HookEvent] = ()
    """What it wants to hear of; `Event` itself stands for all."""
    matcher: Matcher | None = None
    timeout: float = DEFAULT_TIMEOUT
    priority: int = 0
    """Higher runs first; equals run in the order of registration."""
    phase: Phase = "check"
    inline: bool = False
    """Run a plain `execute` in the caller's own thread: faster, but its timeout cannot be enforced."""
    keeps_deadline: bool = False
    """It ends by `ctx.deadline` by itself, and cleans up; the manager need not watch it."""

    def execute(self, event: Any, ctx: HookContext) -> Answer | Awaitable[Answer]:
        """Answer the event; `None` is no opinion. Raising denies on a gate."""
        raise NotImplementedError


class Registered(msgspec.Struct, frozen=True, eq=False):
    """A hook as the call loop sees it: plain data, checked once."""

    name: str
    call: Handler
    events: tuple[type[Event], ...]
    wants: Callable[[Event], bool] | None
    """A further test on the event; `None` wants all of `events`."""
    on_subject: bool
    """The test looks at nothing but the subject, so its result can be remembered."""
    priority: int
    timeout: float
    phase: int
    is_async: bool
    inline: bool
    keeps_deadline: bool
    may_rewrite: bool = True
    """False under a strict manager, for hooks that run once others may have checked the input."""


def checked(  # noqa: PLR0913 - one parameter for each thing a hook can ask for
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
) -> Registered:
    """Validate a hook, once and for all: nothing is checked again when it is called."""
    who = f"hook {name!r}"
    types = event_types(events, who)
    if phase not in PHASES:
        raise RegistrationError(f"{who}: phase must be one of {', '.join(PHASES)}, not {phase!r}")
    if not isinstance(priority, int):
        raise RegistrationError(f"{who}: priority must be a whole number, not {priority!r}")
    check_subjects(matcher, types)
    call, is_async = _adapted(function, who)
    return Registered(
        name=name,
        call=call,
        events=types,
        wants=compile_matcher(matcher),
        on_subject=is_on_subject(matcher),
        priority=priority,
        timeout=seconds(timeout, who),
        phase=PHASES.index(phase),
        is_async=is_async,
        inline=inline,
        keeps_deadline=keeps_deadline,
    )


def seconds(timeout: object, who: str) -> float:
    """Check a timeout."""
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not timeout > 0:
        raise RegistrationError(f"{who}: timeout must be a number of seconds above 0, not {timeout!r}")
    return float(timeout)


def event_types(events: Iterable[type[Event] | HookEvent], who: str) -> tuple[type[Event], ...]:
    """Check which events are wanted."""
    if not isinstance(events, list | tuple | set | frozenset):
        raise RegistrationError(f"{who}: events must be a list or tuple of event types, not {events!r}")
    if not events:
        raise RegistrationError(f"{who}: it wants no event; name at least one, or Event for all")
    return tuple(_event_type(event, who) for event in events)


def _event_type(event: object, who: str) -> type[Event]:
    if isinstance(event, HookEvent):
        return event.type
    if isinstance(event, type) and issubclass(event, Event):
        return event
    raise RegistrationError(f"{who}: {event!r} is no event type")


# -- handlers ------------------------------------------------------------------------------------------


def _adapted(function: Callable[..., Any], who: str) -> tuple[Handler, bool]:
    """Let a handler leave the context out; also tell whether it is async."""
    if not callable(function):
        raise RegistrationError(f"{who}: {function!r} cannot be called")
    target, given, named = _target(function)
    if not isinstance(target, FunctionType):
        return _adapted_builtin(function), False
    is_async = bool(target.__code__.co_flags & _CO_COROUTINE)
    return _with_context(function, target, given, named, who), is_async


def _target(function: Any) -> tuple[Any, int, set[str]]:
    """Find the Python function behind a callable, and what it is given already: how many, and by which names."""
    given, named = 0, set[str]()
    while isinstance(function, partial):
        given += len(function.args)
        named |= function.keywords.keys()
        function = function.func
    if isinstance(function, MethodType):
        return function.__func__, given + 1, named
    if isinstance(function, FunctionType):
        return function, given, named
    return getattr(type(function), "__call__", None), given + 1, named  # noqa: B004 - the method itself is wanted


def _with_context(function: Any, target: FunctionType, given: int, named: set[str], who: str) -> Handler:
    code, defaults = target.__code__, len(target.__defaults__ or ())
    if code.co_flags & _CO_VARARGS:
        return cast("Handler", function)
    names = code.co_varnames[: code.co_argcount]
    needed = [name for name in names[given : code.co_argcount - defaults] if name not in named]
    optional = [name for name in names[max(given, code.co_argcount - defaults) :] if name not in named]
    keywords = set(code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount])
    if keywords - (target.__kwdefaults__ or {}).keys() - named or len(needed) > _BOTH or not needed + optional:
        raise RegistrationError(f"{who}: it must take the event, may take the context, and nothing else")
    second = (needed + optional)[1:2]
    if len(needed) == _BOTH or (second and second[0].strip("_") in _CONTEXT_NAMES):
        return cast("Handler", function)
    return lambda event, _ctx: function(event)


def _adapted_builtin(function: Callable[..., Any]) -> Handler:
    """Ask a function that is not written in Python how many arguments it takes."""
    from inspect import signature

    try:
        parameters = len(signature(function).parameters)
    except (TypeError, ValueError):
        parameters = _BOTH
    return function if parameters >= _BOTH else lambda event, _ctx: function(event)
