"""Derives the state of a session from its open calls, subagents and background tasks, by the same rules for all events.

Within a turn, the oldest question to the user comes first, then the newest running call or subagent; otherwise the
agent is thinking. Between turns, the state follows from what runs in the background.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from fairlead.sessions._session import IDLE, THINKING, AttentionNeeded, Evidence, Working

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.sessions._session import ActiveSubagent, BackgroundTask, OpenCall, Session, State


Changes: TypeAlias = dict[str, Any]
"""Fields of a session and their new values. Three keys are not fields, but tell `apply` something:

closed   the ids of calls and subagents that have ended
cleared  that all calls that were open have ended
about    the call that the new state is about, or `None`
"""

NOT_BUSY_TASK_TYPES = frozenset({"shell", "bash", "local_bash", "monitor", "teammate", "cron"})
"""The types of background tasks that do not make a session busy.

A shell may run a development server all day, and a teammate that is listed may be idle: its session has its state.
"""

_FINISHED_STATUSES = frozenset({"completed", "failed", "killed", "stopped", "cancelled", "done", "error"})
_WHY = "it was answered outside of the client"


def state_in_turn(calls: dict[str, OpenCall], agents: dict[str, ActiveSubagent]) -> tuple[State, OpenCall | None]:
    """Return the state of an agent within a turn, and the call that the state is about; `None` for no call."""
    if not calls and not agents:
        return THINKING, None
    for call in calls.values():
        if call.asked:
            return AttentionNeeded(call.asked, call.question), call
    for call in reversed(calls.values()):
        if not call.agent:
            return Working(call.tool), call
        if call.agent in agents:
            return Working(agents[call.agent].type or call.tool), call
    for agent in reversed(agents.values()):
        if not agent.background:
            return Working(agent.type or "Agent"), None
    return THINKING, None


def state_between_turns(agents: Mapping[str, ActiveSubagent], tasks: Mapping[str, BackgroundTask]) -> State:
    """Return the state of a session between its turns: working if something runs in the background, or else idle."""
    names = {agent_id: agent.type for agent_id, agent in agents.items() if agent.background}
    for task_id, task in tasks.items():
        if task_id not in names and is_busy(task):
            names[task_id] = task.agent_type or task.description or task.type
    if not names:
        return IDLE
    if len(names) == 1:
        return Working(f"{next(iter(names.values())) or 'agent'} in background")
    return Working(f"{len(names)} in background")


def is_busy(task: BackgroundTask) -> bool:
    """Return whether a background task makes its session busy."""
    return task.type not in NOT_BUSY_TASK_TYPES and task.status not in _FINISHED_STATUSES


def with_state(session: Session, **changes: Any) -> Changes:
    """Return the changes, with the state that follows from them, and the call that the state is about.

    If the session has the same question as before, no state is added, so that the question's first event stays the
    evidence.
    """
    agents = changes.get("agents", session.agents)
    if changes.get("in_turn", session.in_turn):
        state, about = state_in_turn(changes.get("calls", session.calls), agents)
    else:
        state, about = state_between_turns(agents, changes.get("tasks", session.tasks)), None
    if state == session.state and type(state) is AttentionNeeded:
        return changes  # the same question: its first event stays the evidence
    changes["state"] = state
    changes["about"] = about
    return changes


def with_corrected_state(session: Session, **changes: Any) -> Changes:
    """Return the changes of a delayed event, with the state that follows from them if that is a different one.

    A state that does not follow from calls, subagents and tasks stays, such as attention because of a notification of
    the client or of an error.
    """
    state = session.state
    if not session.in_turn and state != state_between_turns(session.agents, session.tasks):
        return changes
    if type(state) is AttentionNeeded and all(call.asked != state.reason for call in session.calls.values()):
        return changes
    changes = with_state(session, **changes)
    if changes.get("state") == state:
        changes.pop("state")
        changes.pop("about")
    return changes


def with_answer(session: Session, tool: str, question: str, at: float) -> Session:
    """Return the session without a question that the user has answered outside of the client.

    `tool` and `question` identify it. If it is not open, the session itself is returned.
    """
    if session.ended is not None or type(session.state) is not AttentionNeeded:
        return session
    calls = dict(session.calls)
    asked = (name for name, call in calls.items() if call.asked and (call.tool, call.question) == (tool, question))
    name = next(asked, "")
    if name:
        calls[name] = replace(calls[name], asked="", question="")
    elif session.state.about != question:
        return session
    state, about = state_in_turn(calls, session.agents)
    since = session.since if state == session.state else at
    evidence = Evidence("PermissionRequest", at, about.tool if about else tool, about.path if about else "", why=_WHY)
    return replace(session, calls=calls, state=state, since=since, evidence=evidence)
