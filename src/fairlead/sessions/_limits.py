"""Limits on what is kept of a session, because a client can send texts and lists of any length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.sessions._session import AttentionNeeded, SessionMemory
from fairlead.text import cut

if TYPE_CHECKING:
    from fairlead.sessions._session import OpenCall, Session

MAX_ID_LENGTH = 200
MAX_TEXT_LENGTH = 200
"""Characters of a prompt, a description or a reason."""
MAX_PATH_LENGTH = 400
MAX_QUESTION_LENGTH = 4000
"""Characters of a question to the user, such as a command, where sessions are listed. The registry keeps all of it."""

MAX_CALLS = 64
"""The maximum number of open tool calls that are kept of one agent. The oldest ones are dropped."""
MAX_TASKS = 64
"""The maximum number of background tasks that are kept of one session."""
MAX_CLOSED = 24
"""The number of ended calls and subagents that are remembered, so that a delayed start does not open them again."""
MAX_RECENT_EVENTS = 8
"""The number of events that are remembered, so that a repeated one is recognised."""
MAX_PREVIOUS_IDS = 8
"""The maximum number of earlier ids that are kept of a session."""

_NO_MEMORY = SessionMemory()


def clean_text(text: str, max_length: int = MAX_TEXT_LENGTH) -> str:
    """Return a text as a session keeps it: cut to `max_length`, with unpaired surrogates replaced."""
    return cut(text, max_length)


def bounded_session(session: Session) -> Session:
    """Return a session with its questions cut, because they are sent and stored with each change of the session."""
    state = session.state
    if type(state) is not AttentionNeeded:
        return session
    calls = {name: _bounded_call(call) for name, call in session.calls.items()}
    if not is_long(state.about) and calls == session.calls:
        return session
    return replace(session, state=replace(state, about=bounded_question(state.about)), calls=calls)


def public_session(session: Session, *, is_whole: bool = False) -> Session:
    """Return a session as people and programs see it.

    Its `memory` is empty, and long questions are cut unless `is_whole`.
    """
    return replace(session if is_whole else bounded_session(session), memory=_NO_MEMORY)


def is_long(question: str) -> bool:
    """Return whether a question is too long to be shown in full in lists. Also true of one that was cut already."""
    return len(question) > MAX_QUESTION_LENGTH


def bounded_question(question: str) -> str:
    """Return a question as lists show it.

    A long one is cut, and ends with a line with the number of missing characters.
    """
    left = len(question) - MAX_QUESTION_LENGTH
    return f"{question[:MAX_QUESTION_LENGTH]}\n… and {left} more characters" if left > 0 else question


def _bounded_call(call: OpenCall) -> OpenCall:
    return replace(call, question=bounded_question(call.question)) if is_long(call.question) else call
