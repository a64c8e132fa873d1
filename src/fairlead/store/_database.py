"""`Database`: the base class of the event store and the mail store. Knows none of their tables."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from fairlead.store._backend import translate_errors, write_transaction
from fairlead.store._head import HEAD_REVISION
from fairlead.store._revisions import revision_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection

    from fairlead.store._backend import Backend


class Health(msgspec.Struct, frozen=True):
    """Size, revision and integrity of a database."""

    location: str
    """The file, or the URL without its password."""
    revision: str
    head: str
    """The newest revision that this version knows."""
    size: int
    """Bytes on the disk."""
    free: int
    """Bytes of `size` that hold no data."""
    problems: tuple[str, ...] = ()
    """The problems that the integrity check found."""


class Database:
    """An open database. Thread-safe; writers wait for each other."""

    warnings: Final[tuple[str, ...]]
    """Warnings for the user about the opening, for instance that a damaged database was set aside."""

    def __init__(self, backend: Backend, warnings: tuple[str, ...]) -> None:
        """Use a prepared database. The `open` methods of the subclasses prepare it."""
        self._backend = backend
        self._write_lock = threading.Lock()
        self.warnings = warnings

    def close(self) -> None:
        """Close all connections to the database."""
        self._backend.engine.dispose()

    @property
    def is_damaged(self) -> bool:
        """Whether damage was found while the database was open. Opening it again salvages the readable rows."""
        return self._backend.is_damaged

    def health(self) -> Health:
        """Check every page and return the result. This is slow."""
        backend = self._backend
        with self._reading() as connection:
            free = backend.free_bytes(connection)
            return Health(
                location=backend.location,
                revision=revision_of(connection, backend.location) or "",
                head=HEAD_REVISION,
                size=backend.used_bytes(connection) + free,
                free=free,
                problems=backend.integrity_problems(connection),
            )

    def _translate_errors(self) -> AbstractContextManager[None]:
        return translate_errors(self._backend)

    def _sync(self) -> None:
        with self._translate_errors():
            self._backend.sync()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._translate_errors(), self._backend.engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self, *, durable: bool = False) -> Iterator[Connection]:
        """Open a transaction that writes; a durable one survives a power failure."""
        transaction = write_transaction(self._backend, durable=durable)
        with self._write_lock, self._translate_errors(), transaction as connection:
            yield connection
