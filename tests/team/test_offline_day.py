"""A laptop's day: hours without the relay while both sides write, then everything arrives, in order, within seconds."""

from __future__ import annotations

import os
from contextlib import ExitStack
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import until
from team.chaos import query
from team.daemon_hosts import TeamHost, member, shown, team_host
from team.stalling_proxy import StallingProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from team.postgres_server import PostgresServer

MESSAGES = 500 if "FAIRLEAD_KILLS" in os.environ else 60
"""From each side."""
LONGEST_SEND = 3.0
"""Seconds, on a busy machine. One that waited for the network would take ten."""
_ARRIVED = """
SELECT subject FROM mail_messages WHERE subject LIKE '<%>' AND sender >= 1099511627776 ORDER BY id
"""


@pytest.fixture
def hosts() -> Iterator[tuple[TeamHost, TeamHost]]:
    with ExitStack() as stack:
        yield stack.enter_context(team_host("laptop")), stack.enter_context(team_host("server"))


@pytest.mark.timeout(240)
def test_a_host_that_was_offline_catches_up_in_order_and_nobody_was_blocked(
    hosts: tuple[TeamHost, TeamHost], postgres_server: PostgresServer, database: str
) -> None:
    laptop, server = hosts
    with StallingProxy(postgres_server.port) as link:
        member(server, postgres_server.url(database))
        member(laptop, f"postgresql://postgres@127.0.0.1:{link.port}/{database}", server)
        ours, theirs = laptop.agent(), server.agent()
        to_server, to_laptop = f"{theirs.name}@server", f"{ours.name}@laptop"
        until(lambda: laptop.knows(to_server) and server.knows(to_laptop), "they know each other")
        link.cut()
        until(lambda: not laptop.is_connected(), "the laptop is offline")
        subjects = [f"<{number}>" for number in range(MESSAGES)]
        seconds = [
            send(host, to, subject) for subject in subjects for host, to in ((laptop, to_server), (server, to_laptop))
        ]

        link.resume()
        began = monotonic()
        until(laptop.is_connected, "the laptop is online", 60)
        connected = monotonic()
        until(lambda: count(laptop) == count(server) == MESSAGES, "all has arrived", 60)
        caught_up = monotonic()

    middle = sorted(seconds)[len(seconds) // 2]
    print(
        f"{2 * MESSAGES} messages: online {connected - began:.1f} s after the link, caught up "
        f"{caught_up - connected:.1f} s later; a send took {middle * 1000:.1f} ms, at most {max(seconds) * 1000:.0f} ms"
    )
    assert arrived(laptop) == arrived(server) == subjects
    assert max(seconds) < LONGEST_SEND
    assert '"<0>"' in shown(ours)
    assert '"<0>"' in shown(theirs)


def send(host: TeamHost, to: str, subject: str) -> float:
    """Return the seconds that sending took."""
    began = monotonic()
    host.home.ask("POST", "/v1/mail/send", body={"to": [to], "subject": subject})
    return monotonic() - began


def arrived(host: TeamHost) -> list[str]:
    return [subject for (subject,) in query(host, _ARRIVED)]


def count(host: TeamHost) -> int:
    return len(arrived(host))
