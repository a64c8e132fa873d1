"""The worker: loads hook files once, then answers events. One thread for each socket that its owner hands over."""

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
from fairlead.hooks.own._load import describe_load_error, load_hooks
from fairlead.hooks.own._messages import EVENT_LIMIT, Answer, Ask, Loaded, LoadRequest, receive, send

if TYPE_CHECKING:
    from fairlead.hooks._call import Called
    from fairlead.hooks._hook import Registered
    from fairlead.hooks._manager import HookManager

_MAX_DATA = 2 * 1024**3
"""Bytes. What a hook allocates beyond that raises a `MemoryError` in it."""
_MAX_CPU = 900
"""Seconds of processor time, after which the system ends a worker that nobody ends: its owner has crashed."""
_STRENGTH = {None: 0, "allow": 1, "ask": 2, "defer": 3, "deny": 4}
_BLOCK = 5
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
_KIBIBYTE = 1024


def serve(number: int) -> None:
    """Serve the owner at the other end of a socket until it closes it."""
    _limit_resources()
    control = socket.socket(fileno=number)
    os.set_inheritable(number, False)  # noqa: FBT003 - a setter
    request = msgspec.msgpack.decode(receive(control), type=LoadRequest)
    try:
        manager = load_hooks(request.files, request.digests)
    except BaseException as error:  # noqa: BLE001 - a hook file may raise anything, SystemExit too
        send(control, msgspec.json.encode(Loaded(describe_load_error(error, request.files))))
        os._exit(1)
    send(control, msgspec.json.encode(_describe(manager)))
    with suppress(OSError):
        while True:
            data, numbers, _, _ = socket.recv_fds(control, 1, 1)
            if not data:
                break
            lane = socket.socket(fileno=numbers[0])
            Thread(target=_serve_lane, args=(manager, lane), name="fairlead-events", daemon=True).start()
    os._exit(0)  # hooks that still run are not waited for


def _limit_resources() -> None:
    for kind, limit in ((resource.RLIMIT_DATA, _MAX_DATA), (resource.RLIMIT_CPU, _MAX_CPU)):
        hard = resource.getrlimit(kind)[1]
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _describe(manager: HookManager) -> Loaded:
    """Return which events have hooks, and for how long they may run."""
    hooks = manager._plans.hooks  # noqa: SLF001 - of the same package
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
    return Loaded(limits=limits, observed=tuple(observed))


def _serve_lane(manager: HookManager, lane: socket.socket) -> None:
    decoder = msgspec.msgpack.Decoder(Ask)
    with suppress(EOFError, OSError):
        while True:
            ask = decoder.decode(receive(lane))
            try:
                answer = msgspec.msgpack.encode(_answer(manager, ask))
            except Exception as error:  # noqa: BLE001 - an answer that cannot be sent is a failed hook
                text = f"the hooks have answered what cannot be sent: {type(error).__name__}: {error}"
                answer = msgspec.msgpack.encode(Answer(HookOutput.deny(text)))
            send(lane, answer)


def _answer(manager: HookManager, ask: Ask) -> Answer:
    event = client_named(ask.client).parse(ask.payload, ask.event)
    if ask.tool_input is not None:
        event = msgspec.structs.replace(event, tool_input=ask.tool_input)
    context = HookContext(event.session_id, cwd=event.cwd or ask.cwd, env=ask.env, deadline=monotonic() + EVENT_LIMIT)
    return _fire(manager, event, context, observe_only=ask.observe_only)


def _fire(manager: HookManager, event: Event, context: HookContext, *, observe_only: bool) -> Answer:
    """Fire an event as `HookManager.fire_sync` does, and note whose answer counts."""
    hooks = manager._plans.for_event(event).hooks  # noqa: SLF001 - of the same package
    if observe_only:
        hooks = tuple(hook for hook in hooks if hook.phase == OBSERVE)
    calls = call_hooks(hooks, event)
    strength, decided_by = 0, ""
    try:
        hook, current = next(calls)
        while True:
            called = call_sync(hook, current, context, time_left(hook, context, manager.timeout))
            own = _strength(hook, called, can_block=event.can_block)
            if own and own >= strength:
                strength, decided_by = own, hook.name
            hook, current = calls.send(called)
    except StopIteration as stop:
        result = stop.value
    observers = {hook.name for hook in hooks if hook.phase == OBSERVE}
    log = tuple(
        f"hook {run.name!r} failed on {event.event_name}: {describe(run.error)}"
        for run in result.failures
        if run.error is not None and (not event.can_block or run.name in observers)
    )
    is_stuck = any(run.outcome == "timed out" for run in result.runs)
    sys.stdout.flush()
    return Answer(result.output, decided_by, log, is_stuck, _memory())


def _strength(hook: Registered, called: Called, *, can_block: bool) -> int:
    """Return how strongly an answer decides; 0 if it does not."""
    if hook.phase == OBSERVE:
        return 0
    if called.error is not None or (called.answer is not None and not isinstance(called.answer, HookOutput)):
        return _BLOCK if can_block else 0
    answer = called.answer
    if answer is None:
        return 0
    return _BLOCK if answer.blocked else _STRENGTH[answer.permission]


def _memory() -> int:
    """Return the bytes that this process holds now."""
    if _STATM is None:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else _KIBIBYTE)
    return int(os.pread(_STATM, 128, 0).split()[1]) * _PAGE_SIZE


def _open_statm() -> int | None:
    try:
        return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


_STATM = _open_statm()
