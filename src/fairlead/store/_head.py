"""The newest revision of the databases, and where a database has its own. Imports nothing."""

from __future__ import annotations

HEAD_REVISION = "0006"
"""The newest revision. Kept here so that a current database is opened without importing Alembic: 11 MB and 0.2 s."""

REVISION_TABLE = "fairlead_revision"
"""The table in which Alembic stores the revision. With Alembic's default name, other databases would look like ours."""
