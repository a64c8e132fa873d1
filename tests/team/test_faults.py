"""Faults of a team, each with what the user sees, and that nothing is lost, doubled, reordered or shown on two hosts.

Others are in `test_daemons` (the relay gone, restored from an old backup, a copied host), `test_offline_day` (a host
gone for hours), `test_chaos` and `tests/e2e/test_team.py` (partitions), and `test_postgres_faults`.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import until
from team.chaos import query
from team.daemon_hosts import TeamHost, letters, member, shown, team_host
from team.moved_clock import moved_clock
from team.postgres_server import new_server
from team.small_disk import own_mounts
from team.stalling_proxy import StallingProxy

from fairlead.ipc import RequestRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.clients import Client
    from team.postgres_server import PostgresServer

pytestmark = pytest.mark.timeout(240)

DAY = 86400
HOUR = 3600
QUEUED = 1000
LARGE = "x" * 60_000


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def team(
    stack: ExitStack, url: str, beta_url: str = "", beta_env: dict[str, str] | None = None
) -> tuple[TeamHost, TeamHost]:
    """Two members."""
    alpha, beta = stack.enter_context(team_host("alpha")), stack.enter_context(team_host("beta", env=beta_env))
    return member(alpha, url), member(beta, beta_url or url, alpha)


def acquainted(host: TeamHost, other: TeamHost) -> tuple[Client, str]:
    """An agent of a host, and the name of one of the other host that it can write to."""
    name = f"{other.agent().name}@{other.name}"
    until(lambda: host.knows(name), f"{host.name} knows {name}")
    return host.agent(), name


def send_all(host: TeamHost, to: str, subjects: list[str], body: str = "") -> float:
    """Send messages, and return the longest time that one took."""
    longest = 0.0
    for subject in subjects:
        began = monotonic()
        host.home.ask("POST", "/v1/mail/send", body={"to": [to], "subject": subject, "body": body})
        longest = max(longest, monotonic() - began)
    return longest


def arrived(host: TeamHost) -> list[str]:
    """The subjects of what came from other hosts, in order."""
    wanted = "SELECT subject FROM mail_messages WHERE subject LIKE '<%>' AND sender >= 1099511627776 ORDER BY id"
    return [subject for (subject,) in query(host, wanted)]


def ask_again(host: TeamHost) -> bool:
    """Whether the host is connected. One that was refused tries again each minute, or when somebody needs the relay."""
    if not host.is_connected():
        host.home.ask("POST", "/v1/team/refresh", body={})
    return host.is_connected()


def numbered(count: int) -> list[str]:
    return [f"<{number}>" for number in range(count)]


def test_what_is_sent_to_a_host_that_is_gone_for_good_bounces_with_one_notice(stack: ExitStack) -> None:
    clock = stack.enter_context(moved_clock())
    relay = stack.enter_context(new_server(env=clock.env))
    alpha = member(stack.enter_context(team_host("alpha", env=clock.env)), url := relay.url(relay.create_database()))
    beta = member(stack.enter_context(team_host("beta", env=clock.env)), url, alpha)
    asker, name = acquainted(alpha, beta)
    beta.stop()
    sent = asker.send(name, "Are you there?", "", "--request")
    assert [one["stage"] for one in letters(asker, sent["id"])] == ["queued"]

    clock.advance(15 * DAY)
    alpha.stop()
    alpha.start()  # it reads everything when it connects, else within half a minute

    until(lambda: letters(asker, sent["id"])[0]["stage"] == "bounced", "it bounces")
    assert "beta was not heard of for 14 days" in letters(asker, sent["id"])[0]["why"]
    assert shown(asker).count("Are you there?") == 1


def test_a_wrong_clock_changes_neither_the_order_nor_the_times(
    stack: ExitStack, postgres_server: PostgresServer, database: str
) -> None:
    clock = stack.enter_context(moved_clock())
    clock.advance(5 * HOUR)
    alpha, beta = team(stack, postgres_server.url(database), beta_env=clock.env)
    _, to_beta = acquainted(alpha, beta)
    _, to_alpha = acquainted(beta, alpha)
    until(lambda: abs(alpha.host("beta").get("offset") or 0) > 4 * HOUR, "alpha knows that the clock of beta is wrong")
    assert "5h" in alpha.home.fairlead("team", "status").stdout
    for number in numbered(10):
        send_all(alpha, to_beta, [number])
        send_all(beta, to_alpha, [number])
    until(lambda: len(arrived(alpha)) == len(arrived(beta)) == 10, "all has arrived")
    assert arrived(alpha) == arrived(beta) == numbered(10)
    times = "SELECT max(at), min(at) FROM mail_messages WHERE subject LIKE '<%>'"
    ((newest, oldest),) = query(alpha, times)
    assert newest - oldest < HOUR, "by the clock of alpha"
    ((newest, oldest),) = query(beta, times)
    assert newest - oldest < HOUR, "by the clock of beta"


def test_on_a_slow_network_nobody_waits_and_the_order_stays(
    stack: ExitStack, postgres_server: PostgresServer, database: str
) -> None:
    link = stack.enter_context(StallingProxy(postgres_server.port, delay=0.15))
    url = f"postgresql://postgres@127.0.0.1:{link.port}/{database}"
    alpha, beta = team(stack, postgres_server.url(database), url)
    _, to_alpha = acquainted(beta, alpha)
    assert beta.status()["round_trip"] > 0.25
    assert send_all(beta, to_alpha, numbered(30)) < 3.0
    until(lambda: len(arrived(alpha)) == 30, "all has arrived")
    assert arrived(alpha) == numbered(30)


def test_a_thousand_messages_that_were_queued_offline_arrive_once_and_in_order(
    stack: ExitStack, postgres_server: PostgresServer, database: str
) -> None:
    link = stack.enter_context(StallingProxy(postgres_server.port))
    url = f"postgresql://postgres@127.0.0.1:{link.port}/{database}"
    alpha, beta = team(stack, postgres_server.url(database), url)
    _, to_alpha = acquainted(beta, alpha)
    link.cut()
    until(lambda: not beta.is_connected(), "beta is offline")
    send_all(beta, to_alpha, numbered(QUEUED))
    link.resume()
    until(lambda: len(arrived(alpha)) == QUEUED, "all has arrived", 60)
    assert arrived(alpha) == numbered(QUEUED)


def test_mail_waits_on_its_host_while_the_disk_of_the_relay_is_full(stack: ExitStack) -> None:
    stack.enter_context(own_mounts())
    relay = stack.enter_context(new_server(disk=140))
    assert relay.disk is not None
    alpha, beta = team(stack, relay.url(relay.create_database()))
    _, to_beta = acquainted(alpha, beta)
    relay.disk.fill()
    assert send_all(alpha, to_beta, numbered(60), LARGE) < 3.0
    until(lambda: not alpha.is_connected(), "the relay refuses, or has crashed")
    why = alpha.status()["why"]
    send_all(alpha, to_beta, ["<60>"])
    relay.disk.empty()
    if not relay.is_running:
        relay.start()
    until(lambda: ask_again(alpha) and ask_again(beta), "both are back", 60)
    until(lambda: len(arrived(beta)) == 61, "all has arrived")
    assert arrived(beta) == numbered(61)
    assert "the disk of the server is full; free space on it" in why


def test_a_host_whose_disk_is_full_loses_and_doubles_nothing(
    stack: ExitStack, postgres_server: PostgresServer, database: str
) -> None:
    stack.enter_context(own_mounts())
    alpha = stack.enter_context(team_host("alpha"))
    beta = stack.enter_context(team_host("beta", disk=40))
    assert beta.disk is not None
    member(alpha, postgres_server.url(database))
    member(beta, postgres_server.url(database), alpha)
    _, to_beta = acquainted(alpha, beta)
    _, to_alpha = acquainted(beta, alpha)
    beta.disk.fill()
    send_all(alpha, to_beta, numbered(40), LARGE)
    with pytest.raises(RequestRefused, match="full"):
        send_all(beta, to_alpha, numbered(40), LARGE)
    refused = len(query(beta, "SELECT id FROM mail_messages WHERE subject LIKE '<%>' AND sender < 1099511627776"))
    until(lambda: re.search("No space left|disk is full", beta.status()["why"]), "beta says why it takes nothing")
    assert alpha.status()["on_its_way"] > 0
    beta.disk.empty()
    until(lambda: ask_again(beta), "beta is connected")
    until(lambda: len(arrived(beta)) == 40, "all has arrived", 60)
    assert arrived(beta) == numbered(40)
    until(lambda: len(arrived(alpha)) == refused, "what beta has accepted has arrived")
    assert arrived(alpha) == numbered(refused)


def test_mail_waits_while_the_schema_is_newer_than_the_host(
    stack: ExitStack, postgres_server: PostgresServer, database: str
) -> None:
    alpha, beta = team(stack, postgres_server.url(database))
    _, to_alpha = acquainted(beta, alpha)
    ((revision,),) = postgres_server.execute("SELECT version_num FROM fairlead.revision", database)
    postgres_server.execute("UPDATE fairlead.revision SET version_num = '0099'", database)
    beta.stop()
    beta.start()
    until(lambda: "upgrade Fairlead" in beta.status()["why"], "beta is told to upgrade")
    assert "upgrade Fairlead" in beta.home.fairlead("team", "status").stdout
    send_all(beta, to_alpha, numbered(3))
    assert arrived(alpha) == []
    postgres_server.execute(f"UPDATE fairlead.revision SET version_num = '{revision}'", database)
    until(lambda: ask_again(beta), "beta is connected")
    until(lambda: len(arrived(alpha)) == 3, "all has arrived")
    assert arrived(alpha) == numbered(3)
