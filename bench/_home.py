"""A home that is thrown away, with projects under a policy of twenty rules, and daemons that answer in it."""

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

PATIENCE = 30.0
NO_COMPILER = "not measured: needs a C compiler"
_TURN = 0.01


@dataclass(frozen=True)
class Home:
    """Where the measured processes live."""

    folder: Path

    def environment(self, state: str = "state") -> dict[str, str]:
        """What they see: all that Fairlead keeps lies in the folder `state`."""
        return {**ENVIRONMENT, "HOME": str(self.folder), "FAIRLEAD_HOME": str(self.folder / state)}

    def project(self, number: int = 0) -> Path:
        """Give a project, made at the first call."""
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
        """The daemon's."""
        return str(self.folder / "state/run/daemon.sock")


@dataclass(frozen=True)
class Daemon:
    """A server that runs, and what the system says of it."""

    pid: int
    socket: str

    def status(self) -> dict[str, Any]:
        """Ask it."""
        found: dict[str, Any] = request("GET", "/v1/status", at=self.socket)
        return found

    def behind(self) -> int:
        """Bytes of its journal that are not in its store yet; one that has neither is not behind."""
        found = re.search(
            r"^fairlead_store_behind_bytes (\d+)$", request("GET", "/metrics", at=self.socket), re.MULTILINE
        )
        return int(found[1]) if found else 0

    def cpu(self) -> float:
        """Seconds of the processor that its threads have had: other programs disturb them less than the clock's."""
        files = Path(f"/proc/{self.pid}/task").glob("*/schedstat")  # to the nanosecond, where `stat` has 10 ms
        return sum(int(file.read_text().split()[0]) for file in files) / 1e9

    def memory(self) -> int:
        """Bytes that it holds in memory."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Clients:
    """Processes that stand for clients, one for each session: a daemon looks whether they are there."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()

    def pid_of(self, session: str) -> int:
        """Give the process of a session."""
        if session not in self._running:
            self._running[session] = subprocess.Popen(["/bin/sleep", "3600"])
        return self._running[session].pid


@contextmanager
def home() -> Iterator[Home]:
    """Make one. Its path is short, since a socket's may not be long."""
    folder = Path(tempfile.mkdtemp(prefix="flb", dir="/tmp"))
    try:
        yield Home(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def daemon(place: Home, cpu: int | None = None) -> Iterator[Daemon]:
    """Run a daemon, on one processor if that is said."""
    with _running([sys.executable, "-m", "fairlead.daemon"], place, cpu) as process:
        server = Daemon(process.pid, place.socket)
        deadline = monotonic() + PATIENCE
        while not _answers(server):
            if process.poll() is not None or monotonic() > deadline:
                raise RuntimeError(f"the daemon does not come: {(place.folder / 'log').read_text().strip()}")
            sleep(_TURN)
        yield server


@contextmanager
def bare_server(place: Home, cpu: int | None = None) -> Iterator[Daemon]:
    """Run uvicorn with an application that reads a request and answers nothing: the least that such a daemon costs."""
    socket = str(place.folder / "bare.sock")
    with _running([sys.executable, str(Path(__file__).with_name("bare_server.py")), socket], place, cpu) as process:
        deadline = monotonic() + PATIENCE
        while not Path(socket).exists():
            if process.poll() is not None or monotonic() > deadline:
                raise RuntimeError(f"uvicorn does not come: {(place.folder / 'log').read_text().strip()}")
            sleep(_TURN)
        yield Daemon(process.pid, socket)


@contextmanager
def _running(command: Sequence[str], place: Home, cpu: int | None) -> Iterator[subprocess.Popen[bytes]]:
    (place.folder / "state").mkdir(exist_ok=True)
    with (place.folder / "log").open("ab") as log, on_processor(cpu):
        process = subprocess.Popen(
            command, env=place.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/"
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)


@contextmanager
def on_processor(number: int | None) -> Iterator[None]:
    """Start processes on one processor, all their threads included."""
    if number is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {number})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def processors() -> tuple[int | None, int | None]:
    """Give one processor for the server and another for the load, where there are two."""
    if not hasattr(os, "sched_getaffinity") or len(found := sorted(os.sched_getaffinity(0))) < 2:
        return None, None
    return found[0], found[1]


def compiled(source: Path, program: Path, *, static: bool = True) -> bool:
    """Compile a C program, by itself if that can be done; `False` if there is no compiler that works."""
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
