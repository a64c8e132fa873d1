"""`TeamMail`: the mail of this host to and from the other hosts of its team. Knows no relay, no key and no network.

A message to another host is stored as soon as it is accepted. The caller then calls `build_packets`, pushes the packets
that `outgoing` returns, passes arriving packets to `receive`, and the numbers that other hosts have applied to
`acknowledge`. Each of these calls may be repeated, and the process may be killed between any two of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.durations import DAY
from fairlead.mail._errors import MailError
from fairlead.mail._storage import HostRecord
from fairlead.mail.remote._bounce_notices import build_bounce_notices
from fairlead.mail.remote._hosts import TeamHosts
from fairlead.mail.remote._packets import AgentInfo, AgentsAndTopics, encode
from fairlead.mail.remote._receiving import Receiver
from fairlead.mail.remote._storage import NewPacket, ReceivedBatch, RefusedPacket

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fairlead.mail._cache import MailCache
    from fairlead.mail._storage import MailStorage
    from fairlead.mail._types import Delivery
    from fairlead.mail.remote._receiving import IncomingPacket, ReceiveResult
    from fairlead.mail.remote._storage import Backlog, Link, OutgoingPacket, TeamStorage

_ENDED_SECONDS = 7 * DAY
"""For how long a snapshot contains an agent that has ended."""
_MAX_ENDED = 500


class TeamMail:
    """The mail to and from other hosts. Thread-safe.

    Every error is a `MailError`. After an error nothing was changed, and the call can be repeated.
    """

    def __init__(self, storage: MailStorage, cache: MailCache, now: Callable[[], float]) -> None:
        self._storage = storage
        self._team: TeamStorage = storage.team
        self._cache = cache
        self._now = now
        self._hosts = TeamHosts(storage, self._team, cache.agents, now)
        self._receiver = Receiver(self._team, cache, self._hosts, now)
        cache.addresses.other_hosts = self._hosts

    # -- hosts -----------------------------------------------------------------------------------------

    def set_local_host(self, host: str, name: str) -> None:
        """Set the id and the name of this host in its team. Must be called before packets are built or received."""
        with self._cache.locked():
            self._hosts.local_id, self._hosts.local_name = host, name
            self._cache.agents.host_name = name

    def load_hosts(self, records: Sequence[HostRecord]) -> None:
        """Add hosts that are already stored. Called by `MessageService` when it is created."""
        self._hosts.load(records)

    def update_host(self, host: str, name: str, state: str, snapshot: bytes = b"") -> None:
        """Store the name, state and snapshot of another host. If the snapshot is empty, the stored one is kept.

        `state` is `member`, `pending` or `removed`. Agents are identified by their ids on that host, so a renamed agent
        is still found by its former name.
        """
        with self._cache.locked():
            kept = snapshot or self._hosts.snapshot_of(host)
            self._hosts.update(HostRecord(host=host, name=name, state=state, at=self._now(), snapshot=kept))

    def known_hosts(self) -> list[HostRecord]:
        """Return the stored records of the other hosts, each with its newest snapshot."""
        with self._cache.locked():
            return self._hosts.records()

    def local_snapshot(self) -> bytes:
        """Return the encoded `AgentsAndTopics` of this host: its agents, with recently ended ones, and its topics.

        It is part of the body of the host snapshot `agents`.
        """
        with self._cache.locked():
            agents, formers = self._cache.agents.all(), self._cache.agents.former_names()
            topics = {name: tuple(self._cache.topics.subscribers(name)) for name in self._cache.topics.names()}
        oldest = self._now() - _ENDED_SECONDS
        ended = sorted((agent for agent in agents if agent.ended > oldest), key=lambda agent: -agent.ended)[:_MAX_ENDED]
        listed = [*(agent for agent in agents if not agent.ended), *ended]
        infos = [
            AgentInfo(
                agent.id,
                agent.name,
                agent.project,
                agent.session,
                agent.ended,
                agent.parent,
                tuple(formers.get(agent.id, ())),
            )
            for agent in listed
        ]
        return encode(AgentsAndTopics(tuple(infos), topics))

    def topic_names(self) -> set[str]:
        """Return the topics that have living subscribers on other hosts."""
        return self._hosts.topics()

    def subscriber_names(self, topic: str) -> list[str]:
        """Return the names of the living subscribers of a topic on other hosts, in the form `name@host`."""
        return self._hosts.subscriber_names(topic)

    # -- sending ---------------------------------------------------------------------------------------

    def add_outgoing_listener(self, listener: Callable[[], None]) -> None:
        """Call a listener after each commit that may have stored data for another host, in the committing thread.

        The listener must be quick. In rare cases it is called without need, or is not called. The next `build_packets`
        finds the data in any case.
        """
        self._cache.add_outgoing_listener(listener)

    def build_packets(self, limit: int = 1000) -> int:
        """Build packets from up to `limit` pending deliveries, oldest first. Return how many; 0 if there are none left.

        Packets never change after that, and survive a power failure, so they may be pushed. Raises `MailError` if this
        host is in no team.
        """
        return self._team.build_packets(self._local_id(), self._hosts.local_name, limit, self._now())

    def post(self, target: str, kind: str, body: bytes) -> int:
        """Append a packet that is no mail, such as an answer, to the outbox of a host. Return its number."""
        return self._team.post(NewPacket(target, kind, body), self._now())

    def outgoing(self, target: str | None = None, after: int = 0, limit: int = 200) -> list[OutgoingPacket]:
        """Return up to `limit` packets that their targets have not acknowledged, in order.

        With a target, the packets to it with a `seq` above `after`; without one, packets to all targets with an `id`
        above `after`.
        """
        return self._team.outgoing(target, after, limit)

    def targets(self) -> list[Backlog]:
        """Return for each host which packets it has not acknowledged. Hosts without such packets are left out."""
        return self._team.backlogs()

    def links(self) -> dict[str, Link]:
        """Return the numbers of the last packets to and from each host, by host id."""
        return self._team.links()

    def acknowledge(self, progress: Mapping[str, int]) -> dict[str, int]:
        """Delete the packets that other hosts have applied, and return by host how many.

        `progress` has, for each host, the number of the last packet that the host has applied.
        """
        return self._team.acknowledge(progress)

    # -- receiving -------------------------------------------------------------------------------------

    def add_handler(self, kind: str, handler: Callable[[str, bytes], None]) -> None:
        """Call `handler` with the origin and the body of each packet of a kind, in order and at least once.

        To refuse a packet, the handler raises `ValueError`.
        """
        self._receiver.handlers[kind] = handler

    def receive(self, packets: Sequence[IncomingPacket]) -> list[ReceiveResult]:
        """Apply packets whose signatures were verified, in one transaction. Return the result of each, in order.

        Only the packet with the next number of its origin is applied. The listeners for mail are called for
        the recipients. After the next `sync`, packets up to the numbers in `applied` may be acknowledged.
        """
        with self._cache.locked():
            return self._receiver.receive(packets)

    def sync(self) -> None:
        """Flush received and refused packets to disk. Call it before they are acknowledged and deleted on the relay."""
        self._team.sync()

    def applied(self) -> dict[str, int]:
        """Return by origin the number of the last packet that was applied or refused."""
        return {host: link.applied for host, link in self._team.links().items() if link.applied}

    def store_refused(self, packets: Sequence[IncomingPacket], why: str) -> None:
        """Store packets that must not be applied, with the reason, for inspection by `refused`."""
        at = self._now()
        rows = [
            RefusedPacket(origin=packet.origin, seq=packet.seq, kind=packet.kind, at=at, why=why, body=packet.body)
            for packet in packets
        ]
        self._team.apply(ReceivedBatch(refused=rows), at)

    def refused(self, limit: int = 100) -> list[RefusedPacket]:
        """Return up to `limit` refused packets, newest first."""
        return self._team.refused(limit)

    # -- unacknowledged messages -----------------------------------------------------------------------

    def with_transit_states(self, message: int, rows: Sequence[tuple[int, Delivery]]) -> list[Delivery]:
        """Return the deliveries of a message, with `host` and `in_transit_since` set for recipients on other hosts.

        `rows` are the deliveries, each with the id of its recipient.
        """
        in_transit = self._team.recipients_in_transit(message)
        agents = [self._cache.agents.get(number) for number, _ in rows]
        return [
            replace(
                delivery,
                host=self._hosts.name_of(agent.host),
                in_transit_since=delivery.queued if number in in_transit else 0.0,
            )
            if agent is not None and agent.host
            else delivery
            for agent, (number, delivery) in zip(agents, rows, strict=True)
        ]

    def give_up(self, host: str, reason: str) -> int:
        """Bounce the messages that a host has not acknowledged, and send one notice for each. Return how many messages.

        If the host was removed, messages that are queued there bounce, too, and its packets are deleted.
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
        """Bounce the messages that are queued for other hosts, and delete all hosts. Return how many messages bounced.

        The numbers of packets start again at 1, so this host must have a new id if it joins a team again.
        """
        with self._cache.locked():
            hosts = [(host, self._hosts.name_of(host)) for host in self._hosts.ids()]
        for host, name in hosts:
            self.update_host(host, name, "removed")
        bounced = sum(self.give_up(host, reason) for host, _ in hosts)
        with self._cache.locked():
            self._team.forget_team()
            self._hosts.clear()
            self._cache.agents.host_name = ""
        return bounced

    def _local_id(self) -> str:
        if not self._hosts.local_id:
            raise MailError("this host is in no team")
        return self._hosts.local_id
