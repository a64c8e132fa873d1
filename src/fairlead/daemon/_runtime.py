"""The daemon's inside: decides, keeps the journal, takes the spool in, feeds the store. Knows no HTTP."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from fairlead.daemon._metrics import Metrics, resident_memory
from fairlead.daemon._store_writer import BATCH, StoreWriter
from fairlead.daemon.events._handler import EventHandler
from fairlead.daemon.events._mail import MailDelivery
from fairlead.daemon.events._status_line import answer_status_line
from fairlead.daemon.mail._idle_policy import IdlePolicy
from fairlead.daemon.mail._service import MailService
from fairlead.daemon.sessions._attention import AttentionNotifier
from fairlead.daemon.sessions._token_usage import SubagentTokenUsage
from fairlead.daemon.sessions._tracker import SessionTracker
from fairlead.decide import prepare_decoders
from fairlead.journal import (
    CommandsRecord,
    DaemonRecord,
    EventRecord,
    Journal,
    count_spooled,
    journal_folder,
    read_spool,
    record_key,
    remove_spooled,
    spool_folder,
)
from fairlead.sessions import STATUS_LINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.daemon.events._handler import HookReply
    from fairlead.daemon.events._request import HookRequest
    from fairlead.events import Event
    from fairlead.journal import Record
    from fairlead.store import StoredEvent

_DECIDERS = 4
_REMEMBERED = 20_000
"""Ids of the last events. A launcher gives up after two seconds, so what comes twice comes soon."""

_QUIET = 10.0
"""Seconds between two lines in the daemon's own log about what cannot stand in the journal."""


class Daemon:
    """All that the daemon is made of."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.metrics = Metrics()
        self.token = ""
        """Of the loopback socket; empty without one."""
        self._journal = Journal(journal_folder())
        self._seen = _RecentIds()
        self._lock = Lock()
        self._deciders = ThreadPoolExecutor(_DECIDERS, "decider")
        self._feed = StoreWriter(self._journal, self.trouble)
        self.tracker = SessionTracker(self._journal, self.trouble)
        self.tokens = SubagentTokenUsage(self.tracker)
        self.teller = AttentionNotifier(self.tracker, self.trouble)
        self.mail = MailService(self.tracker, self.trouble)
        self.stays = IdlePolicy(self.mail, self._keep, self.trouble)
        self._postman = MailDelivery(self.mail, self.stays, self.trouble)
        self._desk = EventHandler(self._keep, self._postman)
        self._where: list[str] = []
        self._leaving = ""
        self._leave: Callable[[], None] | None = None
        self._last = monotonic()
        self._under_way = 0
        self._said = -_QUIET

    # -- startup and shutdown --------------------------------------------------------------------------

    def open(self) -> None:
        """Mend what a killed daemon left, and take in what came while there was none."""
        prepare_decoders()
        torn = self._journal.recover()
        if torn is not None:
            self.trouble(f"{torn.file}: cut off {torn.size} bytes of a line that a killed daemon left")
        self.tracker.open()
        self.teller.open()
        self._seen.begin(self._journal.recent_keys(_REMEMBERED))  # always: what its predecessor took may yet be spooled
        if self.is_spooled():
            self.take_spool()
            self.tracker.drain()

    def started(self, where: list[str]) -> None:
        """Write down that it answers from now on."""
        self._where = where
        self._turn(f"started: {' and '.join(where)}")

    def close(self) -> None:
        """Write down that it has gone. Whatever has not reached the store by now stands in the journal."""
        self._deciders.shutdown()
        self.mail.close()
        self._feed.finish()
        self.tracker.save()
        self._turn(f"stopped: {self._leaving or 'ended'}")
        self._journal.close()

    def leave(self, why: str) -> None:
        """Stop answering, finish what is under way, and go."""
        if not self._leaving:
            self._leaving = why
            self.tracker.close()
            self.mail.leave()
            if self._leave is not None:
                self._leave()

    def on_leave(self, call: Callable[[], None]) -> None:
        """Call when it is time to go; at once if it is."""
        self._leave = call
        if self._leaving:
            call()

    # -- events ----------------------------------------------------------------------------------------

    def decide_quickly(self, ask: HookRequest, payload: bytes) -> HookReply | None:
        """Decide an event at once if that is known to be quick. A status line always is, and is no event."""
        is_event = ask.event != STATUS_LINE
        reply = self._desk.answer_quickly(ask, payload) if is_event else answer_status_line(self.tracker, ask, payload)
        if reply is not None:
            self.tracker.drain_soon()
            self._last = monotonic()
        return reply

    async def decide(self, ask: HookRequest, payload: bytes) -> HookReply:
        """Decide an event in a thread, for the loop has no time."""
        self._under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._deciders, self._desk.answer, ask, payload)
        finally:
            self.tracker.drain_soon()
            self._under_way -= 1
            self._last = monotonic()

    async def decide_here(self, ask: HookRequest, payload: bytes) -> dict[str, Any]:
        """Decide an event for a client that asks by HTTP itself, and give its JSON.

        There is no caller's process, so no command can be run: a gate that has some stays shut.
        """
        self._under_way += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._deciders, self._desk.answer_in_json, ask, payload)
        finally:
            self.tracker.drain_soon()
            self._under_way -= 1
            self._last = monotonic()

    def _keep(self, record: Record, event: Event | None = None) -> bool:
        """Write a record down, unless it is there already: an event comes once, whatever road it took."""
        name = record_key(record)
        with self._lock:
            is_double = name in self._seen
            if not is_double:
                self._journal.append(record)
                self._seen.add((name,) if name else ())
        if isinstance(record, EventRecord) and (is_double or record.route == "cold"):
            self.mail.undo_delivery(record.id)
        if is_double:
            self.metrics.doubles += 1
            return False
        if isinstance(record, EventRecord):
            self.metrics.count(record)
            self.tracker.note(record, event)
            self.mail.note(record, event)
        elif isinstance(record, CommandsRecord):
            self._postman.done(record)
        return True

    def is_spooled(self) -> bool:
        """Tell whether anything lies in the spool."""
        return count_spooled(spool_folder()) > 0

    def take_spool(self) -> None:
        """Take in the events that met no daemon, in their order. Raises nothing: what cannot be taken stays."""
        try:
            for name, record in read_spool(spool_folder()):
                if not self._is_stored(record) and self._keep(record):
                    self.metrics.spooled += 1
                remove_spooled(spool_folder(), name)
        except Exception as error:  # noqa: BLE001 - the daemon goes on; the events lie where they are
            self.trouble(f"the spool cannot be taken in: {error}")

    def _is_stored(self, record: Record) -> bool:
        """Tell whether an event was taken so long ago that its id is remembered no more. Seldom asks the store."""
        return isinstance(record, EventRecord) and self._seen.has_forgotten(record.id) and self._feed.knows(record.id)

    # -- the store -------------------------------------------------------------------------------------

    def feed(self, most: int = BATCH) -> bool:
        """Bring a batch into the store; tell whether there is more."""
        return self._feed.batch(most)

    def behind(self) -> int:
        """Tell how many bytes of the journal are not in the store yet."""
        return self._feed.behind()

    def events_of(self, session: str, limit: int) -> list[StoredEvent]:
        """Give the last events of a session, the newest first, as far as the store has them."""
        self._feed.batch()
        return self._feed.events(session, limit)

    # -- what it tells of itself -----------------------------------------------------------------------

    def idle_for(self) -> float:
        """Tell for how many seconds nobody has asked for anything."""
        is_busy = self._under_way or self.tracker.streams or self.teller.is_pending or self.mail.waits.is_needed
        return 0.0 if is_busy else monotonic() - self._last

    def trouble(self, what: str) -> None:
        """Write down what went wrong, for whoever reads the journal."""
        self.metrics.troubles += 1
        self._turn(what)

    def _turn(self, what: str) -> None:
        turn = DaemonRecord(at=time(), what=what, pid=os.getpid(), version=self.version)
        try:
            self._journal.append(turn)
        except Exception as error:  # noqa: BLE001 - a full disk: there is its log still, which must not grow either
            if monotonic() - self._said > _QUIET:
                self._said = monotonic()
                with suppress(OSError):
                    print(f"fairlead: {what} ({error})", flush=True)  # noqa: T201 - the daemon's log

    def status(self) -> dict[str, Any]:
        """Tell how it is, for people and programs."""
        return {
            "pid": os.getpid(),
            "version": self.version,
            "listens": self._where,
            "uptime": round(monotonic() - self.metrics.begun, 3),
            "events": self.metrics.total,
            "under_way": self._under_way,
            "idle": round(self.idle_for(), 3),
            "leaving": self._leaving,
            "memory": resident_memory(),
            "loop_lag": round(self.metrics.lag, 6),
            "loop_blocked": self.metrics.blocked,
            "spool": count_spooled(spool_folder()),
            "waiting": self.mail.waits.count,
            "troubles": self.metrics.troubles,
            "attention": self.teller.status(),
            **self._feed.status(),
        }

    def metrics_text(self) -> str:
        """Tell the same for Prometheus."""
        more = {"spool_pending": count_spooled(spool_folder()), "store_behind_bytes": self.behind()}
        return self.metrics.text(version=self.version, more=more)


class _RecentIds:
    """The names of the last records."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._order: deque[str] = deque()
        self._forgotten = ""
        """The newest that was forgotten. A launcher's id begins with the time, so that older ones are less."""

    def begin(self, names: list[str]) -> None:
        """Remember what the journal ends with; what may stand before it is forgotten."""
        self.add(names)
        if len(names) >= _REMEMBERED:
            self._forgotten = names[0]

    def has_forgotten(self, name: str) -> bool:
        """Tell whether it may have been here without being remembered."""
        return name <= self._forgotten and name not in self._names

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._names:
                self._names.add(name)
                self._order.append(name)
        while len(self._order) > _REMEMBERED:
            oldest = self._order.popleft()
            self._names.discard(oldest)
            self._forgotten = max(self._forgotten, oldest)
