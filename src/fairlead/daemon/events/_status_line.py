"""Answers a status line: stores its figures, and returns the line for clients that have none of their own.

A status line is no event: it is not recorded and decides nothing. It is answered in the event loop.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any

from fairlead.daemon.events._messages import OK, HookReply
from fairlead.sessions import (
    LONGEST_PATH,
    AttentionNeeded,
    Session,
    clean,
    line_of,
    read_duration,
    read_status,
    read_usage,
    session_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.daemon.events._messages import HookRequest
    from fairlead.daemon.sessions._tracker import SessionTracker


def answer_status_line(tracker: SessionTracker, request: HookRequest, payload: bytes) -> HookReply:
    """Store the figures of a status line, and reply with the line to show."""
    status = read_status(payload)
    session_id = session_of(status)
    known = tracker.set_usage(_session(session_id, status, request), read_usage(status)) if session_id else None
    line = line_of(status, known.usage if known else None, _others_needing_attention(tracker, session_id))
    return HookReply(OK, stdout=f"{line}\n".encode())


def _session(session_id: str, status: Mapping[str, Any], request: HookRequest) -> Session:
    """Return a session that no event has told of. Its process is unknown: a shell may stand between."""
    now = time()
    return Session(
        id=session_id,
        client=clean(request.client),
        cwd=clean(_text(status, "cwd"), LONGEST_PATH),
        transcript=clean(_text(status, "transcript_path"), LONGEST_PATH),
        project=clean(request.caller.project, LONGEST_PATH),
        tmux=clean(request.caller.tmux),
        pane=clean(request.caller.pane),
        started=now - (read_duration(status) or 0.0),
        since=now,
        last_activity=now,
    )


def _text(status: Mapping[str, Any], name: str) -> str:
    value = status.get(name)
    return value if isinstance(value, str) else ""


def _others_needing_attention(tracker: SessionTracker, session_id: str) -> int:
    """Count the other main sessions that need the user, or whose subagents do."""
    needing = {tracker.root_of(one).id for one in tracker.live() if isinstance(one.state, AttentionNeeded)}
    return len(needing - {session_id})
