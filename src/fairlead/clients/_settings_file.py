"""Reads and writes the settings files of clients. A running client may read them, so each write is atomic."""

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
from fairlead.files import sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

MAX_SIZE = 1 << 20
"""The maximum size of a settings file in bytes."""
LOCK_TIMEOUT = 10.0
"""Seconds to wait for another installer."""

_TEMPORARY_SUFFIX = ".fairlead.tmp"
_MODE = 0o644


class InstallError(FairleadError):
    """Hooks could not be installed or removed. The message says whether something was changed."""


class SettingsError(FairleadError):
    """Settings that the client would skip, or that cannot be edited safely."""


class FileVersion(msgspec.Struct, frozen=True):
    """The content and attributes of a file when it was read."""

    file: Path
    """The given path."""
    target: Path
    """The path with all links resolved."""
    content: bytes | None
    """`None` if the file does not exist."""
    mode: int = _MODE
    owner: tuple[int, int] | None = None
    """The ids of the user and the group; `None` if the file does not exist."""


@contextmanager
def translate_os_errors(file: Path) -> Iterator[None]:
    """Raise `OSError` as a one-line `InstallError` that names the file."""
    try:
        yield
    except OSError as error:
        raise InstallError(f"{error.filename or file}: {error.strerror}; nothing was changed") from None


# -- reading -------------------------------------------------------------------------------------------


def read(file: Path) -> FileVersion:
    """Read a file, or the target of a link. The `content` is `None` if the file does not exist.

    Raise `InstallError` if it is a broken link, not a regular file, too large, or cannot be read.
    """
    with translate_os_errors(file):
        target = Path(os.path.realpath(file))
        if file.is_symlink() and not os.path.lexists(target):
            raise InstallError(
                f"{file} is a link to {target}, which does not exist; create that file, or remove the link"
            )
        try:
            descriptor = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return FileVersion(file, target, None)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise InstallError(f"{file} is not a regular file, so it cannot hold settings")
            with open(descriptor, "rb", closefd=False) as stream:
                content = stream.read(MAX_SIZE + 1)
        finally:
            os.close(descriptor)
    if len(content) > MAX_SIZE:
        raise InstallError(f"{file} is larger than {MAX_SIZE} bytes, so it is not a settings file; nothing was changed")
    return FileVersion(file, target, content, stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid))


def text_of(snapshot: FileVersion) -> str:
    """Return the text of a file; "" if the file does not exist. Raise `InstallError` if it is not UTF-8."""
    try:
        return (snapshot.content or b"").decode()
    except UnicodeDecodeError as error:
        raise InstallError(f"{snapshot.target}: not valid UTF-8 at byte {error.start}; nothing was changed") from None


def missing_folders(file: Path) -> list[Path]:
    """Return the folders that must be created for a file, outermost first."""
    return [folder for folder in reversed(file.parents) if not folder.exists()]


# -- writing -------------------------------------------------------------------------------------------


def write(snapshot: FileVersion, content: bytes) -> None:
    """Replace a file, keeping its mode and owner.

    Raise `InstallError` if it has changed since it was read, or is write-protected, and `OSError` if it cannot be
    written. Its folder must exist.
    """
    as_effective = os.access in os.supports_effective_ids
    if snapshot.content is not None and not os.access(snapshot.target, os.W_OK, effective_ids=as_effective):
        raise InstallError(f"{snapshot.target} is write-protected; nothing was changed")
    _remove_leftovers(snapshot.target)
    with _temporary_file(snapshot.target, content, snapshot.mode, snapshot.owner) as temporary:
        refuse_changed(snapshot)
        temporary.replace(snapshot.target)
    with suppress(OSError):
        sync_folder(str(snapshot.target.parent))


def refuse_changed(snapshot: FileVersion) -> None:
    """Raise `InstallError` if the file has changed since it was read."""
    if read(snapshot.file).content != snapshot.content:
        raise InstallError(
            f"{snapshot.target} was changed by another program in the meantime; nothing was changed, so try again"
        )


@contextmanager
def _temporary_file(file: Path, content: bytes, mode: int, owner: tuple[int, int] | None) -> Iterator[Path]:
    """Yield a temporary file with the content, in the folder of `file`. It is deleted on exit unless it was renamed."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=_TEMPORARY_SUFFIX, dir=file.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from None  # the user does not know the temporary name
    temporary = Path(name)
    try:
        with open(descriptor, "wb") as stream:
            if owner is not None and owner != (os.geteuid(), os.getegid()):
                os.fchown(descriptor, *owner)
            os.fchmod(descriptor, mode)
            stream.write(content)
            stream.flush()
            os.fsync(descriptor)
        yield temporary
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def _remove_leftovers(target: Path) -> None:
    """Remove the temporary files of a killed installer. The caller holds the lock, so no other installer is running."""
    for file in target.parent.glob(f".{target.name}.*{_TEMPORARY_SUFFIX}"):
        with suppress(OSError):
            file.unlink()


class Lock:
    """A context manager that holds the lock of a file. If the process is killed, the lock is released.

    Raises `InstallError` if another process holds the lock for longer than `LOCK_TIMEOUT`.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._descriptor = -1

    def __enter__(self) -> Self:
        with translate_os_errors(self._file):
            self._descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() > deadline:
                    os.close(self._descriptor)
                    raise InstallError(f"another installer holds {self._file}; nothing was changed") from None
                time.sleep(0.02)
            else:
                return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
