"""A file that belongs to somebody else and is read by a running client: looked at, and written whole or not at all."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

MAX_BYTES = 1 << 20
"""No settings are as large; what is, is something else."""
PATIENCE = 10.0
"""Seconds to wait for another installer."""

_ENDING = ".fairlead.tmp"
_MODE = 0o644


class InstallError(FairleadError):
    """Hooks that could not be installed or removed; says what is left."""


class Seen(msgspec.Struct, frozen=True):
    """A file as it was when we looked."""

    file: Path
    """As it was named."""
    target: Path
    """The file itself, where the name is a link."""
    content: bytes | None
    """`None`: there is no file."""
    mode: int = _MODE
    owner: tuple[int, int] | None = None


@contextmanager
def told(file: Path) -> Iterator[None]:
    """Turn what the system refuses into one line."""
    try:
        yield
    except OSError as error:
        raise InstallError(f"{error.filename or file}: {error.strerror}; nothing was changed") from None


# -- reading -------------------------------------------------------------------------------------------


def look(file: Path) -> Seen:
    """Read a file, of a link what it leads to; say what it is if it cannot be settings."""
    with told(file):
        target = Path(os.path.realpath(file))
        if file.is_symlink() and not os.path.lexists(target):
            raise InstallError(f"{file} is a link to {target}, which is not there; make that file, or remove the link")
        try:
            descriptor = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return Seen(file, target, None)
        try:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                raise InstallError(f"{file} is no regular file; settings are read from a file alone")
            with open(descriptor, "rb", closefd=False) as stream:
                content = stream.read(MAX_BYTES + 1)
        finally:
            os.close(descriptor)
    if len(content) > MAX_BYTES:
        raise InstallError(f"{file} is larger than {MAX_BYTES} bytes, which no settings are; nothing was changed")
    return Seen(file, target, content, stat.S_IMODE(about.st_mode), (about.st_uid, about.st_gid))


def text_of(seen: Seen) -> str:
    """Give the text of a file; of one that is not there, none."""
    try:
        return (seen.content or b"").decode()
    except UnicodeDecodeError as error:
        raise InstallError(f"{seen.target}: not valid UTF-8 at byte {error.start}; nothing was changed") from None


# -- writing -------------------------------------------------------------------------------------------


def put(seen: Seen, content: bytes) -> None:
    """Put other content in the file's place, with its mode and owner, unless it has changed since we looked."""
    as_effective = os.access in os.supports_effective_ids
    if seen.content is not None and not os.access(seen.target, os.W_OK, effective_ids=as_effective):
        raise InstallError(f"{seen.target} is write-protected; nothing was changed")
    _sweep(seen.target)
    with _spare(seen.target, content, seen.mode, seen.owner) as spare:
        refuse_changed(seen)
        spare.replace(seen.target)
    _settle(seen.target.parent)


def put_own(file: Path, content: bytes) -> None:
    """Write a file of our own, for its owner's eyes alone: settings may hold secrets."""
    with _spare(file, content, 0o600, None) as spare:
        spare.replace(file)


def refuse_changed(seen: Seen) -> None:
    """Make sure that the file still is what the new content was made of."""
    if look(seen.file).content != seen.content:
        raise InstallError(f"{seen.target} was changed by somebody else meanwhile; nothing was changed, so try again")


@contextmanager
def _spare(file: Path, content: bytes, mode: int, owner: tuple[int, int] | None) -> Iterator[Path]:
    """Write a file beside the one that it is to replace; it is gone at the end, one way or the other."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=_ENDING, dir=file.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from None  # not the name of a file that never was
    spare = Path(name)
    try:
        with open(descriptor, "wb") as stream:
            if owner is not None and owner != (os.geteuid(), os.getegid()):
                os.fchown(descriptor, *owner)
            os.fchmod(descriptor, mode)
            stream.write(content)
            stream.flush()
            os.fsync(descriptor)
        yield spare
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from None
    finally:
        with suppress(OSError):
            spare.unlink()


def _sweep(target: Path) -> None:
    """Remove what an installer that was killed has left; the lock keeps others from being at work."""
    for left in target.parent.glob(f".{target.name}.*{_ENDING}"):
        with suppress(OSError):
            left.unlink()


def _settle(folder: Path) -> None:
    """Have the new name on the disk too, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class Lock:
    """A file that one process holds at a time; the system lets go of it when the process ends."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._descriptor = -1

    def __enter__(self) -> Self:
        with told(self._file):
            self._descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        until = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() > until:
                    os.close(self._descriptor)
                    raise InstallError(f"another installer holds {self._file}; nothing was changed") from None
                time.sleep(0.02)
            else:
                return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
