"""What happens to mail when agents end, come back, or stop without an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.mail._notices import notices, untold
from fairlead.mail._storage import TOLD_ENDED, TOLD_IDLE, TOLD_LATE
from fairlead.mail._types import FIRST_ID
from fairlead.text import replace_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from fairlead.mail._cache import MailCache
    from fairlead.mail._storage import MailStorage, Owed, Post
    from fairlead.mail._types import Agent

_ALL = 1_000_000
"""More requests than an agent can owe."""
_AT_ONCE = 500
_LONGEST_WHY = 200


class Expiry:
    """Ends agents and revives them, and gives notices to those who wait for an answer."""

    def __init__(self, box: MailStorage, memory: MailCache, now: Callable[[], float]) -> None:
        """Name where mail is kept, and the clock."""
        self._box = box
        self._memory = memory
        self._people = memory.people
        self._now = now

    def ended(self, agent: Agent, why: str) -> None:
        """End an agent and its subagents, in one transaction with what follows from it."""
        reason = replace_surrogates(why)[:_LONGEST_WHY]
        with self._memory.turn():
            family = self._people.family(self._people.current(agent))
            ending = [one for one in family if one.id >= FIRST_ID and not one.ended]
            numbers = [one.id for one in ending]
            if not numbers:
                return
            at = self._now()
            owed = [found for number in numbers for found in self._box.owed_by(number, limit=_ALL)]
            posts = self._notices(owed, TOLD_ENDED, at, ending=numbers)
            self._box.end(numbers, at, f"the agent ended: {reason}" if reason else "the agent ended", posts)
            for one in ending:
                self._people.put(replace(one, ended=at))
                self._memory.empty(one.id)
            self._memory.posted(posts, {})

    def revived(self, agent: Agent) -> Agent:
        """Let an agent live again."""
        if not self._people.current(agent).ended:
            return self._people.current(agent)
        with self._memory.turn():
            agent = self._people.current(agent)
            for number, waiting in self._box.revive([agent.id]).items():
                self._memory.queue(number, waiting)
            self._people.put(replace(agent, ended=0.0))
        return self._people.current(agent)

    def went_idle(self, agent: Agent) -> None:
        """Tell those whose requests the agent has seen and not answered."""
        if agent.id not in self._memory.owing:
            return
        with self._memory.turn():
            owed = self._box.owed_by(agent.id, limit=_ALL)
            seen = [one for one in owed if one.letter.stage in ("shown", "read")]
            self._tell(seen, TOLD_IDLE)
            self._memory.owing.discard(agent.id)

    def due(self, now: float) -> int:
        """Tell those whose requests were not answered in time."""
        told = 0
        while self._memory.is_due(now):
            with self._memory.turn():
                due = self._memory.take_due(now, _AT_ONCE)
                try:
                    told += self._tell(self._box.owed_for([message for _, message in due]), TOLD_LATE)
                except BaseException:
                    self._memory.give_back_due(due)
                    raise
        return told

    def _tell(self, owed: Iterable[Owed], reason: int) -> int:
        posts = self._notices(owed, reason, self._now())
        if posts:
            self._memory.posted(posts, self._box.post(posts))
        return len(posts)

    def _notices(self, owed: Iterable[Owed], reason: int, at: float, ending: Collection[int] = ()) -> list[Post]:
        first = self._memory.last_message + 1
        return notices(untold(owed, reason), reason, self._people, first_id=first, at=at, ending=ending)
