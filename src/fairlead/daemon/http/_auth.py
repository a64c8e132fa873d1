"""The token of the loopback socket. Only the user can read its file, so a request with the token is from the user."""

from __future__ import annotations

import secrets
from hmac import compare_digest
from typing import TYPE_CHECKING

from fairlead.files import write_private

if TYPE_CHECKING:
    from collections.abc import Iterable

_HOSTS = frozenset({b"127.0.0.1", b"localhost"})
_SCHEME = b"bearer "


def create_token(folder: str) -> str:
    """Return a new token, and write it to the file `token` in a folder. Only the user can read the file."""
    token = secrets.token_urlsafe(32)
    write_private(f"{folder}/token", f"{token}\n".encode())
    return token


def is_allowed(headers: Iterable[tuple[bytes, bytes]], token: str) -> bool:
    """Return whether a request over loopback has the token and does not come from a web page.

    `headers` have names in lower case. An empty `token` allows no request.
    """
    fields = dict(headers)
    host = fields.get(b"host", b"").rpartition(b":")[0] or fields.get(b"host", b"")
    authorization = fields.get(b"authorization", b"")
    if host not in _HOSTS or b"origin" in fields or authorization[: len(_SCHEME)].lower() != _SCHEME:
        return False
    return bool(token) and compare_digest(authorization[len(_SCHEME) :], token.encode())
