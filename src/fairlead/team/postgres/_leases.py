"""The leases of a team as rows. A host decides which leases it may take; the relay decides which host was first.

Each project has a version, which changes with every change of its leases. A host reads the leases and the version,
decides, and stores its own leases only if the version is still the same, in one transaction. No lock is held while a
host decides, so a host that vanishes does not block the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairlead.team._types import RelayLeases, TeamLease
from fairlead.team.postgres._connection import durable_commits
from fairlead.team.postgres._statements import LEASE_CHANNEL, NOW

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlead.team.postgres._connection import LimitedConnection

_MAX_ROWS: Final = 20_000
"""How many leases are read at most, because anyone who can write to the database could store any number."""
_MAX_BODY: Final = 16 * 1024
_TABLES_EXIST: Final = """
SELECT coalesce(has_table_privilege(to_regclass('fairlead.leases'), 'INSERT')
    AND has_table_privilege(to_regclass('fairlead.lease_versions'), 'UPDATE'), false)
"""
_NEXT: Final = f"greatest(version + 1, ({NOW} * 1000000)::int8)"
"""The next version of a project: at least the time in microseconds, so new even if the row was deleted meanwhile."""
_READ: Final = f"""
SELECT {NOW}, versions.project, versions.version, leases.host, leases.id, leases.until, leases.body, leases.signature
FROM fairlead.lease_versions AS versions
LEFT JOIN unnest(%b::text[], %b::int8[]) AS known (project, version) ON known.project = versions.project
LEFT JOIN fairlead.leases
    ON leases.project = versions.project AND leases.until > {NOW} AND octet_length(leases.body) <= {_MAX_BODY}
WHERE versions.version IS DISTINCT FROM known.version
    AND (%b::text[] IS NULL OR versions.project = ANY (%b::text[]))
ORDER BY versions.project, leases.host, leases.id LIMIT {_MAX_ROWS}
"""
_READ_CLOCK: Final = f"SELECT {NOW}"
_CLAIM_FIRST: Final = f"""
INSERT INTO fairlead.lease_versions (project, version, at) VALUES (%s, ({NOW} * 1000000)::int8, {NOW})
ON CONFLICT DO NOTHING
"""
_CLAIM: Final = f"""
UPDATE fairlead.lease_versions SET version = {_NEXT}, at = {NOW} WHERE project = %s AND version = %s
"""
_TOUCH: Final = f"UPDATE fairlead.lease_versions SET version = {_NEXT}, at = {NOW} WHERE project = ANY (%s)"
_STORE: Final = """
INSERT INTO fairlead.leases (host, id, project, until, body, signature)
SELECT %b::text, * FROM unnest(%b::text[], %b::text[], %b::float8[], %b::bytea[], %b::bytea[])
ON CONFLICT (host, id) DO UPDATE
SET project = excluded.project, until = excluded.until, body = excluded.body, signature = excluded.signature
"""
_DELETE: Final = "DELETE FROM fairlead.leases WHERE host = %s AND id = ANY (%s) RETURNING project"
_DELETE_ALL: Final = "DELETE FROM fairlead.leases WHERE host = %s RETURNING project"
_NOTIFY: Final = f"SELECT pg_notify('{LEASE_CHANNEL}', %s)"
_PRUNE: Final = (
    f"DELETE FROM fairlead.leases WHERE until < {NOW}",
    f"""
    DELETE FROM fairlead.lease_versions AS versions WHERE at < {NOW} - 86400
        AND NOT EXISTS (SELECT FROM fairlead.leases WHERE leases.project = versions.project)
    """,
)


class _VersionChanged(Exception):
    """The version of a project is not the given one, because another host has changed its leases."""


class LeaseRows:
    """Reads and writes the leases over the connection of one host. Raises errors of the driver."""

    def __init__(self, connection: LimitedConnection, host: str) -> None:
        self._connection = connection
        self._host = host
        row = connection.execute(_TABLES_EXIST).fetchone()
        self.tables_exist = bool(row and row[0])
        """Whether the tables of the leases exist and the role may write to them. All methods require it."""

    def read(self, known: Mapping[str, int], projects: Sequence[str] | None) -> RelayLeases:
        """Return the leases of the projects whose version differs from the one in `known`.

        If `projects` is not None, only of these projects.
        """
        wanted = None if projects is None else list(projects)
        values = [list(known), list(known.values()), wanted, wanted]
        rows = self._connection.execute(_READ, values, binary=True).fetchall()
        if not rows:
            row = self._connection.execute(_READ_CLOCK).fetchone()
            return RelayLeases(now=float(row[0]) if row else 0.0, versions={}, leases=())
        return RelayLeases(
            now=rows[0][0],
            versions={project: version for _, project, version, *_ in rows},
            leases=tuple(
                TeamLease(id=id_, host=host, project=project, until=until, body=body, signature=signature)
                for _, project, _, host, id_, until, body, signature in rows
                if id_ is not None
            ),
        )

    def take(self, leases: Sequence[TeamLease], versions: Mapping[str, int], replaced: Sequence[str]) -> bool:
        """Store leases, delete the `replaced` ones and notify all hosts, if the projects still have these versions.

        Returns False, and changes nothing, if a project has another version. The change survives a crash of the server.
        """
        try:
            with durable_commits(self._connection):
                for project in sorted({lease.project for lease in leases}):  # sorted, to avoid deadlocks
                    self._claim(project, versions.get(project))
                self._delete(replaced)
                rows = ((wanted.id, wanted.project, wanted.until, wanted.body, wanted.signature) for wanted in leases)
                self._connection.execute(_STORE, [self._host, *map(list, zip(*rows, strict=True))])
                self._connection.execute(_NOTIFY, [self._host])
        except _VersionChanged:
            return False
        return True

    def release(self, ids: Sequence[str]) -> None:
        """Delete the leases of this host with these ids, and notify all hosts."""
        with durable_commits(self._connection):
            self._delete(ids)
            self._connection.execute(_NOTIFY, [self._host])

    def drop(self, host: str) -> None:
        """Delete all leases of a host, and notify all hosts."""
        with durable_commits(self._connection):
            self._touch(self._connection.execute(_DELETE_ALL, [host]).fetchall())
            self._connection.execute(_NOTIFY, [self._host])

    def prune(self) -> int:
        """Delete expired leases, and old versions of projects without leases. Return how many rows."""
        return sum(self._connection.execute(statement).rowcount for statement in _PRUNE)

    def _claim(self, project: str, version: int | None) -> None:
        if version is None:
            cursor = self._connection.execute(_CLAIM_FIRST, [project])
        else:
            cursor = self._connection.execute(_CLAIM, [project, version])
        if cursor.rowcount != 1:
            raise _VersionChanged

    def _delete(self, ids: Sequence[str]) -> None:
        if ids:
            self._touch(self._connection.execute(_DELETE, [self._host, list(ids)]).fetchall())

    def _touch(self, projects: Sequence[tuple[str]]) -> None:
        if projects:
            self._connection.execute(_TOUCH, [sorted({project for (project,) in projects})])
