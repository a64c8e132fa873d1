"""A home with a daemon of its own, and the real launcher to ask it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from daemon.forked_daemon import ForkedDaemon, can_fork, fork_server

from fairlead.ipc import DaemonUnavailable, daemon_pid, request
from fairlead.journal import EventRecord, JournalReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from fairlead.journal import Record

BIN = Path(sys.executable).parent
LAUNCHER = BIN / "fairlead-hook"
FAIRLEAD = BIN / "fairlead"

DaemonProcess = subprocess.Popen[bytes] | ForkedDaemon

PATIENCE = 60.0
"""Seconds: far more than anything here takes on a busy machine, where the process of a store yields to all others."""


@dataclass(frozen=True)
class Done:
    """What a process left behind."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def answer(self) -> dict[str, Any]:
        """The client's JSON."""
        document: dict[str, Any] = json.loads(self.stdout or "{}")
        return document


@dataclass
class DaemonHome:
    """A home folder with a project in it."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)
    is_forked: bool = True
    """Whether daemons and some commands are forked where that makes no difference, instead of started by a new
    interpreter."""

    @property
    def project(self) -> Path:
        """The folder that the agent works in."""
        return self.folder / "project"

    @property
    def state(self) -> Path:
        """Fairlead's own folder."""
        return self.folder / "state"

    @property
    def socket(self) -> Path:
        """The daemon's."""
        return self.state / "run/daemon.sock"

    def environment(self, **more: str) -> dict[str, str]:
        """What a process of this home sees."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "FAIRLEAD_HOME": str(self.state),
            "LANG": "C.UTF-8",
            **self.env,
            **more,
        }

    def policy(self, text: str) -> None:
        """Write the project's policy, as a person does before a session: all sessions begin with it."""
        file = self.project / ".fairlead.yaml"
        file.write_text(text)
        shutil.rmtree(self.state / "beginnings", ignore_errors=True)

    def payload(self, **fields: object) -> bytes:
        """Make the payload of a tool call, or of what the fields say."""
        usual = {"session_id": "s1", "cwd": str(self.project), "hook_event_name": "PreToolUse"}
        return json.dumps({**usual, **fields}).encode()

    def edit(self, name: str) -> bytes:
        """The payload of an edit of a file of the project."""
        return self.payload(tool_name="Edit", tool_input={"file_path": str(self.project / name)})

    def hook(self, event: str, payload: bytes, *words: str, **more: str) -> Done:
        """Call the launcher as the client does."""
        return self.run([str(LAUNCHER), event, *words], payload, **more)

    def cold(self, event: str, payload: bytes, *words: str, **more: str) -> Done:
        """Decide without a daemon."""
        return self.run([sys.executable, "-P", "-m", "fairlead", event, *words], payload, **more)

    def fairlead(self, *words: str, **more: str) -> Done:
        """Run a command of a person's."""
        env = self.environment(**more)
        if not (self.is_forked and _is_run_by_python(words) and can_fork(env)):
            return self.run([str(FAIRLEAD), *words], b"", **more)
        command = [str(BIN / "python"), str(BIN / "fairlead-python"), *words]
        code, stdout, stderr = fork_server().run(command, env, self.project)
        return Done(code, stdout.decode(), stderr.decode())

    def run(self, command: list[str], stdin: bytes, **more: str) -> Done:
        """Run a process in the project."""
        done = subprocess.run(
            command, input=stdin, capture_output=True, cwd=self.project, env=self.environment(**more), check=False
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def ask(self, method: str, path: str, **options: Any) -> Any:
        """Ask the daemon."""
        return request(method, path, at=str(self.socket), **options)

    def status(self) -> dict[str, Any] | None:
        """How the daemon is, if it is."""
        try:
            found: dict[str, Any] = self.ask("GET", "/v1/status")
        except DaemonUnavailable:
            return None
        return found

    def has_mail(self) -> bool:
        """Whether the daemon has opened the mail."""
        try:
            return "agents" in self.ask("GET", "/v1/mail/agents")
        except DaemonUnavailable:
            return False

    def start(self, *options: str, **more: str) -> DaemonProcess:
        """Run a daemon, and wait until it answers."""
        command = [sys.executable, "-m", "fairlead.daemon", *options]
        env = self.environment(**more)
        daemon: DaemonProcess
        with (self.folder / "daemon.err").open("ab") as log:
            if self.is_forked and can_fork(env):
                daemon = fork_server().start(command, env, log.fileno())
            else:
                daemon = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(lambda: daemon.poll() is not None or self._is_of(daemon.pid), "the daemon answers")
        return daemon

    def _is_of(self, pid: int) -> bool:
        status = self.status()
        return status is not None and status["pid"] == pid

    @contextmanager
    def daemon(self, *options: str, **more: str) -> Iterator[DaemonProcess]:
        """Run a daemon for a while."""
        daemon = self.start(*options, **more)
        try:
            yield daemon
        finally:
            with suppress(ProcessLookupError):
                daemon.send_signal(signal.SIGCONT)
                daemon.send_signal(signal.SIGTERM)
            daemon.wait(PATIENCE)

    def daemons(self) -> list[int]:
        """The daemons of this home, with those that wait for another to go."""
        if not Path("/proc/self/environ").exists():
            pid = daemon_pid(str(self.state / "run"))
            return [pid] if pid else []
        own = f"FAIRLEAD_HOME={self.state}".encode()
        return [pid for pid, words, env in processes() if b"fairlead.daemon" in words and own in env]

    def journal(self) -> list[Record]:
        """All that was written down."""
        return [record for _, record in JournalReader(str(self.state / "journal")).read()]

    def happened(self) -> list[EventRecord]:
        """The events that were written down."""
        return [record for record in self.journal() if isinstance(record, EventRecord)]

    def spooled(self) -> list[Path]:
        """The events that wait for a daemon."""
        return sorted((self.state / "spool").glob("*.json"))


def _is_run_by_python(words: tuple[str, ...]) -> bool:
    """Return whether the program `fairlead` starts Python for a command whether there is a daemon or not."""
    in_team = words[:1] == ("team",) and words[1:2] in {("join",), ("confirm",), ("remove",), ("leave",)}
    return in_team or words[:1] in {("doctor",), ("hooks",), ("trust",), ("untrust",)}


@contextmanager
def scratch_home(**env: str) -> Iterator[DaemonHome]:
    """Make a home with a short path: a socket's may not be long."""
    folder = Path(tempfile.mkdtemp(prefix="fl", dir="/tmp"))
    home = DaemonHome(folder, env)
    home.project.mkdir()
    home.state.mkdir()
    try:
        yield home
    finally:
        end_all(home)
        shutil.rmtree(folder, ignore_errors=True)


def end_all(home: DaemonHome) -> None:
    """End the daemons that events have started in this home, and those that wait to take their place."""
    for pid in home.daemons():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Wait for a condition. It is looked at less and less often: most of them ask a daemon, or start a process."""
    deadline = monotonic() + seconds
    pause = 0.005
    while not condition():
        assert monotonic() < deadline, f"never came true: {what}"
        sleep(pause)
        pause = min(pause * 1.25, 0.05)


def processes() -> Iterator[tuple[int, list[bytes], list[bytes]]]:
    """All processes of this machine that we may look at: pid, command line, environment."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            yield int(folder.name), words, (folder / "environ").read_bytes().split(b"\0")


def without_times(record: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what differs from run to run."""
    return {key: value for key, value in record.items() if key not in {"id", "at", "seconds"}}
