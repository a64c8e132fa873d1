"""How a database is, for the doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.store._revisions import HEAD_REVISION, revision_of
from fairlead.store.events._values import Health

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from fairlead.store._backend import Backend


def health_of(backend: Backend, connection: Connection) -> Health:
    """Look at every page, which takes its time."""
    free = backend.free(connection)
    return Health(
        where=backend.where,
        revision=revision_of(connection, backend.where) or "",
        head=HEAD_REVISION,
        size=backend.used(connection) + free,
        free=free,
        problems=backend.problems(connection),
    )
