"""Runs statements over one connection, and translates errors of the driver into `TeamError`s. Knows no statements."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fairlead.team._errors import RelayUnreachable
from fairlead.team._names import secrets_of
from fairlead.team.postgres._connection import DriverError, connect, describe
from fairlead.team.postgres._errors import translate

if TYPE_CHECKING:
    from collections.abc import Iterator


class StatementRunner:
    """A connection to the database of a relay. Connecting, and all methods, raise only subclasses of `TeamError`.

    `timeout` limits connecting and each wait for the server, in seconds.
    """

    def __init__(self, url: str, timeout: float) -> None:
        self.location = describe(url)
        """The name of the relay in messages: its URL without a password."""
        self._url = url
        self._timeout = timeout
        self._connection = connect(url, timeout)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _run(self, statement: str, values: Any = None) -> list[tuple[Any, ...]]:
        with self._translating():
            cursor = self._connection.execute(statement, values, binary=True)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Raise errors of the driver as `TeamError`s. After `RelayUnreachable` the connection is closed."""
        try:
            yield
        except DriverError as error:
            translated = translate(error, self.location, hidden=secrets_of(self._url))
            if isinstance(translated, RelayUnreachable) or self._connection.broken:
                self._connection.close()
            raise translated from None
