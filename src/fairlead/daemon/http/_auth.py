"""The secret of the loopback socket: who can read the file is the user."""

from __future__ import annotations

import os
import secrets
from hmac import compare_digest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAMES = frozenset({b"127.0.0.1", b"localhost"})
_BEGINNING = b"bearer "


def make_token(folder: str) -> str:
    """Make a new secret, and leave it in `token` for the user alone."""
    token = secrets.token_urlsafe(32)
    beside = f"{folder}/token.{os.getpid()}"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, f"{token}\n".encode())
    finally:
        os.close(descriptor)
    os.replace(beside, f"{folder}/token")
    return token


def is_allowed(headers: Iterable[tuple[bytes, bytes]], token: str) -> bool:
    """Tell whether a request over loopback knows the secret, and comes from no page of a browser."""
    told = dict(headers)
    host = told.get(b"host", b"").rpartition(b":")[0] or told.get(b"host", b"")
    given = told.get(b"authorization", b"")
    if host not in _NAMES or b"origin" in told or given[: len(_BEGINNING)].lower() != _BEGINNING:
        return False
    return bool(token) and compare_digest(given[len(_BEGINNING) :], token.encode())
