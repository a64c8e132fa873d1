"""Tool calls: what each of their events changes in the session of the agent that makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.clients import client_or_default
from fairlead.sessions._limits import LONGEST_ID, LONGEST_PATH, MOST_CALLS, clean
from fairlead.sessions._session import Agent, OpenCall, Session
from fairlead.sessions._states import THINKING, AttentionNeeded, Working
from fairlead.sessions.transitions._activity import Changes, corrected, now_doing

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
_SHORT = 100

ONE_MESSAGE = 2.0
"""Seconds within which the calls of one message of the model begin. No event tells that a person said no: a call
that begins later, while another is asked about, comes from the next message, so the question was answered."""


def path_of(event: ToolEvent) -> str:
    """Return the file that a tool call is about; "" if it names none."""
    path = client_or_default(event.client).path_of(event.tool_input)
    return clean(path, LONGEST_PATH) if path else ""


def makes_agent(event: ToolEvent) -> bool:
    """Return whether a tool call makes a subagent."""
    return client_or_default(event.client).tool_kinds.get(event.tool_name) == "spawn"


# -- a call begins -------------------------------------------------------------------------------------


def pre_tool_use(session: Session, event: PreToolUse, at: float) -> Changes:
    """The tool runs; an interactive one asks the person."""
    calls, call, call_id = session.calls, _opened(event, at), event.tool_use_id
    is_asked = False
    if type(session.state) is AttentionNeeded:
        calls = {name: known for name, known in calls.items() if not known.asked or known.at > at - ONE_MESSAGE}
        is_asked = any(known.asked for known in calls.values())
    if call_id:
        if len(call_id) > LONGEST_ID or not call_id.isascii():
            call_id = clean(call_id, LONGEST_ID)
        calls = {**calls, call_id: call} if calls else {call_id: call}
        if len(calls) > MOST_CALLS:
            del calls[next(iter(calls))]
    counters = replace(session.counters, tools=session.counters.tools + 1)
    if is_asked:
        changes: Changes = {"in_turn": True, "calls": calls, "counters": counters}
        return now_doing(session, **changes) if call_id else changes
    state = AttentionNeeded(call.asked) if call.asked else Working(call.tool)
    return {"in_turn": True, "calls": calls, "counters": counters, "state": state, "about": call}


def blocked(session: Session, _event: PreToolUse, _at: float) -> Changes:
    """Our own answer kept the tool from running."""
    counters = replace(session.counters, denials=session.counters.denials + 1)
    return now_doing(session, in_turn=True, counters=counters)


def late_pre_tool_use(session: Session, event: PreToolUse, at: float) -> Changes:
    """A call that began before what we know: it is open only if nothing has ended it since."""
    counters = replace(session.counters, tools=session.counters.tools + 1)
    call_id = clean(event.tool_use_id or "", LONGEST_ID)
    if not call_id or not session.in_turn or call_id in session.memory.closed or at <= session.memory.cleared:
        return {"counters": counters}
    calls = {call_id: _opened(event, at), **session.calls}
    return corrected(session, calls=calls, counters=counters)


def permission_request(session: Session, event: PermissionRequest, at: float) -> Changes:
    """The person is asked: about the youngest open call that fits, because the event does not name it."""
    tool, path = clean(event.tool_name), path_of(event)
    reason = tool if tool in client_or_default(event.client).questions else f"Permission for {tool}"
    for call_id, call in reversed(session.calls.items()):
        if call.tool == tool and call.path == path and not call.asked:
            calls = {**session.calls, call_id: replace(call, asked=reason)}
            return now_doing(session, in_turn=True, calls=calls)
    return {"in_turn": True, "state": AttentionNeeded(reason), "about": OpenCall(tool, at, path)}


def late_permission_request(session: Session, event: PermissionRequest, at: float) -> Changes:
    """A question that was overtaken by a parallel call: it stands if the call that it is about is still open."""
    changes = permission_request(session, event, at)
    recent = at > session.memory.heard - ONE_MESSAGE
    return corrected(session, calls=changes["calls"]) if "calls" in changes and recent else {}


def _opened(event: PreToolUse, at: float) -> OpenCall:
    tool, client = event.tool_name, client_or_default(event.client)
    if tool in client.questions:
        return OpenCall(tool, at, asked=tool)
    if client.tool_kinds.get(tool) == "spawn":
        request = client.subagent_request(event.tool_input)
        return OpenCall(tool, at, about=clean(request.description), kind=clean(request.name))
    if len(tool) > _SHORT or not tool.isascii():
        tool = clean(tool)
    path = client.path_of(event.tool_input)
    return OpenCall(tool, at, clean(path, LONGEST_PATH) if path else "")


# -- a call ends ---------------------------------------------------------------------------------------


def post_tool_use(session: Session, event: PostToolUse, at: float) -> Changes:
    """The tool is done. What else is open goes on; else the agent thinks."""
    calls, call_id = session.calls, event.tool_use_id
    if len(calls) == 1 and call_id in calls and not session.agents and not makes_agent(event):
        about = calls[call_id]  # what most answers are, and what follows below would say the same
        return {"in_turn": True, "calls": _NO_CALLS, "state": THINKING, "about": about, "closed": (call_id,)}
    return _answered(session, event, at, late=False)


def late_post_tool_use(session: Session, event: PostToolUse, at: float) -> Changes:
    """The call is over, whenever we hear of it."""
    return _answered(session, event, at, late=True)


def post_tool_use_failure(session: Session, event: PostToolUseFailure, _at: float) -> Changes:
    """The tool failed, and the agent decides what next; if the person interrupted it, the turn is over."""
    counters = replace(session.counters, failures=session.counters.failures + 1)
    if event.is_interrupt:
        return now_doing(session, in_turn=False, calls={}, counters=counters, cleared=True)
    return now_doing(session, in_turn=True, counters=counters, **_closed(session, event))


def late_post_tool_use_failure(session: Session, event: PostToolUseFailure, _at: float) -> Changes:
    """Likewise, without a new state."""
    counters = replace(session.counters, failures=session.counters.failures + 1)
    return corrected(session, counters=counters, **_closed(session, event))


def permission_denied(session: Session, event: PermissionDenied, _at: float) -> Changes:
    """The client's own classifier said no: nobody is asked any more."""
    counters = replace(session.counters, denials=session.counters.denials + 1)
    return now_doing(session, in_turn=True, counters=counters, **_closed(session, event))


def late_permission_denied(session: Session, event: PermissionDenied, _at: float) -> Changes:
    """Likewise, without a new state."""
    counters = replace(session.counters, denials=session.counters.denials + 1)
    return corrected(session, counters=counters, **_closed(session, event))


def post_tool_batch(session: Session, event: PostToolBatch, _at: float) -> Changes:
    """All calls of a message are answered, also those that a rule denied, for which no other event comes."""
    ended = (*session.calls, *_listed(event))
    return now_doing(session, in_turn=True, calls={}, closed=ended, cleared=True)


def late_post_tool_batch(session: Session, event: PostToolBatch, _at: float) -> Changes:
    """The calls that it lists are over; others may be of a later message."""
    listed = _listed(event)
    calls = {name: call for name, call in session.calls.items() if name not in listed}
    return corrected(session, calls=calls, closed=listed)


def _answered(session: Session, event: PostToolUse, at: float, *, late: bool) -> Changes:
    changes = _closed(session, event)
    if makes_agent(event) and (made := made_agent(event)):
        changes |= _made(session, event, made, at, late=late)
    return corrected(session, **changes) if late else now_doing(session, in_turn=True, **changes)


def _made(session: Session, event: PostToolUse, made: str, at: float, *, late: bool) -> Changes:
    """Tell from the answer of the tool whether its agent has finished, or works on in the background."""
    if is_finished(event):
        agents = {name: agent for name, agent in session.agents.items() if name != made}
        return {"agents": agents, "closed": (clean(event.tool_use_id or "", LONGEST_ID), made)}
    known = session.agents.get(made)
    if late and known is None and made in session.memory.closed:
        return {}
    agent = Agent(known.type if known else asked_agent(event), known.at if known else at, background=True)
    return {"agents": {**session.agents, made: agent}}


def made_agent(event: PostToolUse) -> str:
    """Give the id of the subagent that a call has made; "" if it does not tell."""
    result = client_or_default(event.client).subagent_result(event)
    return clean(result.agent_id, LONGEST_ID) if result else ""


def asked_agent(event: PostToolUse) -> str:
    """Return the name (or the type) of the subagent that a call asked for."""
    return clean(client_or_default(event.client).subagent_request(event.tool_input).name)


def is_finished(event: PostToolUse) -> bool:
    """Tell whether the subagent that a call made was done when the call was answered."""
    result = client_or_default(event.client).subagent_result(event)
    return result is not None and result.is_finished


def _closed(session: Session, event: ToolEvent) -> Changes:
    call_id = clean(event.tool_use_id or "", LONGEST_ID)
    if not call_id:
        return {}
    changes: Changes = {"closed": (call_id,)}
    if call_id in session.calls:
        changes["calls"] = {name: call for name, call in session.calls.items() if name != call_id}
    return changes


def _listed(event: PostToolBatch) -> tuple[str, ...]:
    ids = [call.get("tool_use_id") for call in event.tool_calls or () if type(call) is dict]
    return tuple(clean(call_id, LONGEST_ID) for call_id in ids if type(call_id) is str)


# -- a server asks -------------------------------------------------------------------------------------


def elicitation(session: Session, event: Elicitation, _at: float) -> Changes:
    """A server asks the person, in the midst of a call of one of its tools if one is open."""
    prefix = client_or_default(event.client).mcp_prefix(event.mcp_server_name or "")
    for call_id, call in reversed(session.calls.items()):
        if call.tool.startswith(prefix):
            return now_doing(session, calls={**session.calls, call_id: replace(call, asked=MCP_INPUT)}, in_turn=True)
    return {"state": AttentionNeeded(MCP_INPUT)}


def elicitation_result(session: Session, _event: ElicitationResult, _at: float) -> Changes:
    """The person answered the server."""
    return answered_mcp(session)


def answered_mcp(session: Session) -> Changes:
    """No server waits for the person any more. Whatever else the person is asked stays."""
    if session.state != AttentionNeeded(MCP_INPUT):
        return {}
    calls = {name: replace(call, asked="") if call.asked == MCP_INPUT else call for name, call in session.calls.items()}
    return now_doing(session, calls=calls)
