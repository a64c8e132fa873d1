"""The second witness: the client's own file about a session.

Hooks say what happened, but some things fire no hook: an interrupt, a permission that is granted, a question that is
dismissed. The client's file has `status` idle, busy or waiting. Where the two disagree, this decides:

**When.** The client is believed only if its status is newer than the event that our state was told from, and has held
for more than a moment (2 s): a hook may be on its way. An older status says nothing about a newer event.

| hooks say | client says | believed | because |
| --- | --- | --- | --- |
| working | idle | client: idle | an interrupt fires no Stop; what runs in the background stays |
| working | waiting | client: attention | a dialog is open of which no hook tells |
| attention | busy | client: working | a permission that is granted fires nothing |
| attention | idle | client: idle | the question was dismissed; but see below |
| attention (an error) | idle | hooks | the client is idle *because* of the error, which nobody has seen yet |
| attention (a question) | idle, at once | hooks | nobody answers within a moment: the client calls a question idle |
| attention | waiting | both | the reason of the hooks is the better one |
| idle | busy | client: working | events were lost, or another's Stop hook keeps the agent going |
| idle | waiting | client: attention | a dialog at the prompt |
| anything | shell, or unknown | hooks | it is not known what that means |

Without a file time alone corrects one thing: a subagent's end should wake its maker; after 5 s it has not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from fairlead.clients import client_or_default
from fairlead.sessions._session import Session
from fairlead.sessions._states import IDLE, THINKING, AttentionNeeded, Evidence, Idle, State, Working
from fairlead.sessions.transitions._activity import Changes, busy, resting
from fairlead.sessions.transitions._turns import FAILED

if TYPE_CHECKING:
    from fairlead.clients import ClientSessionFile

MOMENT = 2.0
"""Seconds for which witnesses may disagree."""
WAKES_WITHIN = 5.0
"""Seconds within which the client wakes an agent whose last background subagent has ended."""


# -- believing -----------------------------------------------------------------------------------------


def discovered(witness: ClientSessionFile) -> Session | None:
    """Make the session that a file tells of; `None` if it does not say what it does, or in which process."""
    if witness.status not in _STATES or not witness.start:
        return None
    state = _told(witness)
    at = witness.status_at or witness.started
    return Session(
        id=witness.session_id,
        pid=witness.pid,
        pid_start=witness.start,
        cwd=witness.cwd,
        title=witness.name,
        state=state,
        evidence=Evidence(f"sessions file: {witness.status}", at, source="client", why="no event was heard yet"),
        since=at,
        in_turn=type(state) is not Idle,
        started=witness.started or at,
        last_activity=at,
    )


def reconcile(session: Session, witness: ClientSessionFile | None, now: float) -> Session:
    """Give the session as it is after hearing both witnesses."""
    if session.ended is not None or session.parent:
        return session
    usable = witness is not None and witness.status in _STATES and _is_about(witness, session)
    if witness is None or not usable or not _is_newer(witness, session, now):
        return _waited_enough(session, now)
    return _heard(session, witness)


def _heard(session: Session, witness: ClientSessionFile) -> Session:
    """Decide by the table above."""
    old, told = session.state, _told(witness)
    if type(told) is type(old) or _hooks_know_better(session, witness):
        return session
    if type(told) is Idle:
        return _let_go(session, witness)
    if type(told) is Working and type(old) is AttentionNeeded:
        return _granted(session, witness, "a permission that is granted fires no event")
    why = "no event told of it" if type(told) is AttentionNeeded else "the client works, whatever events were lost"
    return _believed(session, witness, why, state=told, in_turn=True)


def reconcile_child(child: Session, witness: ClientSessionFile, now: float) -> Session:
    """Take a subagent's question for answered when the client no longer waits: its dialog is the session's."""
    if child.ended is not None or type(child.state) is not AttentionNeeded or witness.status not in ("busy", "idle"):
        return child
    return _granted(child, witness, "the client waits for nobody") if _is_newer(witness, child, now) else child


_STATES = frozenset({"idle", "busy", "waiting"})


def _told(witness: ClientSessionFile) -> State:
    if witness.status == "waiting":
        return AttentionNeeded(witness.waiting_for.capitalize() or "Input")
    return IDLE if witness.status == "idle" else Working()


def _is_about(witness: ClientSessionFile, session: Session) -> bool:
    if witness.session_id != session.id or session.pid not in (0, witness.pid):
        return False
    return not (session.pid_start and witness.start) or session.pid_start == witness.start


def _is_newer(witness: ClientSessionFile, session: Session, now: float) -> bool:
    told = session.evidence.at if session.evidence else 0.0
    return witness.status_at > told and now - witness.status_at > MOMENT


def _hooks_know_better(session: Session, witness: ClientSessionFile) -> bool:
    state = session.state
    if witness.status != "idle" or type(state) is not AttentionNeeded:
        return False
    if state.reason.startswith(FAILED):
        return True
    asked = session.evidence.at if session.evidence else 0.0
    return state.reason in client_or_default(session.client).questions and witness.status_at - asked <= MOMENT


def _let_go(session: Session, witness: ClientSessionFile) -> Session:
    """The turn is over, and with it all that ran in front."""
    agents = {name: agent for name, agent in session.agents.items() if agent.background}
    state = resting(agents, session.tasks)
    if state == session.state and not session.calls and not session.in_turn:
        return session
    why = "an interrupt fires no event" if type(session.state) is Working else "a question that is dismissed fires none"
    return _believed(session, witness, why, state=state, in_turn=False, calls={}, agents=agents)


def _granted(session: Session, witness: ClientSessionFile, why: str) -> Session:
    calls = {name: replace(call, asked="") if call.asked else call for name, call in session.calls.items()}
    state, _ = busy(calls, session.agents)
    return _believed(session, witness, why, state=state, in_turn=True, calls=calls)


def _believed(session: Session, witness: ClientSessionFile, why: str, **changes: Any) -> Session:
    told: Changes = changes
    if type(told["state"]) is not type(session.state):
        told["since"] = witness.status_at
    evidence = Evidence(f"sessions file: {witness.status}", witness.status_at, source="client", why=why)
    return replace(session, evidence=evidence, **told)


def _waited_enough(session: Session, now: float) -> Session:
    evidence = session.evidence
    if evidence is None or evidence.event != "SubagentStop" or session.in_turn or session.state != THINKING:
        return session
    if now - evidence.at <= WAKES_WITHIN:
        return session
    since = evidence.at + WAKES_WITHIN
    return replace(
        session,
        state=IDLE,
        since=since,
        evidence=Evidence("SubagentStop", since, why="the client has not woken the agent since"),
    )
