"""Creates and upgrades the schema of a relay. Knows revisions, but not what the tables are for.

Hosts are upgraded one by one, so the schema may be one revision newer than a host expects. It may be one revision
older if the database role of the host has no right to upgrade it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from sqlalchemy.schema import CreateColumn, CreateIndex, CreateTable

from fairlead.team._errors import RelayRefused, RelayTooNew, missing_package
from fairlead.team.postgres._tables import REVISION_TABLE, SCHEMA, metadata

try:
    from psycopg import errors
except ImportError:
    raise missing_package("psycopg") from None

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import psycopg
    from alembic.script import ScriptDirectory
    from sqlalchemy import Connection

    from fairlead.team.postgres._connection import LimitedConnection

REVISIONS: Final = ("0001", "0002")
"""All revisions, oldest first. Listed here, so that an up-to-date schema is recognized without importing Alembic."""
UPGRADE_SECONDS: Final = 300.0
"""How long a statement of an upgrade may take."""

_MIGRATIONS: Final = Path(__file__).parent / "migrations"
_UPGRADE_LOCK: Final = 0x666C_7465_616D_0001
"""The advisory lock that one host at a time holds to create or upgrade the schema."""
_HAS_REVISION: Final = f"SELECT to_regclass('{SCHEMA}.{REVISION_TABLE}') IS NOT NULL"
_REVISION: Final = f"SELECT max(version_num) FROM {SCHEMA}.{REVISION_TABLE}"
_ROLE_RIGHTS: Final = "SELECT, INSERT, UPDATE, DELETE"
_ADMIN_SQL: Final = "have an administrator run what `fairlead team schema` prints"

Step = Literal["use", "upgrade", "use-or-upgrade", "create", "too-new"]
"""What to do with a schema. `use-or-upgrade`: upgrade it, or use it as it is if the role may not upgrade it."""


def plan(current: str | None, known: Sequence[str] = REVISIONS) -> Step:
    """Return what to do with a schema of the revision `current`, which is None if there is no schema.

    `known` are the revisions that this version of Fairlead knows, oldest first.
    """
    if current is None:
        return "create"
    if current not in known:
        is_next = current.isdigit() and int(current) == int(known[-1]) + 1
        return "use" if is_next else "too-new"
    behind = len(known) - 1 - known.index(current)
    return ("use", "use-or-upgrade")[behind] if behind < 2 else "upgrade"  # noqa: PLR2004 - one older is usable


def prepare(connection: LimitedConnection, location: str, reconnect: Callable[[], LimitedConnection]) -> str:
    """Create or upgrade the schema if necessary, and return its revision.

    `reconnect` opens a second connection, over which the schema is upgraded. Raises `RelayTooNew` if the
    schema is too new to be used, and `RelayRefused` if the role may not create it, or upgrade one that is too old.
    """
    current = revision_of(connection)
    step = plan(current)
    if step == "use":
        return current or ""
    if step == "too-new":
        raise RelayTooNew(
            f"{location} was upgraded by a newer Fairlead (it has revision {current}, this version knows "
            f"{REVISIONS[-1]}); upgrade Fairlead on this host"
        )
    try:
        with reconnect() as other:
            upgrade(other)
    except errors.InsufficientPrivilege as error:
        if step == "use-or-upgrade":
            return current or ""
        verb = "create" if step == "create" else "upgrade"
        detail = error.diag.message_primary
        raise RelayRefused(
            f"{location}: the role may not {verb} the schema {SCHEMA}; {_ADMIN_SQL} ({detail})"
        ) from None
    return revision_of(connection) or ""


def revision_of(connection: psycopg.Connection[tuple[object, ...]]) -> str | None:
    """Return the revision of the schema; None if there is no schema, or if no revision is recorded."""
    row = connection.execute(_HAS_REVISION).fetchone()
    if not (row and row[0]):
        return None
    row = connection.execute(_REVISION).fetchone()
    return str(row[0]) if row and row[0] is not None else None


def upgrade(connection: LimitedConnection) -> None:
    """Create the schema, or upgrade it to the newest revision, in one transaction.

    Other hosts that upgrade it wait until the transaction ends. Changes the settings of the connection, which should be
    closed afterwards. Raises errors of the driver.
    """
    from sqlalchemy import create_engine
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import StaticPool

    connection.idle_timeout = UPGRADE_SECONDS
    connection.execute("SELECT set_config('statement_timeout', %s, false)", [f"{UPGRADE_SECONDS:.0f}s"])
    connection.autocommit = False
    engine = create_engine("postgresql+psycopg://", creator=lambda: connection, poolclass=StaticPool)
    try:
        with engine.begin() as transaction:
            transaction.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (_UPGRADE_LOCK,))
            _upgrade(transaction, revision_of(connection))
    except DBAPIError as error:
        raise (error.orig or error) from None


def _upgrade(transaction: Connection, current: str | None) -> None:
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext

    if plan(current) in {"use", "too-new"}:  # another host has upgraded it in the meantime
        return
    if current is None:
        transaction.exec_driver_sql(_CREATE_SCHEMA)
    options = {"version_table": REVISION_TABLE, "version_table_schema": SCHEMA}
    context = MigrationContext.configure(transaction, opts=options)
    steps = scripts()
    for step in reversed(list(steps.iterate_revisions(REVISIONS[-1], current or "base"))):
        step.module.upgrade(Operations(context))
        context.stamp(steps, step.revision)


def scripts() -> ScriptDirectory:
    """Return Alembic's directory of the migrations."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(_MIGRATIONS))


_CREATE_SCHEMA: Final = f"""
DO $$ BEGIN
    IF to_regnamespace('{SCHEMA}') IS NULL THEN CREATE SCHEMA {SCHEMA}; END IF;
END $$
"""


_RECORD_REVISION: Final = f"""
INSERT INTO {SCHEMA}.{REVISION_TABLE} (version_num) SELECT '{REVISIONS[-1]}'
WHERE NOT EXISTS (SELECT FROM {SCHEMA}.{REVISION_TABLE});
UPDATE {SCHEMA}.{REVISION_TABLE} SET version_num = '{REVISIONS[-1]}' WHERE version_num < '{REVISIONS[-1]}';
""".strip()


def schema_sql(role: str = "fairlead") -> str:
    """Return the SQL with which an administrator creates the schema for a database role that may not create it.

    The SQL also upgrades an older schema, and grants the role its rights. It can be run repeatedly.
    """
    name = '"' + role.replace('"', '""') + '"'
    return "\n\n".join(
        (
            f"-- The schema of Fairlead's relay, revision {REVISIONS[-1]}. Run it in the database of the team.",
            f"BEGIN;\n\nCREATE SCHEMA IF NOT EXISTS {SCHEMA};",
            *_statements(),
            _RECORD_REVISION,
            f"GRANT USAGE ON SCHEMA {SCHEMA} TO {name};",
            *(f"GRANT {_ROLE_RIGHTS} ON {table} TO {name};" for table in sorted(metadata.tables)),
            f"GRANT SELECT ON {SCHEMA}.{REVISION_TABLE} TO {name};",
            "COMMIT;\n",
        )
    )


def _statements() -> Iterable[str]:
    from sqlalchemy.dialects import postgresql

    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    for table in metadata.sorted_tables:
        yield f"{str(CreateTable(table, if_not_exists=True).compile(dialect=dialect)).strip()};"
        for column in table.columns:  # columns of later revisions have a default
            if column.server_default is not None and not column.primary_key:
                definition = str(CreateColumn(column).compile(dialect=dialect)).strip()
                yield f"ALTER TABLE {table.fullname} ADD COLUMN IF NOT EXISTS {definition};"
        for index in sorted(table.indexes, key=lambda item: str(item.name)):
            yield f"{str(CreateIndex(index, if_not_exists=True).compile(dialect=dialect)).strip()};"
    yield (
        f"CREATE TABLE IF NOT EXISTS {SCHEMA}.{REVISION_TABLE} (\n\tversion_num VARCHAR(32) NOT NULL,\n"
        f"\tCONSTRAINT {REVISION_TABLE}_pkc PRIMARY KEY (version_num)\n);"
    )
