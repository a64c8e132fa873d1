"""What the store can raise.

StoreError                what is kept cannot be reached
├── StoreURLError         the URL names no store that we can open
├── StoreTooNew           it was written by a newer version
├── StoreForeign          it is a database, but of something else
├── StoreUnwritable       its folder or file cannot be made, read or written
├── StoreFull             there is no room left
├── StoreBusy             somebody else has held it for too long
└── StoreDamaged          it cannot be read any more; opened again, it is set aside
"""

from fairlead.errors import FairleadError


class StoreError(FairleadError):
    """What is kept cannot be reached."""


class StoreURLError(StoreError, ValueError):
    """A URL that names no store that we can open."""


class StoreTooNew(StoreError):
    """A store that a newer version has written: to guess at it would spoil it."""


class StoreForeign(StoreError):
    """A database that something else has made: ours are not mixed into it."""


class StoreUnwritable(StoreError):
    """A folder or file that cannot be made, read or written."""


class StoreFull(StoreError):
    """No room is left. Nothing of the batch was kept; it can be taken again."""


class StoreBusy(StoreError):
    """Somebody else has held the store for too long. Nothing of the batch was kept; it can be taken again."""


class StoreDamaged(StoreError):
    """A store that broke while it was open. To close and open it again sets it aside and begins a new one."""
