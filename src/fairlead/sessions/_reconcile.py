"""Corrects the state of a session by the client's own file about the session.

Hooks report what happened, but some things fire no hook: an interrupt, a permission that is granted, a question that is
dismissed. The client's file has a `status`: idle, busy or waiting. Where hooks and file disagree, the table decides.

The file counts only if its status is newer than the event on which our state is based, and has not changed for 2 s,
because a hook may be on its way.

| hooks say | file says | result | because |
| --- | --- | --- | --- |
| working | idle | file: idle | an interrupt fires no Stop; background work continues |
| working | waiting | file: attention | a dialog is open that no hook reports |
| attention | busy | file: working | a granted permission fires nothing |
| attention | idle | file: idle | the question was dismissed; but see the next two rows |
| attention (an error) | idle | hooks | the client is idle because of the error, which nobody has seen yet |
| attention (a question) | idle, within 2 s | hooks | nobody answers that fast: the client counts a question as idle |
| attention | waiting | hooks | they agree, and the reason of the hooks is more precise |
| idle | busy | file: working | events were lost, or another Stop hook keeps the agent going |
| idle | waiting | file: attention | a dialog at the prompt |
| anything | shell, or unknown | hooks | the meaning of this status is not known |

One state is also corrected by time alone. The end of a background subagent should wake its parent: a parent that has
not started to work within 5 s is idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from fairlead.clients import client_or_default
from fairlead.sessions._session import IDLE, THINKING, AttentionNeeded, Evidence, Idle, Session, State, Working
from fairlead.sessions.transitions._activity import Changes, state_between_turns, state_in_turn
from fairlead.sessions.transitions._turns import FAILED

if TYPE_CHECKING:
    from fairlead.clients import ClientSessionFile

SETTLE_TIME = 2.0
"""Seconds for which the status of a file must not have changed before it counts."""
WAKE_TIME = 5.0
"""Seconds within which the client should wake an agent whose last background subagent has ended."""


def discovered_session(file: ClientSessionFile, now: float) -> Session | None:
    """Return the session that a file describes; `None` if its status or its process is unknown.

    The session of a file without times begins at `now`.
    """
    if file.status not in _STATES or not file.start:
        return None
    state = _state_of(file)
    at = file.status_at or file.started or now
    return Session(
        id=file.session_id,
        pid=file.pid,
        pid_start=file.start,
        cwd=file.cwd,
        title=file.name,
        tmux=file.tmux,
        pane=file.pane,
        state=state,
        evidence=Evidence(f"sessions file: {file.status}", at, source="client", why="no event was received yet"),
        since=at,
        in_turn=type(state) is not Idle,
        started=file.started or at,
        last_activity=at,
    )


def reconcile(session: Session, file: ClientSessionFile | None, now: float) -> Session:
    """Return the session, corrected by the client's file and the time; the same object if nothing changes.

    `file` is `None` if there is none. Only main sessions that have not ended are corrected.
    """
    if session.ended is not None or session.parent:
        return session
    is_about = file is not None and _is_about(file, session)
    if file is not None and is_about:
        session = _with_name(session, file)
    if file is None or not is_about or file.status not in _STATES or not _is_newer(file, session, now):
        return _with_wake_timeout(session, now)
    return _combine(session, file)


def _with_name(session: Session, file: ClientSessionFile) -> Session:
    """Return the session with the name from the file, and with the file's pane if no event has reported one."""
    if file.name and file.name != session.title:
        session = replace(session, title=file.name)
    if file.pane and not session.pane:
        session = replace(session, tmux=file.tmux, pane=file.pane)
    return session


def _combine(session: Session, file: ClientSessionFile) -> Session:
    """Return the session, corrected as the table in the module's docstring says."""
    old, new = session.state, _state_of(file)
    if type(new) is type(old) or _hooks_are_better(session, file):
        return session
    if type(new) is Idle:
        return _turn_ended(session, file)
    if type(new) is Working and type(old) is AttentionNeeded:
        return _granted(session, file, "a granted permission fires no event")
    why = "no event reported it" if type(new) is AttentionNeeded else "the client works, whatever events were lost"
    return _with_file(session, file, why, state=new, in_turn=True)


def reconcile_child(child: Session, file: ClientSessionFile, now: float) -> Session:
    """Return a subagent, without its question if the client no longer waits for an answer.

    `file` is that of the main session, because the client shows the question as a dialog of that session.
    """
    if child.ended is not None or type(child.state) is not AttentionNeeded or file.status not in ("busy", "idle"):
        return child
    return _granted(child, file, "the client no longer waits") if _is_newer(file, child, now) else child


_STATES = frozenset({"idle", "busy", "waiting"})


def _state_of(file: ClientSessionFile) -> State:
    if file.status == "waiting":
        return AttentionNeeded(file.waiting_for.capitalize() or "Input", file.about)
    return IDLE if file.status == "idle" else Working()


def _is_about(file: ClientSessionFile, session: Session) -> bool:
    if file.session_id != session.id or session.pid not in (0, file.pid):
        return False
    return not (session.pid_start and file.start) or session.pid_start == file.start


def _is_newer(file: ClientSessionFile, session: Session, now: float) -> bool:
    known = session.evidence.at if session.evidence else 0.0
    return file.status_at > known and now - file.status_at > SETTLE_TIME


def _hooks_are_better(session: Session, file: ClientSessionFile) -> bool:
    state = session.state
    if file.status != "idle" or type(state) is not AttentionNeeded:
        return False
    if state.reason.startswith(FAILED):
        return True
    asked = session.evidence.at if session.evidence else 0.0
    return state.reason in client_or_default(session.client).questions and file.status_at - asked <= SETTLE_TIME


def _turn_ended(session: Session, file: ClientSessionFile) -> Session:
    """Return the session as it is between turns: without open calls and without subagents of the foreground."""
    agents = {name: agent for name, agent in session.agents.items() if agent.background}
    state = state_between_turns(agents, session.tasks)
    if state == session.state and not session.calls and not session.in_turn:
        return session
    why = "an interrupt fires no event" if type(session.state) is Working else "a dismissed question fires none"
    return _with_file(session, file, why, state=state, in_turn=False, calls={}, agents=agents)


def _granted(session: Session, file: ClientSessionFile, why: str) -> Session:
    calls = {name: replace(call, asked="", question="") if call.asked else call for name, call in session.calls.items()}
    state, _ = state_in_turn(calls, session.agents)
    return _with_file(session, file, why, state=state, in_turn=True, calls=calls)


def _with_file(session: Session, file: ClientSessionFile, why: str, **changes: Any) -> Session:
    updates: Changes = changes
    if type(updates["state"]) is not type(session.state):
        updates["since"] = file.status_at
    evidence = Evidence(f"sessions file: {file.status}", file.status_at, source="client", why=why)
    return replace(session, evidence=evidence, **updates)


def _with_wake_timeout(session: Session, now: float) -> Session:
    evidence = session.evidence
    if evidence is None or evidence.event != "SubagentStop" or session.in_turn or session.state != THINKING:
        return session
    if now - evidence.at <= WAKE_TIME:
        return session
    since = evidence.at + WAKE_TIME
    return replace(
        session,
        state=IDLE,
        since=since,
        evidence=Evidence("SubagentStop", since, why="the client has not woken the agent since"),
    )
