"""PostgreSQL as the relay of a team, started by the benchmark as the tests start it."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bench._data import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from team.postgres_server import PostgresServer

_TICKS = os.sysconf("SC_CLK_TCK")


def why_absent() -> str:
    """Return why there can be no relay; empty if there can."""
    sys.path.append(str(ROOT / "tests"))
    try:
        from team.postgres_server import find_programs
    except ImportError as error:
        return f"not measured: {error}"
    return "" if find_programs() else "not measured: needs PostgreSQL"


@contextmanager
def relay_server() -> Iterator[PostgresServer]:
    """Run a server for a while."""
    from team.postgres_server import new_server

    with new_server() as server:
        yield server


def cpu_seconds(server: PostgresServer) -> float:
    """Return the CPU seconds of the server: of its running processes, and of those that have ended."""
    own = (server.data / "postmaster.pid").read_text().split()[0]
    total = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if folder.name == own:
                total += sum(map(int, fields[11:15]))
            elif fields[1] == own:
                total += sum(map(int, fields[11:13]))
    return total / _TICKS
