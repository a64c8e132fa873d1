"""Mail on its way: from the sender into the hands of an agent that waits, and what many who wait cost.

The waiting agents are real launchers in the place of Stop hooks. hcom does the same work by `hcom send` and `hcom
listen`, so it is compared with `fairlead send`, a Python program, all of it included.
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
from bench._home import PATIENCE, Clients, daemon, home
from bench._table import Row, Target
from bench.cold_road import PYTHON
from bench.launcher import LAUNCHER
from fairlead.ipc import DaemonUnavailable, request
from fairlead.testing import make_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench._harness import Effort
    from bench._home import Daemon, Home

MANY = 500
FEW = 25
"""Waiting agents, if it is only to be seen that it runs."""
POLICY = "mail: {stay: always}\n"
HCOM = "hcom 0.7.31, native, send to listen"
_TURN = 0.005


def rows(effort: Effort) -> list[Row]:
    """Measure."""
    rounds, many = (3, FEW) if effort.is_quick else (effort.process_rounds, MANY)
    with home() as place, daemon(place) as server, Clients() as clients:
        post = _Post(place, server, clients)
        sent = Timing.of([post.deliver(post.by_request) for _ in range(rounds)])
        commanded = Timing.of([post.deliver(post.by_command) for _ in range(rounds)])
        theirs = _hcom(place, rounds)
        memory = post.memory_of(many)
    return [
        Row("mail", "sent, to printed by a waiting Stop", "ms", sent, "", target=Target("time", 10)),
        Row("mail", "the same, by `fairlead send`", "ms", commanded, HCOM, theirs),
        Row("mail", f"memory with {many} agents waiting", "MB", memory, "", target=Target("time", 120)),
    ]


class _Post:
    """Sessions that wait, and somebody who writes to them."""

    def __init__(self, place: Home, server: Daemon, clients: Clients) -> None:
        self._place = place
        self._clients = clients
        self._server = server
        self._project = place.project()
        (self._project / ".fairlead.yaml").write_text(POLICY)
        self._session = "00000000-0000-4000-8000-000000000000"
        self._name = self._begun(self._session)

    def deliver(self, send: Callable[[], object]) -> float:
        """Give the seconds from the moment that the sender begins until the hook has printed what was sent."""
        with self._waiting([self._session]) as (hook,):
            assert hook.stdout is not None
            begun = perf_counter()
            send()
            said = hook.stdout.readline()
            seconds = perf_counter() - begun
            hook.wait(PATIENCE)  # killed before it has said that it printed the message, it would be shown again
        if b"Are you there?" not in said:
            raise RuntimeError(f"the waiting hook printed {said!r}")
        return seconds

    def by_request(self) -> None:
        """Send by the daemon's HTTP."""
        self._ask("POST", "/v1/mail/send", {"to": [self._name], "subject": "Are you there?"})

    def by_command(self) -> None:
        """Send by the command."""
        command = [PYTHON, "-m", "fairlead", "send", self._name, "--subject", "Are you there?"]
        subprocess.run(command, env=self._place.environment(), check=True, capture_output=True)

    def memory_of(self, many: int) -> Timing:
        """Give the bytes that the daemon holds while so many wait."""
        names = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(1, many + 1)]
        for name in names:
            self._begun(name)
        with self._waiting(names):
            held = self._server.memory()
        return Timing(held, held)

    def _begun(self, session: str) -> str:
        """Begin a session, and give its agent's name."""
        started = make_payload("SessionStart", cwd=str(self._project), session_id=session)
        self._hook("SessionStart", started).communicate()
        listed = self._ask("GET", "/v1/mail/agents?all=true")["agents"]
        return str(next(agent["name"] for agent in listed if agent["session"] == session))

    @contextmanager
    def _waiting(self, sessions: Sequence[str]) -> Iterator[list[subprocess.Popen[bytes]]]:
        with ExitStack() as stack:
            payloads = [make_payload("Stop", cwd=str(self._project), session_id=name) for name in sessions]
            hooks = [stack.enter_context(self._hook("Stop", payload)) for payload in payloads]
            for hook in hooks:
                stack.callback(hook.terminate)
            deadline = monotonic() + PATIENCE
            while self._server.status()["waiting"] != len(hooks):
                if monotonic() > deadline:
                    raise RuntimeError(f"not all of {len(hooks)} hooks wait")
                sleep(_TURN)
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

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        deadline = monotonic() + PATIENCE
        while True:
            try:
                return request(method, path, at=self._server.socket, body=body)
            except DaemonUnavailable:
                if monotonic() > deadline:
                    raise
                sleep(_TURN)


def _hcom(place: Home, rounds: int) -> Timing | None:
    """Time the peer, in a folder of its own; `None` where it is not installed."""
    program = which("hcom", path=str(Path(sys.executable).parent))
    if program is None:
        return None
    folder = place.folder / "hcom"
    folder.mkdir()
    env = {**place.environment(), "HOME": str(folder), "HCOM_DIR": str(folder / ".hcom")}
    return Timing.of([_heard(_Peer(program, env, folder)) for _ in range(rounds)])


@dataclass(frozen=True)
class _Peer:
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
            told, _ = process.communicate()
        if process.returncode:
            raise RuntimeError(f"hcom {' '.join(words)}: exit {process.returncode}: {told}")
        return told

    def begin(self) -> str:
        """Begin an agent, and give its name."""
        return self.run("start").rpartition("[hcom:")[2].partition("]")[0]


def _heard(hcom: _Peer) -> float:
    sender, name = hcom.begin(), hcom.begin()
    with hcom.start("listen", "--name", name, "--timeout", "30") as listener:
        assert listener.stdout is not None
        try:
            _until_listening(hcom, name)
            begun = perf_counter()
            hcom.run("send", f"@{name}", "--name", sender, "--", "Are you there?")
            while "Are you there?" not in (said := listener.stdout.readline()):
                if not said:
                    raise RuntimeError("hcom listen heard nothing")
            return perf_counter() - begun
        finally:
            listener.terminate()


def _until_listening(hcom: _Peer, name: str) -> None:
    """Wait until the peer says that it listens."""
    deadline = monotonic() + PATIENCE
    while monotonic() < deadline:
        if any(one["name"] == name and one["status"] == "listening" for one in json.loads(hcom.run("list", "--json"))):
            return
        sleep(_TURN)
    raise RuntimeError(f"hcom: {name} does not listen")
