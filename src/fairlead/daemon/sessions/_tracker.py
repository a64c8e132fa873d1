"""Keeps the registry of sessions up to date from events, the client's own files and the process table.

The registry is used in the event loop only. Threads that handle events put them into a queue. What is read from the
disk is collected in a thread, and applied in the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from threading import get_ident
from time import time
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import Usage, client_or_default
from fairlead.daemon.events._extension import EventExtension
from fairlead.daemon.sessions._facts import reporting_pid
from fairlead.daemon.sessions._saved_state import SavedState, read_saved_state, write_saved_state
from fairlead.errors import FairleadError
from fairlead.journal import DOCTOR_SESSION, CostRecord, EventRecord, Position
from fairlead.sessions import (
    CostLedger,
    Registry,
    SavedRegistryError,
    apply_record,
    encode_registry,
    public_session,
    restore_registry,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon.sessions._facts import Facts
    from fairlead.events import Event
    from fairlead.journal import Journal
    from fairlead.process import Process
    from fairlead.sessions import Session, SessionChange

_MAX_REPLAYED = 20_000
"""Records that are applied at the start if no saved state says where to begin."""
_REPLAYED_AT_ONCE = 64 * 1024
"""If the journal has at most this many new bytes, they are applied before the first event is answered, else later."""
_CHUNK_SIZE = 40
"""The number of records that are applied before the event loop can do something else."""
_APPLY_DELAY = 0.01
"""Seconds after an event until the queue is applied. So this happens after the reply, for several events at once."""
_MAX_WAIT = 10.0
"""The maximum number of seconds that a query waits for the sessions of the last daemon."""
_REPLACED = frozenset({"clear", "resume"})
"""The `end_reason`s of a session that another one has replaced in the same process."""
_MAX_THREAD_WAIT = 2.0
"""The maximum number of seconds that a thread waits for the event loop."""
_KEEPALIVE = 15.0
"""Seconds without a change after which `follow` yields an empty list."""


class SessionTracker(EventExtension):
    """The sessions of this host, and their costs.

    For the event loop, except where a method's docstring allows threads.
    """

    def __init__(self, journal: Journal, errors: ErrorLog) -> None:
        self._journal = journal
        self._errors = errors
        self.costs = CostLedger()
        self._unmeasured: list[tuple[CostRecord, tuple[str, ...]]] = []
        """Cost reports that wait for the end of the replay, each with the previous ids of its session."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._queue: deque[tuple[EventRecord, Event | None]] = deque()
        self._registry = Registry(_first_revision())
        self._replay_from: Position | None = None
        self._replay_to: Position | None = None
        """The end of the journal when the daemon started; `None` once all records before it are applied."""
        self.all_replayed = asyncio.Event()
        self._changed = asyncio.Event()
        self._is_closing = False
        self._is_scheduled = False
        self.streams = 0
        """The number of open streams of changes (`follow`)."""
        self.is_checked = False
        """Whether the sessions were compared with the client's files and the processes. Before, some may have ended."""

    # -- lifecycle -------------------------------------------------------------------------------------

    def open(self) -> None:
        """Restore the state of the last daemon, and apply the later records of the journal if they are few.

        If they are many, `replay` applies them.
        """
        position: Position | None = None
        try:
            saved = read_saved_state()
            self._registry, position = restore_registry(bytes(saved.registry), _first_revision()), saved.position
            if DOCTOR_SESSION in self._registry.by_id:  # an earlier version saved it
                self._registry.drop(DOCTOR_SESSION)
            self.costs = CostLedger(saved.costs)
        except FileNotFoundError:
            pass
        except (OSError, ValueError, SavedRegistryError) as error:
            self._errors.report(f"the sessions are rebuilt from the journal: {error}")
        self._replay_from = position
        self._replay_to = self._journal.end()
        if self._journal.size_after(position or Position(0, 0)) <= _REPLAYED_AT_ONCE:
            for records in self._unseen():
                self._apply(records)
            self._finish_replay()

    async def replay(self) -> None:
        """Apply the records since the saved state that `open` has left, a few at a time, while events are answered."""
        chunks, loop = self._unseen(), asyncio.get_running_loop()
        while self._replay_to is not None:
            records = await loop.run_in_executor(None, next, chunks, None)
            if records is None:
                self._finish_replay()
                self._notify()
                return
            self._apply(records)

    async def wait_until_replayed(self) -> None:
        """Wait until all sessions of the last daemon are loaded, but not for ever."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.all_replayed.wait(), _MAX_WAIT)

    def _unseen(self) -> Iterator[list[EventRecord | CostRecord]]:
        """Yield lists of the records between the saved state and the start of this daemon.

        The last list may be empty.
        """
        after = self._replay_from or self._journal.start_of_tail(_MAX_REPLAYED)
        records: list[EventRecord | CostRecord] = []
        for position, record in self._journal.read(after):
            if self._replay_to is None or position > self._replay_to:
                break
            if isinstance(record, EventRecord | CostRecord):
                records.append(record)
            if len(records) == _CHUNK_SIZE:
                yield records
                records = []
        yield records

    def _apply(self, records: list[EventRecord | CostRecord]) -> None:
        for record in records:
            if record.session == DOCTOR_SESSION:
                continue
            if isinstance(record, EventRecord):
                apply_record(self._registry, record)
            else:
                self.costs.apply(record)
                self._registry.update_usage(record.session, Usage(cost_usd=self.costs.total(record.session)))

    def _finish_replay(self) -> None:
        self._replay_to = None
        self.all_replayed.set()
        self.apply_queued()
        reports, self._unmeasured = self._unmeasured, []
        for report, previous in reports:
            self._add_cost(report, previous)

    def start(self) -> None:
        """Apply queued events in the running event loop from now on. Call this in the loop."""
        self._loop = asyncio.get_running_loop()
        self._loop_thread = get_ident()

    def save(self) -> None:
        """Save the state for the next daemon. An error is only reported, because the journal contains everything.

        Do nothing while the journal is replayed.
        """
        if self._replay_to is not None:
            return  # the last state is still the better one to start from
        self.apply_queued()
        saved = SavedState(self._journal.end(), msgspec.Raw(encode_registry(self._registry)), self.costs.entries)
        try:
            write_saved_state(saved)
        except (OSError, FairleadError) as error:
            self._errors.report(f"the sessions cannot be saved: {error}")

    def end_streams(self) -> None:
        """End all streams of changes, and let new ones end at once, because the daemon shuts down."""
        self._is_closing = True
        self._notify()

    # -- updates ---------------------------------------------------------------------------------------

    def after_record(self, record: EventRecord, event: Event | None) -> None:
        """Queue an event, except one of `fairlead doctor`. It is applied after the reply was sent.

        May be called in any thread.
        """
        if record.session == DOCTOR_SESSION:
            return
        self._queue.append((record, event))
        if not self._is_scheduled and self._loop is not None:
            self._is_scheduled = True
            if get_ident() == self._loop_thread:  # the loop is awake
                self._loop.call_later(_APPLY_DELAY, self._apply_scheduled)
            else:
                self._loop.call_soon_threadsafe(self._loop.call_later, _APPLY_DELAY, self._apply_scheduled)

    def apply_queued(self) -> None:
        """Apply the queued events now. Do nothing while the journal is replayed, because its events are earlier."""
        if self._replay_to is not None:
            return
        before = self._registry.revision
        while self._queue:
            apply_record(self._registry, *self._queue.popleft())
        if self._registry.revision != before:
            self._notify()

    def _apply_scheduled(self) -> None:
        self._is_scheduled = False
        self.apply_queued()

    def processes(self) -> set[Process]:
        """Return the processes of all sessions that have not ended, as pairs of pid and start time."""
        return self._registry.processes()

    def apply_facts(self, facts: Facts) -> None:
        """Compare the sessions with the client's files, end those of ended processes, and drop old ones."""
        before = self._registry.revision
        files, dead = facts
        self._registry.reconcile(files, time())
        self._registry.end_processes(dead, time())
        self._registry.prune(time())
        self.is_checked = True
        if self._registry.revision != before:
            self._notify()

    def set_usage(self, session: Session, usage: Usage, began: float, caller: Process) -> Session:
        """Store the usage of a session, which is added if it is not known, and return the updated session.

        `began` is the Unix time at which the client's process that reports the usage started; 0 if that is not known.
        `caller` is the process that has sent the report: the client, or a shell between the client and the launcher.
        A change of the cost is written to the journal.
        """
        self.apply_queued()
        known = self._registry.by_id.get(session.id, session)
        if usage.cost_usd is not None:
            report = CostRecord(
                at=time(),
                session=known.id,
                client=known.client,
                folder=known.folder or session.cwd,
                counter=usage.cost_usd,
                began=began,
                pid=reporting_pid(known, caller),
            )
            self._add_cost(report, known.previous)
            total = self.costs.total(known.id)
            usage = msgspec.structs.replace(usage, cost_usd=usage.cost_usd if total is None else total)
        if self._registry.update_usage(session.id, usage, session):
            self._notify()
        return self._registry.by_id[session.id]

    def _add_cost(self, report: CostRecord, previous: tuple[str, ...]) -> None:
        """Write to the journal what a session has cost since its last report, and then add it to `costs`.

        If it cannot be written, it is not added, and the next report includes it. While the journal is replayed, the
        report waits. `previous` are the earlier ids of the session.
        """
        if self._replay_to is not None:
            self._unmeasured.append((report, previous))
            return
        record = self.costs.measure(report, previous)
        if record is None:
            return
        try:
            self._journal.append(record)
        except (OSError, FairleadError) as error:
            self._errors.report(f"a cost cannot be recorded: {error}")
            return
        self.costs.apply(record)

    def set_subagent_usage(self, session_id: str, usage: Usage) -> None:
        """Store the usage of a subagent, by its session id. Do nothing if it is unknown."""
        if self._registry.update_usage(session_id, usage):
            self._notify()

    @property
    def changed(self) -> asyncio.Event:
        """An event that the next change sets. Read this again for the change after that."""
        return self._changed

    def set_answered(self, session_id: str, tool: str, question: str) -> None:
        """Clear a question of an agent that the user has answered through this daemon.

        `tool` and `question` identify it. Do nothing if that question is not open.
        """
        self.apply_queued()
        if self._registry.set_answered(session_id, tool, question, time()):
            self._notify()

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    # -- queries ---------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """The number of the latest change."""
        return self._registry.revision

    def sessions(self, *, ended: bool = True) -> list[Session]:
        """Return the main sessions, each followed by its descendants, without their internal state and long questions.

        Without `ended`, main sessions that have ended are left out.
        """
        return [session for root in self._registry.sessions(ended=ended) for session in self._with_children(root)]

    def live(self) -> Iterator[Session]:
        """Yield the main sessions and subagents that have not ended, with their internal state."""
        return (session for session in self._registry.by_id.values() if session.ended is None)

    def subagents(self) -> Iterator[Session]:
        """Yield all subagents, including ended ones, with their internal state."""
        return (session for session in self._registry.by_id.values() if session.parent)

    def get(self, session_id: str, *, is_whole: bool = False) -> Session | None:
        """Return a session by its id, or by one that it had before; `None` if it is unknown.

        It is without its internal state, and long questions are cut unless `is_whole`.
        """
        return self._registry.get_public(session_id, is_whole=is_whole)

    def current(self, session_id: str) -> Session | None:
        """Return the same session as `get`, with its internal state and with full questions."""
        return self._registry.get(session_id)

    def known(self, session_id: str) -> Session | None:
        """Return the session with exactly this id, even if another one has replaced it; `None` if it is unknown."""
        return self._registry.by_id.get(session_id)

    def running_in(self, processes: Sequence[Process]) -> tuple[Process, tuple[Session, ...]]:
        """Return the first of these processes that has main sessions, and these sessions.

        The sessions are in the order of their last activity, those that have ended before all others. If no process has
        a session, return the process (0, 0) and ().
        """
        self.apply_queued()
        by_process: dict[Process, list[Session]] = {process: [] for process in processes}
        for session in self._registry.roots():
            for process in ((session.pid, session.pid_start), *session.others):
                if process in by_process:
                    by_process[process].append(session)
        first, sessions = next(((one, group) for one, group in by_process.items() if group), ((0, 0), []))
        return first, tuple(map(public_session, sorted(sessions, key=lambda s: (s.ended is None, s.last_activity))))

    def last_replaced(self, process: Process) -> Session | None:
        """Return the session of a process that was replaced last by another session; `None` if there is none.

        For a thread, because it waits for the event loop: return `None` also if this takes more than 2 seconds.
        """
        if self._loop is None:
            return self._find_replaced(process)
        future = asyncio.run_coroutine_threadsafe(self._replaced_when_known(process), self._loop)
        try:
            return future.result(_MAX_THREAD_WAIT)
        except TimeoutError:
            future.cancel()
            return None

    async def _replaced_when_known(self, process: Process) -> Session | None:
        await self.wait_until_replayed()
        return self._find_replaced(process)

    def _find_replaced(self, process: Process) -> Session | None:
        self.apply_queued()
        ended = [session for session in self._registry.in_process(*process) if session.end_reason in _REPLACED]
        return max((public_session(old) for old in ended if old.ended), key=lambda old: old.ended or 0.0, default=None)

    def is_in_turn(self, session_id: str) -> bool:
        """Return whether an agent is between a prompt and its answer; `False` if it is unknown or has ended."""
        session = self._registry.get(session_id)
        return session is not None and session.ended is None and session.in_turn

    def subagents_running_shells(self, session_ids: Iterable[str]) -> set[str]:
        """Return the agent ids of those subagents of the main sessions `session_ids` that have an open shell call."""
        roots = set(session_ids)
        return {
            agent.agent_id
            for agent in self.subagents()
            if agent.ended is None and agent.calls and self._registry.root_of(agent).id in roots and _has_shell(agent)
        }

    def root_of(self, session: Session) -> Session:
        """Return the main session that a subagent belongs to; a main session itself."""
        return self._registry.root_of(session)

    def changes_since(self, revision: int) -> list[SessionChange] | None:
        """Return the latest change of each session after a revision; `None` if `sessions` must be read again."""
        return self._registry.changes_since(revision)

    def _with_children(self, session: Session) -> list[Session]:
        children = self._registry.children_of(session.id)
        descendants = (descendant for child in children for descendant in self._with_children(child))
        return [public_session(session), *descendants]

    async def follow(self, after: int) -> AsyncIterator[list[SessionChange] | None]:
        """Yield lists of the changes after a revision as they happen, until `end_streams`.

        An empty list is yielded after 15 seconds without a change, to keep the connection alive. `None` means that the
        reader must read `sessions` again.
        """
        self.streams += 1
        try:
            while not self._is_closing:
                changed = self._changed
                changes = self._registry.changes_since(after)
                if changes is None or changes:
                    after = self._registry.revision
                    yield changes
                    continue
                try:
                    await asyncio.wait_for(changed.wait(), _KEEPALIVE)
                except TimeoutError:
                    yield []
        finally:
            self.streams -= 1


def _has_shell(session: Session) -> bool:
    client = client_or_default(session.client)
    return any(client.kind_of(call.tool) == "shell" for call in session.calls.values())


def _first_revision() -> int:
    """Return the Unix time in milliseconds, so that no revision of an earlier daemon is used again."""
    return int(time() * 1000)
