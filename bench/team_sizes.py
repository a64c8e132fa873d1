"""The load of 10, 100 and 1000 hosts on their relay: bytes, and the CPU time of the reads of each host.

Run it by itself: `python -m bench.team_sizes`. The rows are those that a team leaves behind in use; hosts read the
registry every 30 seconds; while snapshots change, every second, or more seldom if there are more than 100 of them.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import TYPE_CHECKING

from bench._relay import cpu_seconds, relay_server, why_absent
from fairlead.daemon.team._connection import HOSTS_A_SECOND, READ_INTERVAL

if TYPE_CHECKING:
    from team.postgres_server import PostgresServer

    from fairlead.team.relay import Relay

SIZES = (10, 100, 1000)
PARTNERS = 20
"""Hosts with which each host has exchanged mail."""
_READS = 40
_HELLO_ID = "f" * 32
_FILL = """
INSERT INTO fairlead.hosts SELECT to_char(n, 'FM00000000000000000000000000000000'), 'host' || n, repeat('k', 32)::bytea,
    '0.1.0', 'boot', n, n FROM generate_series(1, {hosts}) AS n;
INSERT INTO fairlead.certificates (host, name, key, verdict, by, at, signature)
    SELECT id, name, key, 'member', id, 1, sha512(id::bytea) FROM fairlead.hosts;
INSERT INTO fairlead.snapshots SELECT id, kind, 1, repeat('n', size)::bytea, sha512((id || kind)::bytea), 1
    FROM fairlead.hosts, (VALUES ('agents', 1500), ('sessions', 2500)) AS kinds (kind, size);
INSERT INTO fairlead.progress SELECT origins.id, targets.id, 1 FROM fairlead.hosts AS origins
    JOIN fairlead.hosts AS targets ON targets.joined <> origins.joined
        AND mod((targets.joined - origins.joined)::int + {hosts}, {hosts}) <= {partners};
INSERT INTO fairlead.parcels SELECT id, repeat('0', 32), seq, 'message', repeat('b', 600)::bytea, sha512(id::bytea), 1
    FROM fairlead.hosts, generate_series(1, 10) AS seq;
ANALYZE;
"""


def main() -> int:
    if absent := why_absent():
        print(absent, file=sys.stderr)
        return 1
    print("| hosts | tables | one read of the registry | cores, all idle | cores, all busy |")
    print("| --- | --- | --- | --- | --- |")
    with relay_server() as server:
        for hosts in SIZES:
            print(_line(server, hosts), flush=True)
    return 0


def _line(server: PostgresServer, hosts: int) -> str:
    from fairlead.team import Hello
    from fairlead.team.relay import open_relay

    database = server.create_database()
    relay = open_relay(server.url(database))
    relay.connect(Hello(team="", host=_HELLO_ID, name="one", key=b"k" * 32, version="1", known_boots=(), boot="b"))
    server.execute(_FILL.format(hosts=hosts, partners=PARTNERS), database)
    size = relay.load().bytes
    seconds, cpu = _read(relay, server)
    relay.close()
    server.drop_database(database)
    idle, busy = cpu * hosts / READ_INTERVAL, cpu * hosts / max(1.0, hosts / HOSTS_A_SECOND)
    return f"| {hosts} | {size / 1e6:.1f} MB | {seconds * 1000:.1f} ms | {idle:.3f} | {busy:.2f} |"


def _read(relay: Relay, server: PostgresServer) -> tuple[float, float]:
    """Return the seconds of one read of the registry that finds nothing new, and the CPU seconds of the server."""
    known = {(one.host, one.kind): one.version for one in relay.snapshots({})}
    before, start = cpu_seconds(server), perf_counter()
    for _ in range(_READS):
        relay.hosts()
        relay.certificates()
        relay.ages()
        relay.snapshots(known)
    return (perf_counter() - start) / _READS, (cpu_seconds(server) - before) / _READS


if __name__ == "__main__":
    sys.exit(main())
