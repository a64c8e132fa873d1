"""A relay that shows stale snapshots: what hosts publish is not stored."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from team.postgres_server import PostgresServer

KEEP = """
CREATE FUNCTION fairlead.keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER keep BEFORE UPDATE ON fairlead.snapshots FOR EACH ROW EXECUTE FUNCTION fairlead.keep();
"""


@contextmanager
def stale_snapshots(server: PostgresServer, database: str) -> Iterator[None]:
    """The hosts do not hear of what changes, so that only the asking one can refuse an answer."""
    server.execute(KEEP, database)
    try:
        yield
    finally:
        server.execute("DROP FUNCTION fairlead.keep CASCADE", database)
