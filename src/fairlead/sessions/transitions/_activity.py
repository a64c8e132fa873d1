"""What a session is doing, derived from its open calls, agents and tasks. The rules that all events share.

In a turn the oldest question to the user comes first, then the newest thing that runs; otherwise the agent thinks.
Between turns the state follows from what runs in the background. A question that the user has answered outside of the
client, which no event reports, is cleared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from fairlead.sessions._session import IDLE, THINKING, AttentionNeeded, Evidence, Working

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.sessions._session import ActiveSubagent, BackgroundTask, OpenCall, Session, State


Changes: TypeAlias = dict[str, Any]
"""Fields of a session and their new values. Three keys are not fields, but messages to `apply`:

closed   ids of calls and agents that have ended
cleared  all calls that were open are over
about    the call that the new state is about
"""

NOT_BUSY_TASK_TYPES = frozenset({"shell", "bash", "local_bash", "monitor", "teammate", "cron"})
"""Background tasks that do not make a session busy: a development server runs all day, and a listed teammate may be
idle (its own session knows)."""

_FINISHED_STATUSES = frozenset({"completed", "failed", "killed", "stopped", "cancelled", "done", "error"})
_WHY = "it was answered outside of the client"


def state_in_turn(calls: dict[str, OpenCall], agents: dict[str, ActiveSubagent]) -> tuple[State, OpenCall | None]:
    """Return the state of an agent within a turn, and the call that it is about."""
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
    """Return the state of a session between its turns."""
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
    """Add the state that follows from the changes."""
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
    """Add to the changes of a delayed event the state that follows from them, unless the state has another cause.

    Attention that is about no call (a notification of the client, an error) is not derived from calls, and stays.
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
    """Return the session without a question about a call of `tool`; unchanged if that question is not open."""
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
