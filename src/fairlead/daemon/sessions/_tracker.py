"""Keeps the registry of sessions up to date: from events, from the client's own files, from the process table.

The registry belongs to the loop. Threads that decide events only leave word (`note`); what has to be looked up on the
disk is looked up in a thread and taken in by the loop.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from time import time
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import known_clients
from fairlead.errors import FairleadError
from fairlead.journal import EventRecord, Position
from fairlead.paths import state_folder
from fairlead.process import dead_processes
from fairlead.sessions import (
    Registry,
    SessionMemory,
    SnapshotError,
    restore,
    snapshot,
    take_record,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from fairlead.clients import ClientSessionFile, Usage
    from fairlead.events import Event
    from fairlead.journal import Reader
    from fairlead.process import Process
    from fairlead.sessions import Change, Session

    Facts = tuple[list[ClientSessionFile], list[Process]]

_NOTHING = SessionMemory()
_MOST_REPLAYED = 20_000
_SOON = 0.01
_HEARTBEAT = 15.0
"""Seconds after which a stream without news says that it is alive."""


class _Kept(msgspec.Struct, frozen=True):
    """The snapshot, and how far the journal had been read."""

    position: Position
    registry: msgspec.Raw


class SessionTracker:
    """Who is running, as the daemon knows it."""

    def __init__(self, journal: Reader, trouble: Callable[[str], None]) -> None:
        self._journal = journal
        self._trouble = trouble
        self._waiting: deque[tuple[EventRecord, Event | None]] = deque()
        self._registry = Registry(_now())
        self._news = asyncio.Event()
        self._is_closing = False
        self._is_due = False
        self.streams = 0
        """So many readers follow the changes."""
        self.is_checked = False
        """Whether the sessions were held against files and processes once, so that none is listed that is long gone."""

    # -- startup and shutdown --------------------------------------------------------------------------

    def open(self) -> None:
        """Take up what an earlier daemon knew, and what the journal has since then."""
        position: Position | None = None
        try:
            with open(_file(), "rb") as file:
                kept = msgspec.json.decode(file.read(), type=_Kept)
            self._registry, position = restore(bytes(kept.registry), _now()), kept.position
        except FileNotFoundError:
            pass
        except (OSError, ValueError, SnapshotError) as error:
            self._trouble(f"the sessions are made anew from the journal: {error}")
        records = self._journal.read(position) if position else self._journal.tail(_MOST_REPLAYED)
        for _, record in records:
            if isinstance(record, EventRecord):
                take_record(self._registry, record)

    def save(self) -> None:
        """Keep what is known for the next daemon. Raises nothing: the journal has it, too."""
        self.drain()
        kept = _Kept(self._journal.end(), msgspec.Raw(snapshot(self._registry)))
        beside = f"{_file()}.{os.getpid()}"
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(descriptor, "wb") as file:
                file.write(msgspec.json.encode(kept))
            os.replace(beside, _file())
        except (OSError, FairleadError) as error:
            self._trouble(f"the sessions cannot be kept: {error}")

    def close(self) -> None:
        """Send the readers of changes away."""
        self._is_closing = True
        self._tell()

    # -- what is told ----------------------------------------------------------------------------------

    def note(self, record: EventRecord, event: Event | None) -> None:
        """Leave word of an event, and of what its payload says, if it was read; any thread may."""
        self._waiting.append((record, event))

    def drain(self) -> None:
        """Take in the events that word was left of."""
        before = self._registry.revision
        while self._waiting:
            take_record(self._registry, *self._waiting.popleft())
        if self._registry.revision != before:
            self._tell()

    def drain_soon(self) -> None:
        """Take them in within a moment, many at once: after the answer, not before it."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(_SOON, self._drain_now)

    def _drain_now(self) -> None:
        self._is_due = False
        self.drain()

    def processes(self) -> set[Process]:
        """Name the processes to look for."""
        return self._registry.processes()

    def take_facts(self, facts: Facts) -> None:
        """Hold the sessions against what was looked up."""
        before = self._registry.revision
        witnesses, gone = facts
        self._registry.look(witnesses, time())
        self._registry.bury(gone, time())
        self._registry.sweep(time())
        self.is_checked = True
        if self._registry.revision != before:
            self._tell()

    def measure(self, told: Session, usage: Usage) -> Session:
        """Take in the figures of a session; one that nobody has told of becomes known. Give it as it is."""
        self.drain()
        if self._registry.measure(told.id, usage, told):
            self._tell()
        return self._registry.by_id[told.id]

    def count(self, name: str, usage: Usage) -> None:
        """Take in what a subagent has used."""
        if self._registry.measure(name, usage):
            self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    # -- what is asked ---------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """The number of the last change."""
        return self._registry.revision

    def sessions(self, *, ended: bool = True) -> list[Session]:
        """Give all sessions, each followed by its subagents."""
        return [one for root in self._registry.sessions(ended=ended) for one in self._with_children(root)]

    def live(self) -> Iterator[Session]:
        """Give the sessions and subagents that have not ended, as they are kept."""
        return (session for session in self._registry.by_id.values() if session.ended is None)

    def subagents(self) -> Iterator[Session]:
        """Give all subagents, as they are kept."""
        return (session for session in self._registry.by_id.values() if session.parent)

    def get(self, name: str) -> Session | None:
        """Find a session by its id."""
        found = self._registry.get(name)
        return None if found is None else shown(found)

    def running_in(self, processes: Sequence[Process]) -> tuple[Process, tuple[Session, ...]]:
        """Find the first of these processes that has main sessions, and these; who was heard of last stands last."""
        self.drain()
        found: dict[Process, list[Session]] = {process: [] for process in processes}
        for session in self._registry.roots():
            for process in ((session.pid, session.pid_start), *session.others):
                if process in found:
                    found[process].append(session)
        first, sessions = next(((one, having) for one, having in found.items() if having), ((0, 0), []))
        return first, tuple(map(shown, sorted(sessions, key=lambda s: (s.ended is None, s.last_activity))))

    def root_of(self, session: Session) -> Session:
        """Give the main session that a subagent belongs to."""
        return self._registry.root_of(session)

    def changes_since(self, revision: int) -> list[Change] | None:
        """Give what changed since; `None` means: read `sessions` anew."""
        return self._registry.changes_since(revision)

    def _with_children(self, session: Session) -> list[Session]:
        below = self._registry.children_of(session.id)
        return [shown(session), *(one for child in below for one in self._with_children(child))]

    async def follow(self, after: int) -> AsyncIterator[list[Change] | None]:
        """Give what changed after a revision, as it comes.

        An empty list is a sign of life; `None` means that the reader must read everything anew.
        """
        self.streams += 1
        try:
            while not self._is_closing:
                news = self._news
                changes = self._registry.changes_since(after)
                if changes is None or changes:
                    after = self._registry.revision
                    yield changes
                    continue
                try:
                    await asyncio.wait_for(news.wait(), _HEARTBEAT)
                except TimeoutError:
                    yield []
        finally:
            self.streams -= 1


def look_up(processes: set[Process]) -> Facts:
    """Look into the client's files, and which of the processes are gone: for a thread."""
    return [one for client in known_clients() for one in client.find_sessions()], dead_processes(processes)


def shown(session: Session) -> Session:
    """Leave out what nobody wants to see."""
    return msgspec.structs.replace(session, memory=_NOTHING)


def _file() -> str:
    return f"{state_folder()}/sessions.json"


def _now() -> int:
    """Number changes by the clock, so that no number of an earlier life is given out again."""
    return int(time() * 1000)
