"""Converts copies of this host's events and sessions to signed rows: without secrets, by the relay's clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fairlead.journal import redact_for_others
from fairlead.sessions import EventCopy, HistorySession, SessionCopy
from fairlead.team import TeamEvent, TeamSession, sign_event, sign_session

if TYPE_CHECKING:
    from fairlead.sessions import CopyBatch
    from fairlead.team import Membership

CLOCK_TOLERANCE = 2.0
"""How many seconds clocks may differ before times are corrected."""
_MAX_PROMPT = 300
_MAX_BODY = 16 * 1024

_encode = msgspec.json.Encoder().encode


def sign_batch(batch: CopyBatch, own: Membership, offset: float) -> tuple[list[TeamEvent], list[TeamSession]]:
    """Return the signed rows of a batch: those of events and those of sessions.

    `offset` is how many seconds the relay's clock is ahead of this host's.
    """
    shift = offset if abs(offset) > CLOCK_TOLERANCE else 0.0
    now = time.time() + offset
    key = own.key
    events, sessions = [], []
    for event in batch.events:
        events.append(sign_event(_event(event, own.host, shift, now), key, own.team))
        time.sleep(0)  # yield the interpreter to events that wait for it
    for session in batch.sessions:
        sessions.append(sign_session(_session(session, own.host, shift, now), key, own.team))
        time.sleep(0)
    return events, sessions


def _event(copy: EventCopy, host: str, shift: float, now: float) -> TeamEvent:
    clean = msgspec.json.decode(redact_for_others(_encode(copy)), type=EventCopy)
    entry = clean.entry
    body = _encode(replace(clean, id="", text="", entry=replace(entry, session="", verdict="none")))
    if len(body) > _MAX_BODY:
        body = _encode(EventCopy(id="", entry=replace(entry, session="", verdict="none", text="", reason="", agent="")))
    return TeamEvent(
        host=host,
        id=copy.id,
        at=min(entry.at + shift, now),
        session=copy.entry.session,
        event=entry.event,
        verdict=entry.verdict,
        stage=int(copy.has_ended),
        text=clean.text,
        body=body,
    )


def _session(copy: SessionCopy, host: str, shift: float, now: float) -> TeamSession:
    session = msgspec.json.decode(redact_for_others(_encode(copy.session)), type=HistorySession)
    session = replace(
        session,
        prompt=session.prompt[:_MAX_PROMPT],
        started=session.started + shift,
        last=min(session.last + shift, now),
        ended=None if session.ended is None else session.ended + shift,
    )
    return TeamSession(
        host=host,
        session=copy.session.id,
        started=session.started,
        last=session.last,
        folder=session.folder,
        version=int(now * 1000),
        body=_encode(SessionCopy(session=replace(session, id="", folder=""), hours=copy.hours)),
    )
