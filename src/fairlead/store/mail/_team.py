"""The storage of packets to and from other hosts, in the database of the mail store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, func, insert, select, update

from fairlead.mail import FIRST_REMOTE_ID, HostRecord, MailUnreachable
from fairlead.mail.remote import Backlog, Link, Origin, OutgoingPacket, RefusedPacket
from fairlead.store._database import PreparedStatement, batches
from fairlead.store.mail import _queries as queries
from fairlead.store.mail import _team_writes as team_writes
from fairlead.store.mail import _writes as writes
from fairlead.store.mail._packet_writer import PacketWriter
from fairlead.store.mail._tables import agents, counters, deliveries
from fairlead.store.mail._team_tables import LINKS_LOST, hosts, links, origins, outbox, pending, refused, threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Select

    from fairlead.mail import OutgoingMessage
    from fairlead.mail.remote import NewPacket, ReceivedBatch

    Reading = Callable[[], AbstractContextManager[Connection]]
    Writing = Callable[..., AbstractContextManager[Connection]]

_OUTGOING: Select[Any] = select(
    outbox.c.id, outbox.c.target, outbox.c.seq, outbox.c.kind, outbox.c.body, outbox.c.at
).limit(bindparam("limit"))
_TO_ALL = PreparedStatement(_OUTGOING.where(outbox.c.id > bindparam("after")).order_by(outbox.c.id))
_TO_TARGET = PreparedStatement(
    _OUTGOING.where(outbox.c.target == bindparam("host"), outbox.c.seq > bindparam("after")).order_by(outbox.c.seq)
)
_LINKS = PreparedStatement(select(links))
_FIRST_PENDING = PreparedStatement(select(pending.c.id).limit(1))
_COUNTER = PreparedStatement(queries.COUNTER)
_ORIGIN = PreparedStatement(
    select(origins.c.message).where(origins.c.host == bindparam("of_host"), origins.c.number == bindparam("of_number"))
)
_THREAD = PreparedStatement(
    select(threads.c.thread).where(threads.c.host == bindparam("of_host"), threads.c.number == bindparam("of_number"))
)


class TeamStore:
    """A `TeamStorage` in the database of a mail store. Thread-safe. Its methods have the contracts of `TeamStorage`."""

    def __init__(
        self,
        reading: Reading,
        writing: Writing,
        sync: Callable[[], None],
        add_to_index: Callable[[Connection, Sequence[OutgoingMessage]], None],
    ) -> None:
        """Use functions of a mail store: to open a transaction, to sync, and to add messages to the search index."""
        self._reading = reading
        self._writing = writing
        self.sync = sync
        self._add_to_index = add_to_index

    def save_host(self, record: HostRecord) -> None:
        """Store a host, and replace its previous record."""
        with self._writing() as connection:
            connection.execute(delete(hosts).where(hosts.c.host == record.host))
            row = {"host": record.host, "name": record.name, "state": record.state, "at": record.at}
            connection.execute(insert(hosts), {**row, "snapshot": record.snapshot})

    def links(self) -> dict[str, Link]:
        """Return the links to all hosts, by host."""
        with self._reading() as connection:
            rows = _LINKS.rows(connection, {})
        return {row.host: Link(row.last_sent, row.acknowledged, row.applied) for row in rows}

    # -- sending ---------------------------------------------------------------------------------------

    def build_packets(self, local_host: str, local_name: str, limit: int, at: float) -> int:
        """Build packets from the first pending rows, about `limit`, and return the number of rows; 0 if there are none.

        The packets survive a power failure. Raise `MailUnreachable` if the numbers of earlier packets were lost.
        """
        with self._reading() as connection:  # most often there is nothing
            if not _FIRST_PENDING.rows(connection, {}):
                return 0
            if _COUNTER.rows(connection, {"counter": LINKS_LOST}):
                raise MailUnreachable(
                    "the database of the mail was damaged, and with it the numbers of what was sent to other hosts; "
                    "leave the team, and join it again"
                )
        with self._writing(durable=True) as connection:
            return PacketWriter(connection, local_host, local_name, at).write(limit)

    def post(self, packet: NewPacket, at: float) -> int:
        """Put a packet into the outbox, and return its number. It survives a power failure."""
        with self._writing(durable=True) as connection:
            return team_writes.append(connection, [(packet, 0)], at)

    def outgoing(self, target: str | None, after: int, limit: int) -> list[OutgoingPacket]:
        """Return at most `limit` packets, in order.

        With a target, these are the packets to it after the number `after`; with `None`, those to all targets after the
        id `after`.
        """
        query = _TO_ALL if target is None else _TO_TARGET
        with self._reading() as connection:
            rows = query.rows(connection, {"host": target, "after": after, "limit": limit})
        return [OutgoingPacket(*row) for row in rows]

    def backlogs(self) -> list[Backlog]:
        """Return for each target which packets it has not acknowledged. Targets without any are left out."""
        query = (
            select(
                outbox.c.target,
                func.min(outbox.c.seq),
                func.max(outbox.c.seq),
                func.max(outbox.c.id),
                func.count(),
                func.min(outbox.c.at),
            )
            .group_by(outbox.c.target)
            .order_by(outbox.c.target)
        )
        with self._reading() as connection:
            return [Backlog(*row) for row in connection.execute(query)]

    def acknowledge(self, progress: Mapping[str, int]) -> dict[str, int]:
        """Delete the packets that targets have acknowledged, each up to a number.

        Return how many were deleted, by target. A target whose number is not higher than before is left out.
        """
        known = self.links()
        advanced = {host: seq for host, seq in progress.items() if seq > known.get(host, Link()).acknowledged}
        if not advanced:
            return {}
        deleted: dict[str, int] = {}
        with self._writing() as connection:
            for host, seq in advanced.items():
                link = team_writes.link(connection, host)
                done = connection.execute(delete(outbox).where(outbox.c.target == host, outbox.c.seq <= seq))
                deleted[host] = done.rowcount
                last = max(link.last_sent, seq)
                connection.execute(update(links).where(links.c.host == host).values(acknowledged=seq, last_sent=last))
        return deleted

    # -- receiving -------------------------------------------------------------------------------------

    def find_origins(self, wanted: Iterable[Origin]) -> dict[Origin, int]:
        """Return the local ids of messages of other hosts. Those that are not stored here are left out."""
        with self._reading() as connection:
            return _find(connection, _ORIGIN, wanted)

    def find_threads(self, wanted: Iterable[Origin]) -> dict[Origin, int]:
        """Return the local ids of threads that began on other hosts. Those that are not known here are left out."""
        with self._reading() as connection:
            return _find(connection, _THREAD, wanted)

    def others_of(self, message: int) -> str:
        """Return a received message's recipients that are not on this host, as JSON; "" for a message of this host."""
        with self._reading() as connection:
            return connection.execute(select(origins.c.others).where(origins.c.message == message)).scalar() or ""

    def apply(self, batch: ReceivedBatch, at: float) -> None:
        """Store the changes of a batch of received packets. They survive a power failure after the next `sync`."""
        with self._writing() as connection:
            outgoing = [message.outgoing for message in batch.messages]
            writes.insert_messages(connection, outgoing)
            self._add_to_index(connection, outgoing)
            team_writes.apply(connection, batch, at)

    def refused(self, limit: int) -> list[RefusedPacket]:
        """Return at most `limit` packets that could not be applied, newest first."""
        with self._reading() as connection:
            rows = connection.execute(select(refused).order_by(refused.c.id.desc()).limit(limit))
            return [
                RefusedPacket(origin=row.origin, seq=row.seq, kind=row.kind, at=row.at, why=row.why, body=row.body)
                for row in rows
            ]

    # -- deliveries on their way -----------------------------------------------------------------------

    def recipients_in_transit(self, message: int) -> set[int]:
        """Return the ids of a message's recipients whose hosts have not acknowledged the message."""
        waiting = select(pending.c.recipient).where(pending.c.message == message, pending.c.kind == "message")
        in_packets = (
            select(deliveries.c.recipient)
            .join_from(deliveries, agents, deliveries.c.recipient == agents.c.id)
            .join(outbox, (outbox.c.message == deliveries.c.message) & (outbox.c.target == agents.c.host))
            .where(deliveries.c.message == message, deliveries.c.recipient >= FIRST_REMOTE_ID)
        )
        with self._reading() as connection:
            return {*connection.execute(waiting).scalars(), *connection.execute(in_packets).scalars()}

    def undelivered(self, host: str, *, include_arrived: bool) -> list[tuple[int, int, int]]:
        """Return the ids of message, sender and recipient of each delivery that a host has not acknowledged.

        `include_arrived` adds the deliveries that are queued on that host.
        """
        with self._reading() as connection:
            return team_writes.undelivered(connection, host, include_arrived=include_arrived)

    def give_up(
        self,
        host: str,
        bounced: Sequence[tuple[int, int]],
        *,
        at: float,
        why: str,
        notices: Sequence[OutgoingMessage],
        forget: bool,
    ) -> None:
        """Bounce deliveries to a host, given as pairs of message and recipient, empty their packets, and store notices.

        `why` is the reason of the bounce. With `forget`, all packets, messages and receipts that wait for the host are
        deleted instead of emptied. The changes survive a power failure.
        """
        with self._writing(durable=True) as connection:
            team_writes.bounce(connection, bounced, at, why)
            if forget:
                team_writes.forget(connection, host)
            else:
                for batch in batches([message for message, _ in bounced]):
                    team_writes.empty_packets(connection, host, batch)
            writes.insert_messages(connection, notices)
            self._add_to_index(connection, notices)

    def forget_team(self) -> None:
        """Delete all links, hosts and packets, and the rows that wait to become packets. Messages stay."""
        with self._writing(durable=True) as connection:
            for table in (links, hosts, outbox, pending):
                connection.execute(delete(table))
            connection.execute(delete(counters).where(counters.c.name == LINKS_LOST))


def _find(connection: Connection, query: PreparedStatement, wanted: Iterable[Origin]) -> dict[Origin, int]:
    """Return the local id of each origin that a query finds. Other origins are left out."""
    rows = (
        (origin, query.rows(connection, {"of_host": origin.host, "of_number": origin.number})) for origin in set(wanted)
    )
    return {one: numbers[0][0] for one, numbers in rows if numbers}
