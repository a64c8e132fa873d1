"""Makes a folder that only this user can look into."""

from __future__ import annotations

import os
from contextlib import suppress


def make_folder(folder: str) -> None:
    """Make a folder, and those above it, if they are missing."""
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(folder, mode=0o700)
