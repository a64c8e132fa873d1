"""The mail's state in memory, and the lock under which it changes."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import msgspec

from fairlead.mail._addresses import AddressResolver, TopicIndex
from fairlead.mail._directory import AgentDirectory
from fairlead.mail._types import FIRST_REMOTE_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from fairlead.mail._storage import OutgoingMessage, StoredMail
    from fairlead.mail._types import Agent, Message


class QueueSize(msgspec.Struct, frozen=True, gc=False):
    """How many deliveries are queued for an agent, and how many of them are urgent."""

    queued: int = 0
    urgent: int = 0

    def __add__(self, other: QueueSize) -> QueueSize:
        return QueueSize(self.queued + other.queued, self.urgent + other.urgent)

    def __sub__(self, other: QueueSize) -> QueueSize:
        return QueueSize(self.queued - other.queued, self.urgent - other.urgent)


_EMPTY = QueueSize()


class MailCache:
    """The agents, topics, queue sizes and deadlines of the mail.

    Change it only within `locked()`, after the storage has stored the change. Queue sizes can be read at any time.
    """

    def __init__(self, snapshot: StoredMail) -> None:
        self.agents = AgentDirectory(snapshot.agents, snapshot.former_sessions, snapshot.former_names)
        self.topics = TopicIndex(snapshot.subscriptions)
        self.addresses = AddressResolver(self.agents, self.topics)
        self.last_message = snapshot.last_message
        self.owing_reply = set(snapshot.owing_reply)
        """The ids of agents that may have seen a request without answering it."""
        self._queue_sizes = dict(snapshot.queue_sizes)
        self._deadlines = list(snapshot.deadlines)
        heapify(self._deadlines)
        self._lock = threading.Lock()
        self._listeners: tuple[Callable[[Agent], None], ...] = ()
        self._to_notify: dict[int, None] = {}
        self._outgoing_listeners: tuple[Callable[[], None], ...] = ()
        self._has_outgoing = False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock for a change.

        The listeners are called in this thread after the lock is released, even if the change raised an error. The lock
        is not reentrant.
        """
        to_notify: dict[int, None] = {}
        has_outgoing = False
        try:
            with self._lock:
                try:
                    yield
                finally:
                    to_notify, self._to_notify = self._to_notify, {}
                    has_outgoing, self._has_outgoing = self._has_outgoing, False
        finally:
            self._notify(to_notify)
            if has_outgoing:
                self._notify_outgoing()

    def add_listener(self, listener: Callable[[Agent], None]) -> None:
        """Call `listener` with each agent for which deliveries were queued. Its errors are ignored."""
        self._listeners = (*self._listeners, listener)

    def add_outgoing_listener(self, listener: Callable[[], None]) -> None:
        """Call `listener` after data for other hosts may have been stored. Its errors are ignored."""
        self._outgoing_listeners = (*self._outgoing_listeners, listener)

    def note_outgoing(self) -> None:
        """Record that data for other hosts may have been stored.

        The outgoing listeners are called when the lock is released.
        """
        self._has_outgoing = bool(self._outgoing_listeners)

    def note_marked(self, messages: Iterable[Message]) -> None:
        """Record that deliveries of these messages have changed, so that senders on other hosts get receipts.

        Only senders on other hosts have an `@` in their names.
        """
        if self._outgoing_listeners and any("@" in message.sender for message in messages):
            self._has_outgoing = True

    def queue_size(self, agent: int) -> QueueSize:
        """Return the size of an agent's queue. Needs no lock."""
        return self._queue_sizes.get(agent, _EMPTY)

    def enqueue(self, agent: int, added: QueueSize) -> None:
        """Record that deliveries were queued for an agent, and notify the listeners when the lock is released."""
        self._queue_sizes[agent] = self.queue_size(agent) + added
        self._to_notify[agent] = None

    def dequeue(self, agent: int, removed: QueueSize) -> None:
        """Record that deliveries have left an agent's queue."""
        rest = self.queue_size(agent) - removed
        if rest.queued:
            self._queue_sizes[agent] = rest
        else:
            self._queue_sizes.pop(agent, None)

    def clear_queue(self, agent: int) -> None:
        """Record that an agent's queue is empty."""
        self._queue_sizes.pop(agent, None)

    def record_sent(self, messages: Iterable[OutgoingMessage], answered: Mapping[int, QueueSize]) -> None:
        """Record the deliveries and deadlines of new messages.

        `answered` has, by agent, how many deliveries left the agent's queue because these messages answer them.
        """
        for outgoing in messages:
            message = outgoing.message
            self.last_message = max(self.last_message, message.id)
            size = QueueSize(1, int(message.priority == "urgent"))
            for recipient in outgoing.recipients:
                if recipient >= FIRST_REMOTE_ID:
                    self._has_outgoing = True
                elif recipient not in outgoing.ended_recipients:
                    self.enqueue(recipient, size)
            if message.intent == "request" and message.deadline and outgoing.sender < FIRST_REMOTE_ID:
                heappush(self._deadlines, (message.deadline, message.id))
        for agent, removed in answered.items():
            self.dequeue(agent, removed)

    def has_overdue(self, now: float) -> bool:
        """Return whether a recorded deadline is not after `now`, a Unix time."""
        return any(deadline <= now for deadline, _ in self._deadlines[:1])

    def take_overdue(self, now: float, limit: int) -> list[tuple[float, int]]:
        """Remove and return up to `limit` pairs of passed deadline and message id, the earliest deadline first."""
        overdue: list[tuple[float, int]] = []
        while self.has_overdue(now) and len(overdue) < limit:
            overdue.append(heappop(self._deadlines))
        return overdue

    def restore_overdue(self, overdue: Iterable[tuple[float, int]]) -> None:
        """Put back what `take_overdue` returned, because no notices could be sent."""
        for deadline in overdue:
            heappush(self._deadlines, deadline)

    def remove_agent(self, agent: int) -> None:
        """Remove the agent with that id, and everything that is recorded for it."""
        self.agents.remove(agent)
        self.topics.remove_agent(agent)
        self.owing_reply.discard(agent)
        self._queue_sizes.pop(agent, None)

    def _notify_outgoing(self) -> None:
        for listener in self._outgoing_listeners:
            with suppress(Exception):
                listener()

    def _notify(self, numbers: Iterable[int]) -> None:
        for agent in filter(None, map(self.agents.get, numbers)):
            for listener in self._listeners:
                with suppress(Exception):  # the message is already sent, even if a listener fails
                    listener(agent)
