"""`apply`, which computes the session after one event. A pure function: no clock, no I/O.

Events come from many short processes and through a spool, so they may be repeated, delayed and out of order:

- **Repeated**: an event with the time, name and subject of one of the last 8 events changes nothing.
- **Delayed**, with a time before that of the newest event: it still shows that a call has ended or a subagent has
  started, and the state is derived from all that is known. A delayed start opens nothing that has ended already.
- **A clock that was set back** makes every event a delayed one. So the third event in a row that is delayed by more
  than 5 seconds is applied as if in order, and later events are compared with its time.
- **After the end**: an event that shows the agent at work, such as a prompt or a tool call, opens an ended session
  again. Other events do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from fairlead import events
from fairlead.sessions._limits import MAX_CLOSED, MAX_ID_LENGTH, MAX_PATH_LENGTH, MAX_RECENT_EVENTS, clean_text
from fairlead.sessions._session import AttentionNeeded, Evidence, Session, SessionMemory
from fairlead.sessions.transitions import _subagents, _tools, _turns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fairlead.events import Event
    from fairlead.journal import Verdict
    from fairlead.sessions._session import OpenCall, State
    from fairlead.sessions.transitions._activity import Changes

    Handler = Callable[[Session, Any, float], Changes]

JITTER = 5.0
"""Seconds by which an event may be delayed without being evidence that the clock was set back."""

CLOCK_RESET_COUNT = 3
"""The number of events in a row, each delayed by more than `JITTER`, after which the clock counts as set back."""


def apply(session: Session, event: Event, now: float, verdict: Verdict = "none") -> Session:
    """Return the session after an event that happened at the Unix time `now`; unchanged if the event is a repeated one.

    The event must come from the session, or be the SubagentStart or SubagentStop of one of its subagents. `verdict` is
    what Fairlead answered, if that is known: for instance, a tool call that was blocked does not run.
    """
    kind = type(event)
    memory = session.memory
    key = (now, kind.__name__, _subject(event))
    is_delayed, delayed_count = False, 0
    if now <= memory.newest:
        if key in memory.recent:
            return session
        is_delayed = now < memory.newest
        if is_delayed and memory.newest - now > JITTER:
            delayed_count = memory.delayed + 1
            if delayed_count >= CLOCK_RESET_COUNT:
                is_delayed, delayed_count = False, 0
    handler = (_DELAYED if is_delayed else _IN_ORDER).get(kind)
    if verdict != "none" and (kind, verdict) in _BY_VERDICT:
        handler = None if is_delayed else _BY_VERDICT[kind, verdict]
    changes = handler(session, event, now) if handler else {}
    if session.ended is not None and "ended" not in changes:
        changes = _after_end(session, kind, changes, now, is_delayed=is_delayed)
    state = changes.get("state")
    if state is not None:
        old = session.state
        if (
            type(state) is not type(old)
            or session.evidence is None
            or (type(state) is AttentionNeeded and state != old)
        ):
            changes["since"] = now
        changes["evidence"] = _evidence(event, now, changes.pop("about", None), state)
    if not is_delayed:
        changes["last_activity"] = now
        _add_context(session, event, changes)
    changes["memory"] = _updated_memory(memory, key, changes, is_delayed, delayed_count)
    return replace(session, **changes)


def _subject(event: Event) -> str:
    """Return the id or subject by which an event differs from others of the same kind and time."""
    call: str | None = getattr(event, "tool_use_id", None)
    subject = call or event.agent_id or event.subject
    return subject if len(subject) <= MAX_ID_LENGTH and subject.isascii() else clean_text(subject, MAX_ID_LENGTH)


def _evidence(event: Event, now: float, about: OpenCall | None, state: State) -> Evidence:
    """Return the evidence for a state. Its tool and path are those of `about`, the call that the state is about.

    Without such a call, they are those of the event. The same holds if the event ends a call and the state is not
    attention: then `about` is another call, which still runs.
    """
    if about is not None and (type(event) not in _ENDS_CALL or type(state) is AttentionNeeded):
        return Evidence(event.event_name, now, about.tool, about.path)
    if isinstance(event, events.ToolEvent):
        return Evidence(event.event_name, now, clean_text(event.tool_name), _tools.path_of(event))
    return Evidence(event.event_name, now)


def _add_context(session: Session, event: Event, changes: Changes) -> None:
    """Add to `changes` the folder, mode, transcript and agent type of the event, if they differ from the session's."""
    cwd, mode = event.cwd, event.permission_mode
    if cwd and cwd != session.cwd and "cwd" not in changes:
        changes["cwd"] = clean_text(cwd, MAX_PATH_LENGTH)
    if mode and mode != session.permission_mode:
        changes["permission_mode"] = clean_text(mode)
    if session.parent:
        return
    if event.transcript_path and event.transcript_path != session.transcript:
        changes["transcript"] = clean_text(event.transcript_path, MAX_PATH_LENGTH)
    if event.agent_type and not event.agent_id:  # the client was started as this agent
        changes["agent_type"] = clean_text(event.agent_type)


def _after_end(session: Session, kind: type[Event], changes: Changes, now: float, *, is_delayed: bool) -> Changes:
    if is_delayed or kind not in _REOPENING or now <= (session.ended or 0.0):
        return {name: value for name, value in changes.items() if name in _KEPT_AFTER_END}
    return changes | {"ended": None, "end_reason": "", "since": now}


def _updated_memory(
    memory: SessionMemory,
    key: tuple[float, str, str],
    changes: Changes,
    is_delayed: bool,  # noqa: FBT001
    delayed_count: int,
) -> SessionMemory:
    recent, closed, cleared = memory.recent, memory.closed, memory.cleared
    if "closed" in changes:
        for name in changes.pop("closed"):
            if name and name not in closed:
                closed = (*closed[1 - MAX_CLOSED :], name)
    if "cleared" in changes:
        cleared = key[0]
        del changes["cleared"]
    recent = (*recent[1:], key) if len(recent) >= MAX_RECENT_EVENTS else (*recent, key)
    newest = memory.newest if is_delayed else key[0]
    return SessionMemory(newest, delayed_count, recent, closed, cleared, memory.process_events + 1)


_ENDS_CALL = frozenset({events.PostToolUse, events.PostToolUseFailure, events.PermissionDenied})
_KEPT_AFTER_END = frozenset({"counters", "started", "closed", "model", "agent_type", "description", "transcript"})
_REOPENING = frozenset(
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
    events.SubagentStart: _subagents.subagent_start,
    events.SubagentStop: _subagents.subagent_stop,
    events.TeammateIdle: _subagents.teammate_idle,
}
"""The handlers of events that are not delayed. Events without a handler only count as activity."""

_DELAYED: Mapping[type[Event], Handler] = {
    events.PreToolUse: _tools.delayed_pre_tool_use,
    events.PermissionRequest: _tools.delayed_permission_request,
    events.PermissionDenied: _tools.delayed_permission_denied,
    events.PostToolUse: _tools.delayed_post_tool_use,
    events.PostToolUseFailure: _tools.delayed_post_tool_use_failure,
    events.PostToolBatch: _tools.delayed_post_tool_batch,
    events.UserPromptSubmit: _turns.delayed_user_prompt_submit,
    events.SessionStart: _turns.delayed_session_start,
    events.SessionEnd: _turns.delayed_session_end,
    events.SubagentStart: _subagents.delayed_subagent_start,
    events.SubagentStop: _subagents.delayed_subagent_stop,
}
"""The handlers of delayed events. Other delayed events change nothing but the memory."""

_BY_VERDICT: Mapping[tuple[type[Event], str], Handler | None] = {
    (events.PreToolUse, "blocked"): _tools.pre_tool_use_blocked,
    (events.PreToolUse, "failed"): _tools.pre_tool_use_blocked,
    (events.PermissionRequest, "allowed"): None,
    (events.PermissionRequest, "blocked"): None,
    (events.PermissionRequest, "failed"): None,
    (events.UserPromptSubmit, "blocked"): None,
    (events.Elicitation, "blocked"): None,
    (events.Stop, "blocked"): _turns.stop_blocked,
    (events.SubagentStop, "blocked"): None,
    (events.SessionEnd, "blocked"): None,
    (events.Notification, "blocked"): None,
}
"""The handlers of events whose effect depends on the verdict. `None`: the event only counts as activity.

The last two are for the registry: the end of one of several processes, and a notification that is about a subagent.
"""
