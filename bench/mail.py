"""Delivery of mail: the time from the sender to a waiting agent, and the memory of many waiting agents.

The waiting agents are launchers that run as Stop hooks. hcom does the same with `hcom send` and `hcom listen`, so it is
compared with the whole command `fairlead send`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from time import monotonic, perf_counter, sleep
from typing import TYPE_CHECKING, Any

from bench._harness import Timing
from bench._home import TIMEOUT, Clients, daemon, scratch_home
from bench._table import Row, Target
from bench.launcher import LAUNCHER
from bench.without_daemon import PYTHON
from fairlead.ipc import DaemonUnavailable, request
from fairlead.testing import make_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench._harness import Effort
    from bench._home import Daemon, Home

MANY = 500
FEW = 25
"""Waiting agents in a quick run."""
POLICY = "mail: {stay: always, maxTurnsPerThread: 0, maxTurnsPerHour: 0}\n"
HCOM = "hcom 0.7.31, native, send to listen"
_POLL_INTERVAL = 0.005


def rows(effort: Effort) -> list[Row]:
    """Return the rows about mail."""
    rounds, many = (3, FEW) if effort.is_quick else (effort.process_rounds, MANY)
    with scratch_home() as home, daemon(home) as server, Clients() as clients:
        bench = MailBench(home, server, clients)
        sent = Timing.of([bench.deliver(bench.by_request) for _ in range(rounds)])
        commanded = Timing.of([bench.deliver(bench.by_command) for _ in range(rounds)])
        theirs = _hcom(home, rounds)
        memory = bench.memory_of(many)
    return [
        Row("mail", "send, until a waiting Stop has printed it", "ms", sent, "", target=Target("time", 10)),
        Row("mail", "the same, by `fairlead send`", "ms", commanded, HCOM, theirs),
        Row("mail", f"memory with {many} agents waiting", "MB", memory, "", target=Target("time", 120)),
    ]


class MailBench:
    """Waiting sessions, and a sender."""

    def __init__(self, home: Home, server: Daemon, clients: Clients) -> None:
        self._place = home
        self._clients = clients
        self._server = server
        self._project = home.project()
        (self._project / ".fairlead.yaml").write_text(POLICY)
        self._session = "00000000-0000-4000-8000-000000000000"
        self.name = self.start_session(self._session)

    def deliver(self, send: Callable[[], object]) -> float:
        """Return the seconds from the start of the sender until the hook has printed the message."""
        with self._waiting([self._session]) as (hook,):
            assert hook.stdout is not None
            start = perf_counter()
            send()
            printed = hook.stdout.readline()
            seconds = perf_counter() - start
            hook.wait(TIMEOUT)  # if killed before it acknowledges the message, the message would be shown again
        if b"Are you there?" not in printed:
            raise RuntimeError(f"the waiting hook printed {printed!r}")
        return seconds

    def by_request(self) -> None:
        """Send with an HTTP request to the daemon."""
        self.request("POST", "/v1/mail/send", {"to": [self.name], "subject": "Are you there?"})

    def by_command(self, to: str = "") -> None:
        """Send with the command, to another agent if it is named."""
        command = [str(LAUNCHER.with_name("fairlead")), "send", to or self.name, "--subject", "Are you there?"]
        subprocess.run(command, env=self._place.environment(), check=True, capture_output=True)

    def memory_of(self, many: int) -> Timing:
        """Return the memory of the daemon while many agents wait."""
        names = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(1, many + 1)]
        for name in names:
            self.start_session(name)
        with self._waiting(names):
            memory = self._server.memory()
        return Timing(memory, memory)

    def start_session(self, session: str) -> str:
        """Start a session, and return its agent's name."""
        started = make_payload("SessionStart", cwd=str(self._project), session_id=session)
        self._hook("SessionStart", started).communicate()
        deadline = monotonic() + TIMEOUT
        while not (name := self._agent_of(session)):
            if monotonic() > deadline:
                raise RuntimeError(f"session {session} has no agent")
            sleep(_POLL_INTERVAL)
        return name

    def _agent_of(self, session: str) -> str:
        """Return the name of a session's agent; empty until the mail is open and knows it."""
        listed = self.request("GET", "/v1/mail/agents?all=true").get("agents", ())
        return next((str(agent["name"]) for agent in listed if agent["session"] == session), "")

    @contextmanager
    def _waiting(self, sessions: Sequence[str]) -> Iterator[list[subprocess.Popen[bytes]]]:
        with ExitStack() as stack:
            payloads = [make_payload("Stop", cwd=str(self._project), session_id=name) for name in sessions]
            hooks = [stack.enter_context(self._hook("Stop", payload)) for payload in payloads]
            for hook in hooks:
                stack.callback(hook.terminate)
            deadline = monotonic() + TIMEOUT
            while self._server.status()["waiting"] != len(hooks):
                if monotonic() > deadline:
                    raise RuntimeError(f"not all {len(hooks)} hooks are waiting")
                sleep(_POLL_INTERVAL)
            yield hooks

    def _hook(self, event: str, payload: dict[str, Any]) -> subprocess.Popen[bytes]:
        command = [str(LAUNCHER), event, "--python", PYTHON]
        env = {**self._place.environment(), "CLAUDE_PID": str(self._clients.pid_of(payload["session_id"]))}
        hook = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=self._project)
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(payload).encode())
        hook.stdin.close()
        hook.stdin = None
        return hook

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Ask the daemon, as soon as it answers."""
        deadline = monotonic() + TIMEOUT
        while True:
            try:
                return request(method, path, at=self._server.socket, body=body)
            except DaemonUnavailable:
                if monotonic() > deadline:
                    raise
                sleep(_POLL_INTERVAL)


def _hcom(home: Home, rounds: int) -> Timing | None:
    """Time the peer, in its own folder; `None` if it is not installed."""
    program = which("hcom", path=str(Path(sys.executable).parent))
    if program is None:
        return None
    folder = home.folder / "hcom"
    folder.mkdir()
    env = {**home.environment(), "HOME": str(folder), "HCOM_DIR": str(folder / ".hcom")}
    return Timing.of([_deliver(Peer(program, env, folder)) for _ in range(rounds)])


@dataclass(frozen=True)
class Peer:
    """hcom, in its folder."""

    program: str
    env: dict[str, str]
    folder: Path

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            [self.program, *words],
            env=self.env,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, *words: str) -> str:
        """Run a command."""
        with self.start(*words) as process:
            output, _ = process.communicate()
        if process.returncode:
            raise RuntimeError(f"hcom {' '.join(words)}: exit {process.returncode}: {output}")
        return output

    def start_agent(self) -> str:
        """Start an agent, and return its name."""
        return self.run("start").rpartition("[hcom:")[2].partition("]")[0]


def _deliver(hcom: Peer) -> float:
    sender, name = hcom.start_agent(), hcom.start_agent()
    with hcom.start("listen", "--name", name, "--timeout", "30") as listener:
        assert listener.stdout is not None
        try:
            until_listening(hcom, name)
            start = perf_counter()
            hcom.run("send", f"@{name}", "--name", sender, "--", "Are you there?")
            while "Are you there?" not in (line := listener.stdout.readline()):
                if not line:
                    raise RuntimeError("hcom listen received nothing")
            return perf_counter() - start
        finally:
            listener.terminate()


def until_listening(hcom: Peer, name: str) -> None:
    """Wait until the peer reports that it listens."""
    deadline = monotonic() + TIMEOUT
    while monotonic() < deadline:
        if any(one["name"] == name and one["status"] == "listening" for one in json.loads(hcom.run("list", "--json"))):
            return
        sleep(_POLL_INTERVAL)
    raise RuntimeError(f"hcom: {name} does not listen")
