"""Migrations: every earlier revision is upgraded to the current one, which matches the tables."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, create_engine, insert, text
from store.checks import revision_in
from store.records import at, commands, event

from fairlead.mail import USER, Draft, MessageService
from fairlead.store import MailStore, Store, StoredEvent, _revisions
from fairlead.store._head import HEAD_REVISION, REVISION_TABLE
from fairlead.store._revisions import known_revisions, scripts, upgrade
from fairlead.store.events._rows import rows_by_table
from fairlead.store.events._tables import metadata, positions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def create_at(revision: str, file: Path) -> None:
    """Create a database as the version of that revision did, with an event in it."""
    engine = create_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        upgrade(connection, str(file), revision)
        FILL[revision](connection)
    engine.dispose()


def fill_0001(connection: Connection) -> None:
    for table, rows in rows_by_table([event(1), commands(1)]):
        connection.execute(insert(table), rows)
    connection.execute(insert(positions).values(id=1, segment=1, offset=7, settled=0))


def fill_0002(connection: Connection) -> None:
    fill_0001(connection)
    for statement in MAIL_0002:
        connection.exec_driver_sql(statement)


def fill_0003(connection: Connection) -> None:
    fill_0002(connection)
    connection.exec_driver_sql("INSERT INTO mail_search (rowid, subject, body) VALUES (1, 'hello', '')")


MAIL_0002 = (
    """INSERT INTO mail_agents (id, name, session, project, parent, agent_id, created, seen, ended, saved)
    VALUES (10, 'amber-fox', 's1', '/p', 0, '', 1, 1, 0, '')""",
    """INSERT INTO mail_messages (id, at, sender, addressed, subject, priority, intent, thread, reply_to, deadline,
    project, "key", body) VALUES (1, 1, 1, '["amber-fox"]', 'hello', 'normal', 'request', 1, 0, 9, '', 'k', '')""",
    """INSERT INTO mail_letters (recipient, message, sender, stage, urgent, owed, told, queued, shown, event, event_id,
    read, answered, bounced, why) VALUES (10, 1, 1, 'queued', 0, 1, 0, 1, 0, '', NULL, 0, 0, 0, '')""",
)


def fill_0005(connection: Connection) -> None:
    fill_0003(connection)
    connection.exec_driver_sql("INSERT INTO history_costs (session, at, usd) VALUES ('s', 1, 0.5)")


def fill_0006(connection: Connection) -> None:
    fill_0005(connection)
    connection.exec_driver_sql("INSERT INTO team_links (host, last_sent, acknowledged, applied) VALUES ('h', 3, 2, 1)")


FILL = {"0001": fill_0001, "0002": fill_0002, "0003": fill_0003, "0005": fill_0005, "0006": fill_0006}
"""Revision → writes `event(1)`, `commands(1)` and position 7 as that version did; from 0002 on also a message.
A new revision adds an entry, and freezes the one before it: as plain SQL, if the tables have changed."""


@pytest.mark.parametrize("revision", known_revisions())
def test_an_event_store_of_every_revision_is_upgraded(tmp_path: Path, revision: str) -> None:
    create_at(revision, tmp_path / "fairlead.db")
    with closing(Store.open(f"sqlite:///{tmp_path}/fairlead.db")) as store:
        assert store.warnings == ()
        assert revision_in(store) == HEAD_REVISION
        assert store.events() == [StoredEvent(event(1), commands(1))]
        assert store.position() == at(7)


@pytest.mark.parametrize("revision", known_revisions())
def test_a_mail_store_of_every_revision_is_upgraded(tmp_path: Path, revision: str) -> None:
    create_at(revision, tmp_path / "mail.db")
    with closing(MailStore.open(f"sqlite:///{tmp_path}/mail.db")) as store:
        assert store.warnings == ()
        assert revision_in(store) == HEAD_REVISION
        service = MessageService(store)
        amber = service.ensure_agent("s1")
        if revision >= "0002":
            assert amber.name == "amber-fox"
            assert service.queued_count(amber) == 1
            assert not service.send(USER, Draft(to=("amber-fox",), subject="again", key="k")).is_new
            assert service.process_deadlines(10.0) == 1
        assert service.send(USER, Draft(to=(amber.name,), subject="new")).is_new


def test_the_migrations_create_the_declared_tables(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/fairlead.db")
    with engine.begin() as connection:
        for revision in known_revisions():
            upgrade_by_migrations(connection, revision)
        context = MigrationContext.configure(connection, opts={"version_table": REVISION_TABLE, "compare_type": True})
        differences = [one for one in compare_metadata(context, metadata) if "_search" not in str(one)]
        assert differences == []


def upgrade_by_migrations(connection: Connection, revision: str) -> None:
    _revisions._upgrade(connection, "", _revisions.revision_of(connection, ""), revision)


def test_a_new_database_is_the_same_as_one_that_the_migrations_have_made() -> None:
    """A new one is created at once, because Alembic takes long to load."""
    creators: list[Callable[[Connection], None]] = [
        lambda connection: upgrade(connection, ""),
        lambda connection: upgrade_by_migrations(connection, HEAD_REVISION),
    ]
    schemas = []
    for create in creators:
        with create_engine("sqlite://").begin() as connection:
            create(connection)
            rows = connection.execute(text("SELECT name, sql FROM sqlite_master")).all()
            indexes = connection.execute(
                text("SELECT name FROM sqlite_master WHERE type = 'index' AND sql != ''")
            ).all()
            revision = connection.execute(text(f"SELECT * FROM {REVISION_TABLE}")).all()
        schemas.append(({name: " ".join((sql or "").split()) for name, sql in rows}, indexes, revision))

    assert schemas[0] == schemas[1]


def test_the_revisions_are_linear_and_end_at_the_head() -> None:
    assert scripts().get_heads() == [HEAD_REVISION]
    assert known_revisions()[-1] == HEAD_REVISION
    assert known_revisions() == sorted(known_revisions())
