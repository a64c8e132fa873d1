"""Encodes and decodes the snapshots that hosts publish: their agents, sessions and open questions.

The caller verifies the signature of a snapshot before it is decoded.
"""

from __future__ import annotations

import hashlib
from time import time
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.daemon._loop_calls import call_in_loop
from fairlead.daemon.http._mail_documents import DeliveryTime, Presence, delivery_time, presence, session_of
from fairlead.daemon.team.answers._published import PublishedQuestions, read_questions
from fairlead.errors import FairleadError
from fairlead.journal import redact_for_others
from fairlead.policy import load_user_wide
from fairlead.sessions import Session, bounded_session

if TYPE_CHECKING:
    from fairlead.daemon.answers._questions import Question
    from fairlead.daemon.answers._service import AnswerService
    from fairlead.daemon.mail._service import MailService
    from fairlead.daemon.sessions._tracker import SessionTracker
    from fairlead.mail import Agent, MessageService

_MAX_SESSIONS = 300
_MAX_TEXT = 300
_MAX_BYTES = 512 * 1024


class AgentStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """The status of one agent, as its host describes it."""

    name: str = ""
    project: str = ""
    reach: DeliveryTime = "at its next prompt"
    """When the agent is shown a message that is sent now."""
    presence: Presence = "offline"
    doing: str = ""
    """The state of its session, in one word."""
    session: str = ""
    """The id of its session or subagent in the list of sessions."""


class AgentStatuses(msgspec.Struct, frozen=True, kw_only=True):
    """The statuses of all agents of a host, which are added to the snapshot of its mail.

    Fields of a newer version are ignored.
    """

    agents: dict[str, AgentStatus] = {}
    """By the agent's id on that host."""
    offset: float = 0.0
    """How many seconds the relay's clock is ahead of that host's."""


class AgentsBody(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a snapshot `agents` that is read here. The mail reads the rest."""

    news: AgentStatuses = AgentStatuses()


class SessionsBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a snapshot `sessions`."""

    sessions: list[msgspec.Raw] = []
    left_out: int = 0
    """How many sessions were left out because there were too many."""
    questions: list[msgspec.Raw] = []
    """The questions that can be answered on other hosts."""
    answers: bool | list[str] = False
    """The setting `team.answers`: the names of the hosts that can answer; `True` for all hosts, `False` for none."""


class RemoteHost(msgspec.Struct, frozen=True, kw_only=True):
    """The content of another host's newest snapshots."""

    agents: dict[str, AgentStatus] = {}
    """By the agent's id on that host."""
    offset: float = 0.0
    """How many seconds the relay's clock is ahead of that host's."""
    sessions: tuple[Session, ...] = ()
    left_out: int = 0
    questions: tuple[Question, ...] = ()
    answers: bool | list[str] = False
    at: float = 0.0
    """The time at which the relay received the last snapshot, by this host's clock."""

    def takes_answers_of(self, host: str) -> bool:
        """Return whether a person on another host can answer questions of this remote host."""
        return takes_answers(self.answers, host)


class LocalSnapshots:
    """Builds the snapshots of this host. For the thread of the team."""

    def __init__(self, mail: MailService, tracker: SessionTracker, answers: AnswerService) -> None:
        self._mail = mail
        self._tracker = tracker
        self._answers = answers
        self.questions = PublishedQuestions()

    def agents(self, service: MessageService, offset: float) -> bytes:
        """Return the body of the snapshot `agents`.

        `offset` is how many seconds the relay's clock is ahead of this host's. Raises `DaemonNotResponding` if the
        event loop does not answer.
        """
        known, waiting, _ = self._read_state()
        by_id = {session.id: session for session in known}
        now = time()

        def status(agent: Agent) -> AgentStatus:
            session = session_of(agent, by_id.get)
            listens = agent.id in waiting
            return AgentStatus(
                name=agent.name,
                project=agent.project,
                reach=delivery_time(agent, session, is_listening=listens),
                presence=presence(agent, session, now),
                doing=_state_name(session),
                session=f"{agent.session}/{agent.agent_id}" if agent.agent_id else agent.session,
            )

        agents = {str(agent.id): status(agent) for agent in service.agents()}
        document = msgspec.json.decode(service.team.local_snapshot(), type=dict[str, msgspec.Raw])
        document["news"] = msgspec.Raw(msgspec.json.encode(AgentStatuses(agents=agents, offset=round(offset, 1))))
        return msgspec.json.encode(document)

    def sessions(self) -> bytes:
        """Return the body of the snapshot `sessions`: running sessions up to a limit, and questions, without secrets.

        Raises `DaemonNotResponding` if the event loop does not answer.
        """
        known, _, questions = self._read_state()
        answers = answers_setting()
        rows: list[msgspec.Raw] = []
        size = 0
        running = [session for session in known if session.ended is None]
        for session in running[:_MAX_SESSIONS]:
            row = redact_for_others(msgspec.json.encode(_shortened(session)))
            size += len(row)
            if size > _MAX_BYTES:
                break
            rows.append(msgspec.Raw(row))
        published = self.questions.prepare(questions, is_on=bool(answers))
        left_out = len(running) - len(rows)
        return msgspec.json.encode(SessionsBody(sessions=rows, left_out=left_out, questions=published, answers=answers))

    def _read_state(self) -> tuple[list[Session], frozenset[int], list[Question]]:
        assert self._mail.loop is not None, "there is a mail service"  # the event loop has opened it
        return call_in_loop(self._mail.loop, self._read_state_in_loop)

    def _read_state_in_loop(self) -> tuple[list[Session], frozenset[int], list[Question]]:
        return self._tracker.sessions(), self._mail.waiters.waiting_agents(), self._answers.questions()


def answers_setting() -> bool | list[str]:
    """Return the setting that names the hosts on which questions of this host can be answered. Reads files.

    Returns `False` if the user-wide policy does not allow answers outside of the client, or cannot be read.
    """
    try:
        policy = load_user_wide()
    except FairleadError:
        return False
    return policy.team.answers if policy.attention.answer else False


def takes_answers(setting: bool | list[str], host: str) -> bool:  # noqa: FBT001 - a value of the policy
    """Return whether a value of `team.answers` includes a host."""
    return setting if isinstance(setting, bool) else host in setting


def read_agents(body: bytes) -> AgentStatuses:
    """Return the statuses in the body of a snapshot `agents`; none if it cannot be decoded."""
    try:
        return msgspec.json.decode(body, type=AgentsBody).news
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return AgentStatuses()


def read_sessions(body: bytes, host: str, shift: float, before: RemoteHost) -> RemoteHost:
    """Return `before` with the sessions and questions of a snapshot `sessions` instead of its own.

    Sessions that this version cannot decode are left out. `host` is the name of the host that published the snapshot,
    `shift` how many seconds its clock is behind this host's.
    """
    try:
        decoded = msgspec.json.decode(body, type=SessionsBody)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        decoded = SessionsBody()
    sessions: list[Session] = []
    for row in decoded.sessions[:_MAX_SESSIONS]:
        try:
            session = msgspec.json.decode(row, type=Session)
        except msgspec.MsgspecError:
            continue  # from a newer version
        sessions.append(_shifted(msgspec.structs.replace(session, host=host), shift))
    return msgspec.structs.replace(
        before,
        sessions=tuple(sessions),
        left_out=decoded.left_out + len(decoded.sessions) - len(sessions),
        questions=read_questions(decoded.questions, host),
        answers=decoded.answers,
    )


def _shifted(session: Session, shift: float) -> Session:
    """Return a session with its times by the clock of this host."""
    if not shift:
        return session
    evidence = session.evidence
    return msgspec.structs.replace(
        session,
        since=session.since + shift,
        started=session.started + shift,
        last_activity=session.last_activity + shift,
        evidence=msgspec.structs.replace(evidence, at=evidence.at + shift) if evidence else None,
    )


def digest(body: bytes) -> bytes:
    """Return the SHA-256 of a body, by which a change is recognized."""
    return hashlib.sha256(body).digest()


def _state_name(session: Session | None) -> str:
    return "" if session is None else session.state.__class__.__name__.lower()


def _shortened(session: Session) -> Session:
    """Return a session with short texts, and without fields that are useful only on its own host."""
    session = bounded_session(session)
    kept: dict[str, Any] = {
        name: value[:_MAX_TEXT]
        for name in session.__struct_fields__
        if isinstance(value := getattr(session, name), str) and len(value) > _MAX_TEXT
    }
    return msgspec.structs.replace(session, **kept, transcript="", tmux="", pane="", others=(), pid=0, pid_start=0)
