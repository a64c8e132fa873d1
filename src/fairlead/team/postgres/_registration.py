"""Registers a host on the relay, and detects whether another machine uses its identity. Knows no packets."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Final

from psycopg import errors

from fairlead.team._errors import HostCloned, RelayRefused
from fairlead.team._membership import new_host_id
from fairlead.team._types import Welcome
from fairlead.team.postgres import _statements as sql
from fairlead.team.postgres._connection import durable_commits

if TYPE_CHECKING:
    from fairlead.team._types import Hello
    from fairlead.team.postgres._connection import LimitedConnection

CLAIM_SECONDS: Final = 15.0
"""How long a host waits for its lock. Within this time, the server detects that an earlier connection is dead."""
_POLL_SECONDS: Final = 0.25
_ADVICE: Final = "run `fairlead team join … --new-identity` on the machine that is the copy"


def claim(connection: LimitedConnection, hello: Hello, *, timeout: float | None = None) -> None:
    """Take the lock of a host id. The lock lasts as long as the connection.

    Raises `HostCloned` if another process still holds it after `timeout` seconds, by default `CLAIM_SECONDS`.
    """
    digest = hashlib.sha256(b"fairlead-host\0" + hello.host.encode()).digest()
    key = int.from_bytes(digest[:8], "big", signed=True)
    deadline = time.monotonic() + (CLAIM_SECONDS if timeout is None else timeout)
    while True:
        row = connection.execute("SELECT pg_try_advisory_lock(%s)", [key]).fetchone()
        if row and row[0]:
            return
        if time.monotonic() >= deadline:
            raise HostCloned(f"another process is connected as this host ({hello.name}, {hello.host}); {_ADVICE}")
        time.sleep(_POLL_SECONDS)


def register(connection: LimitedConnection, hello: Hello, revision: str, location: str) -> Welcome:
    """Add this host, or update its entry, in one transaction. The caller holds the lock of the host.

    `revision` is that of the schema, for the `Welcome`. `location` is the relay's name in errors. Raises `RelayRefused`
    if the name is taken, the key or name differs, or the relay has another team, and `HostCloned` if another machine
    has connected as this host.
    """
    try:
        with durable_commits(connection):
            team, is_founder = _team(connection, hello, location)
            is_new = _host(connection, hello, location)
    except errors.UniqueViolation:
        if connection.execute(sql.IS_REMOVED, [hello.host]).fetchone():
            raise RelayRefused(
                f"{location}: this host was removed from the team, and another one has the name {hello.name} now; to "
                "join again: fairlead team leave --force, then fairlead team join --name NAME"
            ) from None
        raise RelayRefused(
            f"{location}: another host of the team has the name {hello.name}; choose another one with --name"
        ) from None
    asked = time.time()  # only now, because waiting for the lock of a dead connection takes seconds
    row = connection.execute(sql.READ_CLOCK).fetchone()
    answered = time.time()
    return Welcome(
        team=team,
        now=float(row[0]) if row else answered,
        asked=asked,
        answered=answered,
        revision=revision,
        is_new=is_new or is_founder,
        is_founder=is_founder,
    )


def _team(connection: LimitedConnection, hello: Hello, location: str) -> tuple[str, bool]:
    """Return the id of the team, and whether this host created it in this database.

    If a member connects to a database without a team, the database has lost its data. The team is created again under
    the same id. Raises `RelayRefused` if the database has another team.
    """
    founded = connection.execute(sql.FOUND_TEAM, [hello.team or new_host_id()]).fetchone()
    row = founded or connection.execute(sql.READ_TEAM).fetchone()
    team = str(row[0]) if row else ""
    if hello.team not in {"", team}:
        raise RelayRefused(f"{location} is the relay of another team; leave the team first, or correct the URL")
    return team, founded is not None


def _host(connection: LimitedConnection, hello: Hello, location: str) -> bool:
    """Add or update the entry of this host. Return whether it was added.

    Raises `RelayRefused` if its key or name differs, and `HostCloned` if another machine has connected as this host.
    """
    row = connection.execute(sql.READ_HOST, [hello.host]).fetchone()
    if row is None:
        connection.execute(sql.ADD_HOST, [hello.host, hello.name, hello.key, hello.version, hello.boot])
        return True
    name, key, boot = row
    if key != hello.key or name != hello.name:
        raise RelayRefused(f"{location}: the host {hello.host} is registered as {name} with another key or name")
    if boot and boot not in hello.known_boots:
        raise HostCloned(f"another machine has connected as this host ({hello.name}, {hello.host}); {_ADVICE}")
    connection.execute(sql.RENEW_HOST, [hello.version, hello.boot, hello.host])
    return False
