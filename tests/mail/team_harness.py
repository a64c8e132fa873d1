"""Hosts of a team on databases of their own, and a carrier between them that loses, repeats and delays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mail.harness import Clock, MailHarness

from fairlead.mail.remote import IncomingPacket, ReceiveResult

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fairlead.mail import Delivery, Message
    from fairlead.mail.remote import TeamMail


class TeamHost(MailHarness):
    """A host: a service on a database file, and what it knows of itself."""

    def __init__(self, folder: Path, name: str, clock: Clock | None = None) -> None:
        self.name = name
        self.id = f"id-of-{name}"
        folder.mkdir(exist_ok=True)
        super().__init__(folder, clock)

    def _open(self) -> None:
        super()._open()
        self.rings: list[str] = []
        self.outgoing_notifications = 0
        self.service.add_mail_listener(lambda agent: self.rings.append(agent.name))
        self.team.set_local_host(self.id, self.name)
        self.team.add_outgoing_listener(self._count_notification)

    def _count_notification(self) -> None:
        self.outgoing_notifications += 1

    @property
    def team(self) -> TeamMail:
        return self.service.team

    def ledger(self, message: Message | int) -> dict[str, Delivery]:
        number = message if isinstance(message, int) else message.id
        return {one.recipient: one for one in self.service._deliveries(number)}


class Hub:
    """What lies between the hosts: packets by origin, target and number. One that is there already stays as it is."""

    def __init__(self, *hosts: TeamHost) -> None:
        self.hosts = {host.id: host for host in hosts}
        self.packets: dict[tuple[str, str, int], tuple[str, bytes]] = {}
        self.progress: dict[tuple[str, str], int] = {}
        """Origin and target → the last number that the target has acknowledged."""

    def publish_snapshots(self) -> None:
        """Pass the snapshot of each host to all others."""
        for one in self.hosts.values():
            for other in self.hosts.values():
                if other is not one:
                    other.team.update_host(one.id, one.name, "member", one.team.local_snapshot())

    # -- the steps of a host, each of which may be the last before a crash -----------------------------

    def push(self, host: TeamHost) -> None:
        while host.team.build_packets(3):
            pass
        for packet in host.team.outgoing(limit=1000):
            self.packets.setdefault((host.id, packet.target, packet.seq), (packet.kind, packet.body))

    def pull(self, host: TeamHost) -> list[IncomingPacket]:
        return [
            IncomingPacket(origin=origin, seq=seq, kind=kind, body=body)
            for (origin, target, seq), (kind, body) in sorted(self.packets.items())
            if target == host.id
        ]

    def acknowledge(self, host: TeamHost) -> None:
        for origin, seq in host.team.applied().items():
            self.progress[origin, host.id] = seq
            for key in [key for key in self.packets if key[:2] == (origin, host.id) and key[2] <= seq]:
                del self.packets[key]

    def read_progress(self, host: TeamHost) -> None:
        host.team.acknowledge({target: seq for (origin, target), seq in self.progress.items() if origin == host.id})

    # -- everything ------------------------------------------------------------------------------------

    def exchange(self, host: TeamHost) -> list[ReceiveResult]:
        self.push(host)
        results = host.team.receive(self.pull(host))
        self.acknowledge(host)
        self.read_progress(host)
        return results

    def settle(self) -> None:
        """Exchange until nothing is on its way."""
        for _ in range(50):
            for host in self.hosts.values():
                self.exchange(host)
            if not self.packets and not any(self._is_busy(host) for host in self.hosts.values()):
                return
        raise AssertionError(f"still on its way: {sorted(self.packets)}")

    @staticmethod
    def _is_busy(host: TeamHost) -> bool:
        return bool(host.team.build_packets() or host.team.targets())

    def close(self) -> None:
        for host in self.hosts.values():
            host.storage.close()


def opened_team(folder: Path, *names: str) -> Iterator[Hub]:
    clock = Clock()
    hub = Hub(*(TeamHost(folder / name, name, clock) for name in names))
    try:
        yield hub
    finally:
        hub.close()
