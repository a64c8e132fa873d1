"""Where things are kept: the events and what was answered, in a database that is opened by URL."""

from fairlead.store._errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreTooNew,
    StoreUnwritable,
    StoreURLError,
)
from fairlead.store._store import Store, default_url
from fairlead.store._values import Counts, Health, Key, StoredEvent

__all__ = [
    "Counts",
    "Health",
    "Key",
    "Store",
    "StoreBusy",
    "StoreDamaged",
    "StoreError",
    "StoreForeign",
    "StoreFull",
    "StoreTooNew",
    "StoreURLError",
    "StoreUnwritable",
    "StoredEvent",
    "default_url",
]
