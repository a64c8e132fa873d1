"""What a test asks of the file of an open store: its size, and whether it is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairlead.store._revisions import revision_of

if TYPE_CHECKING:
    from fairlead.store import MailStore, Store


class Sizes(NamedTuple):
    """Bytes of the pages."""

    size: int
    free: int


def revision_in(store: Store | MailStore) -> str | None:
    """Return the revision of the tables."""
    with store._backend.engine.connect() as connection:
        return revision_of(connection, store._backend.location)


def problems(store: Store | MailStore) -> list[str]:
    """Return what a check of every page and index finds."""
    with store._backend.engine.connect() as connection:
        return [line for line in connection.exec_driver_sql("PRAGMA integrity_check").scalars() if line != "ok"]


def sizes(store: Store | MailStore) -> Sizes:
    """Return the size of the database, and the part of it that holds no data."""
    with store._backend.engine.connect() as connection:
        free = store._backend.free_bytes(connection)
        return Sizes(store._backend.used_bytes(connection) + free, free)
