"""The start and stop of subagents: what they change in the session of the parent, and in that of the subagent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.clients import client_or_default
from fairlead.sessions._limits import MAX_ID_LENGTH, MAX_PATH_LENGTH, clean_text
from fairlead.sessions._session import IDLE, THINKING, ActiveSubagent, Evidence, OpenCall, Session, Working
from fairlead.sessions.transitions._activity import Changes, with_corrected_state, with_state

if TYPE_CHECKING:
    from fairlead.events import SubagentStart, SubagentStop, TeammateIdle


def subagent_start(session: Session, event: SubagentStart, at: float) -> Changes:
    """Set the session to working if it is the subagent's; if it is the parent's, add the subagent to it."""
    agent_id, kind = clean_text(event.agent_id, MAX_ID_LENGTH), clean_text(event.agent_type)
    if agent_id == session.agent_id:
        reset: Changes = {"state": Working(), "in_turn": True, "calls": {}, "cleared": True}
        return reset | _description(event) | {"ended": None, "end_reason": ""}
    known = session.agents.get(agent_id)
    is_resting = not session.in_turn and session.counters.prompts + session.counters.wakes > 0
    if known is not None and known.background:  # its call was answered already, and its parent does something else
        agents = {**session.agents, agent_id: replace(known, type=kind)}
        return with_state(session, in_turn=not is_resting, agents=agents)
    if known is None:
        counters = replace(session.counters, agents=session.counters.agents + 1)
        agent = ActiveSubagent(kind, at, background=is_resting)
        changes: Changes = {"agents": {**session.agents, agent_id: agent}, "counters": counters}
    else:
        changes = {"agents": {**session.agents, agent_id: replace(known, type=kind)}}
    if match := find_spawning_call(session, kind, agent_id):
        changes["calls"] = {**session.calls, match[0]: replace(match[1], agent=agent_id)}
    if any(call.asked for call in session.calls.values()):
        return changes  # the start of an agent does not answer a question to the user
    return changes | {"state": Working(kind), "in_turn": not is_resting}


def delayed_subagent_start(session: Session, event: SubagentStart, at: float) -> Changes:
    """Correct the start if the session is the subagent's. Add the subagent to its parent, unless it has ended since."""
    agent_id, kind = clean_text(event.agent_id, MAX_ID_LENGTH), clean_text(event.agent_type)
    if agent_id == session.agent_id:
        return {"started": min(session.started, at), **_description(event)}
    if agent_id in session.memory.closed or at <= session.memory.cleared:
        return {}
    changes: Changes = {}
    if match := find_spawning_call(session, kind, agent_id):
        changes["calls"] = {**session.calls, match[0]: replace(match[1], agent=agent_id)}
    if agent_id in session.agents:  # an event of its own came first
        return changes
    counters = replace(session.counters, agents=session.counters.agents + 1)
    changes |= {"agents": {**session.agents, agent_id: ActiveSubagent(kind, at)}, "counters": counters}
    return with_corrected_state(session, **changes)


def subagent_stop(session: Session, event: SubagentStop, at: float) -> Changes:
    """End the session if it is the subagent's; if it is the parent's, remove the subagent from it.

    A parent that would be idle is set to thinking, because the client wakes it with the result. The client's compaction
    fires a stop with the type "" and without a start, which is not about a subagent and changes nothing.
    """
    agent_id = clean_text(event.agent_id, MAX_ID_LENGTH)
    if agent_id == session.agent_id:
        return _stopped(session, event, at)
    if event.agent_type == "" and agent_id not in session.agents:
        return {}
    changes = with_state(session, closed=(agent_id,), **_without_agent(session, agent_id))
    if changes.get("state") == IDLE:  # nothing runs in the background: the client wakes the agent with the result
        changes["state"] = THINKING
    return changes


def delayed_subagent_stop(session: Session, event: SubagentStop, at: float) -> Changes:
    """End the session if it is the subagent's, or remove the subagent from its parent, unless it has worked since."""
    agent_id = clean_text(event.agent_id, MAX_ID_LENGTH)
    if agent_id == session.agent_id:
        is_recent = session.ended is None and at > session.memory.newest - 2.0
        return _stopped(session, event, session.memory.newest) if is_recent else {}
    if agent_id not in session.agents or session.agents[agent_id].at > at:
        return {"closed": (agent_id,)}
    return with_corrected_state(session, closed=(agent_id,), **_without_agent(session, agent_id))


def teammate_idle(session: Session, _event: TeammateIdle, _at: float) -> Changes:
    """Set a teammate to idle, without ending it. A main session does not change."""
    return {"state": IDLE, "in_turn": False, "calls": {}, "cleared": True} if session.is_child else {}


def find_spawning_call(session: Session, kind: str, agent_id: str) -> tuple[str, OpenCall] | None:
    """Return the open call that probably started a subagent, as a pair of id and call; `None` if there is none.

    It is the oldest call for a subagent of this type that has no subagent yet, or else the oldest for any type.
    """
    client = client_or_default(session.client)
    waiting = [
        (call_id, call)
        for call_id, call in session.calls.items()
        if client.kind_of(call.tool) == "spawn" and call.agent in ("", agent_id)
    ]
    return next((match for match in waiting if match[1].kind == kind), waiting[0] if waiting else None)


def add_subagent(session: Session, agent_id: str, kind: str, at: float, *, is_background: bool = False) -> Session:
    """Return the session with one more working subagent, whose start was missed or which works again."""
    agent = ActiveSubagent(kind, at, background=is_background or not session.in_turn)
    changes: Changes = {"agents": {**session.agents, agent_id: agent}}
    if not session.in_turn and session.ended is None:
        evidence = Evidence("a subagent's event", at)
        changes = with_state(session, **changes) | {"evidence": evidence}
        changes.pop("about", None)
    return replace(session, **changes)


def remove_subagent(session: Session, agent_id: str) -> Session:
    """Return the session without a subagent that turned out to belong to another session."""
    changes = with_corrected_state(session, **_without_agent(session, agent_id))
    changes.pop("about", None)
    return replace(session, **changes)


def transcript_of(session: Session, main: Session | None) -> str:
    """Return the path of a session's transcript; "" if it is not known.

    It is the path that an event reported, or, for a subagent of `main`, the one to which the client is known to write.
    """
    if session.transcript or main is None or not session.is_child:
        return session.transcript
    return client_or_default(main.client).subagent_transcript(main.transcript, session.agent_id)


def _description(event: SubagentStart) -> Changes:
    changes: Changes = {"agent_type": clean_text(event.agent_type)}
    if event.description:
        changes["description"] = clean_text(event.description)
    if transcript := client_or_default(event.client).agent_transcript(event):
        changes["transcript"] = clean_text(transcript, MAX_PATH_LENGTH)
    return changes


def _stopped(session: Session, event: SubagentStop, at: float) -> Changes:
    changes: Changes = {"state": IDLE, "in_turn": False, "calls": {}, "ended": at, "end_reason": "completed"}
    if event.agent_transcript_path:
        changes["transcript"] = clean_text(event.agent_transcript_path, MAX_PATH_LENGTH)
    agents = {name: agent for name, agent in session.agents.items() if agent.background}
    return changes | {"agents": agents, "cleared": True}


def _without_agent(session: Session, agent_id: str) -> Changes:
    changes: Changes = {}
    if agent_id in session.agents:
        changes["agents"] = {name: agent for name, agent in session.agents.items() if name != agent_id}
    if agent_id in session.tasks:
        changes["tasks"] = {name: task for name, task in session.tasks.items() if name != agent_id}
    return changes
