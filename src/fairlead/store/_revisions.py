"""Reads the revision of a database, and creates or upgrades its tables. Files and locks are left to the caller."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from sqlalchemy import Column, MetaData, PrimaryKeyConstraint, String, Table, Text, column, inspect, select, table
from sqlalchemy.schema import CreateIndex, CreateTable

from fairlead.store._errors import StoreForeign, StoreTooNew
from fairlead.store._head import HEAD_REVISION, REVISION_TABLE

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory
    from sqlalchemy import Connection

_MIGRATIONS = Path(__file__).parent / "migrations"
_ALEMBIC_LOCK = Lock()
"""Held while Alembic is used, which handles one database at a time, and which two threads must not import at once.

A daemon opens two databases in two threads.
"""
_INDEXES = (
    *("events_by_time", "events_by_session", "events_by_kind", "dones_by_time", "turns_by_time"),
    *("mail_messages_by_time", "mail_messages_by_thread", "mail_messages_by_sender", "mail_messages_by_key"),
    *("mail_letters_by_stage", "mail_letters_urgent", "mail_letters_owed_by", "mail_letters_owed_to"),
    "mail_letters_at_event",
    *("history_sessions_by_time", "history_costs_by_time", "history_texts_by_time", "events_blocked"),
    *("team_pending_by_message", "team_outbox_by_seq", "team_outbox_by_message"),
    *("team_origins_by_number", "team_threads_by_thread"),
)
"""All indexes in the order in which the migrations create them, so that a new database has them in the same order.

Between two equally good indexes, SQLite chooses by their age.
"""
_SELECT_REVISION = select(column("version_num", Text)).select_from(table(REVISION_TABLE))


def revision_of(connection: Connection, location: str) -> str | None:
    """Return the revision of a database; `None` if it has no tables, or its table of the revision is empty.

    Raise `StoreForeign` for another program's database. `location` names the database in that error.
    """
    tables = inspect(connection).get_table_names()
    if REVISION_TABLE in tables:
        return connection.execute(_SELECT_REVISION).scalar_one_or_none()
    if tables:
        raise StoreForeign(
            f"{location} is a database of another program (it has a table {min(tables)!r}, and none of Fairlead's); "
            "use another URL, or one of a file that does not exist yet"
        )
    return None


def upgrade(connection: Connection, location: str, target: str = HEAD_REVISION) -> None:
    """Create or upgrade the tables of a database within the caller's transaction, so that all steps are done, or none.

    Raise `StoreTooNew` or `StoreForeign` if the database was written by a newer version or by another program.
    `location` names the database in these errors, and `target` is the revision to reach.
    """
    current = revision_of(connection, location)
    if current is None and target == HEAD_REVISION:
        _create(connection)
    elif current != target:
        with _ALEMBIC_LOCK:
            _upgrade(connection, location, current, target)


def _create(connection: Connection) -> None:
    """Create all tables of an empty database at the newest revision, without the migrations.

    A test compares them with the result of the migrations.
    """
    import fairlead.store.history._tables
    import fairlead.store.mail._tables  # noqa: F401 - they declare their tables
    from fairlead.store.events._tables import metadata
    from fairlead.store.history._search import create_index as create_history_index
    from fairlead.store.mail._search import create_index
    from fairlead.store.mail._team_tables import create_triggers

    revisions = Table(REVISION_TABLE, MetaData(), Column("version_num", String(32), nullable=False))
    revisions.append_constraint(PrimaryKeyConstraint("version_num", name=f"{REVISION_TABLE}_pkc"))
    indexes = {str(index.name): index for declared in metadata.sorted_tables for index in declared.indexes}
    for declared in metadata.sorted_tables:
        connection.execute(CreateTable(declared))
    for name in _INDEXES:
        connection.execute(CreateIndex(indexes[name]))
    create_index(connection)
    create_history_index(connection)
    create_triggers(connection)
    revisions.create(connection)
    connection.execute(revisions.insert(), {"version_num": HEAD_REVISION})


def _upgrade(connection: Connection, location: str, current: str | None, target: str) -> None:
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext

    steps = scripts()
    if current is not None and current not in known_revisions():
        raise StoreTooNew(
            f"{location} was written by a newer Fairlead (it has revision {current}, this version knows "
            f"{HEAD_REVISION}); upgrade Fairlead, or move the file away to start a new one"
        )
    context = MigrationContext.configure(connection, opts={"version_table": REVISION_TABLE})
    with Operations.context(context):
        for step in reversed(list(steps.iterate_revisions(target, current or "base"))):
            step.module.upgrade()
            context.stamp(steps, step.revision)


def known_revisions() -> list[str]:
    """Return all revisions that this version knows, oldest first."""
    return [step.revision for step in scripts().walk_revisions()][::-1]


def scripts() -> ScriptDirectory:
    """Return the folder of the migration steps as Alembic reads it."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(_MIGRATIONS))
