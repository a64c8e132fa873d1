"""The JSON documents of the mail over HTTP: what a request may say, and what is answered.

Unknown fields of newer commands are ignored. In an answer every key is always present. Imports nothing of the team.
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
"""In seconds."""
MAX_ID = 2**62
"""Larger than the id of any message in a database."""

Presence = Literal["active", "idle", "offline"]

DeliveryTime = Literal["now", "at its next event", "at its next prompt", "gone"]
"""When an agent is shown a message. In this order: it waits for mail, works, is idle, or has ended."""

_ACTIVE = 300.0
_OFFLINE = 1800.0
"""Seconds without activity after which an agent without a known session is offline.

An agent that waits for mail has no activity, so one whose session is alive is never offline.
"""
_PREVIEW = 200
_NONE = MailCounts()
_Count = Annotated[int, msgspec.Meta(ge=1, le=200)]
_Id = Annotated[int, msgspec.Meta(ge=0, le=MAX_ID)]


# -- requests ------------------------------------------------------------------------------------------


class MailRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of all requests: who the caller claims to be, and its folder."""

    name: str = msgspec.field(name="as", default="")
    session: str = ""
    variable: str = ""
    cwd: str = ""

    def claim(self) -> Claim:
        """Return who the caller claims to be."""
        return Claim(self.name, self.session, self.variable, self.cwd)


class SendRequest(MailRequest, frozen=True, kw_only=True):
    """Send a message."""

    to: tuple[str, ...]
    subject: str = ""
    body: str = ""
    priority: Priority = "normal"
    intent: Intent = "inform"
    deadline: float = 0.0
    key: str = ""


class ReplyRequest(MailRequest, frozen=True, kw_only=True):
    """Reply to a message."""

    body: str
    subject: str = ""
    all: bool = False
    priority: Priority = "normal"
    intent: Intent = "inform"
    deadline: float = 0.0
    key: str = ""


class InboxRequest(MailRequest, frozen=True, kw_only=True):
    """Read a page of the inbox."""

    all: bool = False
    sender: str = msgspec.field(name="from", default="")
    search: str = ""
    limit: _Count = 20
    before: _Id = 0


class PollRequest(MailRequest, frozen=True, kw_only=True):
    """Return new mail, or wait for it."""

    wait: Annotated[float, msgspec.Meta(ge=0, le=MAX_WAIT)] = 0.0
    format: Literal["text", "json", "hook", "context"] = "json"
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] = msgspec.field(default_factory=lambda: uuid4().hex)
    """Identifies the poll, so that it can be undone."""
    receipt: bool = False
    """Whether the caller gives a receipt when it has printed the mail (`ipc.give_receipt`)."""
    undo: str = ""
    """The id of a poll whose mail was not printed and is to be queued again."""


class AgentsRequest(MailRequest, frozen=True, kw_only=True):
    """List agents."""

    all: bool = False
    project: str = ""


class HeartbeatRequest(MailRequest, frozen=True, kw_only=True):
    """Mark the session as alive."""

    start: bool = False

    def claim(self) -> Claim:
        """Return who the caller claims to be. With `start`, the session is created if it does not exist."""
        return msgspec.structs.replace(super().claim(), is_start=self.start)


class IdentityRequest(MailRequest, frozen=True, kw_only=True):
    """Change the identity of an agent."""

    action: Literal["save", "restore", "rename"]
    new: str = ""
    """The new name."""
    status: str = ""


class TasksRequest(MailRequest, frozen=True, kw_only=True):
    """List the tasks of a session."""

    all: bool = False
    folder: str = ""
    """The folder with the client's task lists."""


class ListenRequest(MailRequest, frozen=True, kw_only=True):
    """Join or leave a topic."""

    action: Literal["join", "leave"]
    topic: str


# -- answers -------------------------------------------------------------------------------------------


def presence(agent: Agent, session: Session | None, now: float) -> Presence:
    """Return the presence of an agent, by its last event and the state of its session."""
    quiet = now - max(agent.seen, session.last_activity if session else 0.0)
    if agent.id == USER.id:
        return "active" if quiet < _ACTIVE else "idle"
    if has_ended(agent, session):
        return "offline"
    if quiet < _ACTIVE or (session is not None and not isinstance(session.state, Idle)):
        return "active"
    return "idle" if session is not None or quiet < _OFFLINE else "offline"


def delivery_time(agent: Agent, session: Session | None, *, is_listening: bool) -> DeliveryTime:
    """Return when an agent is shown a message that is sent now. A person sees it at once in `fairlead watch`."""
    if agent.id == USER.id or (is_listening and not has_ended(agent, session)):
        return "now"
    if has_ended(agent, session):
        return "gone"
    is_working = session is not None and (session.in_turn or not isinstance(session.state, Idle))
    return "at its next event" if is_working else "at its next prompt"


def has_ended(agent: Agent, session: Session | None) -> bool:
    """Return whether an agent has ended. The session shows it first, and the mail a moment later."""
    return bool(agent.ended) or (session is not None and session.ended is not None)


def session_of(agent: Agent, sessions: Sessions) -> Session | None:
    """Return the session of an agent or a subagent."""
    return sessions(f"{agent.session}/{agent.agent_id}" if agent.agent_id else agent.session)


def agent_document(
    agent: Agent, counts: MailCounts, session: Session | None, now: float, *, is_listening: bool = False
) -> dict[str, Any]:
    """Return the document of an agent."""
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
    """Return the documents of agents."""
    return [
        agent_document(
            agent, counts.get(agent.id, _NONE), session_of(agent, sessions), now, is_listening=is_listening(agent.id)
        )
        for agent in agents
    ]


def message_document(message: Message, *, whole: bool) -> dict[str, Any]:
    """Return the document of a message, with its body if `whole`, else with the beginning of the body."""
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
    """Return the delivery status of a message for one recipient."""
    fields = msgspec.structs.asdict(delivery)
    fields["on_its_way"] = fields.pop("in_transit_since")  # the key that programs read
    return fields


def inbox_document(delivery: Delivery, message: Message) -> dict[str, Any]:
    """Return the document of a message in an inbox."""
    keys = ("recipient", "stage", "queued", "shown", "event", "read", "answered", "bounced", "why")
    return message_document(message, whole=False) | {key: getattr(delivery, key) for key in keys}


def sent_document(
    sent: SendResult, sessions: Sessions, now: float, is_listening: Callable[[int], bool]
) -> dict[str, Any]:
    """Return the document of a sent message."""
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
    """The other hosts of a team, by their newest snapshots."""

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection to the relay."""

    def agent_status(self, agent: Agent) -> AgentStatus | None:
        """Return the status of an agent of another host; None if it is unknown."""

    def host_name(self, host: str) -> str:
        """Return the name of a host."""

    def remote_hosts(self) -> Iterable[tuple[str, RemoteHost]]:
        """Return the name and the data of each host."""


def recipient_fields(agent: Agent, team: TeamView | None) -> dict[str, Any]:
    """Return the fields about a recipient on another host: its host, its presence, and when it is shown a message."""
    if not agent.host:
        return {"host": ""}
    name = agent.name.rpartition("@")[2]
    remote = team.agent_status(agent) if team is not None else None
    known = {"presence": remote.presence, "reach": remote.reach} if remote is not None else {"reach": ""}
    return {"host": name, "is_connected": team is not None and team.is_connected, **known}


def host_documents(team: TeamView | None, project: str | None, now: float) -> list[dict[str, Any]]:
    """Return the agents of the other hosts, of all projects or of one.

    Projects of other hosts are compared by the name of the folder, because their paths may differ.
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
