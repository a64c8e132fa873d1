"""Takes a permission away from this process, also if it is root's."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def without_permission(entry: Path) -> Iterator[None]:
    """Forbid every use of a file or folder."""
    mode = entry.stat().st_mode & 0o777
    entry.chmod(0)
    if os.geteuid() == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(os.getuid())
        entry.chmod(mode)
