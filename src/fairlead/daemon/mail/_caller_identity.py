"""Identifies the caller of a command by its process, and not by what it claims.

- A command below the process of a session belongs to that session's agent, or to the subagent in whose shell call it
  runs. A command of the session itself may act for its subagents. A command of a subagent may act for no other agent.
- Any other command with a terminal belongs to the user, who may act for every agent.
- All others are programs. A program that names a session is accepted as that session unless the session's process is in
  the process table. This is for containers, and for sessions whose process has ended.

This prevents agents from acting for others by mistake or by an option. It is not a security boundary between programs
of one user, which can also write each other's files.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Literal

import msgspec

from fairlead.clients import client_or_default
from fairlead.daemon.events._extension import EventExtension
from fairlead.events import PostToolUse, PostToolUseFailure, PreToolUse, SessionEnd, SubagentStop
from fairlead.mail import FAIRLEAD, SCRIPT, USER, NoSuchAgent, NotYours
from fairlead.process import dead_processes
from fairlead.sessions import project_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.clients import Client
    from fairlead.daemon.events._extension import EventContext
    from fairlead.events import Event
    from fairlead.journal import EventRecord
    from fairlead.mail import Agent, MessageService
    from fairlead.sessions import Session

_MAX_CALLS = 5000
_IGNORED = str.maketrans("", "", " \t\r\n'\"\\")
"""Characters that the client may add or remove when it quotes a command: whitespace, quotes, backslashes."""


class Claim(msgspec.Struct, frozen=True):
    """Who a caller claims to be. Fields that it does not set are empty."""

    name: str = ""
    """The option `--as`."""
    session: str = ""
    """The option `--session`."""
    variable: str = ""
    """The session id in the client's environment variable."""
    cwd: str = ""
    """The working folder of the caller, which determines the project of a new session."""
    is_start: bool = False
    """Whether the claimed session starts, so that it is created if it is unknown."""


class Observation(msgspec.Struct, frozen=True):
    """What the daemon has observed about a caller."""

    own: tuple[Session, ...] = ()
    """The sessions of the caller's nearest ancestor process with a session, the last active session last."""
    is_common: bool = False
    """Whether that process is also an ancestor of the daemon: the init process, or another that adopts orphans."""
    has_terminal: bool = False
    """Whether the caller has a controlling terminal."""
    claimed: Session | None = None
    """The session that the caller claims to be; None if it claims none, or the session is not known."""
    agent_ids: frozenset[str] = frozenset({""})
    """The ids of the subagents that may run the command; "" is the session itself."""


class IdentifiedCaller(msgspec.Struct, frozen=True):
    """The identity of a caller, and how it was found."""

    agent: Agent
    """The agent on whose behalf the caller acts."""
    how: Literal["process", "terminal", "session id", "program"]
    """What identified the caller: its process, its terminal, the session id that it names, or nothing (`program`)."""

    @property
    def is_person(self) -> bool:
        """Whether the user is the caller, possibly on behalf of an agent."""
        return self.how == "terminal"


def identify(service: MessageService, observed: Observation, claim: Claim) -> IdentifiedCaller:
    """Return the identity of a caller.

    Raises `NotYours` if it may not act for the agent that it claims to be, or if several agents may be the caller, and
    `NoSuchAgent` if the claimed agent does not exist.
    """
    if observed.own and (not observed.is_common or _is_named(observed.own, claim)):
        return IdentifiedCaller(_in_session(service, observed, claim), "process")
    if observed.has_terminal:
        return IdentifiedCaller(_at_terminal(service, observed, claim), "terminal")
    wanted = claim.session or claim.variable
    if wanted and (claim.session or _may_be_caller(service, observed.claimed, wanted)):
        return IdentifiedCaller(_by_session_id(service, observed, claim), "session id")
    if claim.name and claim.name.lower() != SCRIPT.name.lower():
        raise NotYours(
            f"this command runs in no session and has no terminal, so it cannot act for {claim.name}; "
            f"leave --as out, and it acts as {SCRIPT.name}"
        )
    return IdentifiedCaller(SCRIPT, "program")


def _is_named(own: tuple[Session, ...], claim: Claim) -> bool:
    """Return whether the caller names one of the sessions of an ancestor that it shares with the daemon.

    Such an ancestor alone proves nothing, because every orphaned process is its child.
    """
    return bool({claim.session, claim.variable} & _ids(own).keys())


def _ids(own: tuple[Session, ...]) -> dict[str, Session]:
    return {name: session for session in own for name in (*session.previous, session.id)}


def _in_session(service: MessageService, observed: Observation, claim: Claim) -> Agent:
    """Return the agent for a command below the process of a session: the session's agent or one of its subagents.

    Raises `NotYours` if the caller claims to be another agent, or if several agents may run the command.
    """
    own = observed.own
    ids = _ids(own)
    if claim.session and claim.session not in ids:
        raise NotYours(
            f"this command runs in the session {own[-1].id}, so it cannot act for {claim.session}; "
            "no agent can use the name of another"
        )
    chosen = ids.get(claim.session or claim.variable, own[-1])
    running = _running(service, chosen, observed.agent_ids)
    if not claim.name:
        return _only_agent(running, is_session_named=bool(claim.session))
    asked = service.find_by_name(claim.name)
    if all(agent.parent for agent in running) and all(agent.id != asked.id for agent in running):
        raise NotYours(f"this command runs in a call of {running[0].name}, so it cannot act for {asked.name}")
    if all(asked.session != _agent_of(service, session).session for session in own):
        raise NotYours(
            f"this command runs in the session of {_agent_of(service, chosen).name}, so it cannot act for "
            f"{asked.name}; no agent can use the name of another"
        )
    return asked


def _running(service: MessageService, session: Session, agent_ids: frozenset[str]) -> list[Agent]:
    """Return the agents of a session that may run the command, the session's own agent first."""
    own = _agent_of(service, session)
    return [service.ensure_agent(own.session, agent_id=agent_id) if agent_id else own for agent_id in sorted(agent_ids)]


def _only_agent(running: list[Agent], *, is_session_named: bool) -> Agent:
    """Return the only agent that may run the command, or the session's agent if the caller names the session.

    Raises `NotYours` otherwise, so that no agent gets the mail of another.
    """
    if len(running) == 1 or (is_session_named and not running[0].parent):
        return running[0]
    names = " or ".join(f"--as {agent.name}" for agent in running)
    raise NotYours(f"several agents of this session run commands now, and this one may be any's; add {names}")


def _at_terminal(service: MessageService, observed: Observation, claim: Claim) -> Agent:
    if claim.name:
        asked = service.find_by_name(claim.name)
        if asked.id == FAIRLEAD.id:
            raise NotYours(f"nobody can act for {FAIRLEAD.name}: it only sends notices")
        return asked
    return _known(service, observed, claim) if claim.session else USER


def _by_session_id(service: MessageService, observed: Observation, claim: Claim) -> Agent:
    session = observed.claimed
    if session is not None and _runs_here(session):
        raise NotYours(
            f"session {session.id} runs as process {session.pid}, which did not start this command; "
            "no agent can use the name of another"
        )
    mine = _known(service, observed, claim)
    if not claim.name:
        running = _running(service, session, observed.agent_ids) if session is not None else [mine]
        return _only_agent(running, is_session_named=bool(claim.session))
    asked = service.find_by_name(claim.name)
    if asked.session != mine.session:
        raise NotYours(f"the session {mine.session} is {mine.name}, so it cannot act for {asked.name}")
    return asked


def _may_be_caller(service: MessageService, claimed: Session | None, wanted: str) -> bool:
    """Return whether the session `wanted`, from the client's variable, can be the session of the caller.

    `claimed` is that session; None if the tracker does not know it.
    """
    return not _runs_here(claimed) if claimed is not None else service.find_by_session(wanted) is not None


def _runs_here(session: Session) -> bool:
    """Return whether a session has not ended and one of its processes is in the process table.

    A pid without a start time is ignored.
    """
    processes: Iterable[tuple[int, int]] = ((session.pid, session.pid_start), *session.others)
    known = [(pid, start) for pid, start in processes if pid and start]
    return session.ended is None and len(dead_processes(known)) < len(known)


def _known(service: MessageService, observed: Observation, claim: Claim) -> Agent:
    name = claim.session or claim.variable
    if observed.claimed is not None:
        return _agent_of(service, observed.claimed)
    agent = service.find_by_session(name)
    if agent is None and claim.is_start:
        agent = service.ensure_agent(name, project=project_of(claim.cwd))
    if agent is None:
        raise NoSuchAgent(f"no session {name!r} is known here; its first event makes it known")
    return agent


def _agent_of(service: MessageService, session: Session) -> Agent:
    return service.ensure_agent(session.id, project=project_of(session.folder))


# -- shell calls ---------------------------------------------------------------------------------------


class ShellCall(msgspec.Struct, frozen=True):
    """A running shell call."""

    session: str
    agent_id: str
    """The id of the subagent that made the call; empty if the session itself made it."""
    call: str
    """The id of the call; empty if the client gives none."""
    command: str
    """The command without whitespace, quotes and backslashes."""


class ShellCalls(EventExtension):
    """The running shell calls of all agents, including those in the background. Thread-safe.

    A session and its subagents share one process, but not their calls. For each call the client starts a shell directly
    below its own process, with the command on the shell's command line. So the calls that match this command line tell
    which agents may run the command. A call is added before the event is answered, because the call begins after that.
    """

    kind = "contributor"
    events = frozenset({"PreToolUse"})
    tool_kinds = frozenset({"shell"})
    recorded_events = frozenset({"PostToolUse", "PostToolUseFailure", "SessionEnd", "SubagentStop"})

    def __init__(self) -> None:
        self._calls: OrderedDict[tuple[str, str], ShellCall] = OrderedDict()
        self._lock = Lock()

    def before_reply(self, context: EventContext) -> None:
        """Add the shell call of the event."""
        event = context.event
        if isinstance(event, PreToolUse):
            self._begin(event, context.client)

    def after_record(self, record: EventRecord, event: Event | None) -> None:  # noqa: ARG002 - the signature of extensions
        """Remove the calls that an event ends."""
        if event is None or not self._calls:
            return
        if isinstance(event, PostToolUse | PostToolUseFailure):
            is_running = isinstance(event, PostToolUse) and bool(client_or_default(event.client).background_task(event))
            if not is_running:
                with self._lock:
                    self._calls.pop((event.session_id, event.tool_use_id or ""), None)
        elif isinstance(event, SessionEnd | SubagentStop):
            agent = event.agent_id if isinstance(event, SubagentStop) else None
            self._remove(event.session_id, agent)

    def _begin(self, event: PreToolUse, client: Client) -> None:
        command = next((text for key in client.command_keys if isinstance(text := event.tool_input.get(key), str)), "")
        if not command:
            return
        call = ShellCall(event.session_id, event.agent_id or "", event.tool_use_id or "", _plain(command))
        with self._lock:
            self._calls[call.session, call.call] = call
            while len(self._calls) > _MAX_CALLS:
                self._calls.popitem(last=False)

    def _remove(self, session: str, agent_id: str | None) -> None:
        with self._lock:
            for key, call in list(self._calls.items()):
                if call.session == session and agent_id in (None, call.agent_id):
                    del self._calls[key]

    def callers(
        self, sessions: Iterable[str], read_command_line: Callable[[], str], working: Iterable[str]
    ) -> frozenset[str]:
        """Return which agents may have started a shell: ids of subagents, and "" for a main session.

        `read_command_line` returns the command line of the shell; it is called only if `sessions`, given by their ids,
        have running calls. Of the calls whose command is in that line, only those with the longest command count. If
        there are none, returns "" and `working`, the ids of subagents with running shell calls.
        """
        names = set(sessions)
        with self._lock:
            running = [call for call in self._calls.values() if call.session in names]
        line = _plain(read_command_line()) if running else ""
        matching = [call for call in running if call.command in line]
        longest = max((len(call.command) for call in matching), default=0)
        callers = frozenset(call.agent_id for call in matching if len(call.command) == longest)
        return callers or frozenset({"", *working})


def _plain(command: str) -> str:
    return command.translate(_IGNORED)
