"""Who a caller is: what the daemon sees of its process, not what it says of itself.

A command that runs below the process of a session is that session's agent, and may speak for its subagents. One that
does not, but has a terminal, is the person's, who may speak for anybody. What is left are programs. Such a one is the
session's that it names, if nobody can see better: if that session's process is alive in this system's table, the
program would have been found below it. That serves containers, and sessions whose process is gone.

This keeps agents from speaking for others by mistake or by a flag. It is no wall between programs of one user: whoever
runs as you can write your files, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from fairlead.mail import FAIRLEAD, SCRIPT, USER, NoSuchAgent, NotYours
from fairlead.process import dead_processes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.mail import Agent, MessageService
    from fairlead.sessions import Session


class Claim(msgspec.Struct, frozen=True):
    """Who a caller says it is."""

    name: str = ""
    """`--as`."""
    session: str = ""
    """`--session`."""
    variable: str = ""
    """The session that the client's variable names, in the caller's environment."""
    cwd: str = ""
    is_start: bool = False
    """A session begins: one that nobody has heard of is made."""


class Seen(msgspec.Struct, frozen=True):
    """What was looked up about a caller."""

    own: tuple[Session, ...] = ()
    """The sessions of the nearest process above it that has any; who was heard of last stands last."""
    is_common: bool = False
    """That process is above the daemon, too: the first of all processes, or one that takes in orphans."""
    has_terminal: bool = False
    claimed: Session | None = None
    """The session that it claims, if one with that id is known."""


class Caller(msgspec.Struct, frozen=True):
    """Who it is, and how that is known."""

    agent: Agent
    how: Literal["process", "terminal", "session id", "program"]

    @property
    def is_person(self) -> bool:
        """Whether a person speaks, be it for an agent."""
        return self.how == "terminal"


def identify(office: MessageService, seen: Seen, claim: Claim) -> Caller:
    """Say who a caller is. Raises `NotYours` if it claims to be somebody else, `NoSuchAgent` if there is none."""
    if seen.own and (not seen.is_common or _is_named(seen.own, claim)):
        return Caller(_in_session(office, seen.own, claim), "process")
    if seen.has_terminal:
        return Caller(_at_terminal(office, seen, claim), "terminal")
    wanted = claim.session or claim.variable
    if wanted and (claim.session or _may_be(office, seen.claimed, wanted)):
        return Caller(_by_id(office, seen, claim), "session id")
    if claim.name and claim.name.lower() != SCRIPT.name.lower():
        raise NotYours(
            f"this command runs in no session and has no terminal, so it cannot speak for {claim.name}; "
            f"leave --as out, and it speaks as {SCRIPT.name}"
        )
    return Caller(SCRIPT, "program")


def _is_named(own: tuple[Session, ...], claim: Claim) -> bool:
    """Tell whether the caller names one of the sessions: a process that is above everybody proves nothing alone.

    A hook whose client has died is found below such a one, and so would be everybody else.
    """
    return bool({claim.session, claim.variable} & _ids(own).keys())


def _ids(own: tuple[Session, ...]) -> dict[str, Session]:
    return {name: session for session in own for name in (*session.previous, session.id)}


def _in_session(office: MessageService, own: tuple[Session, ...], claim: Claim) -> Agent:
    """Give the agent that runs the command: the session's, or a subagent of it, which lives in the same process."""
    ids = _ids(own)
    if claim.session and claim.session not in ids:
        raise NotYours(
            f"this command runs in the session {own[-1].id}, so it cannot speak for {claim.session}; "
            "a name cannot be borrowed"
        )
    chosen = ids.get(claim.session or claim.variable, own[-1])
    if not claim.name:
        return _agent_of(office, chosen)
    asked = office.find(claim.name)
    if all(asked.session != _agent_of(office, session).session for session in own):
        raise NotYours(
            f"this command runs in the session of {_agent_of(office, chosen).name}, so it cannot speak for "
            f"{asked.name}; a name cannot be borrowed"
        )
    return asked


def _at_terminal(office: MessageService, seen: Seen, claim: Claim) -> Agent:
    if claim.name:
        asked = office.find(claim.name)
        if asked.id == FAIRLEAD.id:
            raise NotYours(f"nobody speaks for {FAIRLEAD.name}: what it writes are notices")
        return asked
    return _known(office, seen, claim) if claim.session else USER


def _by_id(office: MessageService, seen: Seen, claim: Claim) -> Agent:
    session = seen.claimed
    if session is not None and _runs_here(session):
        raise NotYours(
            f"session {session.id} runs as process {session.pid}, which did not start this command; "
            "a name cannot be borrowed"
        )
    mine = _known(office, seen, claim)
    if not claim.name:
        return mine
    asked = office.find(claim.name)
    if asked.session != mine.session:
        raise NotYours(f"the session {mine.session} is {mine.name}, so it cannot speak for {asked.name}")
    return asked


def _may_be(office: MessageService, claimed: Session | None, wanted: str) -> bool:
    """Tell whether the session that a variable names can be the caller's. One that cannot is nobody's mistake."""
    return not _runs_here(claimed) if claimed is not None else office.known(wanted) is not None


def _runs_here(session: Session) -> bool:
    """Tell whether a session's process is alive in the table that we look into; a pid alone proves nothing."""
    processes: Iterable[tuple[int, int]] = ((session.pid, session.pid_start), *session.others)
    told = [(pid, start) for pid, start in processes if pid and start]
    return session.ended is None and len(dead_processes(told)) < len(told)


def _known(office: MessageService, seen: Seen, claim: Claim) -> Agent:
    name = claim.session or claim.variable
    if seen.claimed is not None:
        return _agent_of(office, seen.claimed)
    agent = office.known(name)
    if agent is None and claim.is_start:
        agent = office.agent_for(name, project=claim.cwd)
    if agent is None:
        raise NoSuchAgent(f"no session {name!r} is known here; its first event makes it known")
    return agent


def _agent_of(office: MessageService, session: Session) -> Agent:
    return office.agent_for(session.id, project=session.project or session.cwd)
