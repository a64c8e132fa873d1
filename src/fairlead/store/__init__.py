"""Databases for events and mail, opened by URL."""

from fairlead.store._database import Health
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
from fairlead.store._revisions import HEAD_REVISION, known_revisions
from fairlead.store.events._rows import clean_text
from fairlead.store.events._store import Store, default_url
from fairlead.store.events._tables import REVISION_TABLE
from fairlead.store.events._values import Counts, Key, StoredEvent
from fairlead.store.mail._store import MailStore, default_mail_url

__all__ = [
    "HEAD_REVISION",
    "REVISION_TABLE",
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
    "clean_text",
    "default_mail_url",
    "default_url",
    "known_revisions",
]
