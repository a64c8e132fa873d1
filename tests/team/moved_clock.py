"""A clock that a test moves, for all processes of a simulated day: daemons, PostgreSQL and commands.

They are started with a small library in front of the C library's functions for the time of day.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

from team.postgres_server import unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCE = Path(__file__).with_suffix(".c")
_OFFSET = struct.Struct("=q")


@dataclass
class MovedClock:
    """The clock, and the environment of the processes that see it."""

    folder: Path
    offset: int = 0

    @property
    def env(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.folder / "clock.so"), "MOVED_CLOCK_FILE": str(self.folder / "offset")}

    def now(self) -> float:
        """What time it is for these processes."""
        return time() + self.offset

    def advance(self, seconds: int) -> None:
        """Let time go by, at once, for all of them."""
        self.offset += seconds
        with (self.folder / "offset").open("r+b") as file:
            os.pwrite(file.fileno(), _OFFSET.pack(self.offset), 0)


@contextmanager
def moved_clock() -> Iterator[MovedClock]:
    """Compile the library, or skip the test where that cannot be done."""
    compiler = shutil.which(os.environ.get("CC") or "cc")
    if sys.platform != "linux" or compiler is None:
        unavailable("moving the clock needs Linux and a C compiler")
    folder = Path(tempfile.mkdtemp(prefix="fairlead-clock-"))
    try:
        folder.chmod(0o755)
        clock = MovedClock(folder)
        (folder / "offset").write_bytes(_OFFSET.pack(0))
        command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(folder / "clock.so"), str(_SOURCE), "-ldl"]
        subprocess.run(command, check=True, capture_output=True)
        yield clock
    finally:
        shutil.rmtree(folder, ignore_errors=True)
