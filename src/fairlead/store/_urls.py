"""From a URL to the kind of database that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from fairlead.store._errors import StoreURLError
from fairlead.store._sqlite import SQLite

if TYPE_CHECKING:
    from fairlead.store._backend import Backend


def backend_for(url: str) -> Backend:
    """Give the backend of a URL. Nothing is opened yet."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise StoreURLError(f"{url!r} is no URL of a store; use sqlite:///PATH") from error
    if parsed.drivername != "sqlite":
        shown = parsed.render_as_string(hide_password=True)
        raise StoreURLError(f"{shown}: a store of the kind {parsed.drivername!r} cannot be opened; use sqlite:///PATH")
    return SQLite(parsed)
