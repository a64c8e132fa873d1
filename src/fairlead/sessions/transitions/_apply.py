"""The state machine: what one event makes of a session. Pure: no clock, no I/O, the same answer every time.

Events come from many short processes and through a spool, so they may come twice, late, and in any order:

- **twice**: an event with the time, name and subject of one of the last 8 changes nothing.
- **late** (its time is before that of the newest event heard): it counts as a fact (a call has ended, a subagent has
  begun), and the state follows from the facts; it is no news of its own. What began late is not opened if it has
  ended already.
- **a clock that was set back** makes every event late. So the third in a row that is late by more than 5 seconds is
  taken as it is, and time goes on from there.
- **after the end**: an event that shows the agent at work (a prompt, a tool) opens an ended session again; anything
  else does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from fairlead import events
from fairlead.sessions._limits import LONGEST_ID, LONGEST_PATH, MOST_CLOSED, MOST_RECENT, clean
from fairlead.sessions._session import Session, SessionMemory
from fairlead.sessions._states import AttentionNeeded, Evidence
from fairlead.sessions.transitions import _subagents as _agents
from fairlead.sessions.transitions import _tools, _turns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fairlead.events import Event
    from fairlead.journal import Verdict
    from fairlead.sessions.transitions._activity import Changes

    Handler = Callable[[Session, Any, float], Changes]

JITTER = 5.0
"""Seconds by which events that were sent at the same time may come one after the other."""

PATIENCE = 3
"""So many events in a row that are late by more than that, and the clock was set back."""


def apply(session: Session, event: Event, now: float, verdict: Verdict = "none") -> Session:
    """Give the session as it is after an event that happened at `now`.

    The event must be this session's: its own, or (SubagentStart, SubagentStop) that of a subagent which it made.
    `verdict` is what the client was told in answer, where that is known: a tool call that was blocked does not run.
    """
    kind = type(event)
    memory = session.memory
    mark = (now, kind.__name__, _subject(event))
    late, behind = False, 0
    if now <= memory.heard:
        if mark in memory.recent:
            return session
        late = now < memory.heard
        if late and memory.heard - now > JITTER:
            behind = memory.behind + 1
            if behind >= PATIENCE:
                late, behind = False, 0
    handler = (_LATE if late else _IN_ORDER).get(kind)
    if verdict != "none" and (kind, verdict) in _OVERRULED:
        handler = None if late else _OVERRULED[kind, verdict]
    changes = handler(session, event, now) if handler else {}
    if session.ended is not None and "ended" not in changes:
        changes = _after_the_end(session, kind, changes, now, late=late)
    state = changes.get("state")
    if state is not None:
        old = session.state
        if (
            type(state) is not type(old)
            or session.evidence is None
            or (type(state) is AttentionNeeded and state != old)
        ):
            changes["since"] = now
        about = changes.pop("about", None)
        changes["evidence"] = Evidence(mark[1], now, about.tool, about.path) if about else _evidence(event, now)
    if not late:
        changes["last_activity"] = now
        _note_surroundings(session, event, changes)
    changes["memory"] = _remembered(memory, mark, changes, late, behind)
    return replace(session, **changes)


def _subject(event: Event) -> str:
    """Tell events of one kind and one time apart."""
    call: str | None = getattr(event, "tool_use_id", None)
    subject = call or event.agent_id or event.subject
    return subject if len(subject) <= LONGEST_ID and subject.isascii() else clean(subject, LONGEST_ID)


def _evidence(event: Event, now: float) -> Evidence:
    """Tell what a state was told from that is about no call we know."""
    if isinstance(event, events.ToolEvent):
        return Evidence(event.event_name, now, clean(event.tool_name), _tools.path_of(event))
    return Evidence(event.event_name, now)


def _note_surroundings(session: Session, event: Event, changes: Changes) -> None:
    """Take over where the agent works, and how, if that is news."""
    cwd, mode = event.cwd, event.permission_mode
    if cwd and cwd != session.cwd and "cwd" not in changes:
        changes["cwd"] = clean(cwd, LONGEST_PATH)
    if mode and mode != session.permission_mode:
        changes["permission_mode"] = clean(mode)
    if session.parent:
        return
    if event.transcript_path and event.transcript_path != session.transcript:
        changes["transcript"] = clean(event.transcript_path, LONGEST_PATH)
    if event.agent_type and not event.agent_id:  # the client was started as this agent
        changes["agent_type"] = clean(event.agent_type)


def _after_the_end(session: Session, kind: type[Event], changes: Changes, now: float, *, late: bool) -> Changes:
    if late or kind not in _SIGNS_OF_LIFE or now <= (session.ended or 0.0):
        return {name: value for name, value in changes.items() if name in _HISTORY}
    return changes | {"ended": None, "end_reason": ""}


def _remembered(
    memory: SessionMemory,
    mark: tuple[float, str, str],
    changes: Changes,
    late: bool,  # noqa: FBT001
    behind: int,
) -> SessionMemory:
    recent, closed, cleared = memory.recent, memory.closed, memory.cleared
    if "closed" in changes:
        for name in changes.pop("closed"):
            if name and name not in closed:
                closed = (*closed[1 - MOST_CLOSED :], name)
    if "cleared" in changes:
        cleared = mark[0]
        del changes["cleared"]
    recent = (*recent[1:], mark) if len(recent) >= MOST_RECENT else (*recent, mark)
    return SessionMemory(memory.heard if late else mark[0], behind, recent, closed, cleared, memory.spoken + 1)


_HISTORY = frozenset({"counters", "started", "closed", "model", "agent_type", "description", "transcript"})
_SIGNS_OF_LIFE = frozenset(
    {
        *(events.SessionStart, events.SubagentStart, events.UserPromptSubmit, events.PreToolUse, events.PostToolUse),
        *(events.PostToolUseFailure, events.PostToolBatch, events.PermissionRequest, events.PreCompact),
    }
)

_IN_ORDER: Mapping[type[Event], Handler] = {
    events.PreToolUse: _tools.pre_tool_use,
    events.PermissionRequest: _tools.permission_request,
    events.PermissionDenied: _tools.permission_denied,
    events.PostToolUse: _tools.post_tool_use,
    events.PostToolUseFailure: _tools.post_tool_use_failure,
    events.PostToolBatch: _tools.post_tool_batch,
    events.Elicitation: _tools.elicitation,
    events.ElicitationResult: _tools.elicitation_result,
    events.UserPromptSubmit: _turns.user_prompt_submit,
    events.Stop: _turns.stop,
    events.StopFailure: _turns.stop_failure,
    events.Notification: _turns.notification,
    events.SessionStart: _turns.session_start,
    events.SessionEnd: _turns.session_end,
    events.Setup: _turns.setup,
    events.PreCompact: _turns.pre_compact,
    events.PostCompact: _turns.post_compact,
    events.PostModelSwitch: _turns.post_model_switch,
    events.CwdChanged: _turns.cwd_changed,
    events.SubagentStart: _agents.subagent_start,
    events.SubagentStop: _agents.subagent_stop,
    events.TeammateIdle: _agents.teammate_idle,
}
"""What each event changes. Those that are not here (and those that are newer than we are) are a sign of life."""

_LATE: Mapping[type[Event], Handler] = {
    events.PreToolUse: _tools.late_pre_tool_use,
    events.PermissionRequest: _tools.late_permission_request,
    events.PermissionDenied: _tools.late_permission_denied,
    events.PostToolUse: _tools.late_post_tool_use,
    events.PostToolUseFailure: _tools.late_post_tool_use_failure,
    events.PostToolBatch: _tools.late_post_tool_batch,
    events.UserPromptSubmit: _turns.late_user_prompt_submit,
    events.SessionStart: _turns.late_session_start,
    events.SessionEnd: _turns.late_session_end,
    events.SubagentStart: _agents.late_subagent_start,
    events.SubagentStop: _agents.late_subagent_stop,
}
"""What of it is left if the event comes late."""

_OVERRULED: Mapping[tuple[type[Event], str], Handler | None] = {
    (events.PreToolUse, "blocked"): _tools.blocked,
    (events.PreToolUse, "failed"): _tools.blocked,
    (events.PermissionRequest, "allowed"): None,
    (events.PermissionRequest, "blocked"): None,
    (events.PermissionRequest, "failed"): None,
    (events.UserPromptSubmit, "blocked"): None,
    (events.Elicitation, "blocked"): None,
    (events.Stop, "blocked"): _turns.kept_going,
    (events.SubagentStop, "blocked"): None,
    (events.SessionEnd, "blocked"): None,
    (events.Notification, "blocked"): None,
}
"""What happens instead, where our own answer decided it. `None`: it is a sign of life, and no more. (The last two are
the registry's: an end that is another process's, a note that is about a subagent.)"""
