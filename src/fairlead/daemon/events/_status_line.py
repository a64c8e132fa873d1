"""Answers a status line: stores its figures, and returns the line for clients that have none of their own.

A status line is not an event: it is not recorded and decides nothing. It is answered in the event loop.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING

from fairlead.clients import client_or_default
from fairlead.daemon.events._messages import OK, HookReply
from fairlead.sessions import (
    MAX_PATH_LENGTH,
    AttentionNeeded,
    Session,
    clean_text,
    line_of,
)

if TYPE_CHECKING:
    from fairlead.clients import StatusLine
    from fairlead.daemon.events._messages import HookRequest
    from fairlead.daemon.sessions._tracker import SessionTracker


def answer_status_line(tracker: SessionTracker, request: HookRequest, payload: bytes) -> HookReply:
    """Store the figures of a status line, and reply with the line to show."""
    status = client_or_default(request.client).read_status_line(payload)
    session_id = status.session_id
    known = _set_usage(tracker, status, request) if session_id else None
    line = line_of(status, known.usage if known else None, _others_needing_attention(tracker, session_id))
    return HookReply(OK, stdout=f"{line}\n".encode())


def _set_usage(tracker: SessionTracker, status: StatusLine, request: HookRequest) -> Session:
    now = time()
    began = 0.0 if status.seconds is None else now - status.seconds
    caller = request.caller.pid, request.caller.start
    return tracker.set_usage(_session(status, request, now), status.usage, began, caller)


def _session(status: StatusLine, request: HookRequest, now: float) -> Session:
    """Return the session of a status line, for the case that no event has reported it yet.

    Its process is unknown: a shell may have started the launcher.
    """
    return Session(
        id=status.session_id,
        client=clean_text(request.client),
        cwd=clean_text(status.cwd, MAX_PATH_LENGTH),
        transcript=clean_text(status.transcript, MAX_PATH_LENGTH),
        project=clean_text(request.caller.project, MAX_PATH_LENGTH),
        tmux=clean_text(request.caller.tmux),
        pane=clean_text(request.caller.pane),
        started=now - (status.seconds or 0.0),
        since=now,
        last_activity=now,
    )


def _others_needing_attention(tracker: SessionTracker, session_id: str) -> int:
    """Count the other main sessions that need the user, or whose subagents do."""
    needing = {tracker.root_of(session).id for session in tracker.live() if isinstance(session.state, AttentionNeeded)}
    return len(needing - {session_id})
