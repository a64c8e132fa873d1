"""A temporary home with projects that have a policy of twenty rules, and the daemons of that home."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Self

from bench._harness import ENVIRONMENT
from bench.policy import POLICY
from fairlead.ipc import DaemonUnavailable, request

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TIMEOUT = 30.0
NO_COMPILER = "not measured: needs a C compiler"
_POLL_INTERVAL = 0.01


@dataclass(frozen=True)
class Home:
    """The home of the measured processes."""

    folder: Path

    def environment(self, state: str = "state") -> dict[str, str]:
        """Return the environment of processes; all files of Fairlead are in the folder `state`."""
        return {**ENVIRONMENT, "HOME": str(self.folder), "FAIRLEAD_HOME": str(self.folder / state)}

    def project(self, number: int = 0) -> Path:
        """Return a project, created at the first call."""
        folder = self.folder / f"project{number}"
        if not folder.exists():
            for name in ("src", "nested"):
                (folder / name).mkdir(parents=True)
            for name in ("src/main.py", "hello.txt", "missing.txt", "new.txt"):
                (folder / name).write_text("hello\n")
            (folder / ".fairlead.yaml").write_text(POLICY)
        return folder

    @property
    def socket(self) -> str:
        """The path of the daemon's socket."""
        return str(self.folder / "state/run/daemon.sock")


@dataclass(frozen=True)
class Daemon:
    """A running server, and its resource usage."""

    pid: int
    socket: str

    def status(self) -> dict[str, Any]:
        """Request its status."""
        status: dict[str, Any] = request("GET", "/v1/status", at=self.socket)
        return status

    def behind(self) -> int:
        """Return the bytes of its journal that are not in its store yet; 0 for a server without a journal."""
        match = re.search(
            r"^fairlead_store_behind_bytes (\d+)$", request("GET", "/metrics", at=self.socket), re.MULTILINE
        )
        return int(match[1]) if match else 0

    def cpu(self) -> float:
        """Return the CPU seconds of its threads: other programs disturb them less than wall time."""
        return _cpu_of(self.pid)

    def children_cpu(self) -> float:
        """Return the CPU seconds of its child processes."""
        return sum(map(_cpu_of, self._children()))

    def memory(self) -> int:
        """Return the memory of it and its child processes in bytes. Pages that they share count once."""
        return sum(map(_memory_of, (self.pid, *self._children())))

    def _children(self) -> list[int]:
        files = Path(f"/proc/{self.pid}/task").glob("*/children")
        return [int(child) for file in files for child in file.read_text().split()]


def _cpu_of(pid: int) -> float:
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")  # in nanoseconds; `stat` has a resolution of 10 ms
    return sum(int(file.read_text().split()[0]) for file in files) / 1e9


def _memory_of(pid: int) -> int:
    """Return the proportional set size of a process."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(text.partition("\nPss:")[2].split()[0]) * 1024


class Clients:
    """Processes that act as clients, one for each session: the daemon checks whether they are alive."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()

    def pid_of(self, session: str) -> int:
        """Return the pid of a session's process."""
        if session not in self._running:
            self._running[session] = subprocess.Popen(["/bin/sleep", "3600"])
        return self._running[session].pid


@contextmanager
def scratch_home() -> Iterator[Home]:
    """Create a temporary home with a short path: the paths of sockets have a limit."""
    folder = Path(tempfile.mkdtemp(prefix="flb", dir="/tmp"))
    try:
        yield Home(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def daemon(home: Home, cpu: int | None = None) -> Iterator[Daemon]:
    """Run a daemon, optionally on one CPU."""
    with _running([sys.executable, "-m", "fairlead.daemon"], home, cpu) as process:
        server = Daemon(process.pid, home.socket)
        deadline = monotonic() + TIMEOUT
        while not _answers(server):
            if process.poll() is not None or monotonic() > deadline:
                raise RuntimeError(f"the daemon did not start: {(home.folder / 'log').read_text().strip()}")
            sleep(_POLL_INTERVAL)
        yield server


@contextmanager
def bare_server(home: Home, cpu: int | None = None) -> Iterator[Daemon]:
    """Run uvicorn with an application that answers nothing: the minimum cost of a daemon in Python."""
    socket = str(home.folder / "bare.sock")
    with _running([sys.executable, str(Path(__file__).with_name("bare_server.py")), socket], home, cpu) as process:
        deadline = monotonic() + TIMEOUT
        while not Path(socket).exists():
            if process.poll() is not None or monotonic() > deadline:
                raise RuntimeError(f"uvicorn did not start: {(home.folder / 'log').read_text().strip()}")
            sleep(_POLL_INTERVAL)
        yield Daemon(process.pid, socket)


@contextmanager
def _running(command: Sequence[str], home: Home, cpu: int | None) -> Iterator[subprocess.Popen[bytes]]:
    (home.folder / "state").mkdir(exist_ok=True)
    with (home.folder / "log").open("ab") as log, on_cpu(cpu):
        process = subprocess.Popen(
            command, env=home.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/"
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        process.wait(TIMEOUT)


@contextmanager
def on_cpu(number: int | None) -> Iterator[None]:
    """Start processes on one CPU, including all their threads."""
    if number is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {number})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def two_cpus() -> tuple[int | None, int | None]:
    """Return one CPU for the server and another for the load, if there are two."""
    if not hasattr(os, "sched_getaffinity") or len(cpus := sorted(os.sched_getaffinity(0))) < 2:
        return None, None
    return cpus[0], cpus[1]


def compiled(source: Path, program: Path, *, static: bool = True) -> bool:
    """Compile a C program, statically linked if possible; return `False` without a working compiler."""
    compiler = shutil.which(os.environ.get("CC") or "cc")
    if compiler is None:
        return False
    for flags in (["-static"], []) if static else ([],):
        done = subprocess.run(
            [compiler, "-O2", *flags, "-o", str(program), str(source), "-lm"], capture_output=True, check=False
        )
        if done.returncode == 0:
            return True
    return False


def _answers(server: Daemon) -> bool:
    try:
        return bool(server.status()["pid"] == server.pid)
    except DaemonUnavailable:
        return False
