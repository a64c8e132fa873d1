"""Errors of the store.

StoreError                the database cannot be used
├── StoreURLError         the URL names no supported database
├── StoreTooNew           it was written by a newer version
├── StoreForeign          it is the database of another program
├── StoreUnwritable       its folder or file cannot be created, read or written
├── StoreFull             the disk is full, or cannot be read or written
├── StoreBusy             another process has locked it, or all connections are in use
└── StoreDamaged          it is damaged; opening it again sets it aside
"""

from fairlead.errors import FairleadError


class StoreError(FairleadError):
    """The database cannot be used."""


class StoreURLError(StoreError, ValueError):
    """The URL names no supported database."""


class StoreTooNew(StoreError):
    """The database was written by a newer version. It is left untouched."""


class StoreForeign(StoreError):
    """The database belongs to another program. It is left untouched."""


class StoreUnwritable(StoreError):
    """The folder or file of the database cannot be created, read or written."""


class StoreFull(StoreError):
    """The disk is full, or cannot be read or written. Nothing of the batch was stored; it can be written again."""


class StoreBusy(StoreError):
    """The database is locked, or all connections are in use. Nothing was stored; the batch can be written again."""


class StoreDamaged(StoreError):
    """The database is damaged. Opening it again sets it aside, and creates a new one with the rows that can be read."""
