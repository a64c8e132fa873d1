"""A relay on PostgreSQL: rows as parcels, NOTIFY as the bell, in a schema of its own. A database holds one team."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.team.postgres._relay import PostgresRelay, open_relay
    from fairlead.team.postgres._schema import schema_sql

__all__ = ["PostgresRelay", "open_relay", "schema_sql"]

__getattr__ = lazy_exports(__name__, {"_relay": ("PostgresRelay", "open_relay"), "_schema": ("schema_sql",)})
