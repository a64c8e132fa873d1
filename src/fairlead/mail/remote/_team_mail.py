"""`TeamMail`: the mail of this host to and from the other hosts of its team. Knows no relay, no key and no network.

What is to be sent lies in the storage from the moment it is accepted. Whoever carries it calls `seal`, pushes what
`outgoing` returns, passes what arrives to `receive`, and what the others have applied to `acknowledged`. Each of these
may be repeated at any time, and the process may be killed between any two of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fairlead.mail._errors import MailError
from fairlead.mail._storage import HostRecord
from fairlead.mail.remote._giving_up import build_bounce_notices
from fairlead.mail.remote._hosts import TeamHosts
from fairlead.mail.remote._parcels import AgentNews, HostSnapshot, encode
from fairlead.mail.remote._receiving import Receiver
from fairlead.mail.remote._storage import NewParcel, ReceivedBatch, RefusedParcel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fairlead.mail._cache import MailCache
    from fairlead.mail._storage import MailStorage
    from fairlead.mail._types import Delivery
    from fairlead.mail.remote._receiving import IncomingParcel, Received
    from fairlead.mail.remote._storage import Backlog, Link, OutgoingParcel, TeamStorage

_SECONDS_TOLD = 7 * 86_400.0
"""For how long the news name an agent that has ended."""
_MAX_ENDED_TOLD = 500


class TransitState(msgspec.Struct, frozen=True):
    """Where a message to an agent of another host is."""

    host: str
    """The name of the host."""
    since: float
    """When it was sent."""
    is_there: bool
    """Whether that host has it."""


class TeamMail:
    """Thread-safe. Every error is a `MailError`: nothing was changed, and the call can be repeated."""

    def __init__(self, storage: MailStorage, cache: MailCache, now: Callable[[], float]) -> None:
        """Use the storage, cache and clock of a service."""
        self._storage = storage
        self._team: TeamStorage = storage.team
        self._cache = cache
        self._now = now
        self._hosts = TeamHosts(storage, self._team, cache.agents, now)
        self._receiver = Receiver(self._team, cache, self._hosts, now)
        cache.addresses.other_hosts = self._hosts

    # -- hosts -----------------------------------------------------------------------------------------

    def set_local_host(self, host: str, name: str) -> None:
        """Set the id and the name of this host. All else comes after this."""
        with self._cache.locked():
            self._hosts.local_id, self._hosts.local_name = host, name
            self._cache.agents.host_name = name

    def load_hosts(self, records: Sequence[HostRecord]) -> None:
        """Start with the hosts that the storage holds."""
        self._hosts.load(records)

    def update_host(self, host: str, name: str, state: str, snapshot: bytes = b"") -> None:
        """Store what is known of another host. Without a snapshot, the newest one stays.

        Agents are identified by their ids there: a message to one that was renamed finds it by either name.
        """
        with self._cache.locked():
            kept = snapshot or self._hosts.snapshot_of(host)
            self._hosts.update(HostRecord(host=host, name=name, state=state, at=self._now(), snapshot=kept))

    def known_hosts(self) -> list[HostRecord]:
        """Return the other hosts, with the newest news of each."""
        with self._cache.locked():
            return self._hosts.records()

    @property
    def snapshot_revision(self) -> int:
        """A number that changes when `local_snapshot` does. Never blocks."""
        return self._cache.agents.revision + self._cache.topics.revision

    def local_snapshot(self) -> bytes:
        """Return the agents and topics of this host, for the other hosts."""
        with self._cache.locked():
            agents, formers = self._cache.agents.all(), self._cache.agents.former_names()
            topics = {name: tuple(self._cache.topics.subscribers(name)) for name in self._cache.topics.names()}
        horizon = self._now() - _SECONDS_TOLD
        ended = sorted((one for one in agents if one.ended > horizon), key=lambda one: -one.ended)[:_MAX_ENDED_TOLD]
        told = [*(one for one in agents if not one.ended), *ended]
        news = [
            AgentNews(one.id, one.name, one.project, one.session, one.ended, one.parent, tuple(formers.get(one.id, ())))
            for one in told
        ]
        return encode(HostSnapshot(tuple(news), topics))

    def topic_names(self) -> set[str]:
        """Return the topics that have living subscribers on other hosts."""
        return self._hosts.topics()

    def subscriber_names(self, topic: str) -> list[str]:
        """Return the names of the living subscribers of a topic on other hosts."""
        return self._hosts.subscriber_names(topic)

    # -- sending ---------------------------------------------------------------------------------------

    def on_outgoing(self, listener: Callable[[], None]) -> None:
        """Call a listener after each commit that may have stored something for another host, in that thread.

        It must be quick. A rare change calls it in vain, or is found only by the next `seal`.
        """
        self._cache.add_outgoing_listener(listener)

    def seal(self, limit: int = 1000) -> int:
        """Turn what is to be sent into parcels, in order; return how many deliveries that were. 0: there are no more.

        Parcels that were sealed never change, and survive a power failure: they may be pushed.
        """
        return self._team.seal(self._local_id(), self._hosts.local_name, limit, self._now())

    def post(self, target: str, kind: str, body: bytes) -> int:
        """Put a parcel of another kind into the outbox, behind all others to its target; return its number."""
        return self._team.post(NewParcel(target, kind, body), self._now())

    def outgoing(self, target: str | None = None, after: int = 0, limit: int = 200) -> list[OutgoingParcel]:
        """Return parcels that their targets have not acknowledged, in order.

        To one target: those after the number `after`. To all: those after the id `after`.
        """
        return self._team.outgoing(target, after, limit)

    def targets(self) -> list[Backlog]:
        """Return the hosts that have not acknowledged everything, and how much that is."""
        return self._team.backlogs()

    def links(self) -> dict[str, Link]:
        """Return how far the traffic with each host is."""
        return self._team.links()

    def acknowledged(self, progress: Mapping[str, int]) -> dict[str, int]:
        """Delete what other hosts have applied, by target and number; return how many parcels of each that were."""
        return self._team.acknowledge(progress)

    # -- receiving -------------------------------------------------------------------------------------

    def on_parcel(self, kind: str, handler: Callable[[str, bytes], None]) -> None:
        """Pass the parcels of another kind to a handler, with their origin, in order and at least once.

        A handler that raises `ValueError` has refused the parcel.
        """
        self._receiver.handlers[kind] = handler

    def receive(self, parcels: Sequence[IncomingParcel]) -> list[Received]:
        """Apply parcels whose signatures were verified, in one transaction; return what became of each.

        Of each origin exactly the next number is applied. Recipients that wait are shown the messages at once. After
        the next `sync`, all but a `gap` may be acknowledged, up to `applied`.
        """
        with self._cache.locked():
            return self._receiver.receive(parcels)

    def sync(self) -> None:
        """Have what was received or kept aside survive a power failure: its origin deletes what is acknowledged."""
        self._team.sync()

    def applied(self) -> dict[str, int]:
        """Return up to which number the parcels of each origin were applied or refused."""
        return {host: link.applied for host, link in self._team.links().items() if link.applied}

    def keep_aside(self, parcels: Sequence[IncomingParcel], why: str) -> None:
        """Store parcels that may not be applied, for a person to look at."""
        at = self._now()
        rows = [
            RefusedParcel(origin=one.origin, seq=one.seq, kind=one.kind, at=at, why=why, body=one.body)
            for one in parcels
        ]
        self._team.apply(ReceivedBatch(refused=rows), at)

    def refused(self, limit: int = 100) -> list[RefusedParcel]:
        """Return the newest parcels that could not be applied and were kept aside."""
        return self._team.refused(limit)

    # -- what is on its way ----------------------------------------------------------------------------

    def transit(self, message: int) -> dict[int, TransitState]:
        """Return where a message is, by the ids of its recipients on other hosts."""
        return self._transit(message, self._storage.deliveries(message))

    def with_transit(self, message: int, rows: Sequence[tuple[int, Delivery]]) -> list[Delivery]:
        """Return deliveries that say where those to other hosts are."""
        states = self._transit(message, rows)
        return [_with_state(delivery, states.get(number)) for number, delivery in rows]

    def give_up(self, host: str, reason: str) -> int:
        """Bounce what is on its way to a host, with one notice for each message; return how many messages.

        If the host was removed, also what it has and never showed, and nothing more is kept for it.
        """
        with self._cache.locked():
            known = self._hosts.get(host)
            is_removed = known is None or known.state == "removed"
            rows = self._team.undelivered(host, include_arrived=is_removed)
            at = self._now()
            notices = build_bounce_notices(
                rows, self._storage, self._cache, host=self._hosts.name_of(host), why=reason, at=at
            )
            bounced = [(message, recipient) for message, _, recipient in rows]
            self._team.give_up(host, bounced, at=at, why=reason, notices=notices, forget=is_removed)
            self._cache.record_sent(notices, {})
        return len({message for message, _ in bounced})

    def leave(self, reason: str) -> int:
        """Bounce everything that is on its way, and forget all hosts; return how many messages bounced.

        Numbers begin anew: this host joins a team again only under another id.
        """
        with self._cache.locked():
            hosts = [(host, self._hosts.name_of(host)) for host in self._hosts.ids()]
        for host, name in hosts:
            self.update_host(host, name, "removed")
        bounced = sum(self.give_up(host, reason) for host, _ in hosts)
        with self._cache.locked():
            self._team.forget_team()
            self._hosts.forget()
            self._cache.agents.host_name = ""
        return bounced

    def _transit(self, message: int, rows: Sequence[tuple[int, Delivery]]) -> dict[int, TransitState]:
        on_its_way = self._team.on_its_way(message)
        states: dict[int, TransitState] = {}
        for number, delivery in rows:
            agent = self._cache.agents.get(number)
            if agent is not None and agent.host:
                is_there = number not in on_its_way
                states[number] = TransitState(self._hosts.name_of(agent.host), delivery.queued, is_there)
        return states

    def _local_id(self) -> str:
        if not self._hosts.local_id:
            raise MailError("this host is in no team")
        return self._hosts.local_id


def _with_state(delivery: Delivery, state: TransitState | None) -> Delivery:
    if state is None:
        return delivery
    return replace(delivery, host=state.host, on_its_way=0.0 if state.is_there else state.since)
