"""Answers a status line: its figures are the session's from now on, and those who have no line of their own get ours.

It is no event: it is not written down, and decides nothing. It belongs to the loop, and takes it a moment.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING

from fairlead.clients import client_or_default
from fairlead.daemon.events._handler import HookReply
from fairlead.sessions import (
    LONGEST_PATH,
    AttentionNeeded,
    Session,
    clean,
    line_of,
)

if TYPE_CHECKING:
    from fairlead.clients import StatusLine
    from fairlead.daemon.events._request import HookRequest
    from fairlead.daemon.sessions._tracker import SessionTracker


def answer_status_line(tracker: SessionTracker, ask: HookRequest, payload: bytes) -> HookReply:
    """Take a status line in, and give the line to show."""
    status = client_or_default(ask.client).read_status_line(payload)
    name = status.session_id
    known = tracker.measure(_as_told(name, status, ask), status.usage) if name else None
    line = line_of(status, known.usage if known else None, _others_in_need(tracker, name))
    return HookReply(200, stdout=f"{line}\n".encode())


def _as_told(name: str, status: StatusLine, ask: HookRequest) -> Session:
    """Make the session of which nothing else was heard. Its process is not told: a shell may stand between."""
    now = time()
    return Session(
        id=name,
        client=clean(ask.client),
        cwd=clean(status.cwd, LONGEST_PATH),
        transcript=clean(status.transcript, LONGEST_PATH),
        project=clean(ask.caller.project, LONGEST_PATH),
        tmux=clean(ask.caller.tmux),
        pane=clean(ask.caller.pane),
        started=now - (status.seconds or 0.0),
        since=now,
        last_activity=now,
    )


def _others_in_need(tracker: SessionTracker, name: str) -> int:
    """Count the main sessions that need the person, or whose subagents do, without the one that shows the line."""
    needing = {tracker.root_of(one).id for one in tracker.live() if isinstance(one.state, AttentionNeeded)}
    return len(needing - {name})
