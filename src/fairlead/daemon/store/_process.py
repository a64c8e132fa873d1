"""The daemon's side of the store: starts the store's process, starts it again if it ends, and sends requests to it."""

from __future__ import annotations

import socket
import subprocess
import sys
from concurrent.futures import Future
from contextlib import suppress
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.daemon.store._messages import (
    CopyEvents,
    CountEventsToCopy,
    ErrorReport,
    FindHistory,
    FindSession,
    Finish,
    HasEvent,
    MessageReader,
    Progress,
    Retain,
    SessionEvent,
    SessionEvents,
    StoreAnswer,
    StoreUnavailable,
    Summarize,
    decode_reply,
    send,
)
from fairlead.journal import Position
from fairlead.sessions import AbsenceSummary, CopyBatch, EventsToCopyCount, HistoryPage, SessionHistory

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon.store._messages import Query, Reply, Request
    from fairlead.journal import JournalReader
    from fairlead.sessions import HistoryQuery

_START_DELAY = 0.25
"""Seconds before the first start, which would otherwise delay the daemon's first events."""
_RESTART_DELAYS = (0.25, 1.0, 5.0, 30.0, 300.0)
"""Seconds before another start, by the number of processes in a row that ended early."""
_STABLE_AFTER = 60.0
"""A process that has run for more seconds than this did not end early."""
_FINISH_TIMEOUT = 3.0
_ANSWER_TIMEOUT = 10.0
"""Seconds to wait for an answer, more than the process waits until records are stored."""


class StoreProcess:
    """The process that fills the store from the journal, supervised by a thread. Thread-safe.

    The methods that return something from the store wait for the process, so they are for threads.
    """

    def __init__(self, journal: JournalReader, errors: ErrorLog) -> None:
        """Prepare the supervision of a process. `start` starts it."""
        self._journal = journal
        self._errors = errors
        self._thread: Thread | None = None
        self._closing = Event()
        self._started = Event()
        """Set when the first process was started. Requests wait for this."""
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._answers: dict[int, Future[msgspec.Raw]] = {}
        self._last_number = 0
        self._stored_before = 0
        """How many records were new to the store in earlier processes of this daemon."""
        self._progress = Progress(0, 0, Position(0, 0))
        self.position = self._progress.position
        """The position up to which the journal is stored; `Position(0, 0)` until a process has reported it."""
        self._retention = 0.0
        """Seconds for which events are kept; 0 for the default of the process."""
        self.pid = 0
        """The pid of the process; 0 if it is not running."""

    # -- lifecycle -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread that starts the process in a moment, and starts it again whenever it ends."""
        self._thread = Thread(target=self._supervise, name="store", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ask the process to store the latest records and to end, and wait for it. If that takes too long, kill it."""
        self._closing.set()
        with suppress(StoreUnavailable), self._lock:
            self._send(Finish())
        if self._thread is None:
            return
        self._thread.join(_FINISH_TIMEOUT)
        if self._thread.is_alive() and self._process is not None:
            self._process.kill()  # the next daemon's process stores the rest
            self._thread.join(_FINISH_TIMEOUT)

    # -- requests --------------------------------------------------------------------------------------

    def has_event(self, event_id: str) -> bool:
        """Return whether an event is stored; `False` if the store cannot be read.

        Wait until all that is in the journal now is stored, however long that takes. Raise `StoreUnavailable` if the
        process is not running or ends.
        """
        answer = self._ask(lambda number: HasEvent(number, event_id))
        return msgspec.json.decode(answer.result(), type=bool)

    def events(self, session: str, limit: int) -> list[SessionEvent]:
        """Return the last `limit` events of a session, the newest first; none if the store does not answer."""
        try:
            answer = self._ask(lambda number: SessionEvents(number, session, limit))
            return msgspec.json.decode(answer.result(_ANSWER_TIMEOUT), type=list[SessionEvent])
        except (StoreUnavailable, TimeoutError):
            return []

    def find_history(self, query: HistoryQuery) -> HistoryPage:
        """Return a page of the history, empty if the store cannot be read.

        Raise `StoreUnavailable` if the process does not answer in time.
        """
        answer = self._ask(lambda number: FindHistory(number, query))
        return msgspec.json.decode(self._wait(answer), type=HistoryPage)

    def history_of(self, session: str, limit: int, before: str) -> list[SessionHistory]:
        """Return the session whose id is or starts with `session`; two of them if several do, none if none does.

        A single session includes its last `limit` events; for earlier events, pass its `next` as `before`. Raise
        `StoreUnavailable` if the process does not answer in time.
        """
        answer = self._ask(lambda number: FindSession(number, session, limit, before))
        return msgspec.json.decode(self._wait(answer), type=list[SessionHistory])

    def summarize(self, since: float) -> AbsenceSummary:
        """Return a summary of the events since a Unix time, without ended and waiting sessions.

        Raise `StoreUnavailable` if the process does not answer in time.
        """
        return msgspec.json.decode(self._wait(self._ask(lambda number: Summarize(number, since))), type=AbsenceSummary)

    def events_to_copy(self, after: Position, *, blocked_only: bool, limit: int) -> CopyBatch:
        """Return the next events to copy after a position for the history of the team.

        With `blocked_only`, only blocked events are copied. At most `limit` records are read. Raise `StoreUnavailable`
        if the process does not answer in time.
        """
        answer = self._ask(lambda number: CopyEvents(number, after, blocked_only, limit))
        return msgspec.json.decode(self._wait(answer), type=CopyBatch)

    def count_events_to_copy(self, after: Position, *, blocked_only: bool, keep_bytes: int = 0) -> EventsToCopyCount:
        """Return the number of events to copy after a position, up to about `keep_bytes` before the end of the journal.

        Raise `StoreUnavailable` if the process does not answer in time.
        """
        answer = self._ask(lambda number: CountEventsToCopy(number, after, blocked_only, keep_bytes))
        return msgspec.json.decode(self._wait(answer), type=EventsToCopyCount)

    def retain(self, seconds: float) -> None:
        """Set for how many seconds events are kept in the store and the journal, also by later processes."""
        with self._lock:
            if seconds == self._retention:
                return
            self._retention = seconds
            with suppress(StoreUnavailable):  # the next process gets it when it starts
                self._send(Retain(seconds))

    @staticmethod
    def _wait(answer: Future[msgspec.Raw]) -> msgspec.Raw:
        try:
            return answer.result(_ANSWER_TIMEOUT)
        except TimeoutError:
            raise StoreUnavailable("the process of the store does not answer; see: fairlead doctor") from None

    def _ask(self, request: Callable[[int], Query]) -> Future[msgspec.Raw]:
        if self._thread is not None:
            self._started.wait(_ANSWER_TIMEOUT)
        answer: Future[msgspec.Raw] = Future()
        with self._lock:
            self._send(request(self._last_number + 1))
            self._last_number += 1
            self._answers[self._last_number] = answer
        return answer

    def _send(self, request: Request) -> None:
        """Send a request, or raise `StoreUnavailable`. The caller must hold the lock."""
        if self._connection is None:
            raise StoreUnavailable("the process of the store is not running; it is started again in a moment")
        try:
            send(self._connection, request)
        except OSError as error:
            raise StoreUnavailable(f"the process of the store has ended: {error.strerror}") from error

    # -- status ----------------------------------------------------------------------------------------

    @property
    def journal(self) -> JournalReader:
        """The journal from which the store is filled."""
        return self._journal

    def bytes_behind(self) -> int:
        """Return how many bytes of the journal are not stored yet.

        Only sizes are read, so the event loop may call this.
        """
        return self._journal.size_after(self.position)

    def status(self) -> dict[str, Any]:
        """Return the fields of the daemon's status that are about the store.

        `stored` is the number of records that were new to the store, `store_failures` that of failed attempts to write
        in a row, and `store_pid` the pid of the process; 0 if it is not running.
        """
        return {
            "stored": self._stored_before + self._progress.stored,
            "store_failures": self._progress.failures,
            "store_pid": self.pid,
        }

    # -- supervision, in a thread ----------------------------------------------------------------------

    def _supervise(self) -> None:
        failures = 0
        self._closing.wait(_START_DELAY)
        while not self._closing.is_set():
            started_at = monotonic()
            try:
                how = f"it ended with exit code {self._run()}"
            except OSError as error:
                how = f"it cannot be started: {error.strerror}"
            if self._closing.is_set():
                return
            failures = 0 if monotonic() - started_at > _STABLE_AFTER else failures
            if not failures:
                self._errors.report(f"the process of the store is started again: {how}")
            self._closing.wait(_RESTART_DELAYS[min(failures, len(_RESTART_DELAYS) - 1)])
            failures += 1

    def _run(self) -> int:
        """Run one process until it ends, and return its exit code, or the negative number of a signal that ended it."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                command = [sys.executable, "-E", "-P", "-m", "fairlead.daemon.store"]
                self._process = process = subprocess.Popen(  # noqa: S603 - a fixed command
                    command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL
                )
            with self._lock:
                self._connection, self.pid = ours, process.pid
                if self._retention:
                    self._send(Retain(self._retention))
            self._started.set()
            if self._closing.is_set():  # `close` may have found no connection
                process.kill()
            try:
                self._receive_all(ours)
            finally:
                self._disconnect()
        return process.wait()

    def _receive_all(self, connection: socket.socket) -> None:
        reader = MessageReader(connection)
        with suppress(ConnectionResetError):
            while (messages := reader.receive()) is not None:
                for message in messages:
                    self._handle(decode_reply(message))

    def _handle(self, reply: Reply) -> None:
        if isinstance(reply, Progress):
            self._progress, self.position = reply, reply.position
        elif isinstance(reply, ErrorReport):
            self._errors.report(reply.message)
        elif isinstance(reply, StoreAnswer):
            with self._lock:
                answer = self._answers.pop(reply.number, None)
            if answer is not None:
                answer.set_result(reply.value)

    def _disconnect(self) -> None:
        with self._lock:
            self._connection, self.pid = None, 0
            answers, self._answers = self._answers, {}
        self._stored_before += self._progress.stored
        self._progress = Progress(0, self._progress.failures, self.position)
        for answer in answers.values():
            answer.set_exception(StoreUnavailable("the process of the store has ended"))
