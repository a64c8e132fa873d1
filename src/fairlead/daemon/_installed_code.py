"""Notices that the installed code has changed, and shuts the daemon down: the next event starts one with the new code.

The version number does not change when the same version is installed again, or when an editable install is edited. So
the files are compared: their times and sizes every second, and the contents of those that differ.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING
from zlib import crc32

import fairlead

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.daemon._shutdown import Shutdown

_INTERVAL = 1.0

Stamp = tuple[int, int]
"""The modification time and the size of a file."""


class InstalledCode:
    """Compares the code that this process runs with the code on the disk."""

    def __init__(self, folder: str = "") -> None:
        self._folder = folder or os.path.dirname(os.path.abspath(fairlead.__file__))
        self._stamps = dict(_python_files(self._folder))
        self._contents: dict[str, int] = {}
        self._last_seen: dict[str, Stamp] = self._stamps

    def has_changed(self) -> bool:
        """Return whether the code on the disk has changed and its installation has ended.

        An installation has ended if the files are the same as at the call before. Reads the disk.
        """
        now = dict(_python_files(self._folder))
        is_settled, self._last_seen = now == self._last_seen, now
        if not self._contents:
            self._contents = {
                name: self._checksum(name) for name, stamp in self._stamps.items() if now.get(name) == stamp
            }
        if now == self._stamps or not is_settled or "__init__.py" not in now:
            return False
        if now.keys() != self._stamps.keys() or any(self._is_other(name, now[name]) for name in now):
            return True
        self._stamps = now  # only the times differ
        return False

    def _is_other(self, name: str, stamp: Stamp) -> bool:
        return stamp != self._stamps[name] and self._checksum(name) != self._contents.get(name)

    def _checksum(self, name: str) -> int:
        try:
            with open(f"{self._folder}/{name}", "rb") as file:
                return crc32(file.read())
        except OSError:
            return -1


async def replace_when_changed(code: InstalledCode, shutdown: Shutdown) -> None:
    """Compare the code every second, and request a shutdown once it has changed."""
    while not shutdown.reason:
        await asyncio.sleep(_INTERVAL)
        if await asyncio.to_thread(code.has_changed):
            shutdown.request("the installed code has changed")


def _python_files(folder: str, below: str = "") -> Iterator[tuple[str, Stamp]]:
    """Yield the path in the package and the stamp of each module below a folder. Unreadable modules are left out.

    `below` is the path of the folder in the package, with a slash at its end; "" for the package itself.
    """
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            if entry.is_dir():
                yield from _python_files(entry.path, f"{below}{entry.name}/")
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield below + entry.name, (status.st_mtime_ns, status.st_size)
        except OSError:
            continue
