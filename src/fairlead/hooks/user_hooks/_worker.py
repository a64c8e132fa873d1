"""The worker: loads hook files once, then handles events, in a thread for each socket that it gets from its owner."""

from __future__ import annotations

import os
import resource
import socket
import sys
from contextlib import suppress
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import client_named
from fairlead.events import Event, HookEvent, HookOutput, OtherEvent
from fairlead.hooks._call import OBSERVE, call_hooks, describe
from fairlead.hooks._context import HookContext
from fairlead.hooks._limits import time_left
from fairlead.hooks._sync import call_sync
from fairlead.hooks.user_hooks._load import LoadError, load_hooks
from fairlead.hooks.user_hooks._messages import (
    EVENT_LIMIT,
    EventReply,
    EventRequest,
    LoadReply,
    LoadRequest,
    receive,
    send,
)

if TYPE_CHECKING:
    from fairlead.hooks._call import CallResult
    from fairlead.hooks._hook import RegisteredHook
    from fairlead.hooks._manager import HookManager

_MIN_CHANGE = 0.01
"""Seconds by which the time at which the owner stops waiting must change for the change to be sent."""
_MAX_DATA = 2 * 1024**3
"""The maximum number of bytes of memory. If hooks allocate more, they get a `MemoryError`."""
_MAX_CPU = 900
"""Seconds of processor time, after which the system kills a worker whose owner has crashed."""
_STRENGTH = {None: 0, "allow": 1, "ask": 2, "defer": 3, "deny": 4}
_BLOCK = 5
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
_KIBIBYTE = 1024


def serve(number: int) -> None:
    """Serve the owner over the socket with the file descriptor `number`, until the owner closes it. Never return."""
    _limit_resources()
    control = socket.socket(fileno=number)
    os.set_inheritable(number, False)  # noqa: FBT003 - a setter
    request = msgspec.msgpack.decode(receive(control), type=LoadRequest)
    try:
        manager = load_hooks(request.files, request.digests)
    except LoadError as error:
        send(control, msgspec.json.encode(LoadReply(str(error), error.file)))
        os._exit(1)
    loaded = _describe(manager)
    send(control, msgspec.json.encode(loaded))
    with suppress(OSError):
        while True:
            data, numbers, _, _ = socket.recv_fds(control, 1, 1)
            if not data:
                break
            connection = socket.socket(fileno=numbers[0])
            Thread(
                target=_serve_connection, args=(manager, loaded, connection), name="fairlead-events", daemon=True
            ).start()
    os._exit(0)  # does not wait for running hooks


def _limit_resources() -> None:
    for kind, limit in ((resource.RLIMIT_DATA, _MAX_DATA), (resource.RLIMIT_CPU, _MAX_CPU)):
        hard = resource.getrlimit(kind)[1]
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _describe(manager: HookManager) -> LoadReply:
    """Return the reply to a `LoadRequest`, with the events for which there are hooks."""
    hooks = manager._index.hooks  # noqa: SLF001 - of the same package
    limits: dict[str, float] = {}
    observed: list[str] = []
    kinds: dict[str, type[Event]] = {event.value: event.type for event in HookEvent}
    kinds["*"] = OtherEvent
    for name, kind in kinds.items():
        own = [hook for hook in hooks if issubclass(kind, hook.events)]
        if own:
            limits[name] = min(sum(min(hook.timeout, manager.timeout) for hook in own), EVENT_LIMIT)
        if any(hook.phase == OBSERVE for hook in own):
            observed.append(name)
    return LoadReply(limits=limits, observed=tuple(observed))


class _ReplyDeadline:
    """The time at which the owner stops waiting for a reply.

    It is changed before each hook, to the end of that hook's limit.
    """

    def __init__(self, connection: socket.socket, limit: float) -> None:
        self._connection = connection
        self._until = monotonic() + limit

    def change(self, limit: float) -> None:
        """Make the owner wait for `limit` seconds from now on.

        Do nothing if `limit` is not above 0, or changes the time by no more than `_MIN_CHANGE`.
        """
        until = monotonic() + limit
        if limit > 0 and abs(until - self._until) > _MIN_CHANGE:
            send(self._connection, msgspec.msgpack.encode(limit))
            self._until = until


def _serve_connection(manager: HookManager, loaded: LoadReply, connection: socket.socket) -> None:
    decoder = msgspec.msgpack.Decoder(EventRequest)
    with suppress(EOFError, OSError):
        while True:
            ask = decoder.decode(receive(connection))
            limit = _ReplyDeadline(connection, loaded.limit_of(ask.event, observe_only=ask.observe_only) or EVENT_LIMIT)
            try:
                answer = msgspec.msgpack.encode(_answer(manager, ask, limit))
            except Exception as error:  # an answer that cannot be sent is a failed hook
                text = f"the hooks have answered what cannot be sent: {type(error).__name__}: {error}"
                answer = msgspec.msgpack.encode(EventReply(HookOutput.deny(text)))
            send(connection, answer)


def _answer(manager: HookManager, ask: EventRequest, limit: _ReplyDeadline) -> EventReply:
    event = client_named(ask.client).parse(ask.payload, ask.event)
    if ask.tool_input is not None:
        event = msgspec.structs.replace(event, tool_input=ask.tool_input)
    context = HookContext(event.session_id, cwd=event.cwd or ask.cwd, env=ask.env, deadline=monotonic() + EVENT_LIMIT)
    return _fire(manager, event, context, limit, observe_only=ask.observe_only)


def _fire(
    manager: HookManager, event: Event, context: HookContext, limit: _ReplyDeadline, *, observe_only: bool
) -> EventReply:
    """Fire an event like `HookManager.fire_sync`, and return the reply, which also names the hook that decided.

    With `observe_only`, call only the hooks that observe.
    """
    hooks = manager._index.for_event(event).hooks  # noqa: SLF001 - of the same package
    if observe_only:
        hooks = tuple(hook for hook in hooks if hook.phase == OBSERVE)
    calls = call_hooks(hooks, event)
    strength, decided_by = 0, ""
    try:
        hook, current = next(calls)
        while True:
            seconds = time_left(hook, context, manager.timeout)
            limit.change(seconds)
            called = call_sync(hook, current, context, seconds)
            own = _strength(hook, called, can_block=event.can_block)
            if own and own >= strength:
                strength, decided_by = own, hook.name
            hook, current = calls.send(called)
    except StopIteration as stop:
        result = stop.value
    observers = {hook.name for hook in hooks if hook.phase == OBSERVE}
    failures = [
        (run.name, describe(run.error))
        for run in result.failures
        if run.error is not None and (not event.can_block or run.name in observers)
    ]
    log = tuple(f"hook {name!r} failed on {event.event_name}: {why}" for name, why in failures)
    first = failures[0] if failures else ("", "")
    is_stuck = any(run.outcome == "timed out" for run in result.runs)
    sys.stdout.flush()
    return EventReply(result.output, decided_by, log, is_stuck, _memory(), *first)


def _strength(hook: RegisteredHook, called: CallResult, *, can_block: bool) -> int:
    """Return how strict the answer of a hook is, from 0 if it decides nothing to `_BLOCK`.

    The hook with the strictest answer decides.
    """
    if hook.phase == OBSERVE:
        return 0
    if called.error is not None or (called.answer is not None and not isinstance(called.answer, HookOutput)):
        return _BLOCK if can_block else 0
    answer = called.answer
    if answer is None:
        return 0
    return _BLOCK if answer.blocked else _STRENGTH[answer.permission]


def _memory() -> int:
    """Return the bytes of memory that this process uses; where that is not known, the most that it has used so far."""
    if _STATM is None:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else _KIBIBYTE)
    return int(os.pread(_STATM, 128, 0).split()[1]) * _PAGE_SIZE


def _open_statm() -> int | None:
    try:
        return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


_STATM = _open_statm()
