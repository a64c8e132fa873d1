"""What hosts tell each other about themselves: their agents, and when these are shown mail; their sessions.

The bodies of snapshots, written and read. Who may be believed is for the caller, which has verified the signature.
"""

from __future__ import annotations

import hashlib
from time import time
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.daemon._loop_calls import call_in_loop
from fairlead.daemon.http._mail_documents import Presence, Reach, presence, reach, session_of
from fairlead.journal import redact_for_others
from fairlead.sessions import Session

if TYPE_CHECKING:
    from fairlead.daemon.mail._service import MailService
    from fairlead.daemon.sessions._tracker import SessionTracker
    from fairlead.mail import Agent, MessageService

_MAX_SESSIONS = 300
_MAX_TEXT = 300
_MAX_BYTES = 512 * 1024


class AgentNews(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a host tells about one of its agents."""

    name: str = ""
    project: str = ""
    reach: Reach = "at its next prompt"
    presence: Presence = "offline"
    doing: str = ""
    """What its session does, in one word."""


class News(msgspec.Struct, frozen=True, kw_only=True):
    """What a host adds to the news of its mail. Fields of a newer version are ignored."""

    agents: dict[str, AgentNews] = {}
    """By the agent's id there."""
    offset: float = 0.0
    """Seconds that the relay's clock is ahead of that host's."""


class AgentsBody(msgspec.Struct, frozen=True, kw_only=True):
    """What is read here of a snapshot `agents`: the rest is for the mail."""

    news: News = News()


class SessionsBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a snapshot `sessions`."""

    sessions: list[msgspec.Raw] = []
    left_out: int = 0
    """Sessions that were too many."""


class HostNews(msgspec.Struct, frozen=True, kw_only=True):
    """The latest news of another host."""

    agents: dict[str, AgentNews] = {}
    offset: float = 0.0
    sessions: tuple[Session, ...] = ()
    left_out: int = 0
    at: float = 0.0
    """When the relay received it, by this host's clock."""


class LocalNews:
    """Makes the snapshots of this host. For the thread of the team."""

    def __init__(self, mail: MailService, tracker: SessionTracker) -> None:
        self._mail = mail
        self._tracker = tracker

    def agents(self, service: MessageService, offset: float) -> bytes:
        """Return the body of the snapshot `agents`."""
        known, waiting = self._look()
        by_id = {session.id: session for session in known}
        now = time()

        def news(agent: Agent) -> AgentNews:
            session = session_of(agent, by_id.get)
            listens = agent.id in waiting
            return AgentNews(
                name=agent.name,
                project=agent.project,
                reach=reach(agent, session, is_listening=listens),
                presence=presence(agent, session, now),
                doing=_doing(session),
            )

        agents = {str(agent.id): news(agent) for agent in service.agents()}
        document = msgspec.json.decode(service.team.local_snapshot(), type=dict[str, msgspec.Raw])
        document["news"] = msgspec.Raw(msgspec.json.encode(News(agents=agents, offset=round(offset, 1))))
        return msgspec.json.encode(document)

    def sessions(self) -> bytes:
        """Return the body of the snapshot `sessions`: those that run, without secrets, and not too many."""
        known, _ = self._look()
        rows: list[msgspec.Raw] = []
        size = 0
        running = [session for session in known if session.ended is None]
        for session in running[:_MAX_SESSIONS]:
            row = redact_for_others(msgspec.json.encode(_shortened(session)))
            size += len(row)
            if size > _MAX_BYTES:
                break
            rows.append(msgspec.Raw(row))
        return msgspec.json.encode(SessionsBody(sessions=rows, left_out=len(running) - len(rows)))

    def _look(self) -> tuple[list[Session], frozenset[int]]:
        assert self._mail.loop is not None, "there is a mail service"  # noqa: S101 - the loop has opened it
        return call_in_loop(self._mail.loop, self._look_in_loop)

    def _look_in_loop(self) -> tuple[list[Session], frozenset[int]]:
        return self._tracker.sessions(), self._mail.waiters.waiting_agents()


def read_agents(body: bytes) -> News:
    """Return the news of a host in the body of a snapshot `agents`; none if they cannot be read."""
    try:
        return msgspec.json.decode(body, type=AgentsBody).news
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return News()


def read_sessions(body: bytes) -> tuple[tuple[Session, ...], int]:
    """Return the sessions of a snapshot that this version understands, and how many it does not show."""
    try:
        decoded = msgspec.json.decode(body, type=SessionsBody)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return (), 0
    sessions: list[Session] = []
    for row in decoded.sessions[:_MAX_SESSIONS]:
        try:
            sessions.append(msgspec.json.decode(row, type=Session))
        except msgspec.MsgspecError:
            continue  # of a newer version
    return tuple(sessions), decoded.left_out + len(decoded.sessions) - len(sessions)


def digest(body: bytes) -> bytes:
    """Return what tells whether a body has changed."""
    return hashlib.sha256(body).digest()


def _doing(session: Session | None) -> str:
    return "" if session is None else session.state.__class__.__name__.lower()


def _shortened(session: Session) -> Session:
    """Return a session without what is of use on its own host alone, and with short texts."""
    kept: dict[str, Any] = {
        name: value[:_MAX_TEXT]
        for name in session.__struct_fields__
        if isinstance(value := getattr(session, name), str) and len(value) > _MAX_TEXT
    }
    return msgspec.structs.replace(session, **kept, transcript="", tmux="", pane="", others=(), pid=0, pid_start=0)
