"""The token of the loopback socket. Only the user can read its file, so a request with the token is the user's."""

from __future__ import annotations

import os
import secrets
from hmac import compare_digest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_HOSTS = frozenset({b"127.0.0.1", b"localhost"})
_SCHEME = b"bearer "


def create_token(folder: str) -> str:
    """Create a new token, and write it to the file `token` in a folder, which only the user can read."""
    token = secrets.token_urlsafe(32)
    temporary = f"{folder}/token.{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, f"{token}\n".encode())
    finally:
        os.close(descriptor)
    os.replace(temporary, f"{folder}/token")
    return token


def is_allowed(headers: Iterable[tuple[bytes, bytes]], token: str) -> bool:
    """Return whether a request over loopback has the token and does not come from a page in a browser."""
    fields = dict(headers)
    host = fields.get(b"host", b"").rpartition(b":")[0] or fields.get(b"host", b"")
    authorization = fields.get(b"authorization", b"")
    if host not in _HOSTS or b"origin" in fields or authorization[: len(_SCHEME)].lower() != _SCHEME:
        return False
    return bool(token) and compare_digest(authorization[len(_SCHEME) :], token.encode())
