"""The journal's record of an event."""

from __future__ import annotations

from time import time

from fairlead.journal import MAX_REASON_LENGTH, Caller, EventRecord, record_payload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.events import Event
    from fairlead.journal import Route, Verdict

_TIME_DIGITS = 16


def event_record(  # noqa: PLR0913 - one parameter a field
    name: str,
    kind: str,
    payload: bytes,
    event: Event | None,
    *,
    client: str,
    route: Route,
    verdict: Verdict,
    exit_code: int,
    reason: str = "",
    seconds: float = 0.0,
    steps: int = 0,
    hook: str = "",
    caller: Caller = Caller(),  # noqa: B008 - it is frozen
) -> EventRecord:
    """Return the record of an event. `event` is `None` if the payload could not be parsed."""
    recorded, cut = record_payload(payload)
    return EventRecord(
        id=name,
        at=started_at(name),
        event=event.event_name if event else kind,
        client=client,
        session=event.session_id if event else "",
        agent=(event.agent_id or "") if event else "",
        tool=getattr(event, "tool_name", None) or "",
        cwd=(event.cwd or "") if event else "",
        route=route,
        verdict=verdict,
        exit=exit_code,
        reason=reason[:MAX_REASON_LENGTH],
        seconds=round(seconds, 6),
        steps=steps,
        hook=hook,
        caller=caller,
        payload=recorded,
        cut=cut,
    )


def started_at(name: str) -> float:
    """Return when an event started, which the id of a launcher begins with; now for any other id."""
    try:
        return int(name[:_TIME_DIGITS], 16) / 1e9
    except ValueError:
        return time()
