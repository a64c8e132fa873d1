"""The command line of a process, from the process table. Blocking: it reads a file, or runs `ps`."""

from __future__ import annotations

import sys
from time import monotonic

from fairlead.errors import CommandFailed

_TIMEOUT = 5.0
_MAX_BYTES = 4096


def command_line(pid: int) -> list[str]:
    """Return the program and the arguments of a process; empty if they are not known.

    Without `/proc` the command line is split at spaces.
    """
    if sys.platform.startswith("linux"):
        try:
            with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as file:
                words = file.read(_MAX_BYTES)
        except OSError:
            return []
        return words.decode(errors="replace").split("\0")
    return _from_ps(pid)


def _from_ps(pid: int) -> list[str]:
    from fairlead.process._run import run_process

    try:
        listed = run_process(["/bin/ps", "-o", "args=", "-p", str(pid)], deadline=monotonic() + _TIMEOUT).stdout
    except CommandFailed:
        return []
    return listed.decode(errors="replace").split()
