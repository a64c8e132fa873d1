"""A connection to PostgreSQL that never hangs: every wait has a timeout. Knows no tables.

There are three limits:

- A wait for the server ends with an error if no byte was sent or received within the timeout.
- While the connection is idle, TCP keepalives detect that the server is gone. The server is configured to probe this
  host, too, so that it soon releases the lock of a host that vanished.
- A statement ends after two minutes.

The server confirms a change before it is on its disk, which is several times faster. This is safe for packets, because
a sender keeps them until they are acknowledged, and pushes those again that a crashed server has lost. Data that must
not be lost is written with `durable_commits`.
"""

from __future__ import annotations

import select
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fairlead.team._errors import BadTeamSettings, RelayRefused, missing_package
from fairlead.team._names import redact_url, secrets_of

try:
    import psycopg
    from psycopg import conninfo, sql
    from psycopg.waiting import Ready, Wait
except ImportError:
    raise missing_package("psycopg") from None

from fairlead.team.postgres._errors import translate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg.abc import PQGen

T = TypeVar("T")

MIN_SERVER: Final = 13_00_00
STATEMENT_SECONDS: Final = 120
DELETED_AT_ONCE: Final = 5_000
_APPLICATION: Final = "fairlead"
_PROBE_EVERY: Final = 2
_PROBES: Final = 3
_SESSION: Final = """
SELECT set_config('statement_timeout', %s, false), set_config('idle_in_transaction_session_timeout', '60s', false),
    set_config('tcp_keepalives_idle', %s, false), set_config('tcp_keepalives_interval', %s, false),
    set_config('tcp_keepalives_count', %s, false), set_config('tcp_user_timeout', %s, false),
    set_config('client_min_messages', 'warning', false), set_config('synchronous_commit', 'off', false)
"""


DriverError = psycopg.Error


class ServerTimeout(psycopg.OperationalError):
    """No byte was sent to or received from the server within the timeout."""


class LimitedConnection(psycopg.Connection[Any]):
    """A connection on which a wait fails if no byte was sent or received for `idle_timeout` seconds."""

    idle_timeout: float = 10.0

    def wait(self, gen: PQGen[T], *_args: Any, **_options: Any) -> T:
        """Run a generator of the driver to its end, and return its result.

        Raises `ServerTimeout` after `idle_timeout` seconds without a byte. Replaces the driver's method, which waits
        without a limit while the server sends nothing (psycopg 3.2).
        """
        poll = select.poll()
        try:
            wanted = next(gen)
            while True:
                poll.register(self.pgconn.socket, _events(wanted))
                ready = poll.poll(self.idle_timeout * 1000)
                if not ready:
                    raise ServerTimeout(f"nothing came from the server for {self.idle_timeout:.0f} seconds")
                wanted = gen.send(_readiness(ready[0][1]))
        except StopIteration as stop:
            result: T = stop.value
            return result


def _events(wanted: Wait) -> int:
    return (select.POLLIN if wanted & Wait.R else 0) | (select.POLLOUT if wanted & Wait.W else 0)


def _readiness(events: int) -> int:
    """Return the `Ready` flags for events of `poll`. After an error both are set, so that the driver raises it."""
    return (Ready.R if events & ~select.POLLOUT else 0) | (Ready.W if events & ~select.POLLIN else 0)


def describe(url: str) -> str:
    """Return the name of a relay for messages: its URL without the password and all parameters except `service`."""
    shown = redact_url(url)
    return shown if "service=" in shown else shown.partition("?")[0]


def connect(url: str, timeout: float) -> LimitedConnection:
    """Return a new connection in autocommit mode with all limits set.

    `timeout` limits connecting and each wait for the server, in seconds. Raises only subclasses of `TeamError`.
    """
    location = describe(url)
    parameters = _parameters(url, location, timeout)
    try:
        connection = LimitedConnection.connect(**parameters, autocommit=True)
    except psycopg.Error as error:
        raise translate(error, location, hidden=secrets_of(url)) from None
    connection.idle_timeout = timeout
    try:
        _set_up(connection, timeout)
    except psycopg.Error as error:
        connection.close()
        raise translate(error, location) from None
    if connection.info.server_version < MIN_SERVER:
        version = connection.info.server_version // 10000
        connection.close()
        raise RelayRefused(f"{location}: PostgreSQL {version} is too old; at least {MIN_SERVER // 10000} is needed")
    return connection


@contextmanager
def durable_commits(connection: LimitedConnection) -> Iterator[None]:
    """Open a transaction that survives a crash of the server once the block has ended."""
    with connection.transaction():
        connection.execute("SELECT set_config('synchronous_commit', 'on', true)")
        yield


def listen(connection: LimitedConnection, channel: str) -> None:
    """Subscribe to the notifications of a channel."""
    connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))


def delete_in_steps(connection: LimitedConnection, statement: str, values: dict[str, Any]) -> int:
    """Repeat a statement that deletes at most `%(step)s` rows until none are left. Return how many were deleted."""
    total = 0
    while True:
        count = connection.execute(statement, {**values, "step": DELETED_AT_ONCE}).rowcount
        total += count
        if count < DELETED_AT_ONCE:
            return total


def _parameters(url: str, location: str, timeout: float) -> dict[str, Any]:
    """Return the connection parameters of a URL, with defaults for the limits that the URL does not set.

    `location` is the relay's name in errors. Raises `BadTeamSettings` if the URL is invalid.
    """
    try:
        given = conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        # The driver's text may quote any part of the URL.
        raise BadTeamSettings(
            f"{location}: the URL is invalid; special characters in it must be quoted as %XX"
        ) from None
    limits = {
        "connect_timeout": max(2, round(timeout)),
        "keepalives": 1,
        "keepalives_idle": max(1, round(timeout) - _PROBE_EVERY * _PROBES),
        "keepalives_interval": _PROBE_EVERY,
        "keepalives_count": _PROBES,
        "tcp_user_timeout": round(timeout * 1000),
        "application_name": _APPLICATION,
        "client_encoding": "UTF8",
    }
    return {**limits, **given}


def _set_up(connection: LimitedConnection, timeout: float) -> None:
    idle = max(1, round(timeout) - _PROBE_EVERY * _PROBES)
    values = (f"{STATEMENT_SECONDS}s", idle, _PROBE_EVERY, _PROBES, f"{round(timeout * 1000)}ms")
    connection.execute(_SESSION, [str(value) for value in values])
