"""A relay on PostgreSQL: packets are rows, changes are notified with NOTIFY. A database holds one team."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.team.postgres._history import PostgresHistory, open_history
    from fairlead.team.postgres._relay import PostgresRelay, open_relay
    from fairlead.team.postgres._schema import schema_sql

__all__ = ["PostgresHistory", "PostgresRelay", "open_history", "open_relay", "schema_sql"]

__getattr__ = lazy_exports(
    __name__,
    {
        "_history": ("PostgresHistory", "open_history"),
        "_relay": ("PostgresRelay", "open_relay"),
        "_schema": ("schema_sql",),
    },
)
