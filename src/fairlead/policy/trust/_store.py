"""The policy files that a person has trusted, each by its path and its contents. On disk, for this user alone."""

from __future__ import annotations

import os
from contextlib import suppress
from time import time

import msgspec

from fairlead.paths import state_folder
from fairlead.policy.config._disk_cache import read_private_file, short_name, write_private_file


class TrustedFile(msgspec.Struct, frozen=True, array_like=True):
    """A file as a person trusted it."""

    file: str
    digest: str
    """SHA-256 of the contents."""
    text: bytes
    """The contents, to show later what has changed."""
    at: float = 0.0
    """Unix time, in seconds."""


def trust_folder() -> str:
    """Return the folder with an entry for each trusted file."""
    return f"{state_folder()}/trust"


def is_trusted(file: str, digest: str) -> bool:
    """Return whether a person has trusted a file with these contents."""
    entry = read_trusted(file) if digest else None
    return entry is not None and entry.digest == digest


def read_trusted(file: str) -> TrustedFile | None:
    """Return a file as it was trusted. An entry that another user could have written counts as missing."""
    entry = _read(_entry_path(file))
    return entry if entry is not None and entry.file == os.path.realpath(file) else None


def write_trusted(file: str, text: bytes) -> None:
    """Record that a person trusts a file with these contents. Raises `OSError` if that fails."""
    from hashlib import sha256

    os.makedirs(trust_folder(), mode=0o700, exist_ok=True)
    entry = TrustedFile(os.path.realpath(file), sha256(text).hexdigest(), text, time())
    write_private_file(_entry_path(file), msgspec.msgpack.encode(entry))


def remove_trusted(file: str) -> bool:
    """Forget that a file was trusted, and return whether it was. Raises `OSError` if that fails."""
    if read_trusted(file) is None:
        return False
    os.unlink(_entry_path(file))
    return True


def list_trusted() -> tuple[TrustedFile, ...]:
    """Return all trusted files, by path."""
    names: list[str] = []
    with suppress(OSError):
        names = [name for name in os.listdir(trust_folder()) if name.endswith(".msgpack")]
    entries = (_read(f"{trust_folder()}/{name}") for name in names)
    return tuple(sorted((entry for entry in entries if entry is not None), key=lambda entry: entry.file))


def _entry_path(file: str) -> str:
    return f"{trust_folder()}/{short_name(os.path.realpath(file))}.msgpack"


def _read(path: str) -> TrustedFile | None:
    try:
        return msgspec.msgpack.decode(read_private_file(path), type=TrustedFile)
    except (OSError, ValueError, msgspec.DecodeError):
        return None
