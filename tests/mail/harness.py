"""A `MessageService` on a real database file, with a clock that a test controls."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fairlead.mail import Draft, MessageService
from fairlead.store import MailStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fairlead.mail import Agent, Message, SendResult

START = 1_700_000_000.0


class Clock:
    """Returns the time it was set to, and advances by a second at each call."""

    def __init__(self, at: float = START) -> None:
        self.at = at

    def __call__(self) -> float:
        self.at += 1.0
        return self.at


class MailHarness:
    """A service, its storage and its clock, with shortcuts for tests."""

    def __init__(self, folder: Path, clock: Clock | None = None) -> None:
        self.url = f"sqlite:///{folder}/mail.db"
        self.clock = clock or Clock()
        self._open()

    def restart(self) -> None:
        """Close the storage and open it again."""
        self.storage.close()
        self._open()

    def crash(self) -> None:
        """Leave everything as a killed process does, except the lock, which ends with the process."""
        self.storage._owner_lock.close()
        self._open()

    def _open(self) -> None:
        self.storage = MailStore.open(self.url)
        self.service = MessageService(self.storage, self.clock)

    def agents(self, *sessions: str, project: str = "/p") -> list[Agent]:
        return [self.service.ensure_agent(session, project=project) for session in sessions]

    def send(self, sender: Agent, *to: Agent | str, subject: str = "hello", **fields: Any) -> Message:
        return self.sent(sender, *to, subject=subject, **fields).message

    def sent(self, sender: Agent, *to: Agent | str, subject: str = "hello", **fields: Any) -> SendResult:
        names = tuple(one if isinstance(one, str) else self.service.current(one).name for one in to)
        return self.service.send(sender, Draft(to=names, subject=subject, **fields))

    def show(self, agent: Agent, event_id: str = "e1", **options: Any) -> list[int]:
        return [message.id for message in self.service.show(agent, "Stop", event_id, **options)]

    def stages(self, message: Message) -> dict[str, str]:
        return {delivery.recipient: delivery.stage for _, delivery in self.storage.deliveries(message.id)}


@contextmanager
def opened(folder: Path) -> Iterator[MailHarness]:
    mail = MailHarness(folder)
    try:
        yield mail
    finally:
        mail.storage.close()
