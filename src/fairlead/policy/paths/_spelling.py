"""The spellings that a file system treats as one name: Unicode forms, case, short names, dots at the end."""

from __future__ import annotations

import os
from itertools import islice

_MAX_CACHED = 4096
_MAX_PROBED = 16


def nfc(name: str) -> str:
    """Return a name in Unicode's composed form, in which names are compared."""
    if name.isascii():
        return name
    from unicodedata import normalize

    return normalize("NFC", name)


_case_insensitive: dict[str, bool] = {}


def is_case_insensitive(folder: str) -> bool:
    """Return whether the disk ignores case in a folder. The answer is cached and not checked again."""
    cached = _case_insensitive.get(folder)
    if cached is None:
        cached = _probe_case(folder)
        if len(_case_insensitive) >= _MAX_CACHED:
            _case_insensitive.clear()
        _case_insensitive[folder] = cached
    return cached


def _probe_case(folder: str) -> bool:
    """Return whether a folder ignores case, by looking up one of its entries in the other case.

    Without an entry, look up the folder itself or the nearest folder above it.
    """
    if (probed := _probe_entries(folder)) is not None:
        return probed
    while True:
        parent, _, name = folder.rpartition("/")
        other = name.swapcase()
        if not name:
            return False
        if other != name:
            try:
                return os.path.samestat(os.stat(f"{parent}/{other}"), os.stat(folder))
            except OSError:
                if os.path.exists(folder):
                    return False
        folder = parent


def _probe_entries(folder: str) -> bool | None:
    """Return whether the folder ignores case, judged by one of its entries; `None` if no entry shows it.

    Its own name may not show it, because the folder may be the root of another disk.
    """
    try:
        with os.scandir(folder) as entries:
            names = (entry.name for entry in islice(entries, _MAX_PROBED))
            name = next((name for name in names if name.isascii() and name.swapcase() != name), None)
    except OSError:
        return None
    try:
        return (
            None
            if name is None
            else os.path.samestat(os.lstat(f"{folder}/{name}"), os.lstat(f"{folder}/{name.swapcase()}"))
        )
    except OSError:
        return False


def in_disk_case(path: str) -> str:
    """Return a path with each part as its folder lists it. A part that is not listed stays as it is."""
    done = ""
    for part in path.split("/")[1:]:
        done = f"{done}/{_listed_name(done or '/', part)}"
    return done


def _listed_name(folder: str, part: str) -> str:
    try:
        entries = os.listdir(folder)
    except OSError:
        return part
    if part in entries:
        return part
    wanted = nfc(part).casefold()
    return next((entry for entry in entries if nfc(entry).casefold() == wanted), None) or _same_file(folder, part)


def _same_file(folder: str, part: str) -> str:
    """Return the listed name of the file that a disk opens under another name: `LONGNA~1.TXT`, `name.`, `name `.

    If it cannot be looked up, return the part without dots and blanks at its end.
    """
    try:
        inode = os.lstat(f"{folder}/{part}").st_ino
        with os.scandir(folder) as entries:
            return next((entry.name for entry in entries if entry.inode() == inode), part)
    except OSError:
        return part.rstrip(". ") or part
