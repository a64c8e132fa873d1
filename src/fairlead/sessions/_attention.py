"""When a person is told that a session needs them: once for each question. Pure: no clock, no I/O.

**A spell** lasts from the moment at which a session comes to need the person until it works, rests or ends. In a spell
every reason is told once. A spell that we did not see the end of (there was no daemon, or many events came at once) is
over if the agent has done something since.

**Hearsay.** The client's note `permission_prompt` comes seconds after the question itself, and its file says `waiting`:
both tell that it waits, not for what. After a reason that was told they are no news; and the question's own event after
them is the same question in better words. While a subagent asks, they are about the subagent.

**Not at once.** What is answered within the grace is not told. In quiet hours nothing is, nor while the session's pane
is in front of the person: then it is looked at again, and what still waits is told, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import astuple, replace

from fairlead.sessions._states import AttentionNeeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from fairlead.sessions._session import Session

LOOK_AGAIN = 5.0
"""Seconds after which it is looked again whether a person can be told who could not."""
LOOK_AWAY = 60.0
"""Seconds for which a person who has the question in front of them is left in peace."""

_MOST_TOLD = 16


class AttentionSettings(msgspec.Struct, frozen=True):
    """When the person wants to be told."""

    grace: float = 2.0
    can_be_told: bool = True
    """There is a way to tell them, and these are no quiet hours."""
    when_in_front: bool = False


class Asked(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of one session that needs the person."""

    since: float
    """Of the state in which it was last seen."""
    work: int
    """How much it had done by then."""
    reason: str
    began: float
    """From when on the grace is counted."""
    is_hearsay: bool = False
    told: tuple[str, ...] = ()
    """The reasons that the person was told in this spell, or that are others in better or poorer words."""
    look: float = 0.0
    """Nothing is decided before."""

    @property
    def is_told(self) -> bool:
        """Whether the person knows."""
        return self.reason in self.told


def follow(known: Asked | None, session: Session, now: float) -> Asked | None:
    """Give what is known after a session was seen; `None` if it does not need the person."""
    state = session.state
    if session.ended is not None or type(state) is not AttentionNeeded:
        return None
    work, began, hearsay = sum(astuple(session.counters)), min(session.since, now), _is_hearsay(session)
    if known is not None and (known.since, known.reason) == (session.since, state.reason):
        return known if known.work == work else replace(known, work=work)
    if known is None or known.work != work:
        return Asked(session.since, work, state.reason, began, hearsay)
    told = known.told
    if told and (hearsay or (known.is_hearsay and known.is_told)):
        told = _and(told, state.reason)
    return Asked(session.since, work, state.reason, began if told else known.began, hearsay, told)


def decide(asked: Asked, now: float, manners: AttentionSettings, is_in_front: Callable[[], bool]) -> Asked:
    """Give what is known afterwards: it is told by then, or it is to be looked at again later."""
    if asked.is_told or now < asked.look:
        return asked
    began = min(asked.began, now)  # a clock may be set back
    if now < began + manners.grace:
        return replace(asked, began=began, look=began + manners.grace)
    if not manners.can_be_told:
        return replace(asked, look=now + LOOK_AGAIN)
    if not manners.when_in_front and is_in_front():
        return replace(asked, look=now + LOOK_AWAY)
    return replace(asked, told=_and(asked.told, asked.reason))


def _is_hearsay(session: Session) -> bool:
    evidence = session.evidence
    return evidence is not None and (evidence.source == "client" or evidence.event == "Notification")


def _and(told: tuple[str, ...], reason: str) -> tuple[str, ...]:
    return told if reason in told else (*told, reason)[-_MOST_TOLD:]


class AttentionLog:
    """Who needs the person, and what of it the person was told."""

    def __init__(self, told: Mapping[str, Asked] | None = None) -> None:
        """Begin with what was told before."""
        self._asked: dict[str, Asked] = dict(told or {})
        self._sessions: dict[str, Session] = {}

    def see(self, sessions: Iterable[Session], now: float) -> None:
        """Take in sessions that may have changed."""
        for session in sessions:
            asked = follow(self._asked.get(session.id), session, now)
            if asked is None:
                self.forget(session.id)
            else:
                self._asked[session.id], self._sessions[session.id] = asked, session

    def see_all(self, sessions: Iterable[Session], now: float) -> None:
        """Take in all there are: who is not among them needs nobody any more."""
        there = {session.id: session for session in sessions}
        for name in self._asked.keys() - there.keys():
            self.forget(name)
        self.see(there.values(), now)

    def forget(self, name: str) -> None:
        """Let go of a session."""
        self._asked.pop(name, None)
        self._sessions.pop(name, None)

    def due(self, now: float) -> list[tuple[Session, Asked]]:
        """Give the sessions about which something is to be decided."""
        return [(self._sessions[name], asked) for name, asked in self._untold() if asked.look <= now]

    def take(self, session: Session, before: Asked, after: Asked) -> bool:
        """Take in what was decided; tell whether that is to be said now. Not if the session has changed meanwhile."""
        if self._asked.get(session.id) is not before or after is before:
            return False
        self._asked[session.id] = after
        return after.is_told

    @property
    def waiting(self) -> int:
        """So many sessions need the person."""
        return len(self._sessions)

    @property
    def untold(self) -> int:
        """So many of them the person does not know of."""
        return len(self._untold())

    def held(self, now: float) -> int:
        """Give how many of those are left for later: not answered yet, but this is not the time to tell."""
        return sum(asked.look > now for _, asked in self._untold())

    def told(self) -> dict[str, Asked]:
        """Give what has to be known in another life."""
        return {name: asked for name, asked in self._asked.items() if asked.told}

    def _untold(self) -> list[tuple[str, Asked]]:
        asked = ((name, self._asked[name]) for name in self._sessions)
        return [(name, one) for name, one in asked if not (one.is_told or self._is_below(name))]

    def _is_below(self, name: str) -> bool:
        """Tell whether what is said of a session is about one of its subagents, which asks by itself."""
        return self._asked[name].is_hearsay and any(other.startswith(f"{name}/") for other in self._asked)
