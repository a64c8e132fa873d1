"""One worker for the hooks of each policy file and interpreter: started when it is first needed, replaced, ended."""

from __future__ import annotations

from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from fairlead.daemon.workers._output import WorkerOutput
from fairlead.hooks.own import Answer, HookWorkerError, LoadRequest, WorkerProcess, ask_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.hooks.own import Ask, Loaded
    from fairlead.policy import HookGroup

_MAX_LOADED = 256
_SWEEP_INTERVAL = 15.0
"""Seconds between two looks at which workers are idle."""


class WorkerLimits(msgspec.Struct, frozen=True):
    """When a worker is replaced."""

    calls: int = 20_000
    memory: int = 256 * 1024 * 1024
    """Bytes."""
    idle: float = 600.0
    """Seconds without a call after which it is ended."""


class _Slot:
    """The worker of one policy file and interpreter."""

    def __init__(self) -> None:
        self.lock = Lock()
        """Held while a worker is started: other events wait for it, and do not start another."""
        self.worker: WorkerProcess | None = None
        self.output = WorkerOutput()
        self.used_at = monotonic()


class HookWorkers:
    """All workers of a daemon. Used from several threads."""

    def __init__(self, limits: WorkerLimits | None = None, report: Callable[[str], None] = lambda _: None) -> None:
        """`report` is called with what happened to a worker that has died."""
        self.limits = limits or WorkerLimits()
        self._report = report
        self.started = 0
        """How many workers were started."""
        self._slots: dict[tuple[str, str], _Slot] = {}
        self._loaded: dict[tuple[object, ...], Loaded] = {}
        """What files were found to have in them, also of workers that have ended."""
        self._retired: list[WorkerProcess] = []
        """Workers that are replaced, but still asked."""
        self._lock = Lock()
        self._closing = Event()
        self._sweeper: Thread | None = None

    def ask(self, group: HookGroup, ask: Ask) -> Answer:
        """Ask the worker of a group about an event. Raises `HookWorkerError` if there is no answer."""
        key = _key(group)
        loaded = self._loaded.get(key)
        if loaded is not None and loaded.limit_of(ask.event, observe_only=ask.observe_only) is None:
            return Answer()
        slot = self._slot(group)
        request = LoadRequest(tuple(file.file for file in group.files), _digests(group))
        worker = self._worker(slot, group, request, key)
        limit = worker.loaded.limit_of(ask.event, observe_only=ask.observe_only)
        if limit is None:
            return Answer()
        try:
            return worker.ask(msgspec.msgpack.encode(ask), limit)
        except HookWorkerError as error:
            self._report(f"hooks of {group.policy_file}: {error}{slot.output.last_line()}")
            if not error.is_suspect:
                raise
        # The hooks of another event may have ended it. Asked alone, the cause is certain.
        self.started += 1
        output = WorkerOutput()
        with output.open() as descriptor:
            return ask_once(group.interpreter, group.folder, request, ask, output=descriptor)

    def end_idle(self) -> None:
        """End the workers that were not used for long, and the replaced ones that nobody asks any more."""
        now = monotonic()
        for slot in list(self._slots.values()):
            if now - slot.used_at > self.limits.idle and slot.worker is not None and slot.lock.acquire(blocking=False):
                try:
                    self._retire(slot)
                finally:
                    slot.lock.release()
        self._end_retired()

    def close(self) -> None:
        """End all workers."""
        self._closing.set()
        with self._lock:
            workers = [slot.worker for slot in self._slots.values() if slot.worker is not None] + self._retired
            self._slots.clear()
            self._retired = []
        for worker in workers:
            worker.end("was ended")

    def status(self) -> list[dict[str, object]]:
        """Return the workers that run, for people and programs."""
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
        """Return the worker of a slot, with the files as they are now."""
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
            self._start_sweeper()
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
        """Take a worker out of use; it ends once nobody asks it any more."""
        worker, slot.worker = slot.worker, None
        if worker is not None:
            with self._lock:
                self._retired.append(worker)
            self._end_retired()

    def _end_retired(self) -> None:
        with self._lock:
            done = [worker for worker in self._retired if not worker.in_flight]
            self._retired = [worker for worker in self._retired if worker.in_flight]
        for worker in done:
            worker.end("was ended")

    def _start_sweeper(self) -> None:
        with self._lock:
            if self._sweeper is None:
                self._sweeper = Thread(target=self._sweep, name="hook-workers", daemon=True)
                self._sweeper.start()

    def _sweep(self) -> None:
        while not self._closing.wait(min(_SWEEP_INTERVAL, self.limits.idle)):
            self.end_idle()


def _key(group: HookGroup) -> tuple[object, ...]:
    """Return what the hooks of a group depend on."""
    return group.interpreter, *((file.file, *sorted(file.digests.values())) for file in group.files)


def _digests(group: HookGroup) -> dict[str, str]:
    return {path: digest for file in group.files for path, digest in file.digests.items()}
