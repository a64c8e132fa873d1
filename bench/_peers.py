"""Peers that are built or installed: how each is started, in a folder of its own.

`peers.md` says how to get them. They are looked for in the folder that `PEERS` names, beside the interpreter, and on
the `PATH`.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep, time
from typing import TYPE_CHECKING

from bench._harness import ENVIRONMENT
from bench._home import TIMEOUT, compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ABSENT = "not built: see bench/peers.md"
SESSION = "11111111-0000-4000-8000-000000000000"
OTHER = "22222222-0000-4000-8000-000000000000"
_POLL_INTERVAL = 0.01
_SET_NAME = 15
"""`PR_SET_NAME` of prctl(2)."""


@dataclass(frozen=True)
class Command:
    """A process to time."""

    words: list[str]
    env: dict[str, str]
    stdin: Path | None = None


def find(name: str) -> str | None:
    """Return the path of a peer's program."""
    folders = [os.environ.get("PEERS", ""), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    return shutil.which(name, path=os.pathsep.join(filter(None, folders)))


def conclaude(event: str, payload: Path, env: dict[str, str]) -> Command | None:
    """Return conclaude's command for an event; it has no daemon."""
    program = find("conclaude")
    return None if program is None else Command([program, "Hooks", event], env, payload)


class Hcom:
    """hcom with a session that it knows, as if it had launched it: without one, its hooks return at once."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        folder.mkdir()
        self._env = {**ENVIRONMENT, "HOME": str(folder), "HCOM_DIR": str(folder / ".hcom")}
        self._agent, self._sender = self._start_agent(), self._start_agent()
        with closing(sqlite3.connect(folder / ".hcom/hcom.db")) as db, db:
            values = {"session": SESSION, "name": self._agent, "now": time()}
            for statement in _HCOM_SESSION:
                db.execute(statement, values)

    def hook(self, payload: Path) -> Command:
        """Return its command for PreToolUse."""
        session = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": SESSION, "HCOM_LAUNCHED": "1"}
        env = {**self._env, **session, "HCOM_PROCESS_ID": "p1", "HCOM_TOOL": "claude"}
        return Command([self._program, "pre"], env, payload)

    def commands(self) -> dict[str, Command]:
        """Return its commands that correspond to ours."""
        words = {
            "send": ["send", f"@{self._agent}", "--name", self._sender, "--quiet", "--", "Hello."],
            "inbox": ["events", "--type", "message", "--last", "20"],
            "status": ["status"],
            "sessions": ["list"],
            "events --last 20": ["events", "--last", "20"],
        }
        return {name: Command([self._program, *rest], self._env) for name, rest in words.items()}

    def _start_agent(self) -> str:
        done = subprocess.run([self._program, "start"], env=self._env, capture_output=True, text=True, check=True)
        return done.stdout.rpartition("[hcom:")[2].partition("]")[0]


_HCOM_SESSION = (
    "UPDATE instances SET tool = 'claude', session_id = :session, status = 'active' WHERE name = :name",
    "INSERT OR REPLACE INTO session_bindings VALUES (:session, :name, :now)",
    "INSERT OR REPLACE INTO process_bindings VALUES ('p1', :session, :name, :now)",
    "INSERT OR REPLACE INTO kv VALUES ('claude_lineage_validated:' || :session, :name)",
)


@contextmanager
def atm_hook(folder: Path, payload: Path) -> Iterator[Command | None]:
    """Run atm's daemon; yield the command of its hook, which needs `jq` and `socat`."""
    daemon, hook = find("atmd"), find("atm-hook")
    if not (daemon and hook and find("jq") and find("socat")):
        yield None
        return
    server = folder / "atm.sock"
    path = os.pathsep.join([os.environ.get("PEERS", ""), ENVIRONMENT["PATH"]]).strip(os.pathsep)
    env = {"PATH": path, "LANG": "C.UTF-8", "HOME": str(folder), "ATM_SOCKET": str(server)}
    env["XDG_STATE_HOME"] = str(folder / "atm")
    ctypes.CDLL(None).prctl(_SET_NAME, b"claude", 0, 0, 0)  # its hook looks for an ancestor of that name
    with _server([daemon, "start"], env, folder / "atm.log", server.exists):
        yield Command([hook], env, payload)


@contextmanager
def floor(folder: Path, payload: Path) -> Iterator[Command | None]:
    """Run a server that decides nothing; yield a process with musl that asks it, if there is `musl-gcc`."""
    source, server, client = Path(__file__).with_name("floor.c"), folder / "floor", folder / "floor-musl"
    compiler = find("musl-gcc")
    if not compiler or not compiled(source, server):
        yield None
        return
    subprocess.run([compiler, "-O2", "-static", "-o", str(client), str(source)], check=True)
    line = folder / "floor.sock"
    with _server([str(server), str(line), "serve"], ENVIRONMENT, folder / "floor.log", line.exists):
        yield Command([str(client), str(line)], ENVIRONMENT, payload)


@contextmanager
def subtrate_commands(folder: Path) -> Iterator[dict[str, Command]]:
    """Run Subtrate's daemon with two agents; yield its commands that correspond to ours."""
    program, daemon = find("substrate"), find("substrated")
    if not (program and daemon):
        yield {}
        return
    (folder / ".subtrate").mkdir(parents=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    env = {**ENVIRONMENT, "HOME": str(folder), "SUBSTRATE_GRPC_ADDR": address}
    database = folder / ".subtrate/subtrate.db"
    start = [daemon, "-db", str(database), "-web", "", "-grpc", address, "-log-dir", ""]
    with _server(start, env, folder / "log", lambda: _listens(address)):
        for session, name in ((SESSION, "Mine"), (OTHER, "Yours")):
            register = [program, "agent", "register", name, "--session-id", session]
            subprocess.run(register, env=env, check=True, capture_output=True)
            _bind_subtrate_session(database, session, name, folder)
        words = {
            "send": ["send", "--to", "Yours", "--subject", "Are you there?", "--body", "Hello."],
            "inbox": ["inbox"],
            "poll": ["poll", "--quiet", "--format", "context"],
            "heartbeat": ["heartbeat"],
            "status": ["status"],
        }
        yield {name: Command([program, *rest, "--session-id", SESSION], env) for name, rest in words.items()}


def _bind_subtrate_session(database: Path, session: str, name: str, project: Path) -> None:
    """Give a session an agent of its own: two sessions of one folder would become one agent."""
    with closing(sqlite3.connect(database, timeout=TIMEOUT)) as db, db:
        db.execute(
            "INSERT OR REPLACE INTO session_identities SELECT ?, id, ?, NULL, ?, ? FROM agents WHERE name = ?",
            (session, str(project), int(time()), int(time()), name),
        )


def _listens(address: str) -> bool:
    host, _, port = address.partition(":")
    with socket.socket() as line:
        return line.connect_ex((host, int(port))) == 0


@contextmanager
def _server(words: list[str], env: dict[str, str], log: Path, is_ready: Callable[[], bool]) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/")
    try:
        deadline = monotonic() + TIMEOUT
        while not is_ready():
            if process.poll() is not None or monotonic() > deadline:
                raise RuntimeError(f"{words[0]} did not start: {log.read_text(errors='replace').strip()}")
            sleep(_POLL_INTERVAL)
        yield
    finally:
        process.terminate()
        process.wait(TIMEOUT)
