"""Subagents: what their start and stop change, in the session that made them and in their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.clients import client_or_default
from fairlead.sessions._limits import LONGEST_ID, LONGEST_PATH, clean
from fairlead.sessions._session import Agent, OpenCall, Session
from fairlead.sessions._states import IDLE, THINKING, Evidence, Working
from fairlead.sessions.transitions._activity import Changes, corrected, now_doing

if TYPE_CHECKING:
    from fairlead.events import SubagentStart, SubagentStop, TeammateIdle


def subagent_start(session: Session, event: SubagentStart, at: float) -> Changes:
    """In its own session the subagent works; its maker is said to work with it."""
    agent_id, kind = clean(event.agent_id, LONGEST_ID), clean(event.agent_type)
    if agent_id == session.agent_id:
        fresh: Changes = {"state": Working(), "in_turn": True, "calls": {}, "cleared": True}
        return fresh | _introduced(event) | {"ended": None, "end_reason": ""}
    known = session.agents.get(agent_id)
    rests = not session.in_turn and session.counters.prompts + session.counters.wakes > 0
    if known is not None and known.background:  # its call was answered before: its maker does something else by now
        agents = {**session.agents, agent_id: replace(known, type=kind)}
        return now_doing(session, in_turn=not rests, agents=agents)
    if known is None:
        counters = replace(session.counters, agents=session.counters.agents + 1)
        agent = Agent(kind, at, background=rests)
        changes: Changes = {"agents": {**session.agents, agent_id: agent}, "counters": counters}
    else:
        changes = {"agents": {**session.agents, agent_id: replace(known, type=kind)}}
    if found := maker_call(session, kind, agent_id):
        changes["calls"] = {**session.calls, found[0]: replace(found[1], agent=agent_id)}
    if any(call.asked for call in session.calls.values()):
        return changes  # a question to the person is not answered by another agent's start
    return changes | {"state": Working(kind), "in_turn": not rests}


def late_subagent_start(session: Session, event: SubagentStart, at: float) -> Changes:
    """It began before what we know: it works only if nothing has ended it since."""
    agent_id, kind = clean(event.agent_id, LONGEST_ID), clean(event.agent_type)
    if agent_id == session.agent_id:
        return {"started": min(session.started, at), **_introduced(event)}
    if agent_id in session.memory.closed or at <= session.memory.cleared:
        return {}
    changes: Changes = {}
    if found := maker_call(session, kind, agent_id):
        changes["calls"] = {**session.calls, found[0]: replace(found[1], agent=agent_id)}
    if agent_id in session.agents:  # an event of its own was quicker
        return changes
    counters = replace(session.counters, agents=session.counters.agents + 1)
    changes |= {"agents": {**session.agents, agent_id: Agent(kind, at)}, "counters": counters}
    return corrected(session, **changes)


def subagent_stop(session: Session, event: SubagentStop, at: float) -> Changes:
    """In its own session the subagent is done; its maker goes on with what it brought.

    Compaction fires one with a blank type and without a start: that is no subagent.
    """
    agent_id = clean(event.agent_id, LONGEST_ID)
    if agent_id == session.agent_id:
        return _stopped(session, event, at)
    if event.agent_type == "" and agent_id not in session.agents:
        return {}
    told = now_doing(session, closed=(agent_id,), **_without(session, agent_id))
    if told.get("state") == IDLE:  # nothing is left in the background: the client wakes the agent with the result
        told["state"] = THINKING
    return told


def late_subagent_stop(session: Session, event: SubagentStop, at: float) -> Changes:
    """It is done, whenever we hear of it, unless it has worked since."""
    agent_id = clean(event.agent_id, LONGEST_ID)
    if agent_id == session.agent_id:
        recent = session.ended is None and at > session.memory.heard - 2.0
        return _stopped(session, event, session.memory.heard) if recent else {}
    if agent_id not in session.agents or session.agents[agent_id].at > at:
        return {"closed": (agent_id,)}
    return corrected(session, closed=(agent_id,), **_without(session, agent_id))


def teammate_idle(session: Session, _event: TeammateIdle, _at: float) -> Changes:
    """A teammate has nothing to do; it has not ended."""
    return {"state": IDLE, "in_turn": False, "calls": {}, "cleared": True} if session.is_child else {}


def maker_call(session: Session, kind: str, agent_id: str) -> tuple[str, OpenCall] | None:
    """Guess which open call made a subagent: the oldest that asked for this type, else the oldest, has none yet."""
    client = client_or_default(session.client)
    waiting = [
        (call_id, call)
        for call_id, call in session.calls.items()
        if client.kind_of(call.tool) == "spawn" and call.agent in ("", agent_id)
    ]
    return next((found for found in waiting if found[1].kind == kind), waiting[0] if waiting else None)


def adopt(session: Session, agent_id: str, kind: str, at: float) -> Session:
    """Let a subagent be at work of which we heard no start, or which works again."""
    agent = Agent(kind, at, background=not session.in_turn)
    changes: Changes = {"agents": {**session.agents, agent_id: agent}}
    if not session.in_turn and session.ended is None:
        evidence = Evidence("a subagent's event", at)
        changes = now_doing(session, **changes) | {"evidence": evidence}
        changes.pop("about", None)
    return replace(session, **changes)


def disown(session: Session, agent_id: str) -> Session:
    """Take a subagent away that was another's."""
    changes = corrected(session, **_without(session, agent_id))
    changes.pop("about", None)
    return replace(session, **changes)


def _introduced(event: SubagentStart) -> Changes:
    changes: Changes = {"agent_type": clean(event.agent_type)}
    if event.description:
        changes["description"] = clean(event.description)
    if transcript := client_or_default(event.client).agent_transcript(event):
        changes["transcript"] = clean(transcript, LONGEST_PATH)
    return changes


def _stopped(session: Session, event: SubagentStop, at: float) -> Changes:
    changes: Changes = {"state": IDLE, "in_turn": False, "calls": {}, "ended": at, "end_reason": "completed"}
    if event.agent_transcript_path:
        changes["transcript"] = clean(event.agent_transcript_path, LONGEST_PATH)
    agents = {name: agent for name, agent in session.agents.items() if agent.background}
    return changes | {"agents": agents, "cleared": True}


def _without(session: Session, agent_id: str) -> Changes:
    changes: Changes = {}
    if agent_id in session.agents:
        changes["agents"] = {name: agent for name, agent in session.agents.items() if name != agent_id}
    if agent_id in session.tasks:
        changes["tasks"] = {name: task for name, task in session.tasks.items() if name != agent_id}
    return changes
