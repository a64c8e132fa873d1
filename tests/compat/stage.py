"""A scratch home, its daemon and its clients, for tests that run the code under test on samples of version 0.1.0.

The code under test is reached through the installed programs, the socket and files, since its modules may move.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep, time
from typing import IO, TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SAMPLES = Path(__file__).with_name("samples")
BIN = Path(sys.executable).parent
FAIRLEAD = BIN / "fairlead"
LAUNCHER = BIN / "fairlead-hook"
VERSION = "0.1.0"
"""Of the samples."""
PATIENCE = 30.0
"""Seconds: far more than anything here takes on a busy machine."""

_NEUTRAL = b"/home/user"
"""The home in all samples; its project is in `project`, Fairlead's own files are in `state`."""
_SHIFT = int(time()) - 1_794_839_990
"""Seconds since the samples were written."""
_TIMES = re.compile(rb"\b1794\d{6}(?=\.\d)")


class Done(NamedTuple):
    """How a process ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The answer, if it is JSON."""
        return json.loads(self.out)


class Answer(NamedTuple):
    """An answer of the daemon."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Home:
    """A home folder, with Fairlead's own files in `state`."""

    folder: Path

    @property
    def state(self) -> Path:
        """Fairlead's own folder."""
        return self.folder / "state"

    @property
    def socket_file(self) -> Path:
        """The daemon's socket."""
        return self.state / "run/daemon.sock"

    @property
    def log(self) -> Path:
        """The daemon's stdout and stderr."""
        return self.folder / "daemon.log"

    def project(self, name: str = "project", policy: str = "") -> Path:
        """Return a folder to work in, with that policy."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        if policy:
            (folder / ".fairlead.yaml").write_text(policy, encoding="utf-8")
        return folder

    def env(self, **more: str) -> dict[str, str]:
        """Return the environment of a process of this home. No event starts a daemon by itself."""
        own = {"HOME": str(self.folder), "FAIRLEAD_HOME": str(self.state), "FAIRLEAD_NO_DAEMON": "1"}
        return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **own, **more}

    def popen(self, command: list[str], cwd: Path | None = None, **more: Any) -> subprocess.Popen[bytes]:
        """Start a process without a terminal of its own."""
        usual: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        env = self.env(**more.pop("env", {}))
        return subprocess.Popen(command, cwd=cwd or self.folder, env=env, start_new_session=True, **{**usual, **more})

    def run(self, command: list[str], stdin: bytes = b"", cwd: Path | None = None, **more: Any) -> Done:
        """Run a process to its end."""
        process = self.popen(command, cwd, **more)
        out, err = process.communicate(stdin, timeout=PATIENCE)
        return Done(process.returncode, (out or b"").decode(), (err or b"").decode())

    def fairlead(self, *words: str, cwd: Path | None = None, **env: str) -> Done:
        """Run a command that must succeed."""
        done = self.run([str(FAIRLEAD), *words], cwd=cwd, env=env)
        assert done.code == 0, done
        return done

    def events(self, *words: str) -> list[dict[str, Any]]:
        """Return the records of the journal, as `fairlead events --json` prints them."""
        lines = self.fairlead("events", "--json", *words).out.splitlines()
        return [json.loads(line) for line in lines]

    def spooled(self) -> list[dict[str, Any]]:
        """Return the records that wait for a daemon."""
        return [json.loads(file.read_bytes()) for file in sorted((self.state / "spool").glob("*.json"))]

    def ask(self, path: str, method: str = "GET") -> Any:
        """Ask the daemon for JSON."""
        lines = (f"{method} {path} HTTP/1.1", "host: fairlead", "connection: close", "content-length: 0", "", "")
        return json.loads(self.talk("\r\n".join(lines).encode()).body)

    def talk(self, request: bytes) -> Answer:
        """Send bytes to the daemon, read its answer, and send the receipt if it asks for one."""
        with self.connect() as connection:
            connection.sendall(request)
            answer = read_answer(connection)
            if "fairlead-ack" in answer.headers:
                connection.sendall(b"\n")
            return answer

    def connect(self) -> socket.socket:
        """Connect to the daemon."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        try:
            connection.connect(str(self.socket_file))
        except OSError:
            connection.close()
            raise
        return connection

    @property
    def waiting(self) -> int:
        """How many wait for mail."""
        return int(self.ask("/v1/status")["waiting"])

    @contextmanager
    def daemon(self, *, mail: bool = False) -> Iterator[int]:
        """Run a daemon, and stop it at the end; `mail`: wait until its mail is open. Yields its pid."""
        with self.log.open("ab") as log:
            process = self.popen([str(FAIRLEAD), "daemon", "run"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            until(lambda: process.poll() is not None or self._answers(), "the daemon answers")
            assert process.poll() is None, self.log.read_text()
            if mail:
                until(lambda: "agents" in self.ask("/v1/mail/agents"), "the mail is open")
            yield process.pid
        finally:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)

    def _answers(self) -> bool:
        try:
            return "pid" in self.ask("/v1/status")
        except OSError:
            return False


@contextmanager
def new_home() -> Iterator[Home]:
    """Make a home with a short path: the path of a socket has room for 107 bytes, which `tmp_path` can exceed."""
    folder = Path(tempfile.mkdtemp(prefix="fl", dir="/tmp")).resolve()
    home = Home(folder)
    home.state.mkdir(mode=0o700)
    try:
        yield home
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Client:
    """A session of a client, which starts an old launcher for each event. The client's process is alive."""

    home: Home
    launcher: Path
    session: str
    pid: int
    cwd: Path

    def command(self, *words: str) -> list[str]:
        """Return the command line of a hook, as `fairlead hooks install` of that version wrote it."""
        return [str(self.launcher), *words, "--python", sys.executable]

    def payload(self, event: str, **fields: object) -> bytes:
        """Return the payload of an event."""
        usual = {"session_id": self.session, "cwd": str(self.cwd), "hook_event_name": event}
        return json.dumps({**usual, **fields}).encode()

    def hook(self, event: str, *words: str, env: dict[str, str] | None = None, **fields: object) -> Done:
        """Run the hook of an event."""
        return self.home.run(
            self.command(event, *words), self.payload(event, **fields), self.cwd, env={**self._env(), **(env or {})}
        )

    def begin(
        self,
        event: str,
        *words: str,
        env: dict[str, str] | None = None,
        stdout: IO[bytes] | int = subprocess.PIPE,
        **fields: object,
    ) -> subprocess.Popen[bytes]:
        """Start the hook of an event, and do not wait for its end."""
        env = {**self._env(), **(env or {})}
        process = self.home.popen(self.command(event, *words), self.cwd, env=env, stdout=stdout)
        assert process.stdin is not None
        process.stdin.write(self.payload(event, **fields))
        process.stdin.close()
        process.stdin = None
        return process

    def edit(self, name: str) -> Done:
        """Run the hook before an edit of a file of the project."""
        tool_input = {"file_path": str(self.cwd / name), "old_string": "a", "new_string": "b"}
        return self.hook("PreToolUse", tool_name="Edit", tool_input=tool_input)

    @property
    def name(self) -> str:
        """The name by which others write to it."""
        rows = self.home.ask("/v1/mail/agents?all=true")["agents"]
        return next(str(row["name"]) for row in rows if row["session"] == self.session and not row["agent_id"])

    def send(self, subject: str) -> int:
        """Send a message to it from a script; return the message's number."""
        return int(self.home.fairlead("send", self.name, "--subject", subject, "--json").json["id"])

    def stage(self, message: int) -> str:
        """Return the stage of a message to it: queued, shown, ..."""
        document = self.home.fairlead("read", str(message), "--json").json
        return str(document["letters"][0]["stage"])

    def _env(self) -> dict[str, str]:
        return {"CLAUDE_PID": str(self.pid), "CLAUDE_PROJECT_DIR": str(self.cwd)}


@contextmanager
def living() -> Iterator[int]:
    """Run a process that stands for a client's; yield its pid."""
    with subprocess.Popen([sys.executable, "-IS", "-c", "input()"], stdin=subprocess.PIPE) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def recent(sample: bytes) -> bytes:
    """Move the times of a sample to now, since old sessions are forgotten. Offsets stay valid: no size changes."""
    return _TIMES.sub(lambda match: b"%d" % (int(match[0]) + _SHIFT), sample)


def placed(sample: bytes, home: Home) -> bytes:
    """Move the paths of a request or an answer into a home, and correct its sizes."""
    head, _, body = sample.partition(b"\r\n\r\n")
    size = int((head.partition(b"fairlead-stdout: ")[2].split() or [b"0"])[0])
    head, out, err = (part.replace(_NEUTRAL, os.fsencode(home.folder)) for part in (head, body[:size], body[size:]))
    head = re.sub(rb"fairlead-stdout: \d+", b"fairlead-stdout: %d" % len(out), head)
    head = re.sub(rb"content-length: \d+", b"content-length: %d" % len(out + err), head)
    return head + b"\r\n\r\n" + out + err


def of_process(request: bytes, pid: int) -> bytes:
    """Return a request as a launcher below that process would send it."""
    start = start_of(pid)
    request = re.sub(rb"fairlead-pid: \d+", b"fairlead-pid: %d" % pid, request)
    return re.sub(rb"fairlead-start: \d+\r\n", b"fairlead-start: %d\r\n" % start if start else b"", request)


def start_of(pid: int) -> int:
    """Return the start of a process, in clock ticks since the machine's start; 0 if the system does not report it."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])
    except OSError:
        return 0


def read_answer(connection: socket.socket) -> Answer:
    """Read one answer, and leave the connection open."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(1 << 16)
        if not more:
            raise ConnectionError("closed without an answer")
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    while len(body) < int(headers["content-length"]):
        body += connection.recv(1 << 16)
    return Answer(int(first.split()[1]), headers, body)


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition."""
    deadline = monotonic() + PATIENCE
    while not condition():
        assert monotonic() < deadline, f"never came true: {what}"
        sleep(0.01)
