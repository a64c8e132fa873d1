"""The storage that `MessageService` needs. `store.MailStore` implements it.

Each call is one transaction. If it fails, it changes nothing and raises `MailUnreachable`. Changes by `send` and
`end_agents` survive a power failure once these return; all other changes survive the end of the process. A storage is
thread-safe, and is used by one service at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol

import msgspec

from fairlead.mail._types import Agent, Delivery, MailCounts, Message, QueueSummary, Stage

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from fairlead.mail._cache import QueueSize
    from fairlead.mail.remote._storage import TeamStorage

NOTICE_ENDED: Final = 1
NOTICE_IDLE: Final = 2
NOTICE_OVERDUE: Final = 4
"""Bit flags: the reasons for which the sender of a request was sent a notice. Each reason causes one notice."""


class HostRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A host of the team, and its newest snapshot."""

    host: str
    name: str
    state: str
    at: float = 0.0
    snapshot: bytes = b""


class StoredMail(msgspec.Struct, frozen=True, kw_only=True):
    """The stored data from which a `MailCache` is created."""

    agents: list[Agent]
    former_sessions: dict[str, int] = {}
    """The agent's id by session id from before a /clear."""
    former_names: dict[str, int] = {}
    """The agent's id by name from before a rename, in lower case."""
    subscriptions: list[tuple[str, int]] = []
    """Pairs of topic and agent."""
    queue_sizes: dict[int, QueueSize] = {}
    owing_reply: set[int] = set()
    """Agents that saw a request and did not answer it. The sender was not yet notified that the agent went idle."""
    deadlines: list[tuple[float, int]] = []
    """Deadline and message of unanswered requests whose sender was not yet notified that the deadline has passed."""
    last_message: int = 0
    """The highest id that any message ever had."""
    hosts: list[HostRecord] = []
    """The other hosts of the team."""


class OutgoingMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message to be stored, and the changes that it makes to other messages."""

    message: Message
    sender: int
    recipients: tuple[int, ...]
    ended_recipients: tuple[int, ...] = ()
    """Recipients that have ended: their deliveries bounce at once."""
    bounce_reason: str = ""
    key: str = ""
    answered_by: int = 0
    """The agent whose deliveries this message answers; 0 for none.

    Answered are its delivery of `message.reply_to`, and earlier requests of the recipients to it in the same thread.
    """
    marks_notified: tuple[tuple[int, int, int], ...] = ()
    """For a notice: the deliveries that it is about, as message, recipient and reason."""


class Alias(msgspec.Struct, frozen=True, gc=False):
    """A former name or session id of an agent. It still resolves to the agent."""

    kind: Literal["session", "name"]
    text: str
    agent: int


class PruneStep(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one pruning step."""

    deleted: int = 0
    """The number of deleted messages."""
    after: tuple[float, int] | None = None
    """Where the next step continues; None if this was the last."""


class UnansweredRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that one recipient has not answered."""

    message: Message
    delivery: Delivery
    sender: int
    recipient: int
    notified: int = 0
    """The reasons for which the sender was sent a notice, as bit flags."""


class MailStorage(Protocol):
    """Stores agents, messages and deliveries."""

    def load(self) -> StoredMail:
        """Return the data from which a `MailCache` is created."""

    def close(self) -> None:
        """Close the storage."""

    @property
    def team(self) -> TeamStorage:
        """The storage of packets to and from other hosts. It uses the same database."""

    # -- agents ----------------------------------------------------------------------------------------

    def save_agents(self, agents: Sequence[Agent], aliases: Sequence[Alias] = ()) -> None:
        """Store agents, replacing those with the same id, and their former names."""

    def save_last_seen(self, seen: Sequence[tuple[int, float]]) -> None:
        """Store when agents were last active."""

    def end_agents(self, agents: Sequence[int], at: float, reason: str, notices: Sequence[OutgoingMessage]) -> None:
        """Mark agents as ended, bounce their queued deliveries, and store the notices."""

    def revive_agents(self, agents: Sequence[int]) -> dict[int, QueueSize]:
        """Mark agents as alive, queue their bounced deliveries, and return how many are queued by agent."""

    def subscribe(self, topic: str, agent: int) -> None:
        """Subscribe an agent to a topic."""

    def unsubscribe(self, topic: str, agent: int) -> None:
        """Remove an agent from a topic."""

    # -- messages --------------------------------------------------------------------------------------

    def send(self, messages: Sequence[OutgoingMessage]) -> dict[int, QueueSize]:
        """Store messages and their deliveries, and mark the deliveries that they answer.

        Returns by agent how many of the answered deliveries were still queued.
        """

    def find_by_keys(self, keys: Collection[tuple[int, str]]) -> dict[tuple[int, str], Message]:
        """Return the messages sent with these idempotency keys, by sender and key."""

    def get_message(self, message: int) -> tuple[Message, int] | None:
        """Return a message and the id of its sender."""

    def deliveries(self, message: int) -> list[tuple[int, Delivery]]:
        """Return a message's deliveries, each with the id of its recipient."""

    def thread(self, thread: int, reader: int, *, limit: int, before: int) -> list[Message]:
        """Return the messages that a reader wrote or received in a thread, newest first; all for reader 0."""

    def search(self, text: str, reader: int, *, limit: int, before: int) -> list[Message]:
        """Return the messages with a text that a reader wrote or received, newest first; all for reader 0."""

    def index_messages(self, limit: int) -> bool:
        """Index some messages of an earlier version for `search`. Returns whether there are more."""

    def inbox(
        self, recipient: int, stages: tuple[Stage, ...], *, limit: int, before: int
    ) -> list[tuple[Delivery, Message]]:
        """Return an agent's deliveries, newest first, from before a message; 0 starts at the newest."""

    def unanswered_by(self, agent: int, *, limit: int) -> list[UnansweredRequest]:
        """Return the requests that an agent has not answered, oldest first, without bounced ones."""

    def unanswered_from(self, agent: int, *, limit: int) -> list[UnansweredRequest]:
        """Return an agent's own unanswered requests, oldest first, without bounced ones."""

    def unanswered_among(self, messages: Sequence[int]) -> list[UnansweredRequest]:
        """Return those of the given requests that were not answered, per recipient, including bounced ones."""

    def mail_counts(self, agents: Collection[int]) -> dict[int, MailCounts]:
        """Return the counts of these agents. Agents whose counts are all zero are left out."""

    # -- delivery --------------------------------------------------------------------------------------

    def show(
        self, recipient: int, *, event: str, event_id: str, at: float, limit: int, urgent_only: bool
    ) -> list[Message]:
        """Mark the first queued deliveries of an agent as shown, and return their messages in order.

        With `urgent_only`, only urgent deliveries and those that precede them in their threads.
        """

    def show_all_counted(self, recipient: int, *, event: str, event_id: str, at: float) -> QueueSummary:
        """Mark all queued deliveries of an agent as shown, and return how many each sender sent."""

    def requeue(self, event_id: str, bounce_reason: str, *, may_repeat: bool = False) -> dict[int, QueueSize]:
        """Queue the deliveries again that were shown at an event and not read since; return how many by agent.

        Deliveries to an agent that has ended bounce instead, for the given reason. With `may_repeat`, the next `show`
        returns the messages with `Message.may_repeat` set.
        """

    def mark_read(self, recipient: int, message: int, at: float) -> Stage | None:
        """Mark a delivery as read and return its previous stage; None if there is no such delivery."""

    # -- pruning ---------------------------------------------------------------------------------------

    def prune_messages(self, older_than: float, *, after: tuple[float, int] | None, limit: int) -> PruneStep:
        """Check some messages from before a time, oldest first, and delete those that are not queued."""

    def prune_agents(self, older_than: float) -> list[int]:
        """Delete agents that ended before a time and that no message refers to, and return their ids."""

    def release_space(self) -> int:
        """Release some unused space to the file system, and return how many bytes."""
