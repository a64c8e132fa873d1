"""Keeps one worker for the hooks of each policy file and interpreter: starts it on first use, replaces it, ends it."""

from __future__ import annotations

from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from fairlead.daemon.workers._output import WorkerOutput
from fairlead.hooks.user_hooks import EventReply, HookWorkerError, LoadRequest, WorkerProcess, ask_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.hooks.user_hooks import EventRequest, LoadReply
    from fairlead.policy import HookGroup

_MAX_LOADED = 256
_IDLE_CHECK_INTERVAL = 15.0
"""Seconds between two checks for idle workers."""


class WorkerLimits(msgspec.Struct, frozen=True):
    """The limits beyond which a worker is replaced or ended."""

    calls: int = 20_000
    """Calls after which a worker is replaced."""
    memory: int = 256 * 1024 * 1024
    """In bytes. A worker that uses as much is replaced."""
    idle: float = 600.0
    """Seconds without a call after which a worker is ended."""


class _Slot:
    """The worker of one policy file and interpreter."""

    def __init__(self) -> None:
        self.lock = Lock()
        """Held while a worker is started, so that other events wait for it and do not start a second one."""
        self.worker: WorkerProcess | None = None
        self.output = WorkerOutput()
        self.used_at = monotonic()


class HookWorkers:
    """All workers of a daemon. Thread-safe."""

    def __init__(self, limits: WorkerLimits | None = None, report: Callable[[str], None] = lambda _: None) -> None:
        """`report` is called with a message if a worker has not answered, for example because it has died."""
        self.limits = limits or WorkerLimits()
        self._report = report
        self.started = 0
        """How many workers were started."""
        self._slots: dict[tuple[str, str], _Slot] = {}
        self._loaded: dict[tuple[object, ...], LoadReply] = {}
        """By group of hook files: the hooks in them. Entries are kept after their worker has ended."""
        self._replaced: list[WorkerProcess] = []
        """Workers that were replaced and still have calls in progress."""
        self._lock = Lock()
        self._closing = Event()
        self._idle_checker: Thread | None = None

    def ask(self, group: HookGroup, ask: EventRequest) -> EventReply:
        """Ask the worker of a group about an event. Raises `HookWorkerError` if there is no answer.

        The reply is empty if the group has no hook for the event. Waits until the hooks have answered. If the hooks of
        another event may have ended the worker, ask once more in a process of its own.
        """
        key = _key(group)
        loaded = self._loaded.get(key)
        if loaded is not None and loaded.limit_of(ask.event, observe_only=ask.observe_only) is None:
            return EventReply()
        slot = self._slot(group)
        request = LoadRequest(tuple(file.file for file in group.files), _digests(group))
        worker = self._worker(slot, group, request, key)
        limit = worker.loaded.limit_of(ask.event, observe_only=ask.observe_only)
        if limit is None:
            return EventReply()
        try:
            return worker.ask(msgspec.msgpack.encode(ask), limit)
        except HookWorkerError as error:
            self._report(f"hooks of {group.policy_file}: {error}{slot.output.last_line()}")
            if not error.is_suspect:
                raise
        # The hooks of another event may have crashed the worker. In a separate process, the cause is certain.
        self.started += 1
        output = WorkerOutput()
        with output.open() as descriptor:
            return ask_once(group.interpreter, group.folder, request, ask, output=descriptor)

    def end_idle(self) -> None:
        """End workers that are idle, and replaced ones that have no calls in progress."""
        now = monotonic()
        for slot in list(self._slots.values()):
            if now - slot.used_at > self.limits.idle and slot.worker is not None and slot.lock.acquire(blocking=False):
                try:
                    self._retire(slot)
                finally:
                    slot.lock.release()
        self._end_replaced()

    def close(self) -> None:
        """End all workers."""
        self._closing.set()
        with self._lock:
            workers = [slot.worker for slot in self._slots.values() if slot.worker is not None] + self._replaced
            self._slots.clear()
            self._replaced = []
        for worker in workers:
            worker.end("was ended")

    def status(self) -> list[dict[str, object]]:
        """Return the running workers, for `fairlead daemon status`."""
        return [
            {"pid": slot.worker.pid, "policy": policy, "calls": slot.worker.calls, "memory": slot.worker.memory}
            for (policy, _), slot in list(self._slots.items())
            if slot.worker is not None and slot.worker.is_running
        ]

    def _slot(self, group: HookGroup) -> _Slot:
        key = group.policy_file, group.interpreter
        slot = self._slots.get(key)
        if slot is None:
            with self._lock:
                slot = self._slots.setdefault(key, _Slot())
        slot.used_at = monotonic()
        return slot

    def _worker(self, slot: _Slot, group: HookGroup, request: LoadRequest, key: tuple[object, ...]) -> WorkerProcess:
        """Return the worker of a slot. If there is none, or it has ended, is stuck, outdated or at a limit, start one.

        Its hooks are stored below `key`. Raise `HookWorkerError` if the worker cannot be started.
        """
        worker = slot.worker
        if worker is not None and self._is_usable(worker, request):
            return worker
        with slot.lock:
            worker = slot.worker
            if worker is not None and self._is_usable(worker, request):
                return worker
            self._retire(slot)
            if self._closing.is_set():
                raise HookWorkerError("the daemon shuts down")
            self._start_idle_checker()
            self.started += 1
            slot.output = WorkerOutput()
            with slot.output.open() as descriptor:
                worker = WorkerProcess(group.interpreter, group.folder, request, descriptor)
            if len(self._loaded) >= _MAX_LOADED:
                self._loaded.clear()
            self._loaded[key] = worker.loaded
            slot.worker = worker
            return worker

    def _is_usable(self, worker: WorkerProcess, request: LoadRequest) -> bool:
        return (
            worker.is_running
            and not worker.is_stuck
            and worker.calls < self.limits.calls
            and worker.memory < self.limits.memory
            and worker.request == request
        )

    def _retire(self, slot: _Slot) -> None:
        """Take a worker out of use. It is ended once it has no calls in progress."""
        worker, slot.worker = slot.worker, None
        if worker is not None:
            with self._lock:
                self._replaced.append(worker)
            self._end_replaced()

    def _end_replaced(self) -> None:
        with self._lock:
            done = [worker for worker in self._replaced if not worker.in_flight]
            self._replaced = [worker for worker in self._replaced if worker.in_flight]
        for worker in done:
            worker.end("was ended")

    def _start_idle_checker(self) -> None:
        with self._lock:
            if self._idle_checker is None:
                self._idle_checker = Thread(target=self._check_idle, name="hook-workers", daemon=True)
                self._idle_checker.start()

    def _check_idle(self) -> None:
        while not self._closing.wait(min(_IDLE_CHECK_INTERVAL, self.limits.idle)):
            self.end_idle()


def _key(group: HookGroup) -> tuple[object, ...]:
    """Return a key that changes with the interpreter and the hook files of a group."""
    return group.interpreter, *((file.file, *sorted(file.digests.values())) for file in group.files)


def _digests(group: HookGroup) -> dict[str, str]:
    return {path: digest for file in group.files for path, digest in file.digests.items()}
