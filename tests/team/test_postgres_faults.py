"""What a host sees if the server, the network, the URL or the rights fail. No message has a password in it."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psycopg
import pytest
from team.postgres_server import LOCKED_ROLE
from team.relay_hosts import Relays, packet
from team.stalling_proxy import StallingProxy

from fairlead.team import BadTeamSettings, RelayRefused, RelayUnreachable
from fairlead.team.postgres import PostgresRelay
from fairlead.team.postgres._connection import durable_commits
from fairlead.team.postgres._errors import translate
from fairlead.team.relay import open_relay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from team.postgres_server import PostgresServer

SECRET = "s3cret/pä ss"  # noqa: S105 - of a server that the test starts
WRONG = "wr0ng%secret"


@pytest.fixture
def relays(postgres_server: PostgresServer, database: str) -> Iterator[Relays]:
    with Relays(postgres_server.url(database)) as relays:
        yield relays


@pytest.fixture
def locked_role(postgres_server: PostgresServer) -> str:
    postgres_server.execute(f"DROP ROLE IF EXISTS {LOCKED_ROLE}; CREATE ROLE {LOCKED_ROLE} LOGIN PASSWORD '{SECRET}'")
    return LOCKED_ROLE


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[StallingProxy]:
    with StallingProxy(postgres_server.port) as proxy:
        yield proxy


# -- a network that drops all packets ---------------------------------------------------------------------


def test_a_statement_on_a_silent_network_ends(relays: Relays, database: str, proxy: StallingProxy) -> None:
    relay = relays.open("one", url=f"postgresql://postgres@127.0.0.1:{proxy.port}/{database}", timeout=2.0)
    proxy.stall()
    started = time.monotonic()
    with pytest.raises(RelayUnreachable, match="nothing came from the server for 2 seconds"):
        relay.push([packet("one", "two", 1)])
    assert 1.5 < time.monotonic() - started < 5
    with pytest.raises(RelayUnreachable):
        relay.pull()


def test_connecting_on_a_silent_network_ends(relays: Relays, database: str, proxy: StallingProxy) -> None:
    proxy.stall()
    started = time.monotonic()
    with pytest.raises(RelayUnreachable, match=r"cannot be reached: .*time"):
        relays.reach(url=f"postgresql://postgres@127.0.0.1:{proxy.port}/{database}", timeout=2.0)
    assert time.monotonic() - started < 6


def test_a_slow_network_is_not_given_up_while_bytes_pass(relays: Relays, database: str, proxy: StallingProxy) -> None:
    relay = relays.open("one", url=f"postgresql://postgres@127.0.0.1:{proxy.port}/{database}", timeout=3.0)
    large = [packet("one", "two", seq, b"x" * 1_000_000) for seq in range(1, 8)]
    relay.push(large)
    assert relay.load().packets == 7


def test_a_host_takes_its_place_again_once_its_lost_connection_is_noticed(
    relays: Relays, database: str, proxy: StallingProxy
) -> None:
    url = f"postgresql://postgres@127.0.0.1:{proxy.port}/{database}"
    lost = relays.open("one", url=url, timeout=2.0)
    proxy.stall()
    with pytest.raises(RelayUnreachable):
        lost.pull()
    proxy.resume()
    relays.open("one", url=url).push([packet("one", "two", 1)])
    assert not relays.welcome["one"].is_new


def test_only_what_must_not_be_lost_waits_for_the_disk_of_the_server(relays: Relays, database: str) -> None:
    relay = PostgresRelay(relays.url)
    relays.connect(relay, "one")
    with durable_commits(relay._connection):
        assert relay._connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
    assert relay._connection.execute("SHOW synchronous_commit").fetchone() == ("off",)
    relay.close()


# -- the server ends connections --------------------------------------------------------------------------


def test_a_connection_that_an_administrator_ends_is_unreachable(
    postgres_server: PostgresServer, relays: Relays, database: str
) -> None:
    relay = relays.open("one")
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'fairlead' AND datname = "
    postgres_server.execute(f"{end}'{database}'")
    with pytest.raises(RelayUnreachable):
        relay.wait(10)
    relays.open("one").push([packet("one", "two", 1)])


def test_a_statement_that_the_server_cancels_is_unreachable(
    postgres_server: PostgresServer, relays: Relays, database: str
) -> None:
    relay = relays.open("one", timeout=1.0)
    with psycopg.connect(postgres_server.url(database)) as other:
        other.execute("LOCK TABLE fairlead.parcels")
        with pytest.raises(RelayUnreachable):
            relay.push([packet("one", "two", 1)])
    again = relays.open("one")
    again.push([packet("one", "two", 1)])
    assert again.load().packets == 1


def test_a_read_only_server_is_refused_with_what_to_do(
    postgres_server: PostgresServer, relays: Relays, database: str
) -> None:
    relays.open("one").close()
    postgres_server.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    with pytest.raises(RelayRefused, match="the database is read-only; connect to the primary server"):
        relays.open("one")


def test_a_server_without_free_connections_is_unreachable(
    postgres_server: PostgresServer, relays: Relays, database: str
) -> None:
    postgres_server.execute("DROP ROLE IF EXISTS single; CREATE ROLE single LOGIN CONNECTION LIMIT 0")
    with pytest.raises(RelayUnreachable, match="too many connections"):
        relays.reach(url=postgres_server.url(database, user="single"))


@pytest.mark.parametrize(
    ("state", "kind", "text"),
    [
        ("DiskFull", RelayRefused, "the disk of the server is full; free space on it"),
        ("DeadlockDetected", RelayUnreachable, "x"),
        ("CrashShutdown", RelayUnreachable, "the server crashed"),
        ("OutOfMemory", RelayUnreachable, "x"),
        ("DatatypeMismatch", RelayRefused, "the server refused a statement: x"),
    ],
)
def test_what_passes_by_itself_is_unreachable_and_the_rest_is_refused(
    state: str, kind: type[Exception], text: str
) -> None:
    error = translate(getattr(psycopg.errors, state)("x"), "the relay")
    assert type(error) is kind
    assert text in str(error)


# -- the URL ----------------------------------------------------------------------------------------------


def test_a_password_in_the_url_is_used(postgres_server: PostgresServer, database: str, locked_role: str) -> None:
    relay = open_relay(postgres_server.url(database, user=locked_role, password=SECRET))
    assert relay.location == f"postgresql://{locked_role}:***@127.0.0.1:{postgres_server.port}/{database}"
    relay.close()


def test_a_wrong_password_is_refused_and_not_shown(
    postgres_server: PostgresServer, database: str, locked_role: str
) -> None:
    with pytest.raises(RelayRefused, match="the user or the password is wrong") as caught:
        open_relay(postgres_server.url(database, user=locked_role, password=WRONG))
    assert "secret" not in f"{caught.value!r}"
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("/team_", "/absent_"), "the database does not exist; have it created, or correct the URL"),
        (("postgres@", "absent@"), "the user may not connect; look at pg_hba.conf"),
    ],
)
def test_what_the_server_does_not_know_is_refused(
    postgres_server: PostgresServer, database: str, change: tuple[str, str], message: str
) -> None:
    with pytest.raises(RelayRefused, match=message):
        open_relay(postgres_server.url(database, tcp=True).replace(*change))


def test_tls_that_the_server_does_not_offer_is_refused(postgres_server: PostgresServer, database: str) -> None:
    with pytest.raises(RelayRefused, match="the server does not offer TLS, which the URL requires"):
        open_relay(f"{postgres_server.url(database, tcp=True)}?sslmode=require")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:s3cret@host:port:port/x",
        "postgresql://user:%zzs3cret@host/x",
        "postgresql://host/x?password=s3cret&unknown=1",
        "postgresql://user:s3cret/part@host:1/x",
    ],
)
def test_an_invalid_url_is_an_error_without_its_password(url: str) -> None:
    with pytest.raises((BadTeamSettings, RelayUnreachable)) as caught:
        open_relay(url, timeout=2.0)
    assert "s3cret" not in str(caught.value)
    assert "part" not in str(caught.value)


def test_a_relay_of_another_kind_is_refused() -> None:
    with pytest.raises(BadTeamSettings, match="a relay of the kind 'redis' is not supported; use postgresql://"):
        open_relay("redis://:s3cret@host")


def test_a_service_names_the_server(
    postgres_server: PostgresServer, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = tmp_path / "services.conf"
    services.write_text(
        f"[hub]\nhost={postgres_server.folder}\nport={postgres_server.port}\ndbname={database}\nuser=postgres\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    relay = open_relay("postgresql:///?service=hub")
    assert relay.location == "postgresql:///?service=hub"
    relay.close()
    with pytest.raises((RelayRefused, BadTeamSettings), match="service"):
        open_relay("postgresql:///?service=absent")


# -- without the extra ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("package", "program"),
    [
        ("psycopg", "from fairlead.team.relay import open_relay; open_relay('postgresql://host/x')"),
        ("psycopg", "from fairlead.team.postgres import schema_sql; schema_sql()"),
        ("cryptography", "from fairlead.team import generate_key; generate_key()"),
    ],
)
def test_without_the_extra_the_error_names_it(package: str, program: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None\n{program}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    install = f"{sys.executable} -m pip install 'psycopg[binary]' cryptography"
    assert f"needs the package {package}, which is not installed; run: {install}" in last
    assert last.startswith("fairlead.team._errors.BadTeamSettings")
