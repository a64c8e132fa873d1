"""The mail in the daemon: opens its office, keeps it in step with the sessions, and knows who waits.

What is shown at events is `_postman`'s, what commands ask is `_mail_http`'s.
"""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event as Flag
from time import monotonic, time
from typing import TYPE_CHECKING, TypeVar

from fairlead.daemon._store_writer import OPENING
from fairlead.daemon.mail._waiters import WaiterRegistry
from fairlead.decide import DOCTOR_SESSION
from fairlead.journal import EventRecord
from fairlead.mail import MailError, MailUnreachable, MessageService, TasksHeard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.daemon.events._request import HookRequest
    from fairlead.daemon.sessions._tracker import SessionTracker
    from fairlead.events import Event
    from fairlead.journal import Record
    from fairlead.mail import Agent
    from fairlead.policy import StayMode
    from fairlead.sessions import Session
    from fairlead.store import MailStore

    T = TypeVar("T")

AGE = 30 * 24 * 3600.0
"""Seconds after which messages are forgotten that nobody waits for."""

_THREADS = 4
_SLOW = 20.0
"""Seconds that the first attempt to open the box may take, on a slow disk."""
_PATIENCE = 3.0
"""Seconds to wait for another one after it: a daemon that goes may hold the box for a moment."""
_PAUSES = (1.0, 5.0, 30.0, 300.0)
"""Seconds before the next attempt to open the box, after one and more failures in a row."""
_TICK = 0.25
_SECOND = 1.0
_FLUSH = 30.0
_SWEEP = 3600.0
_MOST_MET = 20_000
_MOST_STAYS = 20_000
_MOST_UNANSWERED = 20_000
_NO_END = frozenset({"clear", "resume", "fork"})
"""How a session ends whose agent goes on."""
_LAST_WORDS = frozenset({"SessionEnd", "SubagentStop"})
"""Events that make nobody known who was not."""


class MailService:
    """The office, and all that has to be done around it."""

    def __init__(self, tracker: SessionTracker, trouble: Callable[[str], None]) -> None:
        self._tracker = tracker
        self._trouble = trouble
        self._store: MailStore | None = None
        self._office: MessageService | None = None
        self._is_open = Flag()
        self._tried = asyncio.Event()
        self._opened = asyncio.Event()
        self._wanted = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._why_not = "it is being opened"
        self.is_hopeless = False
        """It could not be opened, and is tried again now and then."""
        self._threads = ThreadPoolExecutor(_THREADS, "mail")
        self._met: set[tuple[str, str]] = set()
        self._strangers: dict[tuple[str, str], tuple[str, str]] = {}
        """Session and subagent, of whom events told, and who have no agent yet: the subagent's type, the project."""
        self._heard: dict[tuple[str, str], float] = {}
        self._unanswered: deque[str] = deque(maxlen=_MOST_UNANSWERED)
        """Events that were decided without us: what we may have shown at them was never seen."""
        self._stays: dict[int, StayMode] = {}
        self._revision = -1
        self._flushed = self._swept = self._looked = monotonic()
        self.tasks = TasksHeard()
        self.waits = WaiterRegistry()

    # -- life ------------------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Open the office, then keep it in step, for as long as the daemon lives."""
        self.waits.begin()
        self._loop = asyncio.get_running_loop()
        with suppress(TimeoutError):  # what has to be loaded takes the time of whoever waits for an answer just now
            await asyncio.wait_for(self._wanted.wait(), _TICK)
        await self._open()
        failures = 0
        while True:
            await asyncio.sleep(_TICK)
            try:
                await self._keep_in_step()
                failures = 0
            except Exception as error:  # noqa: BLE001 - to go on is worth more than any one step
                if not failures:
                    self._trouble(f"the mail is not in step with the sessions: {error}")
                await asyncio.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])
                failures += 1
                self._revision = -1  # what is missed is looked up again

    async def _keep_in_step(self) -> None:
        sessions = self._changed()
        is_due = monotonic() - self._looked > _SECOND
        if sessions or is_due or self._strangers or self._unanswered:
            self._looked = monotonic() if is_due else self._looked
            await self.run(self._tend, sessions)

    def leave(self) -> None:
        """Send away whoever waits."""
        self.waits.leave()

    def close(self) -> None:
        """Keep what is only in memory, and let go of the box."""
        self._threads.shutdown(cancel_futures=True)
        if self._office is not None and self._store is not None:
            try:
                self._catch_up(self._office)
                self._office.flush()
            except MailError as error:
                self._trouble(f"when agents were last seen is not kept: {error}")
            self._store.close()

    async def _open(self) -> None:
        failures = 0
        while self._office is None:
            try:
                await self.run(self._open_store)
            except Exception as error:  # noqa: BLE001 - events are answered without mail
                self._why_not, self.is_hopeless = str(error), True
                self._tried.set()
                if not failures:
                    self._trouble(f"there is no mail for now: {error}")
                await asyncio.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])
                failures += 1
        self.is_hopeless = False
        self._tried.set()
        self._opened.set()

    def _open_store(self) -> None:
        with OPENING:
            from fairlead.store import MailStore

            self._store = MailStore.open()
        for warning in self._store.warnings:
            self._trouble(warning)
        office = MessageService(self._store)
        office.on_mail(lambda agent: self.waits.ring(agent.id))
        self._office = office
        self._is_open.set()

    # -- for others ------------------------------------------------------------------------------------

    async def office(self) -> MessageService:
        """Give the office; wait a little while it is being opened. Raises `MailUnreachable` if it cannot be."""
        office = await self.opened()
        if office is None:
            raise MailUnreachable(f"the mail cannot be reached: {self._why_not}")
        if self._strangers or self._heard:
            await self.run(self._catch_up, office)
        return office

    async def opened(self) -> MessageService | None:
        """Give the office, once it is open; `None` if that takes too long."""
        if self._office is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._tried.wait(), _SLOW)
                await asyncio.wait_for(self._opened.wait(), _PATIENCE)
        return self._office

    def office_within(self, seconds: float) -> MessageService | None:
        """Give the office, for a thread that can wait so long for it."""
        if self._office is None and seconds and not self.is_hopeless:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._wanted.set)
            self._is_open.wait(seconds)
        return self._office

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """Do something that may wait for the disk."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    async def until_mail(self, agent: Agent, seconds: float) -> bool:
        """Wait until there is mail for an agent, and tell whether there is."""
        office, until = await self.office(), monotonic() + seconds
        with self.waits.waiting(agent.id) as waiter:
            while not office.waiting(agent):
                if await waiter.wait(until - monotonic()) != "mail":
                    return office.waiting(agent) > 0
        return True

    def is_waiting(self, agent: Agent) -> bool:
        """Tell whether somebody waits for mail of an agent right now."""
        return self.waits.is_waiting(agent.id)

    def stay_of(self, agent: Agent) -> StayMode | None:
        """Tell how an agent was to stay when it last stopped; `None` if it has not yet."""
        return self._stays.get(agent.id)

    def stays(self, agent: Agent, stay: StayMode) -> None:
        """Note how an agent is to stay."""
        if len(self._stays) >= _MOST_STAYS:
            self._stays.clear()
        self._stays[agent.id] = stay

    # -- what is heard ---------------------------------------------------------------------------------

    def note(self, record: Record, event: Event | None) -> None:
        """Hear of an event. On the road of every one, in any thread: what is to be done about it is done later."""
        if not isinstance(record, EventRecord) or not record.session or record.session == DOCTOR_SESSION:
            return
        key = record.session, record.agent
        self._heard[key] = record.at
        if key not in self._met and record.event not in _LAST_WORDS:
            kind = event.agent_type if event is not None else None
            self._strangers[key] = (kind or "", record.caller.project or record.cwd)

    def undo_delivery(self, event_id: str) -> None:
        """Hear that an event was decided without a daemon, whatever one has made of it as well."""
        self._unanswered.append(event_id)

    @property
    def owes(self) -> bool:
        """Whether something is to be queued again, and first: what comes later must not be shown before it."""
        return bool(self._unanswered)

    def retry_undo(self, office: MessageService) -> None:
        """Queue again what was never seen."""
        while self._unanswered:
            try:
                event_id = self._unanswered.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                office.unshow(event_id)
            except MailError:
                self._unanswered.appendleft(event_id)
                raise

    def agent_of(self, office: MessageService, event: Event, ask: HookRequest) -> Agent:
        """Give the agent whose event it is."""
        place = event.session_id, event.agent_id or ""
        is_known = office.known(*place) is not None and event.event_name != "SessionStart"
        project = "" if is_known else ask.caller.project or event.cwd or ask.cwd  # its folder may change at any call
        return self._meet(office, *place, event.agent_type or "", project)

    def _meet(self, office: MessageService, session: str, agent_id: str, kind: str, project: str) -> Agent:
        """Give the agent of a session or a subagent; one that had ended lives again, since it is heard of."""
        agent = office.agent_for(session, agent_id=agent_id, agent_type=kind, project=project)
        if len(self._met) >= _MOST_MET:
            self._met.clear()
        self._met.add((session, agent_id))
        return office.revived(agent) if agent.ended else agent

    # -- keeping in step, in a thread ------------------------------------------------------------------

    def _changed(self) -> list[Session]:
        """Give the sessions of which something has changed."""
        tracker = self._tracker
        if not tracker.is_checked or tracker.revision == self._revision:
            return []
        changes = tracker.changes_since(self._revision)
        self._revision = tracker.revision
        return tracker.sessions() if changes is None else [change.session for change in changes if not change.gone]

    def _tend(self, sessions: list[Session]) -> None:
        office = self._office
        if office is None:
            return
        self._catch_up(office)
        self._follow(office, sessions)
        office.due(time())
        if monotonic() - self._flushed > _FLUSH:
            self._flushed = monotonic()
            office.flush()
        if monotonic() - self._swept > _SWEEP:
            self._swept = monotonic()
            self._threads.submit(self._sweep, office)

    def _sweep(self, office: MessageService) -> None:
        try:
            office.retain(time() - AGE)
        except MailError as error:
            self._trouble(f"old messages are kept for now: {error}")

    def _catch_up(self, office: MessageService) -> None:
        """Make agents of those who are new, and note who was heard of."""
        self.retry_undo(office)
        for session, agent_id in list(self._strangers):
            kind, project = self._strangers.pop((session, agent_id), ("", ""))
            if not (agent_id and not kind):  # a compaction looks like a subagent without a type
                self._meet(office, session, agent_id, kind, "" if office.known(session, agent_id) else project)
        for session, agent_id in list(self._heard):
            at = self._heard.pop((session, agent_id), 0.0)
            agent = office.known(session, agent_id)
            if agent is not None:
                office.seen(agent, at)

    def _follow(self, office: MessageService, sessions: Iterable[Session]) -> None:
        """End the agents whose sessions have ended, and let those live again that are back."""
        for session in sessions:
            root = session.id.removesuffix(f"/{session.agent_id}") if session.is_child else session.id
            agent = office.known(root, session.agent_id)
            if session.ended is not None and not session.is_child:
                self.waits.release(root, "stop", "wake")
                self.tasks.forget(root)
            if agent is None:
                continue
            if session.ended is None and agent.ended:
                office.revived(agent)
            elif session.ended is not None and not agent.ended and session.end_reason not in _NO_END:
                office.ended(agent, session.end_reason or "it has ended")
