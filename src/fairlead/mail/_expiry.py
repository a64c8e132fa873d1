"""Ends and revives agents, sends notices about unanswered requests, and deletes what is old."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.mail._notices import build_notices
from fairlead.mail._storage import NOTICE_ENDED, NOTICE_IDLE, NOTICE_OVERDUE
from fairlead.mail._types import FIRST_ID
from fairlead.text import replace_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from fairlead.mail._cache import MailCache
    from fairlead.mail._storage import MailStorage, OutgoingMessage, UnansweredRequest
    from fairlead.mail._types import Agent

_NO_LIMIT = 1_000_000
"""More than the number of requests that an agent can have."""
_BATCH_SIZE = 500
_MAX_REASON_LENGTH = 200
_PRUNE_BATCH_SIZE = 500
_MAX_PAUSE = 0.05


class AgentExpiry:
    """Ends and revives agents, sends notices, and deletes old messages and agents."""

    def __init__(self, storage: MailStorage, cache: MailCache, now: Callable[[], float]) -> None:
        self._storage = storage
        self._cache = cache
        self._agents = cache.agents
        self._now = now

    def end(self, agent: Agent, reason: str) -> None:
        """End an agent and its subagents, and send notices about their unanswered requests, in one transaction.

        Their queued deliveries bounce with `reason`. Does nothing if all these agents have already ended.
        """
        reason = replace_surrogates(reason)[:_MAX_REASON_LENGTH]
        with self._cache.locked():
            agents = self._agents.with_subagents(self._agents.current(agent))
            ending = [member for member in agents if member.id >= FIRST_ID and not member.ended]
            ids = [member.id for member in ending]
            if not ids:
                return
            at = self._now()
            unanswered = [request for number in ids for request in self._storage.unanswered_by(number, limit=_NO_LIMIT)]
            notices = self._build_notices(unanswered, NOTICE_ENDED, at, ending=ids)
            self._storage.end_agents(ids, at, f"the agent ended: {reason}" if reason else "the agent ended", notices)
            for member in ending:
                self._agents.put(replace(member, ended=at))
                self._cache.clear_queue(member.id)
            self._cache.record_sent(notices, {})
            self._cache.note_outgoing()

    def revive(self, agent: Agent) -> Agent:
        """Mark an agent as alive again, queue its bounced deliveries, and return it. Its subagents stay ended."""
        if not self._agents.current(agent).ended:
            return self._agents.current(agent)
        with self._cache.locked():
            agent = self._agents.current(agent)
            for number, size in self._storage.revive_agents([agent.id]).items():
                self._cache.enqueue(number, size)
            self._agents.put(replace(agent, ended=0.0))
            self._cache.note_outgoing()
        return self._agents.current(agent)

    def notify_idle(self, agent: Agent) -> None:
        """Send one notice about each request that the agent has seen and not answered, to the sender of the request."""
        if agent.id not in self._cache.owing_reply:
            return
        with self._cache.locked():
            unanswered = self._storage.unanswered_by(agent.id, limit=_NO_LIMIT)
            seen = [request for request in unanswered if request.delivery.stage in ("shown", "read")]
            self._send_notices(seen, NOTICE_IDLE)
            self._cache.owing_reply.discard(agent.id)

    def process_deadlines(self, now: float) -> int:
        """Send one notice about each request whose deadline has passed at `now`. Return the number of notices."""
        sent = 0
        while self._cache.has_overdue(now):
            with self._cache.locked():
                overdue = self._cache.take_overdue(now, _BATCH_SIZE)
                try:
                    unanswered = self._storage.unanswered_among([message for _, message in overdue])
                    sent += self._send_notices(unanswered, NOTICE_OVERDUE)
                except BaseException:
                    self._cache.restore_overdue(overdue)
                    raise
        return sent

    def prune(self, older_than: float) -> int:
        """Delete messages from before a Unix time, and agents without messages that ended before it.

        Queued messages are kept. Returns the number of deleted messages.
        """
        deleted, after, is_done = 0, None, False
        while not is_done:
            with self._cache.locked():
                started_at = time.monotonic()
                step = self._storage.prune_messages(older_than, after=after, limit=_PRUNE_BATCH_SIZE)
                seconds = time.monotonic() - started_at
            deleted, after, is_done = deleted + step.deleted, step.after, step.after is None
            time.sleep(min(seconds, _MAX_PAUSE))
        with self._cache.locked():
            for number in self._storage.prune_agents(older_than):
                self._cache.remove_agent(number)
        while self._storage.release_space():
            time.sleep(0)
        return deleted

    def _send_notices(self, requests: Iterable[UnansweredRequest], reason: int) -> int:
        notices = self._build_notices(requests, reason, self._now())
        if notices:
            self._cache.record_sent(notices, self._storage.send(notices))
        return len(notices)

    def _build_notices(
        self, requests: Iterable[UnansweredRequest], reason: int, at: float, ending: Collection[int] = ()
    ) -> list[OutgoingMessage]:
        first_id = self._cache.last_message + 1
        return build_notices(requests, reason, self._agents, first_id=first_id, at=at, ending=ending)
