"""The storage that `MessageService` needs. `store.MailStore` implements it.

Each call is one transaction: it is applied completely, or not at all and raises `MailUnreachable`. What `send` and
`end_agents` wrote survives a power failure once they return; the rest survives the end of the process. Thread-safe.
One service at a time uses a storage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol

import msgspec

from fairlead.mail._types import Agent, Delivery, MailCounts, Message, QueueSummary, Stage

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from fairlead.mail.remote._storage import TeamStorage

NOTICE_ENDED: Final = 1
NOTICE_IDLE: Final = 2
NOTICE_OVERDUE: Final = 4
"""Bit flags: for which reasons the sender of a request was sent a notice. Each reason is used once."""


class QueueSize(msgspec.Struct, frozen=True, gc=False):
    """How many deliveries are queued for an agent, and how many of them are urgent."""

    queued: int = 0
    urgent: int = 0

    def __add__(self, other: QueueSize) -> QueueSize:
        return QueueSize(self.queued + other.queued, self.urgent + other.urgent)

    def __sub__(self, other: QueueSize) -> QueueSize:
        return QueueSize(self.queued - other.queued, self.urgent - other.urgent)


class HostRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A host of the team, and the newest news of it."""

    host: str
    name: str
    state: str
    at: float = 0.0
    snapshot: bytes = b""


class MailSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a `MailCache` starts with."""

    agents: list[Agent]
    former_sessions: dict[str, int] = {}
    """Session ids that agents had before a /clear, with the agent's id."""
    former_names: dict[str, int] = {}
    """Names that agents had before a rename, in lower case, with the agent's id."""
    subscriptions: list[tuple[str, int]] = []
    """Topic and agent."""
    queue_sizes: dict[int, QueueSize] = {}
    owing_reply: set[int] = set()
    """Agents that saw a request, did not answer it, and whose going idle was not reported yet."""
    deadlines: list[tuple[float, int]] = []
    """Time and message of unanswered requests whose sender has no notice about the deadline yet."""
    last_message: int = 0
    """The highest id that any message ever had."""
    hosts: list[HostRecord] = []
    """The other hosts of the team."""


class OutgoingMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message to be stored, with what it changes about others."""

    message: Message
    sender: int
    recipients: tuple[int, ...]
    ended_recipients: tuple[int, ...] = ()
    """Recipients that have ended: their deliveries bounce at once."""
    bounce_reason: str = ""
    key: str = ""
    answered_by: int = 0
    """The agent whose deliveries this answers: that of `message.reply_to`, and what the recipients asked it earlier in
    the same thread. 0 for none."""
    marks_notified: tuple[tuple[int, int, int], ...] = ()
    """The deliveries that this is a notice about: message, recipient, reason."""


class Alias(msgspec.Struct, frozen=True, gc=False):
    """A former name or session id of an agent. It still resolves to the agent."""

    kind: Literal["session", "name"]
    text: str
    agent: int


class PruneStep(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one pruning step."""

    deleted: int = 0
    """How many messages."""
    after: tuple[float, int] | None = None
    """Where the next step continues; None if this was the last."""


class UnansweredRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that one recipient has not answered."""

    message: Message
    delivery: Delivery
    sender: int
    recipient: int
    notified: int = 0
    """For which reasons (bit flags) the sender was sent a notice."""


class MailStorage(Protocol):
    """Stores agents, messages and deliveries."""

    def load(self) -> MailSnapshot:
        """Return what a `MailCache` starts with."""

    def close(self) -> None:
        """Close the storage. What was stored stays."""

    @property
    def team(self) -> TeamStorage:
        """What is on its way to and from other hosts, in the same storage."""

    # -- agents ----------------------------------------------------------------------------------------

    def save_agents(self, agents: Sequence[Agent], aliases: Sequence[Alias] = ()) -> None:
        """Store agents, replacing those with the same id, and their former names."""

    def save_last_seen(self, seen: Sequence[tuple[int, float]]) -> None:
        """Store when agents were last active."""

    def end_agents(self, agents: Sequence[int], at: float, reason: str, notices: Sequence[OutgoingMessage]) -> None:
        """Mark agents as ended, bounce what is queued for them, and store the notices about it."""

    def revive_agents(self, agents: Sequence[int]) -> dict[int, QueueSize]:
        """Mark agents as alive, queue what had bounced, and return how much that is."""

    def subscribe(self, topic: str, agent: int) -> None:
        """Subscribe an agent to a topic."""

    def unsubscribe(self, topic: str, agent: int) -> None:
        """Remove an agent from a topic."""

    # -- messages --------------------------------------------------------------------------------------

    def send(self, messages: Sequence[OutgoingMessage]) -> dict[int, QueueSize]:
        """Store messages and their deliveries, and mark what they answer. Return what left the queues by that."""

    def find_by_keys(self, keys: Collection[tuple[int, str]]) -> dict[tuple[int, str], Message]:
        """Return the messages sent with these idempotency keys, by sender and key."""

    def get_message(self, message: int) -> tuple[Message, int] | None:
        """Return a message and the id of its sender."""

    def deliveries(self, message: int) -> list[tuple[int, Delivery]]:
        """Return a message's deliveries, each with the id of its recipient."""

    def thread(self, thread: int, reader: int, *, limit: int, before: int) -> list[Message]:
        """Return what a reader wrote or received in a thread, newest first; reader 0 sees all."""

    def search(self, text: str, reader: int, *, limit: int, before: int) -> list[Message]:
        """Return messages with a text that a reader wrote or received, newest first; reader 0 sees all."""

    def index_messages(self, limit: int) -> bool:
        """Prepare some messages for `search` that an earlier version wrote. Returns whether there are more."""

    def inbox(
        self, recipient: int, stages: tuple[Stage, ...], *, limit: int, before: int
    ) -> list[tuple[Delivery, Message]]:
        """Return an agent's deliveries, newest first, from before a message; 0 starts at the newest."""

    def unanswered_by(self, agent: int, *, limit: int) -> list[UnansweredRequest]:
        """Return the requests that an agent has not answered, oldest first, without bounced ones."""

    def unanswered_from(self, agent: int, *, limit: int) -> list[UnansweredRequest]:
        """Return an agent's own requests that were not answered, oldest first, without bounced ones."""

    def unanswered_among(self, messages: Sequence[int]) -> list[UnansweredRequest]:
        """Return which of these requests were not answered, per recipient, including bounced ones."""

    def mail_counts(self, agents: Collection[int]) -> dict[int, MailCounts]:
        """Return the counts of these agents; an agent with nothing open is left out."""

    # -- delivery --------------------------------------------------------------------------------------

    def show(  # noqa: PLR0913 - keyword-only
        self, recipient: int, *, event: str, event_id: str, at: float, limit: int, urgent_only: bool
    ) -> list[Message]:
        """Mark the first queued deliveries of an agent as shown, and return their messages in order.

        With `urgent_only`: the urgent ones, and what is queued before them in their threads.
        """

    def sum_up(self, recipient: int, *, event: str, event_id: str, at: float) -> QueueSummary:
        """Mark all queued deliveries of an agent as shown, and return who sent how many."""

    def requeue(self, event_id: str, bounce_reason: str, *, may_repeat: bool = False) -> dict[int, QueueSize]:
        """Queue again what was shown at an event and not read since, and return how much that is.

        Deliveries to an agent that has ended bounce instead, for the given reason. With `may_repeat`, the next `show`
        returns the messages with that mark.
        """

    def mark_read(self, recipient: int, message: int, at: float) -> Stage | None:
        """Mark a delivery as read and return its previous stage; None if there is no such delivery."""

    # -- pruning ---------------------------------------------------------------------------------------

    def prune_messages(self, older_than: float, *, after: tuple[float, int] | None, limit: int) -> PruneStep:
        """Look at some messages from before a time, oldest first, and delete those that are queued for no agent."""

    def prune_agents(self, older_than: float) -> list[int]:
        """Delete the agents that ended before a time and that no message names, and return their ids."""

    def release_space(self) -> int:
        """Return some free space to the file system, and how many bytes that was."""
