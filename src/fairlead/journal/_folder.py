"""Creates folders that only this user can read."""

from __future__ import annotations

import os
from contextlib import suppress


def make_private_folder(folder: str) -> None:
    """Create a folder and its missing parents, each with mode 0700."""
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(folder, mode=0o700)
