"""A laptop's day: eight hours without the relay while both sides write, then everything arrives, in order, in seconds.

The hours go by for all processes at once, PostgreSQL among them: see `moved_clock`.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import until
from team.chaos import query
from team.daemon_hosts import TeamHost, letters, member, shown, team_host
from team.moved_clock import MovedClock, moved_clock
from team.postgres_server import new_server
from team.stalling_proxy import StallingProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.clients import Client

HOURS, HOUR = 8, 3600
MESSAGES = 500 if "FAIRLEAD_KILLS" in os.environ else 64
"""From each side in a day."""
LONGEST_SEND = 3.0
"""Seconds, on a busy machine. One that waited for the network would take ten."""
CLOCK_TOLERANCE = 60.0
"""Seconds that the sends of an hour may take in truth."""
_MESSAGES = "SELECT subject, at FROM mail_messages WHERE subject LIKE '<%>' AND sender {} 1099511627776 ORDER BY id"


@dataclass
class Day:
    """Both hosts, an agent on each, the link of the laptop, and the clock of all."""

    laptop: TeamHost
    server: TeamHost
    ours: Client
    theirs: Client
    link: StallingProxy
    clock: MovedClock

    @property
    def sides(self) -> tuple[tuple[TeamHost, str], tuple[TeamHost, str]]:
        """Each host, and to whom it writes."""
        return (self.laptop, f"{self.theirs.name}@server"), (self.server, f"{self.ours.name}@laptop")


@pytest.fixture
def day() -> Iterator[Day]:
    with ExitStack() as stack:
        clock = stack.enter_context(moved_clock())
        relay = stack.enter_context(new_server(env=clock.env))
        database = relay.create_database()
        laptop, server = (stack.enter_context(team_host(name, env=clock.env)) for name in ("laptop", "server"))
        link = stack.enter_context(StallingProxy(relay.port))
        member(server, relay.url(database))
        member(laptop, f"postgresql://postgres@127.0.0.1:{link.port}/{database}", server)
        made = Day(laptop, server, laptop.agent(), server.agent(), link, clock)
        until(lambda: all(host.knows(to) for host, to in made.sides), "they know each other")
        yield made


@pytest.mark.timeout(300)
def test_a_host_that_was_offline_for_a_day_catches_up_in_order_and_nobody_was_blocked(day: Day) -> None:
    laptop, server, clock = day.laptop, day.server, day.clock
    day.link.cut()
    until(lambda: not laptop.is_connected(), "the laptop is offline")
    began = clock.now()
    request = day.ours.send(day.sides[0][1], "Is it done?", "", "--request", "--deadline", "2h")
    seconds: list[float] = []
    for hour in range(HOURS):
        for number in range(MESSAGES // HOURS):
            seconds += [send(host, to, f"<{hour}:{number}>") for host, to in day.sides]
        clock.advance(HOUR)

    # What the clock brings about on each host alone, while it is offline.
    until(lambda: overdue(laptop) == 1, "the laptop has told that the deadline has passed")
    assert [one["stage"] for one in letters(day.ours, request["id"])] == ["queued"]
    until(lambda: server.host("laptop")["age"] > (HOURS - 1) * HOUR, "the server knows how old its snapshot is", 60)
    until(lambda: laptop.status()["on_its_way"] == MESSAGES // HOURS * HOURS + 1, "the laptop has counted them")
    assert running_sessions(laptop) == [day.ours.session], "its session goes on"

    day.link.resume()
    resumed = monotonic()
    until(laptop.is_connected, "the laptop is online", 60)
    connected = monotonic()
    expected = {host.name: [subject for subject, _ in written(host)] for host, _ in day.sides}
    until(lambda: len(arrived(laptop)) == len(arrived(server)) == len(expected["laptop"]), "all has arrived", 60)
    caught_up = monotonic()

    middle = sorted(seconds)[len(seconds) // 2]
    print(
        f"{len(seconds)} messages: online {connected - resumed:.1f} s after the link, caught up "
        f"{caught_up - connected:.1f} s later; a send took {middle * 1000:.1f} ms, at most {max(seconds) * 1000:.0f} ms"
    )
    assert [subject for subject, _ in arrived(server)] == expected["laptop"]
    assert [subject for subject, _ in arrived(laptop)] == expected["server"]
    assert max(seconds) < LONGEST_SEND
    check_times(began, arrived(server))
    check_times(began, arrived(laptop))
    assert '"<0:0>"' in shown(day.ours)
    assert "Is it done?" in shown(day.theirs)
    until(lambda: letters(day.ours, request["id"])[0]["stage"] == "shown", "the receipt has come")
    assert overdue(laptop) == 1, "told once"


def check_times(began: float, messages: list[tuple[str, float]]) -> None:
    """Each message says, on the other host, in which hour it was written."""
    for subject, at in messages:
        hour = int(subject.strip("<>").partition(":")[0])
        assert -1 < at - began - hour * HOUR < CLOCK_TOLERANCE, (subject, at - began)


def send(host: TeamHost, to: str, subject: str) -> float:
    """Return the seconds that sending took."""
    began = monotonic()
    host.home.ask("POST", "/v1/mail/send", body={"to": [to], "subject": subject})
    return monotonic() - began


def written(host: TeamHost) -> list[tuple[str, float]]:
    """The subjects and times of what was written here, in order."""
    return [(subject, at) for subject, at in query(host, _MESSAGES.format("<"))]


def arrived(host: TeamHost) -> list[tuple[str, float]]:
    """The subjects and times of what came from the other host, in order."""
    return [(subject, at) for subject, at in query(host, _MESSAGES.format(">="))]


def overdue(host: TeamHost) -> int:
    """How many notices say that a deadline has passed."""
    ((count,),) = query(host, "SELECT count(*) FROM mail_messages WHERE sender = 2 AND subject LIKE '%Is it done?%'")
    return int(count)


def running_sessions(host: TeamHost) -> list[str]:
    return [row["id"] for row in host.home.ask("GET", "/v1/sessions")["sessions"] if not row.get("ended")]
