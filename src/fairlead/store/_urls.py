"""Checks the URL of a store."""

from __future__ import annotations

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from fairlead.store._errors import StoreURLError
from fairlead.store._sqlite import SQLite


def backend_for(url: str) -> SQLite:
    """Return the file that a URL names, not opened yet. Raise `StoreURLError` if the URL names no SQLite file."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise StoreURLError(f"{url!r} is not the URL of a store; use sqlite:///PATH") from error
    if parsed.drivername != "sqlite":
        safe_url = parsed.render_as_string(hide_password=True)
        raise StoreURLError(f"{safe_url}: a store of type {parsed.drivername!r} is not supported; use sqlite:///PATH")
    return SQLite(parsed)
