"""Prompts, stops, notifications of the client, compaction, the start and end of a session: what they change in it."""

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
    """Begin a turn, without open calls, because the client accepts a prompt only between turns. Count the prompt."""
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
    """Return the changes that remove the task whose end a prompt of the client reports; none if it reports no end.

    The stop of such a task may not have been seen.
    """
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
    """End the turn. The session is idle, unless a subagent or task in the background keeps it busy.

    The event lists all background tasks. A subagent that it does not list has ended, even if its stop was not seen.
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
    """Continue the turn, because Fairlead's answer keeps the agent from stopping."""
    return {"in_turn": True, "calls": {}, "state": THINKING, "cleared": True}


def stop_failure(session: Session, event: StopFailure, _at: float) -> Changes:
    """End the turn, because the model's API failed, and count the error. The session needs the user's attention."""
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
    """Return whether a subagent may be a listed teammate. Teammates are listed under other ids than in their events."""
    return agent.background and any(task.type == "teammate" for task in tasks.values())


# -- notifications of the client -----------------------------------------------------------------------


def notification(session: Session, event: Notification, _at: float) -> Changes:
    """Return the changes by a notification of the client: the end of a turn, an answered question, or attention.

    Unknown types change nothing, and attention that an open question has caused already stays as it is.
    """
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
    """Return whether a notification repeats the PermissionRequest that has caused the present attention."""
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
    """End the turn, because the client has waited for a prompt for a minute.

    The client also sends this notification while subagents work, and after an error. Then nothing changes.
    """
    if session.agents and session.in_turn:
        return {}
    if type(session.state) is AttentionNeeded and session.state.reason.startswith(FAILED):
        return {}
    return with_state(session, in_turn=False, calls={}, cleared=True)


# -- the session itself --------------------------------------------------------------------------------


def session_start(session: Session, event: SessionStart, at: float) -> Changes:
    """Reset the session to idle, and open it if it had ended. After compaction it continues as before."""
    changes: Changes = {}
    if event.model:
        changes["model"] = clean_text(event.model)
    if event.session_title:
        changes["title"] = clean_text(event.session_title)
    if event.source == "compact":
        return changes if session.in_turn else with_state(session, **changes)
    return changes | _RESET | {"since": at, "ended": None, "end_reason": "", "next_id": ""}


def delayed_session_start(session: Session, event: SessionStart, at: float) -> Changes:
    """Correct the start of the session, and set the model if it is not known."""
    changes: Changes = {"started": min(session.started, at)}
    if event.model and not session.model:
        changes["model"] = clean_text(event.model)
    return changes


def session_end(_session: Session, event: SessionEnd, at: float) -> Changes:
    """End the session."""
    return _RESET | {"ended": at, "end_reason": clean_text(event.reason or "other")}


def delayed_session_end(session: Session, event: SessionEnd, at: float) -> Changes:
    """End the session, if the event is only moments late. If it is older, the session was started again since."""
    return session_end(session, event, session.memory.newest) if at > session.memory.newest - _MAX_END_DELAY else {}


# -- the context window and the environment ------------------------------------------------------------


def pre_compact(session: Session, _event: Event, _at: float) -> Changes:
    """Set the session to working, and count the compaction."""
    counters = replace(session.counters, compactions=session.counters.compactions + 1)
    return {"state": Working("Compacting"), "counters": counters}


def post_compact(session: Session, _event: Event, _at: float) -> Changes:
    """Derive the state again: within a turn the agent continues to work, after /compact it is idle."""
    return with_state(session)


def setup(_session: Session, _event: Event, _at: float) -> Changes:
    """Set the session to working while the client sets itself up."""
    return {"state": Working("Setup")}


def post_model_switch(_session: Session, event: ModelSwitch, _at: float) -> Changes:
    """Set the model to the new one."""
    return {"model": clean_text(event.to_model)} if event.to_model else {}


def cwd_changed(_session: Session, event: CwdChanged, _at: float) -> Changes:
    """Set the working directory to the new one."""
    return {"cwd": clean_text(event.new_cwd, MAX_PATH_LENGTH)} if event.new_cwd else {}


def _text(value: object) -> str:
    return clean_text(value) if type(value) is str else ""
