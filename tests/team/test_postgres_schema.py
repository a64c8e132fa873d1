"""The schema of a relay on PostgreSQL: created once, by whoever may; older and newer ones."""

from __future__ import annotations

import subprocess
import threading
from typing import TYPE_CHECKING

import psycopg
import pytest
from team.postgres_server import as_ordinary_user
from team.relay_hosts import Relays, host_id, packet

from fairlead.team import RelayRefused, RelayTooNew, TeamError
from fairlead.team.postgres import schema_sql
from fairlead.team.postgres._schema import REVISIONS, plan, scripts
from fairlead.team.relay import open_history

if TYPE_CHECKING:
    from collections.abc import Iterator

    from team.postgres_server import PostgresServer


FIRST_REVISION = """
DROP INDEX fairlead.events_by_session;
ALTER TABLE fairlead.events DROP COLUMN stage, DROP COLUMN text, DROP COLUMN signature;
DROP TABLE fairlead.history, fairlead.marks, fairlead.leases, fairlead.lease_versions;
UPDATE fairlead.revision SET version_num = '0001';
"""
"""Makes the newest schema the first one."""


@pytest.fixture
def relays(postgres_server: PostgresServer, database: str) -> Iterator[Relays]:
    with Relays(postgres_server.url(database)) as relays:
        yield relays


@pytest.fixture
def limited_role(postgres_server: PostgresServer) -> str:
    """A role that can connect, and nothing more."""
    role = "limited"
    postgres_server.execute(f"DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN")
    return role


def definition(server: PostgresServer, database: str) -> str:
    """Return all of the schema as PostgreSQL itself writes it, without who owns it and may use it."""
    command = [str(server.programs / "pg_dump"), "--schema-only", "--no-owner", "--no-privileges", server.url(database)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, **as_ordinary_user())
    return "\n".join(line for line in done.stdout.splitlines() if not line.startswith(("--", "\\")))


def test_the_revisions_are_those_of_the_migrations() -> None:
    assert tuple(step.revision for step in scripts().walk_revisions())[::-1] == REVISIONS


def test_the_sql_for_an_administrator_creates_what_the_migrations_create(
    postgres_server: PostgresServer, database: str, relays: Relays, limited_role: str
) -> None:
    relays.open("one")
    other = postgres_server.create_database()
    for _ in range(2):
        postgres_server.execute(schema_sql(limited_role), other)
    assert definition(postgres_server, other) == definition(postgres_server, database)
    revision = "SELECT version_num FROM fairlead.revision"
    assert postgres_server.execute(revision, other) == postgres_server.execute(revision, database)
    postgres_server.drop_database(other)


@pytest.mark.parametrize("hosts", [8])
def test_hosts_that_create_the_schema_at_once_are_one_team(relays: Relays, hosts: int) -> None:
    names = [f"host{number}" for number in range(hosts)]
    reached = {name: relays.reach(timeout=20) for name in names}
    failures: list[Exception] = []

    def join(name: str) -> None:
        try:
            relays.connect(reached[name], name)
        except TeamError as error:
            failures.append(error)

    threads = [threading.Thread(target=join, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len({welcome.team for welcome in relays.welcome.values()}) == 1
    assert sum(welcome.is_founder for welcome in relays.welcome.values()) == 1
    assert {one.name for one in reached["host0"].hosts()} == set(names)


@pytest.mark.parametrize(
    ("current", "step"),
    [
        (None, "create"),
        ("0001", "upgrade"),
        ("0002", "use-or-upgrade"),
        ("0003", "use"),
        ("0004", "use"),
        ("0005", "too-new"),
        ("other", "too-new"),
    ],
)
def test_a_relay_may_be_one_revision_newer_or_older(current: str | None, step: str) -> None:
    assert plan(current, ("0001", "0002", "0003")) == step


def test_a_relay_that_is_one_revision_newer_is_used(
    postgres_server: PostgresServer, database: str, relays: Relays
) -> None:
    relays.open("one").close()
    newer = f"{int(REVISIONS[-1]) + 1:04}"
    postgres_server.execute(f"UPDATE fairlead.revision SET version_num = '{newer}'", database)
    relays.open("one").push([packet("one", "two", 1)])
    assert relays.welcome["one"].revision == newer


def test_a_relay_that_is_newer_than_that_is_refused(
    postgres_server: PostgresServer, database: str, relays: Relays
) -> None:
    relays.open("one").close()
    newer = f"{int(REVISIONS[-1]) + 2:04}"
    postgres_server.execute(f"UPDATE fairlead.revision SET version_num = '{newer}'", database)
    known = REVISIONS[-1]
    with pytest.raises(RelayTooNew, match=rf"has revision {newer}, this version knows {known}\); upgrade Fairlead"):
        relays.open("one")


def test_a_relay_without_leases_is_used_for_all_else_until_it_is_upgraded(
    postgres_server: PostgresServer, database: str, relays: Relays, limited_role: str
) -> None:
    postgres_server.execute(schema_sql(limited_role), database)
    postgres_server.execute(FIRST_REVISION, database)
    url = postgres_server.url(database, user=limited_role)
    one = relays.open("one", url=url)
    one.push([packet("one", "two", 1)])
    assert (one.has_leases, one.prune(hosts_before=1)) == (False, 0)
    with pytest.raises(RelayRefused, match="is of an older Fairlead and has no leases; have an administrator run what"):
        one.leases()
    one.delete_host(host_id("two"))

    postgres_server.execute(schema_sql(limited_role), database)
    assert relays.open("two", url=url).has_leases
    assert relays.welcome["two"].revision == REVISIONS[-1]

    postgres_server.execute(FIRST_REVISION, database)
    assert relays.open("three").has_leases, "a role that may upgrade it does"


def test_a_role_that_may_not_create_is_told_what_to_do(
    postgres_server: PostgresServer, database: str, relays: Relays, limited_role: str
) -> None:
    url = postgres_server.url(database, user=limited_role)
    with pytest.raises(RelayRefused, match="may not create the schema fairlead; have an administrator run what"):
        relays.open("one", url=url)


def test_a_role_without_rights_in_the_schema_is_told_what_to_do(
    postgres_server: PostgresServer, database: str, relays: Relays, limited_role: str
) -> None:
    relays.open("one").close()
    with pytest.raises(RelayRefused, match="the role lacks rights; have an administrator run what"):
        relays.open("one", url=postgres_server.url(database, user=limited_role))


def test_a_role_with_the_least_rights_can_do_all(
    postgres_server: PostgresServer, database: str, relays: Relays, limited_role: str
) -> None:
    postgres_server.execute(schema_sql(limited_role), database)
    url = postgres_server.url(database, user=limited_role)
    one, two = relays.open("one", url=url), relays.open("two", url=url)
    one.push([packet("one", "two", 1)])
    assert two.wait(10)
    assert len(two.pull()) == 1
    two.acknowledge({host_id("one"): 1})
    assert one.progress() == {host_id("two"): 1}
    assert one.load().packets == one.prune(hosts_before=1) == 0
    with psycopg.connect(url) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("CREATE TABLE fairlead.extra (x int)")


def test_nothing_is_left_of_a_schema_whose_creation_failed(
    postgres_server: PostgresServer, database: str, relays: Relays
) -> None:
    postgres_server.execute("CREATE SCHEMA fairlead; CREATE TABLE fairlead.events (x int)", database)
    with pytest.raises(RelayRefused, match='relation "events" already exists'):
        relays.open("one")
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'fairlead'"
    assert postgres_server.execute(tables, database) == [("events",)]


def test_a_relay_of_the_first_revision_is_upgraded_by_a_host_or_by_an_administrator(
    postgres_server: PostgresServer, database: str, relays: Relays, limited_role: str
) -> None:
    relays.open("one").close()
    newest = definition(postgres_server, database)
    postgres_server.execute(FIRST_REVISION, database)
    postgres_server.execute(schema_sql(limited_role), database)
    assert definition(postgres_server, database) == newest
    assert postgres_server.execute("SELECT version_num FROM fairlead.revision", database) == [(REVISIONS[-1],)]

    postgres_server.execute(FIRST_REVISION, database)
    relays.open("one").push([packet("one", "two", 1)])
    assert definition(postgres_server, database) == newest
    assert relays.welcome["one"].revision == REVISIONS[-1]


def test_a_relay_that_may_not_be_upgraded_goes_on_with_mail_and_says_why_nothing_is_copied(
    postgres_server: PostgresServer, database: str, relays: Relays, limited_role: str
) -> None:
    relays.open("one").close()
    postgres_server.execute(schema_sql(limited_role), database)
    postgres_server.execute(FIRST_REVISION, database)
    url = postgres_server.url(database, user=limited_role)
    one, two = relays.open("one", url=url), relays.open("two", url=url)
    one.push([packet("one", "two", 1)])
    assert (len(two.pull()), relays.welcome["two"].revision) == (1, "0001")
    history = open_history(url)
    with pytest.raises(RelayRefused, match="missing in the schema fairlead; have an administrator run what"):
        history.mark(host_id("one"))
    history.close()
