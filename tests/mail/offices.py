"""An office with a real box in a file, and a clock that a test can hold."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fairlead.mail import Draft, MessageService
from fairlead.store import MailStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fairlead.mail import Agent, Message, Sent

START = 1_700_000_000.0


class Clock:
    """Gives the time that it was set to, and goes on by a second at each look."""

    def __init__(self, at: float = START) -> None:
        self.at = at

    def __call__(self) -> float:
        self.at += 1.0
        return self.at


class Desk:
    """An office, its box and its clock, with short ways to use them."""

    def __init__(self, folder: Path, clock: Clock | None = None) -> None:
        self.url = f"sqlite:///{folder}/mail.db"
        self.clock = clock or Clock()
        self.box = MailStore.open(self.url)
        self.office = MessageService(self.box, self.clock)

    def open_again(self) -> None:
        """End in an orderly way, and begin anew."""
        self.box.close()
        self._open()

    def crash(self) -> None:
        """Leave everything as a killed process does, but for the lock, which would go with the process."""
        self.box._owner.close()
        self._open()

    def _open(self) -> None:
        self.box = MailStore.open(self.url)
        self.office = MessageService(self.box, self.clock)

    def agents(self, *sessions: str, project: str = "/p") -> list[Agent]:
        return [self.office.agent_for(session, project=project) for session in sessions]

    def send(self, sender: Agent, *to: Agent | str, subject: str = "hello", **fields: Any) -> Message:
        return self.sent(sender, *to, subject=subject, **fields).message

    def sent(self, sender: Agent, *to: Agent | str, subject: str = "hello", **fields: Any) -> Sent:
        names = tuple(one if isinstance(one, str) else self.office.current(one).name for one in to)
        return self.office.send(sender, Draft(to=names, subject=subject, **fields))

    def show(self, agent: Agent, event_id: str = "e1", **options: Any) -> list[int]:
        return [message.id for message in self.office.show(agent, "Stop", event_id, **options)]

    def stages(self, message: Message) -> dict[str, str]:
        return {letter.recipient: letter.stage for _, letter in self.box.letters(message.id)}

    def queued(self, agent: Agent) -> list[int]:
        """The ids of what waits for an agent, in order, as the ledger has it."""
        return [message.id for _, message in self.office.inbox(agent, stages=("queued",), limit=1000)][::-1]


@contextmanager
def opened(folder: Path) -> Iterator[Desk]:
    desk = Desk(folder)
    try:
        yield desk
    finally:
        desk.box.close()
