"""A sealed room: the namespaces of `sealed`, kept open for as long as a test needs them.

What is begun in it goes on beside the test: a terminal, the client in that, a daemon, and commands of a person.
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from e2e.model import read_requests
from e2e.sealed import REQUESTS, TIMEOUT, Job, NotSealed, sealing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from e2e.model import Request, Script, Subagents


@dataclass(frozen=True)
class Room:
    """Namespaces that stay, with the model in them."""

    folder: Path
    env: dict[str, str]
    """What each program in it sees."""
    keeper: int
    """The pid, outside of it, of the process that holds it open."""

    def run(self, *argv: str | Path, timeout: float = TIMEOUT, network: str = "") -> subprocess.CompletedProcess[str]:
        """Run a program in it, in the project, until it ends.

        `network` is the file of another network namespace, for a daemon that has to reach other hosts. The client
        beside it stays in the room's own, which has loopback alone: they meet at the daemon's Unix socket.
        """
        command = self._in_here(argv, network)
        return subprocess.run(command, check=False, env=self.env, capture_output=True, text=True, timeout=timeout)

    def start(self, *argv: str | Path) -> subprocess.Popen[str]:
        """Begin a program in it, in the project. It is for the caller to wait for."""
        pipe = subprocess.PIPE
        return subprocess.Popen(self._in_here(argv), env=self.env, stdout=pipe, stderr=pipe, text=True)

    def requests(self) -> list[Request]:
        """What the model was asked until now."""
        return read_requests(self.folder / REQUESTS)

    def _in_here(self, argv: Sequence[str | Path], network: str = "") -> list[str | Path]:
        spaces = f"/proc/{self.keeper}/ns"
        user = [] if os.geteuid() == 0 else [f"--user={spaces}/user", "--preserve-credentials"]
        doors = [f"--net={network or f'{spaces}/net'}", f"--mount={spaces}/mnt", f"--pid={spaces}/pid_for_children"]
        return ["nsenter", *user, *doors, f"--wd={self.folder / 'project'}", "--", *argv]


@contextmanager
def room(
    folder: Path, *, script: Script = (), subagent: Subagents = (), env: Mapping[str, str] | None = None
) -> Iterator[Room]:
    """Open a room whose model answers by a script. Whatever still runs in it at the end is killed."""
    job = Job([], str(folder.resolve()), script, subagent, env=dict(env or {}))
    with (folder / "room.err").open("w+") as errors:
        pipe = subprocess.PIPE
        with subprocess.Popen(sealing(job), stdin=pipe, stdout=pipe, stderr=errors, text=True) as keeper:
            try:
                ready = keeper.stdout.readline() if keeper.stdout else ""
                if ready:
                    yield Room(folder.resolve(), json.loads(ready), keeper.pid)
                keeper.communicate(timeout=TIMEOUT)
            finally:
                keeper.kill()
        if keeper.returncode != 0:
            errors.seek(0)
            raise NotSealed(errors.read())
