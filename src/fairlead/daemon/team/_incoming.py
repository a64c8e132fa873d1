"""Reads packets from the relay: verifies them, applies them in order, acknowledges them once they are on disk."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from fairlead.mail.remote import IncomingPacket, ReceiveResult
from fairlead.team import verify_packet

if TYPE_CHECKING:
    from fairlead.daemon.team._directory import TeamDirectory
    from fairlead.daemon.team._notices import TeamNotices
    from fairlead.daemon.team._roster import Roster
    from fairlead.daemon.team._state import ConnectionLog
    from fairlead.daemon.team.answers._remote_answers import RemoteAnswers
    from fairlead.mail import MessageService
    from fairlead.team import Packet
    from fairlead.team.relay import Relay

_PAGE = 200


class IncomingPackets:
    """Receives the packets for this host, over one connection."""

    def __init__(  # noqa: PLR0917 - the parts of the service
        self,
        relay: Relay,
        service: MessageService,
        roster: Roster,
        directory: TeamDirectory,
        notices: TeamNotices,
        log: ConnectionLog,
        answers: RemoteAnswers,
    ) -> None:
        self._relay = relay
        self._service = service
        self._roster = roster
        self._directory = directory
        self._notices = notices
        self._log = log
        self._answers = answers

    def receive(self) -> bool:
        """Receive all packets that can be applied. Return whether there were any packets."""
        skipped: set[str] = set()
        count = 0
        while packets := self._relay.pull(skip=sorted(skipped), limit=_PAGE):
            for origin, group in groupby(packets, key=lambda packet: packet.origin):
                if not self._receive_from(origin, list(group)):
                    skipped.add(origin)
            count += len(packets)
        self._directory.waiting = {host: 1 for host in skipped if self._roster.state(host) == "pending"}
        return count > 0

    def _receive_from(self, origin: str, packets: list[Packet]) -> bool:
        """Receive the packets of one host. Return whether more of its packets can be received."""
        state = self._roster.state(origin)
        if state != "removed" and (origin not in self._roster.hosts or state == "pending"):
            if self._roster.read(self._relay):  # the host may have joined or been confirmed a moment ago
                self._notices.notify_pending(self._service, self._roster)
            self._directory.update_hosts(self._service, self._roster)
            state = self._roster.state(origin)
        if state == "removed":
            return self._refuse(origin, packets, "That host was removed from the team.")
        if origin not in self._roster.hosts:
            return self._refuse(origin, packets, "It is of a host that the team does not know.")
        key = self._roster.trust.key(origin)
        if state == "pending" or key is None:
            return False
        team = self._roster.membership.team
        genuine = []
        for packet in packets:
            if not verify_packet(packet, key, team):
                break
            genuine.append(packet)
        applied = self._apply(origin, genuine)
        if len(genuine) < len(packets):
            self._refuse(origin, [packets[len(genuine)]], "It was not signed with the key of that host.")
        return applied and len(genuine) == len(packets)

    def _apply(self, origin: str, packets: list[Packet]) -> bool:
        """Apply packets of a member. Return whether all were applied: after a gap, the host has to push again."""
        if not packets:
            return True
        shift = self._directory.clock_shift(origin, self._log.offset)
        self._answers.discard_uncommitted()
        received = self._service.team.receive(
            [msgspec.structs.replace(_incoming(packet), clock_shift=shift) for packet in packets]
        )
        self._answers.handle_committed()
        done = [one.seq for one, result in zip(packets, received, strict=True) if result is not ReceiveResult.GAP]
        if done:
            self._service.team.sync()
            self._relay.acknowledge({origin: max(done)})
        self._log.received += received.count(ReceiveResult.APPLIED)
        self._log.repeats += received.count(ReceiveResult.REPEATED)
        return len(done) == len(packets)

    def _refuse(self, origin: str, packets: list[Packet], why: str) -> bool:
        """Store packets as refused, delete them from the relay, and notify the user once. Always returns `True`."""
        self._service.team.store_refused([_incoming(packet) for packet in packets], why)
        self._service.team.sync()
        self._relay.refuse(origin, packets[-1].seq)
        self._log.refused += len(packets)
        self._notices.notify_refused(self._service, origin, self._roster.name(origin), why)
        return True


def _incoming(packet: Packet) -> IncomingPacket:
    return IncomingPacket(origin=packet.origin, seq=packet.seq, kind=packet.kind, body=packet.body)
