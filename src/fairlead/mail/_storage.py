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
"""Bit flags `NOTICE_…`: why the sender of a request was sent a notice. Each reason causes at most one notice."""


class HostRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Another host of the team, with the id `host`, and its newest snapshot."""

    host: str
    name: str
    state: str
    """`member`, `pending` or `removed`."""
    at: float = 0.0
    """When the record was stored."""
    snapshot: bytes = b""
    """The encoded `HostSnapshot`; empty if there is none yet."""


class StoredMail(msgspec.Struct, frozen=True, kw_only=True):
    """The stored data from which a `MailCache` is created."""

    agents: list[Agent]
    former_sessions: dict[str, int] = {}
    """The ids of agents by the session ids that they had before a /clear."""
    former_names: dict[str, int] = {}
    """The ids of agents by the names that they had before a rename, in lower case."""
    subscriptions: list[tuple[str, int]] = []
    """Pairs of a topic and an agent's id, in the order in which the agents subscribed."""
    queue_sizes: dict[int, QueueSize] = {}
    """By agent id. Agents with an empty queue are left out."""
    owing_reply: set[int] = set()
    """Ids of agents with a request that they saw and did not answer, if its sender was not yet sent `NOTICE_IDLE`."""
    deadlines: list[tuple[float, int]] = []
    """Deadlines and ids of unanswered requests whose senders were not yet sent `NOTICE_OVERDUE`."""
    last_message: int = 0
    """The highest id that any message ever had."""
    hosts: list[HostRecord] = []
    """The other hosts of the team."""


class OutgoingMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message to be stored, and the changes that it makes to deliveries of other messages.

    `sender` and `recipients` are ids of agents.
    """

    message: Message
    sender: int
    recipients: tuple[int, ...]
    ended_recipients: tuple[int, ...] = ()
    """The recipients that have ended. Their deliveries bounce at once, with the reason `bounce_reason`."""
    bounce_reason: str = ""
    key: str = ""
    """The idempotency key; empty for none."""
    answered_by: int = 0
    """The id of the agent whose deliveries this message answers; 0 for none.

    These are the agent's delivery of `message.reply_to`, and earlier requests in the same thread from the recipients to
    the agent.
    """
    marks_notified: tuple[tuple[int, int, int], ...] = ()
    """For a notice: the deliveries that it is about, as tuples of message, recipient and `NOTICE_…` flag."""


class Alias(msgspec.Struct, frozen=True, gc=False):
    """A former name or session id of an agent. It still resolves to the agent."""

    kind: Literal["session", "name"]
    text: str
    """The former name in lower case, or the former session id."""
    agent: int


class PruneStep(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one pruning step."""

    deleted: int = 0
    """The number of deleted messages."""
    after: tuple[float, int] | None = None
    """Where the next step continues, as its `after`: a message's time and id; None if this was the last step."""


class UnansweredRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that one recipient has not answered. `sender` and `recipient` are ids of agents."""

    message: Message
    delivery: Delivery
    sender: int
    recipient: int
    notified: int = 0
    """The reasons for which the sender was sent a notice, as `NOTICE_…` flags."""


class MailStorage(Protocol):
    """Stores agents, messages and deliveries.

    Agents and messages are given by their ids. In pages, `before` is a message's id, and 0 starts at the newest.
    """

    def load(self) -> StoredMail:
        """Return the data from which a `MailCache` is created."""

    def close(self) -> None:
        """Close the storage. It cannot be used afterwards."""

    @property
    def team(self) -> TeamStorage:
        """The storage of packets to and from other hosts. It uses the same database."""

    # -- agents ----------------------------------------------------------------------------------------

    def save_agents(self, agents: Sequence[Agent], aliases: Sequence[Alias] = ()) -> None:
        """Store agents, replacing those with the same id, and their former names and session ids."""

    def save_last_seen(self, seen: Sequence[tuple[int, float]]) -> None:
        """Store when agents were last active, given as pairs of agent and Unix time."""

    def end_agents(self, agents: Sequence[int], at: float, reason: str, notices: Sequence[OutgoingMessage]) -> None:
        """Mark agents as ended, bounce their queued deliveries with a reason, and store the notices."""

    def revive_agents(self, agents: Sequence[int]) -> dict[int, QueueSize]:
        """Mark agents as alive, queue their bounced deliveries, and return by agent how many were queued.

        Agents without such deliveries are left out.
        """

    def subscribe(self, topic: str, agent: int) -> None:
        """Subscribe an agent to a topic, given without its `#`."""

    def unsubscribe(self, topic: str, agent: int) -> None:
        """Remove an agent from a topic, given without its `#`."""

    # -- messages --------------------------------------------------------------------------------------

    def send(self, messages: Sequence[OutgoingMessage]) -> dict[int, QueueSize]:
        """Store messages and their deliveries, and mark the deliveries that they answer.

        Returns by agent how many of the answered deliveries were still queued.
        """

    def find_by_keys(self, keys: Collection[tuple[int, str]]) -> dict[tuple[int, str], Message]:
        """Return the messages that were sent with these pairs of sender and idempotency key, by that pair."""

    def get_message(self, message: int) -> tuple[Message, int] | None:
        """Return a message and the id of its sender; None if there is no such message."""

    def deliveries(self, message: int) -> list[tuple[int, Delivery]]:
        """Return a message's deliveries, each with the id of its recipient."""

    def thread(self, thread: int, reader: int, *, limit: int, before: int) -> list[Message]:
        """Return a page of messages in a thread that a reader wrote or received, newest first. Reader 0 sees all."""

    def search(self, text: str, reader: int, *, limit: int, before: int) -> list[Message]:
        """Return a page of the messages with a text that a reader wrote or received, newest first. Reader 0 sees all.

        The text is searched in subject and body, ignoring case.
        """

    def index_messages(self, limit: int) -> bool:
        """Add up to `limit` messages of an earlier Fairlead to the index of `search`. Return whether more are left."""

    def inbox(
        self, recipient: int, stages: tuple[Stage, ...], *, limit: int, before: int
    ) -> list[tuple[Delivery, Message]]:
        """Return a page of an agent's deliveries in these stages with their messages, newest first."""

    def unanswered_by(self, agent: int, *, limit: int) -> list[UnansweredRequest]:
        """Return the requests to an agent that it has not answered, oldest first, without bounced ones."""

    def unanswered_from(self, agent: int, *, limit: int) -> list[UnansweredRequest]:
        """Return the requests of an agent that others have not answered, oldest first, without bounced ones.

        A request appears once for each recipient.
        """

    def unanswered_among(self, messages: Sequence[int]) -> list[UnansweredRequest]:
        """Return the unanswered requests among these messages, including bounced ones.

        A request appears once for each recipient that has not answered it.
        """

    def mail_counts(self, agents: Collection[int]) -> dict[int, MailCounts]:
        """Return the counts of these agents, by agent. Agents whose counts are all zero are left out."""

    # -- delivery --------------------------------------------------------------------------------------

    def show(
        self, recipient: int, *, event: str, event_id: str, at: float, limit: int, urgent_only: bool
    ) -> list[Message]:
        """Mark the first queued deliveries of an agent as shown at an event, and return their messages in order.

        With `urgent_only`, only urgent deliveries, and earlier deliveries in the same threads.
        """

    def show_all_counted(self, recipient: int, *, event: str, event_id: str, at: float) -> QueueSummary:
        """Mark all queued deliveries of an agent as shown at an event, and return how many each sender sent."""

    def requeue(self, event_id: str, bounce_reason: str, *, may_repeat: bool = False) -> dict[int, QueueSize]:
        """Queue the deliveries again that were shown at an event and not read since. Return by agent how many.

        Deliveries to an agent that has ended bounce instead, for the given reason. With `may_repeat`, the next `show`
        returns the messages with `Message.may_repeat` set.
        """

    def mark_read(self, recipient: int, message: int, at: float) -> Stage | None:
        """Mark a delivery as read, unless it was read or answered before, and return its previous stage.

        Returns None if there is no such delivery.
        """

    # -- pruning ---------------------------------------------------------------------------------------

    def prune_messages(self, older_than: float, *, after: tuple[float, int] | None, limit: int) -> PruneStep:
        """Check up to `limit` messages from before a Unix time, oldest first, and delete those that are not queued.

        Messages that are on their way to another host are kept, too. `after` is the previous step's
        `PruneStep.after`; None at first.
        """

    def prune_agents(self, older_than: float) -> list[int]:
        """Delete agents that ended before a Unix time and that no message refers to, and return their ids."""

    def release_space(self) -> int:
        """Release some unused space to the file system, and return how many bytes; 0 if there is none."""
