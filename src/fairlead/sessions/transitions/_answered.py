"""Clears a question that the user has answered outside of the client, which no event reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.sessions._session import AttentionNeeded, Evidence
from fairlead.sessions.transitions._activity import state_in_turn

if TYPE_CHECKING:
    from fairlead.sessions._session import Session

_WHY = "it was answered outside of the client"


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
