"""The scratch home of `fairlead demo`: made for one run, with a daemon of its own, and removed afterwards."""

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

from fairlead.daemon import START_STAMP
from fairlead.ipc import DaemonUnavailable, daemon_pid, request
from fairlead.process import is_alive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

TIMEOUT = 15.0
"""Seconds for the daemon to start, to catch up, or to stop."""

_POLL_INTERVAL = 0.01
_MAX_FOLDER_LENGTH = 60
"""Maximum length of the temporary folder's path in bytes. The path of a socket below it may have about 100."""


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Context manager in which SIGTERM and SIGHUP raise `KeyboardInterrupt`.

    By default they end Python without a cleanup.
    """
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


class ScratchHome(msgspec.Struct, frozen=True):
    """A home folder that `scratch_home` makes and removes."""

    folder: str

    @property
    def project(self) -> str:
        """The folder of the project that the team works in."""
        return f"{self.folder}/shop"

    @property
    def runtime_folder(self) -> str:
        """The folder of the daemon's socket and lock."""
        return f"{self.folder}/fairlead/run"

    @property
    def socket(self) -> str:
        """The path of the daemon's socket."""
        return f"{self.runtime_folder}/daemon.sock"

    def environment(self) -> dict[str, str]:
        """Return the environment of a process in this home. It keeps the user's PATH, TERM, TZ and locale."""
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
        """Return the daemon's status; `None` if no daemon answers."""
        try:
            document: dict[str, Any] = request("GET", "/v1/status", at=self.socket)
        except DaemonUnavailable:
            return None
        return document


@contextmanager
def scratch_home(files: Mapping[str, str]) -> Iterator[ScratchHome]:
    """Yield a new home with `files` in its project. Afterwards stop its daemon and remove everything.

    `files` are texts by their path, relative to the project.
    """
    folder = os.path.realpath(tempfile.gettempdir())
    folder = folder if len(os.fsencode(folder)) <= _MAX_FOLDER_LENGTH else "/tmp"  # noqa: S108 - mkdtemp makes its own
    home = ScratchHome(tempfile.mkdtemp(prefix="fairlead-demo-", dir=folder))
    try:
        for name in ("temporary", "run"):
            Path(home.folder, name).mkdir(mode=0o700)
        for name, text in files.items():
            file = Path(home.project, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        yield home
    finally:
        _stop_daemon(home)
        shutil.rmtree(home.folder, ignore_errors=True)


def _stop_daemon(home: ScratchHome) -> None:
    """Stop the daemon if one was started, even if it does not answer yet. Kill it if it does not end in time."""
    if not Path(home.runtime_folder, START_STAMP).exists():
        return
    wait_for(home.status)
    pid = daemon_pid(home.runtime_folder)
    with suppress(DaemonUnavailable):
        request("POST", "/v1/stop", at=home.socket)
    if pid and wait_for(lambda: not is_alive(pid)) is None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_for(poll: Callable[[], Any]) -> Any:
    """Call `poll` until it returns a true value, and return that value; `None` after `TIMEOUT` seconds."""
    deadline = perf_counter() + TIMEOUT
    while not (result := poll()):
        if perf_counter() > deadline:
            return None
        sleep(_POLL_INTERVAL)
    return result
