"""The JSON documents of the mail over HTTP: the fields of requests, and the documents that responses contain.

Unknown fields of newer commands are ignored. In a response every key is always present. Imports nothing of `team`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol
from uuid import uuid4

import msgspec

from fairlead.daemon.mail._caller_identity import Claim
from fairlead.durations import DAY
from fairlead.mail import USER, Intent, MailCounts, Priority
from fairlead.sessions import Idle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.daemon.team._snapshots import AgentStatus, RemoteHost
    from fairlead.mail import Agent, Delivery, Message, SendResult
    from fairlead.sessions import Session

    Sessions = Callable[[str], Session | None]

MAX_WAIT = DAY
"""The longest wait for mail, in seconds."""
MAX_ID = 2**62
"""The largest id in a request. No message has an id that large."""

Presence = Literal["active", "idle", "offline"]

DeliveryTime = Literal["now", "at its next event", "at its next prompt", "gone"]
"""When an agent is shown a message that is sent now.

It is `now` if the agent waits for mail, `at its next event` if it works, `at its next prompt` if it is idle, and `gone`
if it has ended.
"""

_ACTIVE = 300.0
_OFFLINE = 1800.0
"""Seconds without activity after which an agent without a known session is offline.

An agent whose session is alive is never offline, because it has no activity while it waits for mail.
"""
_PREVIEW = 200
_NONE = MailCounts()
_Count = Annotated[int, msgspec.Meta(ge=1, le=200)]
_Id = Annotated[int, msgspec.Meta(ge=0, le=MAX_ID)]


# -- requests ------------------------------------------------------------------------------------------


class MailRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of all requests: who the caller claims to be, as in `Claim`, and its folder."""

    name: str = msgspec.field(name="as", default="")
    session: str = ""
    variable: str = ""
    cwd: str = ""
    """The working folder of the caller."""

    def claim(self) -> Claim:
        """Return who the caller claims to be."""
        return Claim(self.name, self.session, self.variable, self.cwd)


class SendRequest(MailRequest, frozen=True, kw_only=True):
    """Send a message. The fields are those of `Draft`."""

    to: tuple[str, ...]
    subject: str = ""
    body: str = ""
    priority: Priority = "normal"
    intent: Intent = "inform"
    deadline: float = 0.0
    key: str = ""


class ReplyRequest(MailRequest, frozen=True, kw_only=True):
    """Reply to the message in the path. The fields are those of `Draft`."""

    body: str
    subject: str = ""
    all: bool = False
    """Whether the reply also goes to the other recipients of the message."""
    priority: Priority = "normal"
    intent: Intent = "inform"
    deadline: float = 0.0
    key: str = ""


class InboxRequest(MailRequest, frozen=True, kw_only=True):
    """Read a page of the inbox, or search messages."""

    all: bool = False
    """Whether messages are included that were read, answered or bounced. Not used for a search."""
    sender: str = msgspec.field(name="from", default="")
    """Only messages from the agent with this name; empty for all."""
    search: str = ""
    """If not empty, return the messages with this text that the agent wrote or received, instead of the inbox."""
    limit: _Count = 20
    before: _Id = 0
    """The id of the last message of the previous page; 0 for the first page."""


class PollRequest(MailRequest, frozen=True, kw_only=True):
    """Return the queued mail, and wait for mail if there is none."""

    wait: Annotated[float, msgspec.Meta(ge=0, le=MAX_WAIT)] = 0.0
    """How long to wait for mail, in seconds."""
    format: Literal["text", "json", "hook", "context"] = "json"
    """How the command prints the mail. For `context`, the `text` in the response is worded as context of a session."""
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] = msgspec.field(default_factory=lambda: uuid4().hex)
    """Identifies the poll, so that it can be undone or repeated."""
    receipt: bool = False
    """Whether the caller gives a receipt when it has printed the mail (`ipc.give_receipt`)."""
    undo: str = ""
    """The id of an earlier poll whose mail is queued again, because it was not printed. Nothing else is done then."""


class AgentsRequest(MailRequest, frozen=True, kw_only=True):
    """List agents."""

    all: bool = False
    """Whether agents of all projects are listed, including ended ones."""
    project: str = ""
    """A folder in the project whose agents are listed; empty for the project of the caller."""


class HeartbeatRequest(MailRequest, frozen=True, kw_only=True):
    """Mark an agent as active."""

    start: bool = False
    """Whether the session of the agent starts, so that the agent is created or revived if necessary."""

    def claim(self) -> Claim:
        """Return who the caller claims to be, and whether its session starts."""
        return msgspec.structs.replace(super().claim(), is_start=self.start)


class IdentityRequest(MailRequest, frozen=True, kw_only=True):
    """Rename an agent, or save or restore its status."""

    action: Literal["save", "restore", "rename"]
    new: str = ""
    """The new name, for `rename`."""
    status: str = ""
    """The text to save, for `save`."""


class TasksRequest(MailRequest, frozen=True, kw_only=True):
    """List the tasks of a session."""

    all: bool = False
    """Whether tasks that are done are listed, too."""
    folder: str = ""
    """The folder in which the client keeps its configuration and task lists."""


class ListenRequest(MailRequest, frozen=True, kw_only=True):
    """Join or leave a topic."""

    action: Literal["join", "leave"]
    topic: str


# -- answers -------------------------------------------------------------------------------------------


def presence(agent: Agent, session: Session | None, now: float) -> Presence:
    """Return the presence of an agent at the time `now`, by its last activity and the state of its session.

    `session` is None if the tracker does not know it.
    """
    quiet = now - max(agent.seen, session.last_activity if session else 0.0)
    if agent.id == USER.id:
        return "active" if quiet < _ACTIVE else "idle"
    if has_ended(agent, session):
        return "offline"
    if quiet < _ACTIVE or (session is not None and not isinstance(session.state, Idle)):
        return "active"
    return "idle" if session is not None or quiet < _OFFLINE else "offline"


def delivery_time(agent: Agent, session: Session | None, *, is_listening: bool) -> DeliveryTime:
    """Return when an agent is shown a message that is sent now.

    `is_listening` says whether the agent waits for mail. The user sees a message at once, in `fairlead watch`.
    """
    if agent.id == USER.id or (is_listening and not has_ended(agent, session)):
        return "now"
    if has_ended(agent, session):
        return "gone"
    is_working = session is not None and (session.in_turn or not isinstance(session.state, Idle))
    return "at its next event" if is_working else "at its next prompt"


def has_ended(agent: Agent, session: Session | None) -> bool:
    """Return whether an agent or its session has ended. The agent of a session ends a moment after the session."""
    return bool(agent.ended) or (session is not None and session.ended is not None)


def session_of(agent: Agent, sessions: Sessions) -> Session | None:
    """Return the session of an agent, which may be a subagent; None if it is not known."""
    return sessions(f"{agent.session}/{agent.agent_id}" if agent.agent_id else agent.session)


def agent_document(
    agent: Agent, counts: MailCounts, session: Session | None, now: float, *, is_listening: bool = False
) -> dict[str, Any]:
    """Return the document of an agent. `is_listening` says whether it waits for mail."""
    return {
        "name": agent.name,
        "presence": presence(agent, session, now),
        "reach": delivery_time(agent, session, is_listening=is_listening),
        "session": agent.session,
        "agent_id": agent.agent_id,
        "project": agent.project,
        "created": agent.created,
        "seen": max(agent.seen, session.last_activity if session else 0.0),
        "ended": agent.ended,
        "queued": counts.queued,
        "unread": counts.unread,
        "owes": counts.owes,
        "owed": counts.owed,
        "is": msgspec.to_builtins(session) if session else None,
    }


def agent_documents(
    agents: Iterable[Agent],
    counts: dict[int, MailCounts],
    sessions: Sessions,
    now: float,
    is_listening: Callable[[int], bool],
) -> list[dict[str, Any]]:
    """Return the documents of agents, in order. `counts` are by agent id; missing ones are zero."""
    return [
        agent_document(
            agent, counts.get(agent.id, _NONE), session_of(agent, sessions), now, is_listening=is_listening(agent.id)
        )
        for agent in agents
    ]


def message_document(message: Message, *, whole: bool) -> dict[str, Any]:
    """Return the document of a message.

    It has the body if `whole`, else the beginning of the body and the number of characters in it.
    """
    row = {
        "id": message.id,
        "at": message.at,
        "from": message.sender,
        "to": list(message.to),
        "subject": message.subject,
        "priority": message.priority,
        "intent": message.intent,
        "thread": message.thread,
        "reply_to": message.reply_to,
        "deadline": message.deadline,
        "project": message.project,
    }
    return row | ({"body": message.body} if whole else {"preview": message.body[:_PREVIEW], "size": len(message.body)})


def delivery_document(delivery: Delivery) -> dict[str, Any]:
    """Return the document of a delivery. Its key `on_its_way` has `Delivery.in_transit_since`."""
    fields = msgspec.structs.asdict(delivery)
    fields["on_its_way"] = fields.pop("in_transit_since")  # the key that programs read
    return fields


def inbox_document(delivery: Delivery, message: Message) -> dict[str, Any]:
    """Return the document of a message in an inbox, with the beginning of its body and the fields of its delivery."""
    keys = ("recipient", "stage", "queued", "shown", "event", "read", "answered", "bounced", "why")
    return message_document(message, whole=False) | {key: getattr(delivery, key) for key in keys}


def sent_document(
    sent: SendResult, sessions: Sessions, now: float, is_listening: Callable[[int], bool]
) -> dict[str, Any]:
    """Return the document of a sent message, with the presence of each recipient and when it is shown the message."""
    return {
        "id": sent.message.id,
        "thread": sent.message.thread,
        "new": sent.is_new,
        "from": sent.message.sender,
        "recipients": [
            _recipient_document(
                recipient, session_of(recipient, sessions), now, is_listening=is_listening(recipient.id)
            )
            for recipient in sent.recipients
        ],
    }


def _recipient_document(agent: Agent, session: Session | None, now: float, *, is_listening: bool) -> dict[str, Any]:
    return {
        "name": agent.name,
        "presence": presence(agent, session, now),
        "reach": delivery_time(agent, session, is_listening=is_listening),
    }


# -- other hosts ---------------------------------------------------------------------------------------


class TeamView(Protocol):
    """What the newest snapshots of the other hosts of a team contain."""

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection to the relay."""

    def agent_status(self, agent: Agent) -> AgentStatus | None:
        """Return the status of an agent of another host; None if it is unknown."""

    def host_name(self, host: str) -> str:
        """Return the name of the host with that id."""

    def remote_hosts(self) -> Iterable[tuple[str, RemoteHost]]:
        """Return the name and the data of each other host."""


def recipient_fields(agent: Agent, team: TeamView | None) -> dict[str, Any]:
    """Return the fields of a recipient's document that depend on its host.

    For an agent of another host, these are the host's name, whether there is a connection to the relay, the presence,
    and when it is shown a message. `team` is None if this host is in no team.
    """
    if not agent.host:
        return {"host": ""}
    name = agent.name.rpartition("@")[2]
    remote = team.agent_status(agent) if team is not None else None
    known = {"presence": remote.presence, "reach": remote.reach} if remote is not None else {"reach": ""}
    return {"host": name, "is_connected": team is not None and team.is_connected, **known}


def host_documents(team: TeamView | None, project: str | None, now: float) -> list[dict[str, Any]]:
    """Return a document of each other host, with its agents: all, or only those of `project`.

    Projects of other hosts are compared by the names of their folders, because the paths may differ. `now` is the time
    from which the age of each snapshot is computed.
    """
    wanted = None if project is None else project.rstrip("/").rpartition("/")[2]
    return [
        {
            "host": name,
            "age": round(max(0.0, now - remote.at), 1),
            "agents": [
                {
                    "name": f"{agent.name}@{name}",
                    "project": agent.project,
                    "presence": agent.presence,
                    "reach": agent.reach,
                    "doing": agent.doing,
                    "session": agent.session,
                }
                for agent in sorted(remote.agents.values(), key=lambda agent: agent.name)
                if wanted is None or agent.project.rstrip("/").rpartition("/")[2] == wanted
            ],
        }
        for name, remote in (team.remote_hosts() if team is not None else ())
    ]
