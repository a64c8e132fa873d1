"""The load of many hosts on their relay: the CPU time of PostgreSQL, and the packets on it.

A host here is a mail store and a connection to the relay, without a daemon. Several hosts share a process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from statistics import median
from threading import Event, Thread
from time import monotonic, time
from typing import TYPE_CHECKING

from bench._data import ROOT
from bench._harness import Timing
from bench._relay import cpu_seconds
from bench._table import Row, Target
from fairlead.mail import Draft, MessageService
from fairlead.store import MailStore

if TYPE_CHECKING:
    from team.postgres_server import PostgresServer

    from bench._harness import Effort

HOSTS, QUICK_HOSTS, RATE = 20, 4, 5.0
_HOSTS_IN_PROCESS = 5
SECONDS, QUICK_SECONDS = 20.0, 2.0
_SAMPLES = 10
_BODY = "What was found, in a few lines.\n" * 10


def load_rows(effort: Effort, relay: PostgresServer | None, absent: str) -> list[Row]:
    """Return the rows about the load."""
    hosts = QUICK_HOSTS if effort.is_quick else HOSTS
    what = f"{hosts} hosts x {RATE:g} messages/s with receipts"
    cpu = f"{what}: CPU of the relay"
    waiting = "the same: messages and receipts on the relay"
    one_core, few = Target("time", 100), Target("time", hosts)
    if relay is None:
        return [
            Row("team", cpu, "%", None, "", target=one_core, absent=absent),
            Row("team", waiting, "", None, "", target=few, absent=absent),
        ]
    share, left = _load(relay, hosts, QUICK_SECONDS if effort.is_quick else SECONDS)
    return [
        Row("team", cpu, "%", Timing(share, share), "", target=one_core),
        Row("team", waiting, "", left, "", target=few),
    ]


def _load(relay: PostgresServer, hosts: int, seconds: float) -> tuple[float, Timing]:
    """Run all hosts; return the share of a core that the relay took, and how many packets were on it."""
    database = relay.create_database()
    url = relay.url(database)
    command = [sys.executable, "-m", "bench.team_load", url, str(hosts), str(seconds)]
    started = [
        subprocess.Popen([*command, str(first)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for first in range(0, hosts, _HOSTS_IN_PROCESS)
    ]
    try:
        for process in started:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise RuntimeError("a host could not start")
        for process in started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        before, began = cpu_seconds(relay), monotonic()
        left = []
        while (gone := monotonic() - began) < seconds:
            Event().wait(min(seconds - gone, seconds / _SAMPLES))
            ((count,),) = relay.execute("SELECT count(*) FROM fairlead.parcels", database)
            left.append(int(str(count)))
        share = (cpu_seconds(relay) - before) / (monotonic() - began)
        counts = [json.loads(process.communicate()[0]) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    sent, received = (sum(one[key] for one in counts) for key in ("sent", "received"))
    if received < sent * 0.9:
        raise RuntimeError(f"of {sent} messages only {received} have arrived")
    return share, Timing(min(left), median(left))


# -- in the processes ----------------------------------------------------------------------------------


class LightHost:
    """A host: a mail store, and the relay."""

    def __init__(self, url: str, folder: Path, number: int) -> None:
        from fairlead.team import Hello, HostSnapshot
        from fairlead.team.relay import open_relay

        self.number = number
        self.id = _id(number)
        self.store = MailStore.open(f"sqlite:///{folder}/mail{number}.db")
        self.service = MessageService(self.store)
        self.mail = self.service.team
        self.agent = self.service.ensure_agent(f"s{number}", project="/p")
        self.mail.set_local_host(self.id, f"host{number}")
        self.relay = open_relay(url)
        hello = Hello(
            team="", host=self.id, name=f"host{number}", key=b"k" * 32, version="1", known_boots=(), boot=str(number)
        )
        self.relay.connect(hello)
        body = self.mail.local_snapshot()
        self.relay.publish(HostSnapshot(host=self.id, kind="agents", version=int(time() * 1000), body=body))
        self.mail.add_outgoing_listener(self.relay.wake)
        self.peers: list[str] = []
        self.sent = self.received = self.pushed = self.shown = 0

    def wait_for_hosts(self, hosts: int) -> None:
        """Wait for the snapshots of all other hosts."""
        while len(self.peers) < hosts - 1:
            for one in self.relay.snapshots({}):
                self.mail.update_host(one.host, f"host{int(one.host, 16) - 1}", "member", one.body)
            self.peers = [f"{_agent_of(record.snapshot)}@{record.name}" for record in self.mail.known_hosts()]
            if len(self.peers) < hosts - 1:
                self.relay.wait(0.2)

    def run(self, seconds: float) -> None:
        """Send messages at the rate, show those that arrive, and exchange all packets with the relay."""
        began = monotonic()
        due = began + self.number / HOSTS / RATE
        while (now := monotonic()) < began + seconds + 1.0:
            if now >= due and now < began + seconds:
                to = self.peers[self.sent % len(self.peers)]
                self.service.send(self.agent, Draft(to=(to,), subject=f"message {self.sent}", body=_BODY))
                self.sent += 1
                due += 1 / RATE
            self._push()
            if self.relay.wait(max(0.0, min(due, began + seconds + 1.0) - monotonic())):
                self._take()

    def _push(self) -> None:
        from fairlead.team import Packet

        while self.mail.build_packets():
            pass
        while page := self.mail.outgoing(None, self.pushed):
            self.relay.push(
                [
                    Packet(
                        origin=self.id,
                        target=one.target,
                        seq=one.seq,
                        kind=one.kind,
                        body=one.body,
                        signature=b"s" * 64,
                    )
                    for one in page
                ]
            )
            self.pushed = page[-1].id

    def _take(self) -> None:
        from fairlead.mail.remote import IncomingPacket

        while packets := self.relay.pull():
            self.mail.receive(
                [IncomingPacket(origin=one.origin, seq=one.seq, kind=one.kind, body=one.body) for one in packets]
            )
            self.received += sum(one.kind == "message" for one in packets)
            self.relay.acknowledge({one.origin: one.seq for one in packets})
        self.shown += 1
        self.service.show(self.agent, "Stop", f"event{self.shown}", limit=100)
        self._push()
        self.mail.acknowledge(self.relay.progress())


def _id(number: int) -> str:
    return f"{number + 1:032x}"


def _agent_of(snapshot: bytes) -> str:
    from fairlead.mail.remote import decode_snapshot

    return next(one.name for one in decode_snapshot(snapshot).agents if one.session)


def _main(url: str, count: str, seconds: str, first: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        own = range(int(first), min(int(first) + _HOSTS_IN_PROCESS, int(count)))
        hosts = [LightHost(url, Path(folder), number) for number in own]
        for host in hosts:
            host.wait_for_hosts(int(count))
        print("ready", flush=True)
        sys.stdin.readline()
        threads = [Thread(target=host.run, args=(float(seconds),)) for host in hosts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for host in hosts:
            host.relay.close()
            with closing(host.store):
                pass
    print(json.dumps({"sent": sum(host.sent for host in hosts), "received": sum(host.received for host in hosts)}))


if __name__ == "__main__":
    _main(*sys.argv[1:])
