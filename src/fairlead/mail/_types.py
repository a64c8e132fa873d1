"""The values of the mail: agents, messages, deliveries. Knows neither how they are stored nor how they are shown."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import msgspec

Priority = Literal["urgent", "normal", "low"]
Intent = Literal["request", "inform", "ack"]
Stage = Literal["queued", "shown", "read", "answered", "bounced"]

PRIORITIES: Final[tuple[Priority, ...]] = ("urgent", "normal", "low")
INTENTS: Final[tuple[Intent, ...]] = ("request", "inform", "ack")
STAGES: Final[tuple[Stage, ...]] = ("queued", "shown", "read", "answered", "bounced")

MAX_BODY_BYTES: Final = 1024 * 1024
"""The maximum size of a body in UTF-8."""
MAX_SUBJECT_LENGTH: Final = 500
MAX_KEY_LENGTH: Final = 200
MAX_RECIPIENTS: Final = 1000


class Agent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A sender or recipient: a session, a subagent, the user, Fairlead itself, or a program."""

    id: int
    name: str
    """Unique among all stored agents, ignoring case."""
    session: str = ""
    """The client's session id; for a subagent, the session id of its parent."""
    project: str = ""
    """The folder of the agent's project; empty if it has none."""
    parent: int = 0
    """For a subagent: the id of the agent of its session. 0 for all other agents."""
    agent_id: str = ""
    """For a subagent: the id that the client gave it. Empty for all other agents."""
    created: float = 0.0
    seen: float = 0.0
    """The Unix time at which it was last active."""
    ended: float = 0.0
    """The Unix time at which it ended; 0 while it is alive."""
    saved: str = ""
    """A text that the agent saved. The agent is reminded of the text after a compaction."""
    host: str = ""
    """The id of the agent's host; empty for this host."""
    remote: int = 0
    """For an agent of another host: its id on that host. 0 for agents of this host."""


USER: Final = Agent(id=1, name="User")
"""The human user."""
FAIRLEAD: Final = Agent(id=2, name="Fairlead")
"""The sender of notices; it receives no mail."""
SCRIPT: Final = Agent(id=3, name="Script")
"""The sender of mail from programs that belong to no session and have no terminal."""
FIRST_ID: Final = 10
"""The first id for sessions and subagents."""
FIRST_REMOTE_ID: Final = 2**40
"""The first id for agents of other hosts. Triggers of the database contain the same number."""


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A message as it was sent at the Unix time `at`. It never changes; its state is in its deliveries."""

    id: int
    """Increases in the order in which messages were accepted, independent of the clock."""
    at: float
    sender: str
    to: tuple[str, ...]
    """The addresses, each in its normal form. `#build` is not replaced by its subscribers."""
    subject: str
    body: str = ""
    priority: Priority = "normal"
    intent: Intent = "inform"
    thread: int
    """The id of the first message of the thread, which may be this one."""
    reply_to: int = 0
    """The id of the message that this one answers; 0 for none."""
    deadline: float = 0.0
    """Unix time by which a request should be answered; 0 for none."""
    project: str = ""
    may_repeat: bool = False
    """Whether it may have been shown before, because the process that printed it was killed before it had finished."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The state of one message for one recipient: a row of the ledger.

    `queued`, `shown`, `read`, `answered` and `bounced` are Unix times; 0 if it has not happened.
    """

    message: int
    recipient: str
    stage: Stage
    queued: float
    shown: float = 0.0
    event: str = ""
    """The name of the event at which it was shown; empty if it was not."""
    read: float = 0.0
    answered: float = 0.0
    bounced: float = 0.0
    why: str = ""
    """The reason why it bounced, or was queued again."""
    host: str = ""
    """The name of the recipient's host; empty for this host."""
    in_transit_since: float = 0.0
    """The Unix time at which the message was sent, while it has not arrived on the recipient's host; else 0."""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A message to be sent."""

    to: tuple[str, ...]
    """Names of agents, `#topic` or `everyone`."""
    subject: str
    body: str = ""
    priority: Priority = "normal"
    intent: Intent = "inform"
    reply_to: int = 0
    deadline: float = 0.0
    """Unix time by which a request should be answered; 0 for none."""
    key: str = ""
    """The idempotency key; empty for none. A second draft with the same key and sender is not sent."""


class SendResult(msgspec.Struct, frozen=True, kw_only=True):
    """The message that was made from a draft, and its recipients."""

    message: Message
    recipients: tuple[Agent, ...]
    """Includes recipients that have ended. A delivery to one bounces, and is queued when the recipient is resumed."""
    is_new: bool = True
    """False if the idempotency key was used before. `message` is then the earlier message, and nothing was sent."""


class QueueSummary(msgspec.Struct, frozen=True):
    """A count of messages that are too many to be shown one by one."""

    senders: tuple[tuple[str, int], ...]
    """Each sender with its number of messages, the highest number first."""
    requests: int = 0
    """How many of the messages are requests."""

    @property
    def count(self) -> int:
        """The number of messages."""
        return sum(number for _, number in self.senders)


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic and its subscribers."""

    name: str
    """Without the `#`."""
    subscribers: tuple[str, ...]
    """The names of the subscribers, those on other hosts in the form `name@host`."""


class MailCounts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many messages and requests are open for one agent."""

    queued: int = 0
    """Messages that were not shown yet."""
    unread: int = 0
    """Messages that were not read yet, shown or not."""
    owes: int = 0
    """Requests to the agent that it has not answered."""
    owed: int = 0
    """Requests of the agent that others have not answered, counted per recipient."""


class WaitingMail(NamedTuple):
    """An agent, and how much mail waits for it."""

    agent: Agent
    queued: int
    """Deliveries that were not shown yet."""
    urgent: int
    """How many of these are urgent."""
    may_owe_reply: bool
    """Whether the agent may have seen a request that it has not answered."""
