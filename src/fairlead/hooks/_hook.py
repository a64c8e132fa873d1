"""What a hook is: a name, the events it wants, when it runs, and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal, TypeAlias

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

_CO_COROUTINE = 0x80  # inspect.CO_COROUTINE; `inspect` costs more to import than all of this package


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
    types = tuple(_event_types(events, name))
    if phase not in PHASES:
        raise RegistrationError(f"hook {name!r}: phase must be one of {', '.join(PHASES)}, not {phase!r}")
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not timeout > 0:
        raise RegistrationError(f"hook {name!r}: timeout must be a number of seconds above 0, not {timeout!r}")
    if not isinstance(priority, int):
        raise RegistrationError(f"hook {name!r}: priority must be a whole number, not {priority!r}")
    check_subjects(matcher, types)
    call, code = _adapted(function, name)
    return Registered(
        name=name,
        call=call,
        events=types,
        wants=compile_matcher(matcher),
        on_subject=is_on_subject(matcher),
        priority=priority,
        timeout=float(timeout),
        phase=PHASES.index(phase),
        is_async=bool(code and code.co_flags & _CO_COROUTINE),
        inline=inline,
        keeps_deadline=keeps_deadline,
    )


def _event_types(events: Iterable[type[Event] | HookEvent], name: str) -> Iterable[type[Event]]:
    events = list(events)
    if not events:
        raise RegistrationError(f"hook {name!r}: it wants no event; name at least one, or Event for all")
    for event in events:
        if isinstance(event, HookEvent):
            yield event.type
        elif isinstance(event, type) and issubclass(event, Event):
            yield event
        else:
            raise RegistrationError(f"hook {name!r}: {event!r} is no event type")


def _adapted(function: Callable[..., Any], name: str) -> tuple[Handler, Any]:
    """Let a handler leave the context out, and find its code object (`None` if it is not written in Python)."""
    if not callable(function):
        raise RegistrationError(f"hook {name!r}: {function!r} cannot be called")
    target = function
    while hasattr(target, "func"):  # functools.partial
        target = target.func
    bound = 0
    if not hasattr(target, "__code__"):
        target = getattr(target, "__call__", target)  # noqa: B004 - the method itself is wanted
    if hasattr(target, "__func__"):
        target, bound = target.__func__, 1
    code = getattr(target, "__code__", None)
    if code is None or (target is not function and hasattr(function, "func")):
        return function, code
    return _with_context(function, code, code.co_argcount - bound, name), code


def _with_context(function: Callable[..., Any], code: Any, parameters: int, name: str) -> Handler:
    takes_any = bool(code.co_flags & 0x04)  # inspect.CO_VARARGS
    if parameters >= 2 or takes_any:  # noqa: PLR2004 - the event and the context
        return function
    if parameters == 1:
        return lambda event, _ctx: function(event)
    raise RegistrationError(f"hook {name!r}: it must take the event, and may take the context")
