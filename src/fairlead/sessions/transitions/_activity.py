"""What a session is doing, told from what is open in it. The rules that all events share.

In a turn the oldest question to the person counts first; then the youngest thing that runs; then the agent thinks.
Between turns it is what goes on in the background.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from fairlead.sessions._states import IDLE, THINKING, AttentionNeeded, Working

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.sessions._session import Agent, OpenCall, Session, Task
    from fairlead.sessions._states import State

Changes: TypeAlias = dict[str, Any]
"""Fields of a session and their new values. Three keys are no fields, but messages to `apply`:

closed   ids of calls and agents that have ended
cleared  all calls that were open are over
about    the call that the new state is about
"""

QUIET_TASKS = frozenset({"shell", "bash", "local_bash", "monitor", "teammate", "cron"})
"""Tasks in the background that keep no session busy: a development server runs all day, and a teammate that is
listed may well be idle (whether it works, its own row knows)."""

_OVER = frozenset({"completed", "failed", "killed", "stopped", "cancelled", "done", "error"})


def busy(calls: dict[str, OpenCall], agents: dict[str, Agent]) -> tuple[State, OpenCall | None]:
    """Tell what an agent does in its turn, and which call that is about."""
    if not calls and not agents:
        return THINKING, None
    for call in calls.values():
        if call.asked:
            return AttentionNeeded(call.asked), call
    for call in reversed(calls.values()):
        if not call.agent:
            return Working(call.tool), call
        if call.agent in agents:
            return Working(agents[call.agent].type or call.tool), call
    for agent in reversed(agents.values()):
        if not agent.background:
            return Working(agent.type or "Agent"), None
    return THINKING, None


def resting(agents: Mapping[str, Agent], tasks: Mapping[str, Task]) -> State:
    """Tell what a session does between its turns."""
    names = {agent_id: agent.type for agent_id, agent in agents.items() if agent.background}
    for task_id, task in tasks.items():
        if task_id not in names and is_busy(task):
            names[task_id] = task.agent_type or task.description or task.type
    if not names:
        return IDLE
    if len(names) == 1:
        return Working(f"{next(iter(names.values())) or 'agent'} in background")
    return Working(f"{len(names)} in background")


def is_busy(task: Task) -> bool:
    """Tell whether a task in the background keeps its session busy."""
    return task.type not in QUIET_TASKS and task.status not in _OVER


def now_doing(session: Session, **changes: Any) -> Changes:
    """Add to changes the state that follows from them."""
    agents = changes.get("agents", session.agents)
    if changes.get("in_turn", session.in_turn):
        state, about = busy(changes.get("calls", session.calls), agents)
    else:
        state, about = resting(agents, changes.get("tasks", session.tasks)), None
    if state == session.state and type(state) is AttentionNeeded:
        return changes  # the same question: who asked it first stays the evidence
    changes["state"] = state
    changes["about"] = about
    return changes


def corrected(session: Session, **changes: Any) -> Changes:
    """Add to changes that came late what follows from them for a state that was told from what is open.

    An attention that is about no call (a note of the client, an error) is not told from calls, and stays.
    """
    state = session.state
    if not session.in_turn and state != resting(session.agents, session.tasks):
        return changes
    if type(state) is AttentionNeeded and all(call.asked != state.reason for call in session.calls.values()):
        return changes
    told = now_doing(session, **changes)
    if told.get("state") == state:
        told.pop("state")
        told.pop("about")
    return told
