"""What the office holds in memory, and whose turn it is to change it."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from fairlead.mail._addresses import AddressResolver
from fairlead.mail._directory import AgentDirectory
from fairlead.mail._storage import Waiting
from fairlead.mail._topics import Topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from fairlead.mail._storage import Loaded, Post
    from fairlead.mail._types import Agent

_NOTHING = Waiting()


class MailCache:
    """Who there is, how much is queued for each, and what may have to be told.

    It is changed within a `turn` only, after the box has kept the change. How much is queued can be asked at any time.
    """

    def __init__(self, loaded: Loaded) -> None:
        """Take what a box has kept."""
        self.people = AgentDirectory(loaded.agents, loaded.former_sessions, loaded.former_names)
        self.topics = Topics(loaded.subscriptions)
        self.directory = AddressResolver(self.people, self.topics)
        self.last_message = loaded.last_message
        self.owing = set(loaded.owing)
        """Agents that may have seen a request which they did not answer."""
        self._waiting = dict(loaded.waiting)
        self._deadlines = list(loaded.deadlines)
        heapify(self._deadlines)
        self._lock = threading.Lock()
        self._listeners: tuple[Callable[[Agent], None], ...] = ()
        self._woken: dict[int, None] = {}

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Be the only one to change anything. Those who listen are called when it is over."""
        woken: dict[int, None] = {}
        try:
            with self._lock:
                try:
                    yield
                finally:
                    woken, self._woken = self._woken, {}
        finally:
            self._call(woken)

    def listen(self, call: Callable[[Agent], None]) -> None:
        """Have this called for each agent that something was queued for."""
        self._listeners = (*self._listeners, call)

    def waiting(self, agent: int) -> Waiting:
        """Say how much is queued for an agent."""
        return self._waiting.get(agent, _NOTHING)

    def queue(self, agent: int, more: Waiting) -> None:
        """Note that something was queued for an agent."""
        self._waiting[agent] = self.waiting(agent) + more
        self._woken[agent] = None

    def unqueue(self, agent: int, fewer: Waiting) -> None:
        """Note that something has left an agent's queue."""
        rest = self.waiting(agent) - fewer
        if rest.queued:
            self._waiting[agent] = rest
        else:
            self._waiting.pop(agent, None)

    def empty(self, agent: int) -> None:
        """Note that an agent's queue is empty."""
        self._waiting.pop(agent, None)

    def posted(self, posts: Iterable[Post], left: Mapping[int, Waiting]) -> None:
        """Note what messages have queued, and which letters have left the queues because they were answered."""
        for post in posts:
            message = post.message
            self.last_message = max(self.last_message, message.id)
            one = Waiting(1, int(message.priority == "urgent"))
            for recipient in post.recipients:
                if recipient not in post.gone:
                    self.queue(recipient, one)
            if message.intent == "request" and message.deadline:
                heappush(self._deadlines, (message.deadline, message.id))
        for agent, fewer in left.items():
            self.unqueue(agent, fewer)

    def is_due(self, now: float) -> bool:
        """Tell whether a deadline has passed."""
        return any(deadline <= now for deadline, _ in self._deadlines[:1])

    def take_due(self, now: float, most: int) -> list[tuple[float, int]]:
        """Take the requests whose deadlines have passed, the earliest first."""
        found: list[tuple[float, int]] = []
        while self.is_due(now) and len(found) < most:
            found.append(heappop(self._deadlines))
        return found

    def give_back_due(self, due: Iterable[tuple[float, int]]) -> None:
        """Take requests back that could not be told about."""
        for one in due:
            heappush(self._deadlines, one)

    def forget(self, agent: int) -> None:
        """Forget an agent."""
        self.people.drop(agent)
        self.topics.drop(agent)
        self.owing.discard(agent)
        self._waiting.pop(agent, None)

    def _call(self, woken: Iterable[int]) -> None:
        for agent in filter(None, map(self.people.get, woken)):
            for call in self._listeners:
                with suppress(Exception):  # the message is sent, whatever a listener makes of it
                    call(agent)
