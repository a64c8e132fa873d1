"""Prompts, stops, notifications of the client, compaction, the start and the end of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from fairlead.clients import client_or_default
from fairlead.sessions._limits import MAX_ID_LENGTH, MAX_PATH_LENGTH, MAX_TASKS, clean_text
from fairlead.sessions._session import IDLE, THINKING, ActiveSubagent, AttentionNeeded, BackgroundTask, Session, Working
from fairlead.sessions.transitions._activity import Changes, with_state
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

_RESET: Changes = {"in_turn": False, "calls": {}, "agents": {}, "tasks": {}, "cleared": True, "state": IDLE}
_MAX_END_DELAY = 2.0


# -- a prompt ------------------------------------------------------------------------------------------


def user_prompt_submit(session: Session, event: UserPromptSubmit, _at: float) -> Changes:
    """Begin a turn. Open calls are over: the client accepts a prompt only between turns."""
    changes = _counted(session, event)
    if not changes["by_person"]:
        changes |= _task_ended(session, event)
    return changes | {"in_turn": True, "calls": {}, "state": Working(), "cleared": True}


def delayed_user_prompt_submit(session: Session, event: UserPromptSubmit, _at: float) -> Changes:
    """Count the prompt, and change nothing else."""
    return {"counters": _counted(session, event)["counters"]}


def _counted(session: Session, event: UserPromptSubmit) -> Changes:
    counters = session.counters
    if client_or_default(event.client).is_automatic(event.prompt):  # the client fires this event for its own too
        return {"by_person": False, "counters": replace(counters, wakes=counters.wakes + 1)}
    prompt = clean_text(event.prompt)
    changes: Changes = {"by_person": True, "counters": replace(counters, prompts=counters.prompts + 1)}
    if not session.first_prompt:
        changes["first_prompt"] = prompt
    if prompt != session.last_prompt:
        changes["last_prompt"] = prompt
    return changes


def _task_ended(session: Session, event: UserPromptSubmit) -> Changes:
    """Remove the task that a prompt of the client reports as ended: its stop may not have been seen."""
    task_id = clean_text(client_or_default(event.client).ended_task(event.prompt), MAX_ID_LENGTH)
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
    """End the turn. The session is idle, unless something runs in the background.

    The event lists all background tasks: a subagent that is not listed has ended, even if its stop was not seen.
    """
    if event.background_tasks is None:  # an older client, or a hand-written payload
        return with_state(session, in_turn=False, calls={}, tasks={}, cleared=True)
    tasks = _tasks(event.background_tasks)
    agents = {
        name: replace(agent, background=True)
        for name, agent in session.agents.items()
        if name in tasks or _is_teammate(agent, tasks)
    }
    for name, task in tasks.items():
        if task.type == "subagent" and name not in agents:
            agents[name] = ActiveSubagent(task.agent_type, at, background=True)
    return with_state(session, in_turn=False, calls={}, tasks=tasks, agents=agents, cleared=True)


def stop_blocked(_session: Session, _event: Event, _at: float) -> Changes:
    """Continue the turn: our answer kept the agent from stopping."""
    return {"in_turn": True, "calls": {}, "state": THINKING, "cleared": True}


def stop_failure(session: Session, event: StopFailure, _at: float) -> Changes:
    """End the turn, because the model's API failed: nothing continues until the user acts."""
    counters = replace(session.counters, errors=session.counters.errors + 1)
    reason = f"{FAILED}: {clean_text(event.error)}" if event.error else FAILED
    state = AttentionNeeded(reason, clean_text(event.last_assistant_message or event.error_details or ""))
    return {"in_turn": False, "calls": {}, "counters": counters, "state": state, "cleared": True}


def _tasks(listed: list[Any]) -> dict[str, BackgroundTask]:
    tasks: dict[str, BackgroundTask] = {}
    for task in listed[:MAX_TASKS]:
        if type(task) is dict and type(task.get("id")) is str:
            fields = [_text(task.get(name)) for name in ("type", "status", "description", "agent_type")]
            tasks[clean_text(task["id"], MAX_ID_LENGTH)] = BackgroundTask(*fields)
    return tasks


def _is_teammate(agent: ActiveSubagent, tasks: dict[str, BackgroundTask]) -> bool:
    """Return whether an agent may be a listed teammate. Teammates are listed under other ids than in their events."""
    return agent.background and any(task.type == "teammate" for task in tasks.values())


# -- notifications of the client -----------------------------------------------------------------------


def notification(session: Session, event: Notification, _at: float) -> Changes:
    """Apply a notification of the client. Unknown types change nothing."""
    kind = event.notification_type or ""
    if kind == "idle_prompt":
        return _idle_prompt(session)
    if kind in _ANSWERED:
        return answered_mcp(session)
    reason = _REASONS.get(kind)
    if reason is None or any(call.asked for call in session.calls.values()) or _is_repeated(session, kind):
        return {}  # the open question is worded better
    return {"state": AttentionNeeded(reason, clean_text(event.message or "") if kind == "agent_needs_input" else "")}


def _is_repeated(session: Session, kind: str) -> bool:
    """Return whether a notification follows the request that it is about, whose call is not known."""
    if kind != "permission_prompt" or type(session.state) is not AttentionNeeded:
        return False
    return session.evidence is not None and session.evidence.event == "PermissionRequest"


_REASONS = {
    "permission_prompt": "Permission",
    "elicitation_dialog": MCP_INPUT,
    "elicitation_url_dialog": MCP_INPUT,
    "agent_needs_input": "Input",
}
_ANSWERED = frozenset({"elicitation_complete", "elicitation_response"})


def _idle_prompt(session: Session) -> Changes:
    """End the turn: the user typed nothing for a minute.

    The client fires this event also while subagents work, and after an error: then nothing changes.
    """
    if session.agents and session.in_turn:
        return {}
    if type(session.state) is AttentionNeeded and session.state.reason.startswith(FAILED):
        return {}
    return with_state(session, in_turn=False, calls={}, cleared=True)


# -- the session itself --------------------------------------------------------------------------------


def session_start(session: Session, event: SessionStart, at: float) -> Changes:
    """Reset the session, which waits for a prompt. After compaction it continues with its work."""
    changes: Changes = {}
    if event.model:
        changes["model"] = clean_text(event.model)
    if event.session_title:
        changes["title"] = clean_text(event.session_title)
    if event.source == "compact":
        return changes if session.in_turn else with_state(session, **changes)
    return changes | _RESET | {"since": at, "ended": None, "end_reason": "", "next_id": ""}


def delayed_session_start(session: Session, event: SessionStart, at: float) -> Changes:
    """Correct the start: the session started earlier than its first known event."""
    changes: Changes = {"started": min(session.started, at)}
    if event.model and not session.model:
        changes["model"] = clean_text(event.model)
    return changes


def session_end(_session: Session, event: SessionEnd, at: float) -> Changes:
    """End the session."""
    return _RESET | {"ended": at, "end_reason": clean_text(event.reason or "other")}


def delayed_session_end(session: Session, event: SessionEnd, at: float) -> Changes:
    """End the session if the event is only moments late. After an older end, the session was started again."""
    return session_end(session, event, session.memory.newest) if at > session.memory.newest - _MAX_END_DELAY else {}


# -- the context window and the environment ------------------------------------------------------------


def pre_compact(session: Session, _event: Event, _at: float) -> Changes:
    """Count the compaction, and set the session to working."""
    counters = replace(session.counters, compactions=session.counters.compactions + 1)
    return {"state": Working("Compacting"), "counters": counters}


def post_compact(session: Session, _event: Event, _at: float) -> Changes:
    """Derive the state again: in a turn the agent continues, after /compact it waits."""
    return with_state(session)


def setup(_session: Session, _event: Event, _at: float) -> Changes:
    """Set the session to working while the client sets itself up."""
    return {"state": Working("Setup")}


def post_model_switch(_session: Session, event: ModelSwitch, _at: float) -> Changes:
    """Set the new model."""
    return {"model": clean_text(event.to_model)} if event.to_model else {}


def cwd_changed(_session: Session, event: CwdChanged, _at: float) -> Changes:
    """Set the new working directory."""
    return {"cwd": clean_text(event.new_cwd, MAX_PATH_LENGTH)} if event.new_cwd else {}


def _text(value: object) -> str:
    return clean_text(value) if type(value) is str else ""
