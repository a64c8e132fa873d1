"""The events of tool calls, and the questions of MCP servers: what they change in the session of the calling agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.clients import client_or_default
from fairlead.sessions._limits import MAX_CALLS, MAX_ID_LENGTH, MAX_PATH_LENGTH, clean_text
from fairlead.sessions._session import THINKING, ActiveSubagent, AttentionNeeded, OpenCall, Session, Working
from fairlead.sessions.transitions._activity import Changes, with_corrected_state, with_state
from fairlead.text import replace_surrogates

if TYPE_CHECKING:
    from fairlead.events import (
        Elicitation,
        ElicitationResult,
        PermissionDenied,
        PermissionRequest,
        PostToolBatch,
        PostToolUse,
        PostToolUseFailure,
        PreToolUse,
        ToolEvent,
    )

MCP_INPUT = "MCP input"

_NO_CALLS: dict[str, OpenCall] = {}
_MAX_SHORT_NAME = 100

SAME_MESSAGE = 2.0
"""Seconds within which the calls of one message of the model start.

No event reports that the user has declined a call. But if another call starts later than this after a call that waits
for an answer, it belongs to the next message, so the question was answered.
"""


def path_of(event: ToolEvent) -> str:
    """Return the path in a tool call's input, cut to `MAX_PATH_LENGTH`; "" if there is none."""
    path = client_or_default(event.client).path_of(event.tool_input)
    return clean_text(path, MAX_PATH_LENGTH) if path else ""


def question_of(event: ToolEvent) -> str:
    """Return the full text that the user is asked about a call: the command, the change of a file, or the question."""
    return replace_surrogates(client_or_default(event.client).question_of(event.tool_name, event.tool_input))


def starts_subagent(event: ToolEvent) -> bool:
    """Return whether a tool call starts a subagent."""
    return client_or_default(event.client).tool_kinds.get(event.tool_name) == "spawn"


# -- a call starts -------------------------------------------------------------------------------------


def pre_tool_use(session: Session, event: PreToolUse, at: float) -> Changes:
    """Open the call, and set the state: attention if the tool asks the user something, otherwise working.

    Questions about calls that started more than `SAME_MESSAGE` seconds earlier count as answered. While another
    question is open, the session still needs attention.
    """
    calls, call, call_id = session.calls, _opened(event, at), event.tool_use_id
    is_asked = False
    if type(session.state) is AttentionNeeded:
        calls = {name: other for name, other in calls.items() if not other.asked or other.at > at - SAME_MESSAGE}
        is_asked = any(other.asked for other in calls.values())
    if call_id:
        if len(call_id) > MAX_ID_LENGTH or not call_id.isascii():
            call_id = clean_text(call_id, MAX_ID_LENGTH)
        calls = {**calls, call_id: call} if calls else {call_id: call}
        if len(calls) > MAX_CALLS:
            del calls[next(iter(calls))]
    counters = replace(session.counters, tools=session.counters.tools + 1)
    if is_asked:
        changes: Changes = {"in_turn": True, "calls": calls, "counters": counters}
        return with_state(session, **changes) if call_id else changes
    state = AttentionNeeded(call.asked, call.question) if call.asked else Working(call.tool)
    return {"in_turn": True, "calls": calls, "counters": counters, "state": state, "about": call}


def pre_tool_use_blocked(session: Session, _event: PreToolUse, _at: float) -> Changes:
    """Count a call that Fairlead has blocked. It is not opened."""
    counters = replace(session.counters, denials=session.counters.denials + 1)
    return with_state(session, in_turn=True, counters=counters)


def delayed_pre_tool_use(session: Session, event: PreToolUse, at: float) -> Changes:
    """Count the call, and open it unless a later event shows that it has ended."""
    counters = replace(session.counters, tools=session.counters.tools + 1)
    call_id = clean_text(event.tool_use_id or "", MAX_ID_LENGTH)
    if not call_id or not session.in_turn or call_id in session.memory.closed or at <= session.memory.cleared:
        return {"counters": counters}
    calls = {call_id: _opened(event, at), **session.calls}
    return with_corrected_state(session, calls=calls, counters=counters)


def permission_request(session: Session, event: PermissionRequest, at: float) -> Changes:
    """Mark the newest open call with this tool and path as asked about, because the event does not name its call.

    Without such a call, set the session to attention and leave its calls as they are.
    """
    tool, path = clean_text(event.tool_name), path_of(event)
    reason = tool if tool in client_or_default(event.client).questions else f"Permission for {tool}"
    question = question_of(event)
    for call_id, call in reversed(session.calls.items()):
        if call.tool == tool and call.path == path and not call.asked:
            calls = {**session.calls, call_id: replace(call, asked=reason, question=question)}
            return with_state(session, in_turn=True, calls=calls)
    return {"in_turn": True, "state": AttentionNeeded(reason, question), "about": OpenCall(tool, at, path)}


def delayed_permission_request(session: Session, event: PermissionRequest, at: float) -> Changes:
    """Mark an open call as asked about, if the event is only moments late. Otherwise change nothing."""
    changes = permission_request(session, event, at)
    is_recent = at > session.memory.newest - SAME_MESSAGE
    return with_corrected_state(session, calls=changes["calls"]) if "calls" in changes and is_recent else {}


def _opened(event: PreToolUse, at: float) -> OpenCall:
    tool, client = event.tool_name, client_or_default(event.client)
    if tool in client.questions:
        return OpenCall(tool, at, asked=tool, question=question_of(event))
    if client.tool_kinds.get(tool) == "spawn":
        request = client.subagent_request(event.tool_input)
        return OpenCall(tool, at, about=clean_text(request.description), kind=clean_text(request.name))
    if len(tool) > _MAX_SHORT_NAME or not tool.isascii():
        tool = clean_text(tool)
    path = client.path_of(event.tool_input)
    return OpenCall(tool, at, clean_text(path, MAX_PATH_LENGTH) if path else "")


# -- a call ends ---------------------------------------------------------------------------------------


def post_tool_use(session: Session, event: PostToolUse, at: float) -> Changes:
    """Close the call, and derive the state: thinking, if no other call or subagent runs. Record a started subagent."""
    calls, call_id = session.calls, event.tool_use_id
    if len(calls) == 1 and call_id in calls and not session.agents and not starts_subagent(event):
        about = calls[call_id]  # the usual case, with the result of the general one below
        return {"in_turn": True, "calls": _NO_CALLS, "state": THINKING, "about": about, "closed": (call_id,)}
    return _answered(session, event, at, is_delayed=False)


def delayed_post_tool_use(session: Session, event: PostToolUse, at: float) -> Changes:
    """Close the call, and record the subagent that it started. The turn does not change."""
    return _answered(session, event, at, is_delayed=True)


def post_tool_use_failure(session: Session, event: PostToolUseFailure, _at: float) -> Changes:
    """Close the call, and count the failure. If the user interrupted the call, end the turn."""
    counters = replace(session.counters, failures=session.counters.failures + 1)
    if event.is_interrupt:
        return with_state(session, in_turn=False, calls={}, counters=counters, cleared=True)
    return with_state(session, in_turn=True, counters=counters, **_closed(session, event))


def delayed_post_tool_use_failure(session: Session, event: PostToolUseFailure, _at: float) -> Changes:
    """Close the call, and count the failure. An interrupt does not end the turn: it may have ended an earlier one."""
    counters = replace(session.counters, failures=session.counters.failures + 1)
    return with_corrected_state(session, counters=counters, **_closed(session, event))


def permission_denied(session: Session, event: PermissionDenied, _at: float) -> Changes:
    """Close the call and count the denial.

    The client itself has denied it, so the user is not asked about it any more.
    """
    counters = replace(session.counters, denials=session.counters.denials + 1)
    return with_state(session, in_turn=True, counters=counters, **_closed(session, event))


def delayed_permission_denied(session: Session, event: PermissionDenied, _at: float) -> Changes:
    """Close the call, and count the denial."""
    counters = replace(session.counters, denials=session.counters.denials + 1)
    return with_corrected_state(session, counters=counters, **_closed(session, event))


def post_tool_batch(session: Session, event: PostToolBatch, _at: float) -> Changes:
    """Close all open calls. A call that a rule of the client denied fires no other event when it ends."""
    ended = (*session.calls, *_listed(event))
    return with_state(session, in_turn=True, calls={}, closed=ended, cleared=True)


def delayed_post_tool_batch(session: Session, event: PostToolBatch, _at: float) -> Changes:
    """Close the calls that the event lists. Other open calls may belong to a later message."""
    listed = _listed(event)
    calls = {name: call for name, call in session.calls.items() if name not in listed}
    return with_corrected_state(session, calls=calls, closed=listed)


def _answered(session: Session, event: PostToolUse, at: float, *, is_delayed: bool) -> Changes:
    changes = _closed(session, event)
    if starts_subagent(event) and (agent_id := started_subagent(event)):
        changes |= _spawned(session, event, agent_id, at, is_delayed=is_delayed)
    return with_corrected_state(session, **changes) if is_delayed else with_state(session, in_turn=True, **changes)


def _spawned(session: Session, event: PostToolUse, agent_id: str, at: float, *, is_delayed: bool) -> Changes:
    """Return the changes for a subagent that a call has started.

    If it has finished, it is removed. Else it is listed as one in the background, unless a delayed event names one that
    was already closed.
    """
    if is_finished(event):
        agents = {name: agent for name, agent in session.agents.items() if name != agent_id}
        return {"agents": agents, "closed": (clean_text(event.tool_use_id or "", MAX_ID_LENGTH), agent_id)}
    known = session.agents.get(agent_id)
    if is_delayed and known is None and agent_id in session.memory.closed:
        return {}
    agent = ActiveSubagent(
        known.type if known else requested_subagent(event), known.at if known else at, background=True
    )
    return {"agents": {**session.agents, agent_id: agent}}


def started_subagent(event: PostToolUse) -> str:
    """Return the id of the subagent that a call has started, from its result; "" if the result names none."""
    result = client_or_default(event.client).subagent_result(event)
    return clean_text(result.agent_id, MAX_ID_LENGTH) if result else ""


def requested_subagent(event: PostToolUse) -> str:
    """Return the name (or the type) of the subagent that a call asked for; "" if it names none."""
    return clean_text(client_or_default(event.client).subagent_request(event.tool_input).name)


def is_finished(event: PostToolUse) -> bool:
    """Return whether the result of a call shows that the subagent which it started has finished."""
    result = client_or_default(event.client).subagent_result(event)
    return result is not None and result.is_finished


def _closed(session: Session, event: ToolEvent) -> Changes:
    call_id = clean_text(event.tool_use_id or "", MAX_ID_LENGTH)
    if not call_id:
        return {}
    changes: Changes = {"closed": (call_id,)}
    if call_id in session.calls:
        changes["calls"] = {name: call for name, call in session.calls.items() if name != call_id}
    return changes


def _listed(event: PostToolBatch) -> tuple[str, ...]:
    ids = [call.get("tool_use_id") for call in event.tool_calls or () if type(call) is dict]
    return tuple(clean_text(call_id, MAX_ID_LENGTH) for call_id in ids if type(call_id) is str)


# -- an MCP server asks --------------------------------------------------------------------------------


def elicitation(session: Session, event: Elicitation, _at: float) -> Changes:
    """Record the question of an MCP server, at the open call of one of its tools if there is one."""
    prefix = client_or_default(event.client).mcp_prefix(event.mcp_server_name or "")
    question = replace_surrogates(event.message or "")
    for call_id, call in reversed(session.calls.items()):
        if call.tool.startswith(prefix):
            asked = replace(call, asked=MCP_INPUT, question=question)
            return with_state(session, calls={**session.calls, call_id: asked}, in_turn=True)
    return {"state": AttentionNeeded(MCP_INPUT, question)}


def elicitation_result(session: Session, _event: ElicitationResult, _at: float) -> Changes:
    """Clear the questions of MCP servers."""
    return answered_mcp(session)


def answered_mcp(session: Session) -> Changes:
    """Return the changes that clear the questions of MCP servers; none if the session does not wait for such an answer.

    Other questions stay open.
    """
    if type(session.state) is not AttentionNeeded or session.state.reason != MCP_INPUT:
        return {}
    calls = {
        name: replace(call, asked="", question="") if call.asked == MCP_INPUT else call
        for name, call in session.calls.items()
    }
    return with_state(session, calls=calls)
