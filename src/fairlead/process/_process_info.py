"""The folder, the variables and the start time of a process of this user. Linux only: it reads `/proc`."""

from __future__ import annotations

import os
from time import time

from fairlead.process._alive import START_TIME, stat_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_BYTES = 1 << 20


def process_variables(pid: int, names: Iterable[str]) -> dict[str, str]:
    """Return the named variables that a process was started with. Variables that are unset or unknown are left out."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            pairs = (pair.partition(b"=") for pair in file.read(_MAX_BYTES).split(b"\0"))
            variables = {name.decode(errors="replace"): value.decode(errors="replace") for name, _, value in pairs}
    except OSError:
        return {}
    return {name: variables[name] for name in names if name in variables}


def process_folder(pid: int) -> str:
    """Return the working directory of a process; "" if it is not known."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def process_started_at(pid: int) -> float:
    """Return when a process started, in Unix time; 0 if it is not known."""
    fields = stat_fields(pid)
    try:
        with open("/proc/uptime", "rb", buffering=0) as file:
            uptime = float(file.read(64).split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0
    return time() - uptime + int(fields[START_TIME]) / os.sysconf("SC_CLK_TCK") if fields else 0.0
