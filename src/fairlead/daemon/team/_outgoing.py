"""Pushes packets from the outbox to the relay, in order. Packets that the relay has lost are pushed again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.team import Packet, sign_packet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.daemon.team._roster import Roster
    from fairlead.daemon.team._state import ConnectionLog
    from fairlead.mail import MessageService
    from fairlead.mail.remote import OutgoingPacket
    from fairlead.team.relay import Relay

_PAGE = 200
_BATCH = 1000


class OutgoingPackets:
    """Pushes the packets of this host, over one connection."""

    def __init__(self, relay: Relay, service: MessageService, roster: Roster, log: ConnectionLog) -> None:
        self._relay = relay
        self._mail = service.team
        self._roster = roster
        self._log = log
        self._pushed = 0
        """The id in the outbox up to which all packets are on the relay."""

    def push_missing(self) -> None:
        """Push all packets that the relay does not have: new ones, and those that it lost by restoring a backup."""
        self._build_packets()
        backlogs = self._mail.targets()
        for backlog in backlogs:
            missing = set(self._relay.missing(backlog.target, backlog.first, backlog.last))
            after = backlog.first - 1
            while after < backlog.last and (page := self._mail.outgoing(backlog.target, after, _PAGE)):
                self._push(packet for packet in page if packet.seq in missing)
                after = page[-1].seq
        self._pushed = max([self._pushed, *(item.last_id for item in backlogs)])

    def push_new(self) -> bool:
        """Push the packets that were added to the outbox since the last push. Return whether there were any."""
        self._build_packets()
        before = self._pushed
        while page := self._mail.outgoing(None, self._pushed, _PAGE):
            self._push(page)
            self._pushed = page[-1].id
        return self._pushed > before

    def _build_packets(self) -> None:
        while self._mail.build_packets(_BATCH) >= _BATCH:
            pass

    def note_progress(self) -> bool:
        """Remove the packets from the outbox that their targets have applied. Return whether there were any."""
        return bool(self._mail.acknowledge(self._relay.progress()))

    def _push(self, packets: Iterable[OutgoingPacket]) -> None:
        own = self._roster.membership
        key = own.key
        signed = [
            sign_packet(
                Packet(origin=own.host, target=packet.target, seq=packet.seq, kind=packet.kind, body=packet.body),
                key,
                own.team,
            )
            for packet in packets
        ]
        if signed:
            self._relay.push(signed)
            self._log.pushed += len(signed)
