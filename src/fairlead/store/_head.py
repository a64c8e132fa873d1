"""The newest revision of the databases, and the table in which a database stores its revision. Imports nothing."""

from __future__ import annotations

HEAD_REVISION = "0006"
"""The newest revision. It is a constant so that a current database is opened without importing Alembic.

That import would take 11 MB and 0.2 s.
"""

REVISION_TABLE = "fairlead_revision"
"""The table in which Alembic stores the revision. With Alembic's default name, other databases would look like ours."""
