"""Who listens to what, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Topics:
    """Topics and the ids of their subscribers. A topic is there as long as somebody listens to it."""

    def __init__(self, subscriptions: Iterable[tuple[str, int]]) -> None:
        """Take what was kept."""
        self._subscribers: dict[str, dict[int, None]] = {}
        for topic, agent in subscriptions:
            self.add(topic, agent)

    def names(self) -> list[str]:
        """Give the topics by name."""
        return sorted(self._subscribers)

    def subscribers(self, topic: str) -> list[int]:
        """Give who listens to a topic, the first one first."""
        return list(self._subscribers.get(topic, ()))

    def add(self, topic: str, agent: int) -> None:
        """Let an agent listen."""
        self._subscribers.setdefault(topic, {})[agent] = None

    def remove(self, topic: str, agent: int) -> None:
        """Let it listen no more."""
        subscribers = self._subscribers.get(topic, {})
        subscribers.pop(agent, None)
        if not subscribers:
            self._subscribers.pop(topic, None)

    def drop(self, agent: int) -> None:
        """Forget an agent."""
        for topic in self.names():
            self.remove(topic, agent)
