"""Databases for events and mail, opened by URL.

Modules are imported on first use, because some processes need only a constant or an error and never SQLAlchemy.
"""

from __future__ import annotations

from fairlead.lazy import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    from fairlead.store._head import HEAD_REVISION, REVISION_TABLE
    from fairlead.store._revisions import known_revisions
    from fairlead.store.events._rows import clean_text
    from fairlead.store.events._store import Store, default_url
    from fairlead.store.events._values import Counts, EventKey, StoredEvent
    from fairlead.store.mail._store import MailStore, default_mail_url

__all__ = [
    "HEAD_REVISION",
    "REVISION_TABLE",
    "Counts",
    "EventKey",
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

__getattr__ = lazy_exports(
    __name__,
    {
        "_errors": (
            "StoreBusy",
            "StoreDamaged",
            "StoreError",
            "StoreForeign",
            "StoreFull",
            "StoreTooNew",
            "StoreURLError",
            "StoreUnwritable",
        ),
        "_head": ("HEAD_REVISION", "REVISION_TABLE"),
        "_revisions": ("known_revisions",),
        "events._rows": ("clean_text",),
        "events._store": ("Store", "default_url"),
        "events._values": ("Counts", "EventKey", "StoredEvent"),
        "mail._store": ("MailStore", "default_mail_url"),
    },
)
