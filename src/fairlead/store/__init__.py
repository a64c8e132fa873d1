"""Where things are kept: the events and what was answered, and the mail, in databases that are opened by URL."""

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
from fairlead.store._mail_store import MailStore, default_mail_url
from fairlead.store._store import Store, default_url
from fairlead.store._values import Counts, Health, Key, StoredEvent

__all__ = [
    "Counts",
    "Health",
    "Key",
    "MailStore",
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
    "default_mail_url",
    "default_url",
]
