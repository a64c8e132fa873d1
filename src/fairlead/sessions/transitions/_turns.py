"""Turns and lives: prompts, stops, notes of the client, compaction, the start and the end of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from fairlead.clients import client_or_default
from fairlead.sessions._limits import LONGEST_ID, LONGEST_PATH, MOST_TASKS, clean
from fairlead.sessions._session import Agent, Session, Task
from fairlead.sessions._states import IDLE, THINKING, AttentionNeeded, Working
from fairlead.sessions.transitions._activity import Changes, now_doing
from fairlead.sessions.transitions._tools import MCP_INPUT, answered_mcp

if TYPE_CHECKING:
    from fairlead.events import (
        CwdChanged,
        Event,
        ModelSwitch,
        Notification,
        SessionEnd,
        SessionStart,
        Stop,
        StopFailure,
        UserPromptSubmit,
    )

FAILED = "API error"


# -- a prompt ------------------------------------------------------------------------------------------


def user_prompt_submit(session: Session, event: UserPromptSubmit, _at: float) -> Changes:
    """The agent works. Whatever was open is over: the client takes a prompt only between turns."""
    changes = _counted(session, event)
    if not changes["by_person"]:
        changes |= _task_ended(session, event)
    return changes | {"in_turn": True, "calls": {}, "state": Working(), "cleared": True}


def late_user_prompt_submit(session: Session, event: UserPromptSubmit, _at: float) -> Changes:
    """A prompt of earlier counts, but tells nothing about now."""
    changes = _counted(session, event)
    return {"counters": changes["counters"]}


def _counted(session: Session, event: UserPromptSubmit) -> Changes:
    counters = session.counters
    if client_or_default(event.client).is_automatic(event.prompt):  # the client fires the same event for its own
        return {"by_person": False, "counters": replace(counters, wakes=counters.wakes + 1)}
    changes: Changes = {"by_person": True, "counters": replace(counters, prompts=counters.prompts + 1)}
    if not session.first_prompt:
        changes["first_prompt"] = clean(event.prompt)
    return changes


def _task_ended(session: Session, event: UserPromptSubmit) -> Changes:
    """A task that the client tells the agent about is no longer in the background, even if no stop was heard."""
    task_id = clean(client_or_default(event.client).ended_task(event.prompt), LONGEST_ID)
    if not task_id:
        return {}
    changes: Changes = {"closed": (task_id,)}
    if task_id in session.tasks:
        changes["tasks"] = {name: task for name, task in session.tasks.items() if name != task_id}
    if task_id in session.agents:
        changes["agents"] = {name: agent for name, agent in session.agents.items() if name != task_id}
    return changes


# -- the end of a turn ---------------------------------------------------------------------------------


def stop(session: Session, event: Stop, at: float) -> Changes:
    """The agent has answered: idle, unless something works on in the background.

    The list of what does is exact. A subagent that is not on it is over, even if its stop was never heard.
    """
    if event.background_tasks is None:  # an older client, or a payload made by hand
        return now_doing(session, in_turn=False, calls={}, tasks={}, cleared=True)
    tasks = _tasks(event.background_tasks)
    agents = {
        name: replace(agent, background=True)
        for name, agent in session.agents.items()
        if name in tasks or _is_teammate(agent, tasks)
    }
    for name, task in tasks.items():
        if task.type == "subagent" and name not in agents:
            agents[name] = Agent(task.agent_type, at, background=True)
    return now_doing(session, in_turn=False, calls={}, tasks=tasks, agents=agents, cleared=True)


def kept_going(_session: Session, _event: Event, _at: float) -> Changes:
    """Our own answer kept the agent from stopping."""
    return {"in_turn": True, "calls": {}, "state": THINKING, "cleared": True}


def stop_failure(session: Session, event: StopFailure, _at: float) -> Changes:
    """The model's service failed, and the turn is over: nothing goes on until the person acts."""
    counters = replace(session.counters, errors=session.counters.errors + 1)
    reason = f"{FAILED}: {clean(event.error)}" if event.error else FAILED
    return {"in_turn": False, "calls": {}, "counters": counters, "state": AttentionNeeded(reason), "cleared": True}


def _tasks(listed: list[Any]) -> dict[str, Task]:
    tasks: dict[str, Task] = {}
    for told in listed[:MOST_TASKS]:
        if type(told) is dict and type(told.get("id")) is str:
            fields = [_text(told.get(name)) for name in ("type", "status", "description", "agent_type")]
            tasks[clean(told["id"], LONGEST_ID)] = Task(*fields)
    return tasks


def _is_teammate(agent: Agent, tasks: dict[str, Task]) -> bool:
    """A teammate is listed under another id than its events carry; so none is taken for gone while one is listed."""
    return agent.background and any(task.type == "teammate" for task in tasks.values())


# -- notes of the client -------------------------------------------------------------------------------


def notification(session: Session, event: Notification, _at: float) -> Changes:
    """What the client tells the person. Kinds that we do not know change nothing."""
    kind = event.notification_type or ""
    if kind == "idle_prompt":
        return _idle_prompt(session)
    if kind in _ANSWERED:
        return answered_mcp(session)
    reason = _NEEDS.get(kind)
    if reason is None or any(call.asked for call in session.calls.values()):
        return {}  # what is asked already is asked in better words
    return {"state": AttentionNeeded(reason)}


_NEEDS = {
    "permission_prompt": "Permission",
    "elicitation_dialog": MCP_INPUT,
    "elicitation_url_dialog": MCP_INPUT,
    "agent_needs_input": "Input",
}
_ANSWERED = frozenset({"elicitation_complete", "elicitation_response"})


def _idle_prompt(session: Session) -> Changes:
    """Nobody typed for a minute. The client says so also while subagents work, and after an error nobody saw."""
    if session.agents and session.in_turn:
        return {}
    if type(session.state) is AttentionNeeded and session.state.reason.startswith(FAILED):
        return {}
    return now_doing(session, in_turn=False, calls={}, cleared=True)


# -- the session itself --------------------------------------------------------------------------------


def session_start(session: Session, event: SessionStart, _at: float) -> Changes:
    """A session waits for its first prompt. After compaction it goes on with what it was doing."""
    changes: Changes = {}
    if event.model:
        changes["model"] = clean(event.model)
    if event.session_title:
        changes["title"] = clean(event.session_title)
    if event.source == "compact":
        return changes if session.in_turn else now_doing(session, **changes)
    fresh: Changes = {"in_turn": False, "calls": {}, "agents": {}, "tasks": {}, "cleared": True, "state": IDLE}
    return changes | fresh | {"ended": None, "end_reason": "", "next_id": ""}


def late_session_start(session: Session, event: SessionStart, at: float) -> Changes:
    """It began earlier than we thought."""
    changes: Changes = {"started": min(session.started, at)}
    if event.model and not session.model:
        changes["model"] = clean(event.model)
    return changes


def session_end(_session: Session, event: SessionEnd, at: float) -> Changes:
    """The session is over."""
    fresh: Changes = {"in_turn": False, "calls": {}, "agents": {}, "tasks": {}, "cleared": True, "state": IDLE}
    return fresh | {"ended": at, "end_reason": clean(event.reason or "other")}


def late_session_end(session: Session, event: SessionEnd, at: float) -> Changes:
    """An end that was overtaken by a moment is the end; one of long ago was followed by a new life."""
    return session_end(session, event, session.memory.heard) if at > session.memory.heard - _OVERTAKEN else {}


_OVERTAKEN = 2.0


# -- the context window, the surroundings --------------------------------------------------------------


def pre_compact(session: Session, _event: Event, _at: float) -> Changes:
    """The conversation is being made shorter."""
    counters = replace(session.counters, compactions=session.counters.compactions + 1)
    return {"state": Working("Compacting"), "counters": counters}


def post_compact(session: Session, _event: Event, _at: float) -> Changes:
    """In a turn the agent goes on; after /compact it waits."""
    return now_doing(session)


def setup(_session: Session, _event: Event, _at: float) -> Changes:
    """The client sets itself up, once."""
    return {"state": Working("Setup")}


def post_model_switch(_session: Session, event: ModelSwitch, _at: float) -> Changes:
    """Another model from now on."""
    return {"model": clean(event.to_model)} if event.to_model else {}


def cwd_changed(_session: Session, event: CwdChanged, _at: float) -> Changes:
    """The agent works elsewhere."""
    return {"cwd": clean(event.new_cwd, LONGEST_PATH)} if event.new_cwd else {}


def _text(value: object) -> str:
    return clean(value) if type(value) is str else ""
