"""The home of `fairlead demo`: made for one run, with a daemon of its own, and gone afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.ipc import DaemonUnavailable, request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PATIENCE = 15.0
"""Seconds for the daemon to come, to keep up, or to go."""

_TURN = 0.01
_LONGEST_FOLDER = 60
"""Bytes of the folder for temporary files: below it lies a socket, whose path may have about a hundred."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Clean up also when it is told to go: by default Python would just be gone."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


class Stage(msgspec.Struct, frozen=True):
    """The home that is thrown away."""

    folder: str

    @property
    def project(self) -> str:
        """The folder that the team works in."""
        return f"{self.folder}/shop"

    @property
    def socket(self) -> str:
        """The daemon's."""
        return f"{self.folder}/fairlead/run/daemon.sock"

    def environment(self) -> dict[str, str]:
        """Give all that a process here sees: of the person's own, only what has to do with language and programs."""
        kept = {k: v for k, v in os.environ.items() if k in {"PATH", "LANG", "TERM", "TZ"} or k.startswith("LC_")}
        moved = {f"XDG_{name}_HOME": f"{self.folder}/{name.lower()}" for name in ("CACHE", "CONFIG", "DATA", "STATE")}
        return {
            **kept,
            **moved,
            "HOME": self.folder,
            "FAIRLEAD_HOME": f"{self.folder}/fairlead",
            "XDG_RUNTIME_DIR": f"{self.folder}/run",
            "TMPDIR": f"{self.folder}/temporary",
        }

    def status(self) -> dict[str, Any] | None:
        """Ask the daemon how it is; `None` if there is none yet, or no more."""
        try:
            found: dict[str, Any] = request("GET", "/v1/status", at=self.socket)
        except DaemonUnavailable:
            return None
        return found


@contextmanager
def scratch(files: Mapping[str, str]) -> Iterator[Stage]:
    """Make the home, with these files in its project, and leave nothing of it: no daemon, no file."""
    place = os.path.realpath(tempfile.gettempdir())
    place = place if len(os.fsencode(place)) <= _LONGEST_FOLDER else "/tmp"  # noqa: S108 - mkdtemp's is nobody else's
    stage = Stage(tempfile.mkdtemp(prefix="fairlead-demo-", dir=place))
    try:
        for name in ("temporary", "run"):
            Path(stage.folder, name).mkdir(mode=0o700)
        for name, text in files.items():
            file = Path(stage.project, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        yield stage
    finally:
        _end_daemon(stage)
        shutil.rmtree(stage.folder, ignore_errors=True)


def _end_daemon(stage: Stage) -> None:
    """Stop the daemon, also one that was begun a moment ago and does not answer yet."""
    if not Path(stage.folder, "fairlead/run/starting").exists():
        return
    wait(stage.status)
    pid = _daemon_pid(stage)
    with suppress(DaemonUnavailable):
        request("POST", "/v1/stop", at=stage.socket)
    if pid and wait(lambda: not _is_alive(pid)) is None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _daemon_pid(stage: Stage) -> int:
    """Read who holds the daemon's lock; 0 if nobody does."""
    try:
        text = Path(stage.folder, "fairlead/run/daemon.lock").read_text("ascii").strip()
    except OSError:
        return 0
    return int(text) if text.isdigit() else 0


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait(look: Callable[[], Any]) -> Any:
    """Wait until there is something to see, and give it; `None` if there never is."""
    deadline = perf_counter() + PATIENCE
    while not (found := look()):
        if perf_counter() > deadline:
            return None
        sleep(_TURN)
    return found
