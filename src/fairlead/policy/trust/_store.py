"""The policy and hook files that a person has trusted, by path and contents. On disk, for this user alone."""

from __future__ import annotations

import os
from time import time

from fairlead.files import read_private, write_private
from fairlead.lazy import suppress
from fairlead.paths import make_private, state_folder
from fairlead.policy.config._disk_cache import short_name
from fairlead.structs import Struct, decode_msgpack, encode_msgpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class TrustedFile(Struct, frozen=True, array_like=True):
    """A file as a person trusted it."""

    file: str
    digest: str
    """SHA-256 of the contents."""
    text: bytes
    """The contents, to show later what has changed."""
    at: float = 0.0
    """When it was trusted, in seconds since the epoch."""
    modules: dict[str, str] = {}
    """Of a hook file: SHA-256 of the project's modules that it imports, by their paths."""
    interpreter: str = ""
    """Of a hook file: the Python that runs it; empty is Fairlead's own."""


def trust_folder() -> str:
    """Return the folder with an entry for each trusted file."""
    return f"{state_folder()}/trust"


def is_trusted(file: str, digest: str) -> bool:
    """Return whether a person has trusted a file with this digest; `False` if that is empty."""
    entry = read_trusted(file) if digest else None
    return entry is not None and entry.digest == digest


def read_trusted(file: str) -> TrustedFile | None:
    """Return the entry of a trusted file; `None` without one. One that another user could have written is ignored."""
    entry = _read(entry_path(file))
    return entry if entry is not None and entry.file == os.path.realpath(file) else None


def write_trusted(file: str, text: bytes, modules: Mapping[str, str] | None = None, interpreter: str = "") -> None:
    """Record that a person trusts a file with these contents. Raises `OSError` if that fails.

    `modules` are the digests of what a hook file imports, `interpreter` is the Python that runs it.
    """
    from hashlib import sha256

    make_private(trust_folder())
    entry = TrustedFile(
        os.path.realpath(file), sha256(text).hexdigest(), text, time(), dict(modules or {}), interpreter
    )
    write_private(entry_path(file), encode_msgpack(entry))


def remove_trusted(file: str) -> bool:
    """Forget that a file was trusted, and return whether it was. Raises `OSError` if that fails."""
    if read_trusted(file) is None:
        return False
    os.unlink(entry_path(file))
    return True


def list_trusted() -> tuple[TrustedFile, ...]:
    """Return all trusted files, by path."""
    names: list[str] = []
    with suppress(OSError):
        names = [name for name in os.listdir(trust_folder()) if name.endswith(".msgpack")]
    entries = (_read(f"{trust_folder()}/{name}") for name in names)
    return tuple(sorted((entry for entry in entries if entry is not None), key=lambda entry: entry.file))


def entry_path(file: str) -> str:
    """Return the path of the entry of a file."""
    return f"{trust_folder()}/{short_name(os.path.realpath(file))}.msgpack"


def _read(path: str) -> TrustedFile | None:
    try:
        return decode_msgpack(read_private(path), type=TrustedFile)
    except (OSError, ValueError):
        return None
