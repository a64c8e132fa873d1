"""What the office needs of whoever keeps its mail. `store.MailStore` does; another may.

Each call is one transaction: all of it is kept, or nothing, and then it raises a `MailUnreachable`. What `post` and
`end` were given outlives a power failure when they return; the rest outlives the end of the process. Any thread may
call. One office at a time uses a box.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol

import msgspec

from fairlead.mail._types import Agent, Delivery, Message, Stage, Standing

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

TOLD_ENDED: Final = 1
TOLD_IDLE: Final = 2
TOLD_LATE: Final = 4
"""For which reasons the sender of a request was given a notice; each of them once."""


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """How many letters are queued for an agent, and how many of them are urgent."""

    queued: int = 0
    urgent: int = 0

    def __add__(self, other: Waiting) -> Waiting:
        return Waiting(self.queued + other.queued, self.urgent + other.urgent)

    def __sub__(self, other: Waiting) -> Waiting:
        return Waiting(self.queued - other.queued, self.urgent - other.urgent)


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """All that an office holds in memory."""

    agents: list[Agent]
    former_sessions: dict[str, int] = {}
    """Session ids that agents had before a /clear, and whose they were."""
    former_names: dict[str, int] = {}
    """Names that agents had before they were renamed, in lower case."""
    subscriptions: list[tuple[str, int]] = []
    """Topic and agent."""
    waiting: dict[int, Waiting] = {}
    owing: set[int] = set()
    """Agents that saw a request and did not answer it, and whose going idle was not told yet."""
    deadlines: list[tuple[float, int]] = []
    """Of requests that are not answered, and whose sender was not told yet: the time, and the message."""
    last_message: int = 0
    """The highest id that was ever given to a message."""


class Post(msgspec.Struct, frozen=True, kw_only=True):
    """A message on its way into the box."""

    message: Message
    sender: int
    recipients: tuple[int, ...]
    gone: tuple[int, ...] = ()
    """Those recipients that have ended: their letters bounce at once."""
    why: str = ""
    key: str = ""
    answers: int = 0
    """The agent whose letters this answers: that of `message.reply_to`, and what the recipients asked it before in the
    same thread. 0 for none."""
    tells: tuple[tuple[int, int, int], ...] = ()
    """What this is a notice about: message, recipient, and for which reason."""


class Former(msgspec.Struct, frozen=True, gc=False):
    """What an agent was called before: it still leads to it."""

    kind: Literal["session", "name"]
    text: str
    agent: int


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """What one step of the retention did."""

    gone: int = 0
    """So many messages."""
    after: tuple[float, int] | None = None
    """Where the next step goes on; None if there is none."""


class Owed(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was not answered."""

    message: Message
    letter: Delivery
    sender: int
    recipient: int
    told: int = 0
    """For which reasons its sender was given a notice."""


class MailStorage(Protocol):
    """Keeps agents, messages and letters."""

    def load(self) -> Loaded:
        """Give what an office holds in memory."""

    def close(self) -> None:
        """Let go of it. What was kept stays."""

    # -- agents ----------------------------------------------------------------------------------------

    def put_agents(self, agents: Sequence[Agent], former: Sequence[Former] = ()) -> None:
        """Keep agents, each in place of the one with its id, and what they were called before."""

    def see(self, seen: Sequence[tuple[int, float]]) -> None:
        """Keep when agents were last seen."""

    def end(self, agents: Sequence[int], at: float, why: str, posts: Sequence[Post]) -> None:
        """Mark agents as ended, bounce what is queued for them, and take the notices about it."""

    def revive(self, agents: Sequence[int]) -> dict[int, Waiting]:
        """Let agents live again, queue what had bounced, and say how much that is."""

    def subscribe(self, topic: str, agent: int) -> None:
        """Let an agent listen to a topic."""

    def unsubscribe(self, topic: str, agent: int) -> None:
        """Let it listen no more."""

    # -- messages --------------------------------------------------------------------------------------

    def post(self, posts: Sequence[Post]) -> dict[int, Waiting]:
        """Take messages, with their letters, and mark what they answer; say what left the queues by being answered."""

    def sent_before(self, keys: Collection[tuple[int, str]]) -> dict[tuple[int, str], Message]:
        """Find the messages that were sent under these keys, by sender and key."""

    def message(self, message: int) -> tuple[Message, int] | None:
        """Give a message and the id of its sender."""

    def letters(self, message: int) -> list[tuple[int, Delivery]]:
        """Give a message's ledger, by the ids of its recipients."""

    def thread(self, thread: int, reader: int, *, limit: int, before: int) -> list[Message]:
        """Give what a reader wrote or got in a thread, the newest first; the reader 0 reads all."""

    def search(self, text: str, reader: int, *, limit: int, before: int) -> list[Message]:
        """Find a text in what a reader wrote or got, the newest first; the reader 0 reads all."""

    def inbox(
        self, recipient: int, stages: tuple[Stage, ...], *, limit: int, before: int
    ) -> list[tuple[Delivery, Message]]:
        """Give the letters of an agent, the newest first, from before a message on; 0 is from the end."""

    def owed_by(self, agent: int, *, limit: int) -> list[Owed]:
        """Give the requests that an agent has not answered, the oldest first; none that bounced."""

    def owed_to(self, agent: int, *, limit: int) -> list[Owed]:
        """Give the requests of an agent that were not answered, the oldest first; none that bounced."""

    def owed_for(self, messages: Sequence[int]) -> list[Owed]:
        """Give those of these requests that were not answered, by recipient; also what bounced."""

    def standings(self, agents: Collection[int]) -> dict[int, Standing]:
        """Say how much mail these agents have before them; one who has none is left out."""

    # -- showing ---------------------------------------------------------------------------------------

    def show(  # noqa: PLR0913 - each says one thing of it, and has a name
        self, recipient: int, *, event: str, event_id: str, at: float, most: int, urgent_only: bool
    ) -> list[Message]:
        """Mark the first letters of an agent's queue as shown, and give their messages in order.

        Of the urgent ones alone, with what is queued before them in their threads.
        """

    def unshow(self, event_id: str, why_not: str) -> dict[int, Waiting]:
        """Queue again what was shown at an event and not read since, and say how much that is.

        What was for an agent that has ended bounces instead, for the reason given.
        """

    def read(self, recipient: int, message: int, at: float) -> Stage | None:
        """Mark a letter as read, and say at which stage it was; None if there is none."""

    # -- keeping small ---------------------------------------------------------------------------------

    def sweep(self, older_than: float, *, after: tuple[float, int] | None, most: int) -> Swept:
        """Look at some messages from before a time, the oldest first, and delete those that are queued for nobody."""

    def forget_agents(self, older_than: float) -> list[int]:
        """Delete the agents that ended before a time and are named by no message, and say which."""

    def tidy(self) -> int:
        """Give a part of the free room back to the disk, and say how many bytes."""
