"""Decides when the user is notified that a session needs them: once for each question. No clock, no I/O.

**A period of attention** lasts from the moment at which a session needs the user until it works, idles or ends. Within
it the user is notified once of each reason. If its end was not observed (no daemon was running, or many events arrived
at once), the period counts as over when the agent has done something.

**Indirect evidence** shows that the client waits, but not for what: its notification `permission_prompt`, which comes
seconds after the question, and the status `waiting` in its session file. It is ignored if the user was notified of a
reason in the same period. If the event of the question comes later, both count as one reason. While a subagent waits
for the user, indirect evidence about its main session is about the subagent.

**Delays.** The user is not notified of a question that is answered within the grace period, nor in quiet hours, nor
while the session's pane is in front of them. Such a session is checked again later, and the user is notified if it
still waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import astuple, replace

from fairlead.sessions._session import AttentionNeeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from fairlead.sessions._session import Session

RETRY_DELAY = 5.0
"""Seconds until the next check, if the user cannot be notified now."""
IN_FRONT_DELAY = 60.0
"""Seconds until the next check, if the session's pane is in front of the user."""

_MAX_NOTIFIED = 16


class AttentionSettings(msgspec.Struct, frozen=True):
    """When the user wants to be notified."""

    grace: float = 2.0
    """Seconds after a question for which the user is not notified."""
    can_notify: bool = True
    """Whether there is a channel to notify the user, and it is not within the quiet hours."""
    when_in_front: bool = False
    """Whether to notify also if the session's pane is in front of the user."""


class AttentionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known about one session that needs the user.

    The names in `msgspec.field` are those in the saved file. They stay, because earlier versions read them.
    """

    since: float
    """The `since` of the session when the request was last updated."""
    activity: int = msgspec.field(name="work")
    """The sum of the session's counters at that time. It changes when the agent does something."""
    reason: str
    """The current `AttentionNeeded.reason`."""
    asked_at: float = msgspec.field(name="began")
    """The Unix time at which the grace period starts."""
    is_indirect: bool = msgspec.field(default=False, name="is_hearsay")
    """Whether only indirect evidence shows the current reason."""
    notified: tuple[str, ...] = msgspec.field(default=(), name="told")
    """The reasons in this period of which the user was notified, with other wordings of the same reasons."""
    next_check: float = msgspec.field(default=0.0, name="look")
    """The Unix time before which nothing is decided."""

    @property
    def is_notified(self) -> bool:
        """Whether the user was notified of the current reason."""
        return self.reason in self.notified


def updated_request(request: AttentionRequest | None, session: Session, now: float) -> AttentionRequest | None:
    """Return the request of a session, updated from its state; `None` if the session does not need the user.

    `request` is the previous one; `None` if there was none, so that a new one is returned.
    """
    state = session.state
    if session.ended is not None or type(state) is not AttentionNeeded:
        return None
    activity, asked_at, indirect = sum(astuple(session.counters)), min(session.since, now), _is_indirect(session)
    if request is not None and (request.since, request.reason) == (session.since, state.reason):
        return request if request.activity == activity else replace(request, activity=activity)
    if request is None or request.activity != activity:
        return AttentionRequest(session.since, activity, state.reason, asked_at, indirect)
    notified = request.notified
    if notified and (indirect or (request.is_indirect and request.is_notified)):
        notified = _added(notified, state.reason)
    asked_at = asked_at if notified else request.asked_at
    return AttentionRequest(session.since, activity, state.reason, asked_at, indirect, notified)


def decide_notification(
    request: AttentionRequest, now: float, settings: AttentionSettings, is_in_front: Callable[[], bool]
) -> AttentionRequest:
    """Return the request after a decision: marked as notified, with another `next_check`, or unchanged.

    It is unchanged if the user was notified before, or if it is too early to decide. `is_in_front` returns whether the
    session's pane is in front of the user; it is called only if that matters.
    """
    if request.is_notified or now < request.next_check:
        return request
    asked_at = min(request.asked_at, now)  # the clock may have been set back
    if now < asked_at + settings.grace:
        return replace(request, asked_at=asked_at, next_check=asked_at + settings.grace)
    if not settings.can_notify:
        return replace(request, next_check=now + RETRY_DELAY)
    if not settings.when_in_front and is_in_front():
        return replace(request, next_check=now + IN_FRONT_DELAY)
    return replace(request, notified=_added(request.notified, request.reason))


def _is_indirect(session: Session) -> bool:
    evidence = session.evidence
    return evidence is not None and (evidence.source == "client" or evidence.event == "Notification")


def _added(reasons: tuple[str, ...], reason: str) -> tuple[str, ...]:
    return reasons if reason in reasons else (*reasons, reason)[-_MAX_NOTIFIED:]


class AttentionLog:
    """The sessions that need the user, each with its request."""

    def __init__(self, notified: Mapping[str, AttentionRequest] | None = None) -> None:
        """Start with the requests that `notified` returned before a restart, by session id."""
        self._requests: dict[str, AttentionRequest] = dict(notified or {})
        self._sessions: dict[str, Session] = {}

    def update(self, sessions: Iterable[Session], now: float) -> None:
        """Update the requests of the given sessions, changed or not.

        A session that does not need the user loses its request.
        """
        for session in sessions:
            request = updated_request(self._requests.get(session.id), session, now)
            if request is None:
                self.remove(session.id)
            else:
                self._requests[session.id], self._sessions[session.id] = request, session

    def update_all(self, sessions: Iterable[Session], now: float) -> None:
        """Update the requests of all sessions. A session that `sessions` lacks loses its request."""
        by_id = {session.id: session for session in sessions}
        for name in self._requests.keys() - by_id.keys():
            self.remove(name)
        self.update(by_id.values(), now)

    def remove(self, name: str) -> None:
        """Remove the request of a session, if it has one."""
        self._requests.pop(name, None)
        self._sessions.pop(name, None)

    def due(self, now: float) -> list[tuple[Session, AttentionRequest]]:
        """Return the sessions about which to decide now, each with its request."""
        return [(self._sessions[name], request) for name, request in self._pending() if request.next_check <= now]

    def record(self, session: Session, before: AttentionRequest, after: AttentionRequest) -> bool:
        """Record the decision that turned `before` into `after`, and return whether to notify the user now.

        The decision is ignored, and `False` returned, if the session's request has changed in the meantime.
        """
        if self._requests.get(session.id) is not before or after is before:
            return False
        self._requests[session.id] = after
        return after.is_notified

    @property
    def waiting_count(self) -> int:
        """The number of sessions that need the user."""
        return len(self._sessions)

    @property
    def pending_count(self) -> int:
        """The number of sessions that need the user for a reason of which the user was not notified yet."""
        return len(self._pending())

    def deferred_count(self, now: float) -> int:
        """Return how many of the `pending_count` sessions have a `next_check` that is later than `now`."""
        return sum(request.next_check > now for _, request in self._pending())

    def notified(self) -> dict[str, AttentionRequest]:
        """Return the requests with a notified reason, by session id. They have to survive a restart."""
        return {name: request for name, request in self._requests.items() if request.notified}

    def _pending(self) -> list[tuple[str, AttentionRequest]]:
        requests = ((name, self._requests[name]) for name in self._sessions)
        return [
            (name, request) for name, request in requests if not (request.is_notified or self._is_about_subagent(name))
        ]

    def _is_about_subagent(self, name: str) -> bool:
        """Return whether a session's indirect evidence is about a subagent, because a subagent of it has a request."""
        return self._requests[name].is_indirect and any(other.startswith(f"{name}/") for other in self._requests)
