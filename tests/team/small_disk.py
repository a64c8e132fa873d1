"""Small disks in a mount namespace of the test: full when it says so, gone with the last process that uses them."""

from __future__ import annotations

import ctypes
import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from team.postgres_server import unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLONE_NEWNS = 0x00020000
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class SmallDisk:
    """A file system in memory."""

    folder: Path

    def fill(self) -> None:
        """Leave no room on it."""
        with (self.folder / "filler").open("ab", buffering=0) as file:
            size = 1 << 20
            while size >= 1 << 9:
                try:
                    file.write(b"x" * size)
                except OSError:
                    size //= 2

    def empty(self) -> None:
        """Give the room back."""
        (self.folder / "filler").unlink()


@contextmanager
def own_mounts() -> Iterator[None]:
    """Let this thread, and what it starts, have mounts that nobody else sees."""
    if os.name != "posix" or not Path("/proc/self/ns/mnt").exists() or os.geteuid() != 0:
        unavailable("a small disk needs Linux and root")
    with Path("/proc/thread-self/ns/mnt").open("rb") as before:
        folder = Path.cwd()
        _check(_LIBC.unshare(_CLONE_NEWNS))
        try:
            subprocess.run(["mount", "--make-rprivate", "/"], check=True)
            yield
        finally:
            _check(_LIBC.setns(before.fileno(), _CLONE_NEWNS))
            os.chdir(folder)  # the namespace brings its root as the working directory


def small_disk(folder: Path, megabytes: int) -> SmallDisk:
    """Mount a disk on a folder, within `own_mounts`."""
    options = f"size={megabytes}m,mode={folder.stat().st_mode & 0o777:o}"
    owner = f"uid={folder.stat().st_uid},gid={folder.stat().st_gid}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"{options},{owner}", "none", str(folder)], check=True)
    return SmallDisk(folder)


def _check(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), "the mount namespace cannot be changed")
