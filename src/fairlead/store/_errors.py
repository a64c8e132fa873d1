"""Errors of the store.

StoreError                the database cannot be used
├── StoreURLError         the URL names no supported database
├── StoreTooNew           it was written by a newer version
├── StoreForeign          it is the database of another program
├── StoreUnwritable       its folder or file cannot be created, read or written
├── StoreFull             the disk is full
├── StoreBusy             another process has locked it
└── StoreDamaged          it is damaged; opening it again sets it aside
"""

from fairlead.errors import FairleadError


class StoreError(FairleadError):
    """The database cannot be used."""


class StoreURLError(StoreError, ValueError):
    """A URL that names no supported database."""


class StoreTooNew(StoreError):
    """A database that a newer version has written. It is left untouched."""


class StoreForeign(StoreError):
    """The database of another program. It is left untouched."""


class StoreUnwritable(StoreError):
    """A folder or file that cannot be created, read or written."""


class StoreFull(StoreError):
    """The disk is full. Nothing of the batch was stored; it can be written again."""


class StoreBusy(StoreError):
    """Another process has locked the database. Nothing of the batch was stored; it can be written again."""


class StoreDamaged(StoreError):
    """A database that is damaged. Opening it again sets it aside and creates a new one."""
