"""The identity that a host joins with. It is kept on disk until the host has joined, so that a second attempt has it.

The relay knows a host by the first attempt on: without this, the name would be taken by an attempt that was stopped.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress

import msgspec

from fairlead import __version__
from fairlead.paths import make_private, state_folder
from fairlead.team import Hello, PrivateKey, generate_key, new_host_id


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A host that is about to join."""

    host: str
    name: str
    private_key: bytes
    boots: tuple[str, ...] = ()

    @property
    def key(self) -> PrivateKey:
        """The key with which it will sign."""
        return PrivateKey(self.private_key)

    def hello(self) -> Hello:
        """Return how it introduces itself, with the newest of its nonces."""
        *known, boot = self.boots
        return Hello(
            team="",
            host=self.host,
            name=self.name,
            key=self.key.public,
            version=__version__,
            known_boots=tuple(known),
            boot=boot,
        )


def begin_identity(name: str) -> Identity:
    """Return the identity of the last attempt under that name, or a new one, with a new nonce; it is on disk."""
    before = _read()
    if before is None or before.name != name:
        before = Identity(host=new_host_id(), name=name, private_key=generate_key().secret)
    identity = msgspec.structs.replace(before, boots=(*before.boots, secrets.token_hex(8)))
    path = _path()
    make_private(os.path.dirname(path))
    beside = f"{path}.{os.getpid()}"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(msgspec.json.encode(identity))
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
    return identity


def forget_identity() -> None:
    """Delete it: the membership has it now."""
    with suppress(FileNotFoundError):
        os.unlink(_path())


def _read() -> Identity | None:
    try:
        with open(_path(), "rb") as file:
            return msgspec.json.decode(file.read(), type=Identity)
    except (OSError, msgspec.MsgspecError):
        return None


def _path() -> str:
    return f"{state_folder()}/team/joining.json"
