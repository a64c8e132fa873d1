"""Mail in the daemon: opens the message service, updates it when sessions change, and has the waits for mail.

`events.extensions._mail` shows mail at events, and `_operations` implements the commands.
"""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event as Flag
from time import monotonic, time
from typing import TYPE_CHECKING, TypeVar

from fairlead.daemon.mail._caller_identity import ShellCalls
from fairlead.daemon.mail._event_agents import EventAgents, RecordedAgent
from fairlead.daemon.mail._receipts import Receipts, reader_pid
from fairlead.daemon.mail._waiters import WaiterRegistry
from fairlead.durations import DAY, HOUR
from fairlead.mail import USER, MailError, MailUnreachable, MessageService, TaskLists

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon.events._messages import HookRequest
    from fairlead.daemon.mail._waiters import WaitToken
    from fairlead.daemon.sessions._tracker import SessionTracker
    from fairlead.events import Event
    from fairlead.journal import EventRecord
    from fairlead.mail import Agent, Message
    from fairlead.mail.render import Left
    from fairlead.policy import StayMode
    from fairlead.sessions import Session
    from fairlead.store import MailStore

    T = TypeVar("T")

MAX_AGE = 30 * DAY
"""Seconds after which messages are deleted if they are no longer queued."""

_THREADS = 4
_FIRST_OPEN_TIMEOUT = 20.0
"""Seconds to wait for the first attempt to open the store, which takes long on a slow disk."""
_OPEN_TIMEOUT = 3.0
"""Seconds to wait for the next attempts, because a daemon that shuts down may hold the store for a moment."""
_RETRY_DELAYS = (1.0, 5.0, 30.0, 300.0)
"""Seconds before the next attempt after each failure in a row."""
_TICK = 0.25
_INDEXED_AT_ONCE = 100
_INDEX_PAUSE = 0.02
_DEADLINE_INTERVAL = 1.0
_FLUSH_INTERVAL = 30.0
_PRUNE_INTERVAL = HOUR
_MAX_STAYS = 20_000
_MAX_UNDONE = 20_000
_POLL = "poll"
"""The event name of polls, which return mail page by page."""
_LAST_EVENTS = frozenset({"SessionEnd", "SubagentStop"})
"""Events for which no new agent is created."""


class MailService:
    """Opens and maintains the message service of this daemon, and shows mail with receipts.

    Methods that take a `MessageService` may wait for the disk, so call them in threads.
    """

    def __init__(self, tracker: SessionTracker, errors: ErrorLog) -> None:
        self._tracker = tracker
        self._errors = errors
        self._store: MailStore | None = None
        self._service: MessageService | None = None
        self._is_open = Flag()
        self._tried = asyncio.Event()
        self._opened = asyncio.Event()
        self._wanted = asyncio.Event()
        self.loop: asyncio.AbstractEventLoop | None = None
        self._why_unavailable = "it is being opened"
        self.is_unavailable = False
        """Whether the last attempt to open the store has failed. There will be another attempt."""
        self._threads = ThreadPoolExecutor(_THREADS, "mail")
        self.agents = EventAgents(tracker)
        self.shell_calls = ShellCalls()
        self._new: dict[tuple[str, str], RecordedAgent] = {}
        """Sessions and subagents that may have no agent yet, by session id and subagent id."""
        self._active: dict[tuple[str, str], float] = {}
        """When sessions and subagents were last active, by session id and subagent id."""
        self._undone: deque[str] = deque(maxlen=_MAX_UNDONE)
        """Ids of showings whose reply was not delivered, so that their mail must be queued again."""
        self._stays: dict[int, StayMode] = {}
        """The value of `mail.stay` when an agent last stopped, by the agent's id."""
        self._revision = -1
        """The revision of the tracker up to which agents were updated."""
        self._last_flush = self._last_prune = self._last_deadlines = monotonic()
        self.user_mail_count = 0
        """How often mail was queued for the user since the start."""
        self.tasks = TaskLists()
        self.waiters = WaiterRegistry()
        self.receipts = Receipts()

    # -- lifecycle -------------------------------------------------------------------------------------

    async def run_forever(self) -> None:
        """Open the message service, and update it when sessions change, until the task is cancelled."""
        self.waiters.open()
        self.loop = asyncio.get_running_loop()
        with suppress(TimeoutError):  # loading the store takes time from events that arrive right after the start
            await asyncio.wait_for(self._wanted.wait(), _TICK)
        await self._open()
        await asyncio.gather(self._index(), self._synchronize_forever())

    async def _index(self) -> None:
        """Index the messages that an earlier version stored for the search, a few at a time."""
        try:
            has_more = True
            while has_more:
                has_more = await self.run(self._index_some)
                await asyncio.sleep(_INDEX_PAUSE)
        except Exception as error:  # without an index the search reads every message
            self._errors.report(f"old messages are not indexed, and a search takes longer: {error}")

    def _index_some(self) -> bool:
        return self._service is not None and self._service.index_messages(_INDEXED_AT_ONCE)

    async def _synchronize_forever(self) -> None:
        failures = 0
        while True:
            await asyncio.sleep(_TICK)
            if self._store is not None and self._store.is_damaged:
                await self._reopen(self._store)
            try:
                await self._synchronize()
                failures = 0
            except Exception as error:
                if not failures:
                    self._errors.report(f"the mail is not up to date with the sessions: {error}")
                await asyncio.sleep(_RETRY_DELAYS[min(failures, len(_RETRY_DELAYS) - 1)])
                failures += 1
                self._revision = -1  # check all sessions again

    async def _synchronize(self) -> None:
        sessions = self._changed_sessions()
        is_due = monotonic() - self._last_deadlines > _DEADLINE_INTERVAL
        if sessions or is_due or self._new or self._undone:
            self._last_deadlines = monotonic() if is_due else self._last_deadlines
            await self.run(self._update, sessions)

    def close(self) -> None:
        """Store changes that are only in memory, and close the store. Waits for running threads."""
        self._threads.shutdown(cancel_futures=True)
        if self._service is not None and self._store is not None:
            try:
                self._catch_up(self._service)
                self._service.flush()
            except MailError as error:
                self._errors.report(f"when agents were last active is not stored: {error}")
            self._store.close()

    async def _reopen(self, store: MailStore) -> None:
        """Close a damaged store and open it again, which salvages all readable data."""
        self._service, self._store = None, None
        for flag in (self._is_open, self._tried, self._opened):
            flag.clear()
        self._why_unavailable, self._revision = "it is damaged, and is being salvaged", -1
        await self.run(store.close)
        await self._open()

    async def _open(self) -> None:
        failures = 0
        while self._service is None:
            try:
                await self.run(self._open_store)
            except Exception as error:  # events get replies without mail
                self._why_unavailable, self.is_unavailable = str(error), True
                self._tried.set()
                if not failures:
                    self._errors.report(f"mail is unavailable for now: {error}")
                await asyncio.sleep(_RETRY_DELAYS[min(failures, len(_RETRY_DELAYS) - 1)])
                failures += 1
        self.is_unavailable = False
        self._tried.set()
        self._opened.set()

    def _open_store(self) -> None:
        from fairlead.store import MailStore

        self._store = MailStore.open()
        self.receipts.make_folder()
        for warning in self._store.warnings:
            self._errors.report(warning)
        service = MessageService(self._store)
        self._requeue_abandoned(service)
        service.add_mail_listener(self._on_mail)
        self._service = service
        self._is_open.set()

    def _on_mail(self, agent: Agent) -> None:
        self.waiters.notify(agent.id)
        self.user_mail_count += agent.id == USER.id

    # -- access ----------------------------------------------------------------------------------------

    async def service(self) -> MessageService:
        """Return the message service. Waits for some seconds if it is being opened, then raises `MailUnreachable`."""
        service = await self.opened()
        if service is None:
            raise MailUnreachable(f"the mail cannot be reached: {self._why_unavailable}")
        if self._new or self._active:
            await self.run(self._catch_up, service)
        return service

    def service_now(self) -> MessageService | None:
        """Return the message service; `None` if it is not open. Call it in a thread: it may wait for the disk."""
        service = self._service
        if service is not None and (self._new or self._active):
            self._catch_up(service)
        return service

    async def opened(self) -> MessageService | None:
        """Return the message service. Waits for some seconds if it is being opened; `None` if that takes longer."""
        if self._service is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._tried.wait(), _FIRST_OPEN_TIMEOUT)
                await asyncio.wait_for(self._opened.wait(), _OPEN_TIMEOUT)
        return self._service

    def service_within(self, seconds: float) -> MessageService | None:
        """Return the message service; `None` if it is not open after `seconds`.

        It does not wait if the last attempt to open it has failed. Call it in a thread unless `seconds` is 0.
        """
        if self._service is None and seconds and not self.is_unavailable:
            if self.loop is not None:
                self.loop.call_soon_threadsafe(self._wanted.set)
            self._is_open.wait(seconds)
        return self._service

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """Call a function that may wait for the disk in a thread of the mail, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    async def wait_for_mail(self, agent: Agent, seconds: float) -> bool:
        """Wait until mail is queued for an agent, for at most the given seconds. Return whether there is mail."""
        service, until = await self.service(), monotonic() + seconds
        with self.waiters.waiting(agent.id) as waiter:
            while not service.queued_count(agent):
                if await waiter.wait(until - monotonic()) != "mail":
                    return service.queued_count(agent) > 0
        return True

    def must_withhold(self, wait: WaitToken) -> bool:
        """Return whether mail must not end this wait yet, because it is a wake and its session is in a turn.

        Mail during a turn is shown at the turn's events.
        """
        return wait.mode == "wake" and self._tracker.is_in_turn(wait.event.session_id)

    def stay_of(self, agent: Agent) -> StayMode | None:
        """Return the value of `mail.stay` when an agent last stopped; `None` if that is not known."""
        return self._stays.get(agent.id)

    def set_stay(self, agent: Agent, stay: StayMode) -> None:
        """Record the value of `mail.stay` when an agent stops."""
        if len(self._stays) >= _MAX_STAYS:
            self._stays.clear()
        self._stays[agent.id] = stay

    # -- events ----------------------------------------------------------------------------------------

    def note_activity(self, record: EventRecord, event: Event | None) -> None:
        """Record in memory that an agent is active, and that it may be new. Called for every event, in any thread."""
        if not record.session:
            return
        key = record.session, record.agent
        self._active[key] = record.at
        if key not in self.agents.known and record.event not in _LAST_EVENTS:
            agent_type = event.agent_type if event is not None else None
            self._new[key] = RecordedAgent(agent_type or "", record.caller.project or record.cwd, monotonic())

    def show(
        self,
        service: MessageService,
        agent: Agent,
        event: Event,
        request: HookRequest,
        *,
        urgent_only: bool = False,
        showing: str = "",
    ) -> tuple[list[Message], Left]:
        """Mark queued mail of an agent as shown at an event, for the launcher of the request.

        Returns and raises the same as `take`. `showing` is the id of the showing, by default that of the event. If mail
        is shown several times at one event, each showing needs a different id.
        """
        pid = reader_pid(request.id) if request.receipts else None
        return self.take(service, agent, event.event_name, showing or request.id, pid, urgent_only=urgent_only)

    def take(
        self,
        service: MessageService,
        agent: Agent,
        event_name: str,
        showing: str,
        pid: int | None,
        *,
        urgent_only: bool = False,
    ) -> tuple[list[Message], Left]:
        """Mark queued mail of an agent as shown, and return the messages and how many more are queued.

        If more than the next event could show, they are marked as shown, too, and a `QueueSummary` is returned instead
        of their number, except at polls. `showing` is the id of this showing, `pid` that of its reader: 0 if not known,
        `None` if it gives no receipt. Raises `MailUnreachable` if the receipt's file cannot be created.
        """
        if not service.queued_count(agent, urgent_only=urgent_only):
            return [], 0
        if pid is not None:
            self.receipts.open(showing, pid)
        messages, left = service.show_bounded(
            agent, event_name, showing, urgent_only=urgent_only, has_next_page=event_name == _POLL
        )
        if not messages and pid is not None:
            self.receipts.close(showing)
        return messages, left

    def undo_delivery(self, event_id: str) -> None:
        """Request that the mail of a showing is queued again. `retry_undo` does it later. Never blocks."""
        self._undone.append(event_id)

    @property
    def has_pending_undo(self) -> bool:
        """Whether `retry_undo` must be called before mail is shown, so that no mail is skipped."""
        return bool(self._undone)

    def retry_undo(self, service: MessageService) -> None:
        """Queue the mail again for which `undo_delivery` was called. After an error, the next call continues."""
        while self._undone:
            try:
                event_id = self._undone.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                self.requeue_unprinted(service, event_id)
            except MailError:
                self._undone.appendleft(event_id)
                raise

    def requeue_unprinted(self, service: MessageService, showing: str) -> int:
        """Queue the mail of a showing again unless its receipt says that it was printed. Return how many deliveries.

        Closes the receipt. Call it after the reader has ended.
        """
        state = self.receipts.state(showing)
        requeued = 0 if state == "printed" else service.requeue(showing, may_repeat=state == "printing")
        self.receipts.close(showing)
        return requeued

    def requeue_all(self, service: MessageService, event_id: str) -> int:
        """Queue all mail again that was shown at an event, because its reader reports that it printed nothing.

        Closes the receipts, and returns the number of deliveries.
        """
        requeued = 0
        for showing in {event_id, *self.receipts.of_event(event_id)}:
            requeued += service.requeue(showing)
            self.receipts.close(showing)
        return requeued

    def _requeue_abandoned(self, service: MessageService) -> None:
        """Queue the mail of readers that have ended without a receipt again."""
        for showing in self.receipts.abandoned():
            self.requeue_unprinted(service, showing)

    # -- synchronization, in a thread ------------------------------------------------------------------

    def _changed_sessions(self) -> list[Session]:
        tracker = self._tracker
        if not tracker.is_checked or tracker.revision == self._revision:
            return []
        changes = tracker.changes_since(self._revision)
        self._revision = tracker.revision
        return tracker.sessions() if changes is None else [change.session for change in changes if not change.gone]

    def _update(self, sessions: list[Session]) -> None:
        service = self._service
        if service is None:
            return
        self._catch_up(service)
        self._requeue_abandoned(service)
        self._sync_sessions(service, sessions)
        service.process_deadlines(time())
        if monotonic() - self._last_flush > _FLUSH_INTERVAL:
            self._last_flush = monotonic()
            service.flush()
        if monotonic() - self._last_prune > _PRUNE_INTERVAL:
            self._last_prune = monotonic()
            self._threads.submit(self._prune, service)

    def _prune(self, service: MessageService) -> None:
        try:
            service.prune(time() - MAX_AGE)
        except MailError as error:
            self._errors.report(f"old messages could not be deleted: {error}")

    def _catch_up(self, service: MessageService) -> None:
        """Queue the mail of undelivered replies again, create the agents of new sessions, and update their activity."""
        self.retry_undo(service)
        for (session, agent_id), recorded in list(self._new.items()):
            is_agent = recorded.agent_type or not agent_id  # a compaction looks like a subagent without a type
            if not is_agent or self.agents.ensure_recorded(service, session, agent_id, recorded):
                self._new.pop((session, agent_id), None)
        for session, agent_id in list(self._active):
            at = self._active.pop((session, agent_id), 0.0)
            agent = service.find_by_session(session, agent_id)
            if agent is not None:
                service.mark_seen(agent, at)

    def _sync_sessions(self, service: MessageService, sessions: Sequence[Session]) -> None:
        for session in sessions:
            if session.ended is not None and not session.is_child:
                self.waiters.release(session.id, "stop", "wake")
                self.tasks.forget(session.id)
        self.agents.sync_sessions(service, sessions)
