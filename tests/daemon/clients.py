"""A stand-in for the client: a process that starts hooks and commands as the real one does, and can be ended as it."""

from __future__ import annotations

import json
import shlex
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from daemon.daemon_home import FAIRLEAD, LAUNCHER, PATIENCE, Done, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from daemon.daemon_home import DaemonHome

_numbers = count()


@dataclass
class Running:
    """Something that a client has started."""

    place: Path
    """What its files are named by."""

    @property
    def is_over(self) -> bool:
        return self._file("rc").exists() and self._file("rc").read_text().endswith("\n")

    @property
    def pid(self) -> int:
        until(lambda: self._file("pid").exists() and self._file("pid").read_text().endswith("\n"), "it has a pid")
        return int(self._file("pid").read_text())

    def end(self) -> Done:
        """Wait for its end."""
        until(lambda: self.is_over, f"{self.place.name} is over")
        code, out, err = (self._file(name).read_text() for name in ("rc", "out", "err"))
        return Done(int(code), out, err)

    def _file(self, ending: str) -> Path:
        return self.place.with_suffix(f".{ending}")


@dataclass
class Client:
    """One session in a process of its own."""

    home: DaemonHome
    session: str
    process: subprocess.Popen[str]
    env: dict[str, str] = field(default_factory=dict)

    def begin(self, event: str, *words: str, **fields: object) -> Running:
        """Start the hook of an event, and do not wait for it."""
        payload = self.home.payload(session_id=self.session, hook_event_name=event, **fields)
        return self.start([str(LAUNCHER), event, *words], payload)

    def hook(self, event: str, *words: str, **fields: object) -> Done:
        """Run the hook of an event."""
        return self.begin(event, *words, **fields).end()

    def fairlead(self, *words: str) -> Done:
        """Run a command as the agent would, by its shell tool."""
        done = self.start([str(FAIRLEAD), *words], b"").end()
        assert done.exit_code == 0, done
        return done

    def send(self, to: str, subject: str, body: str = "", *words: str) -> dict[str, Any]:
        """Write to another agent, and give what the command tells."""
        more = ["--body", body] if body else []
        told = self.fairlead("send", to, "--subject", subject, *more, *words, "--json").stdout
        sent: dict[str, Any] = json.loads(told)
        return sent

    def row(self, agent_id: str = "") -> dict[str, Any]:
        """What the daemon knows of this agent, or of a subagent."""
        rows: list[dict[str, Any]] = self.home.ask("GET", "/v1/mail/agents?all=true")["agents"]
        return next(row for row in rows if (row["session"], row["agent_id"]) == (self.session, agent_id))

    @property
    def name(self) -> str:
        """By which others write to it."""
        return str(self.row()["name"])

    def ledger(self, sent: dict[str, Any]) -> list[tuple[str, str, str]]:
        """How a message that it sent fares: recipient, stage, and at which event it was shown, or why it came back."""
        told = json.loads(self.fairlead("read", str(sent["id"]), "--json").stdout)
        return [(row["recipient"], row["stage"], row["why"] or row["event"]) for row in told["letters"]]

    def start(self, command: list[str], stdin: bytes) -> Running:
        """Start a process."""
        running = Running(self.home.folder / f"run-{next(_numbers)}")
        place = shlex.quote(str(running.place))
        running.place.with_suffix(".in").write_bytes(stdin)
        env = {"CLAUDE_CODE_SESSION_ID": self.session, **self.env}
        words = ["env", *(f"{name}={value}" for name, value in env.items()), *command]
        said = (
            f"( setsid bash -c 'echo $$ > {place}.pid; exec \"$@\"' - {shlex.join(words)} "
            f"< {place}.in > {place}.out 2> {place}.err; echo $? > {place}.rc ) &\n"
        )
        assert self.process.stdin is not None
        self.process.stdin.write(said)
        self.process.stdin.flush()
        return running

    def kill(self) -> None:
        """End it without a word, as SIGKILL does."""
        self.process.kill()
        self.process.wait(PATIENCE)


@contextmanager
def client(home: DaemonHome, session: str, **env: str) -> Iterator[Client]:
    """Begin a client; its first event is its own to send."""
    with subprocess.Popen(
        ["bash"],
        stdin=subprocess.PIPE,
        text=True,
        cwd=home.project,
        env=home.environment(**env),
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write("export CLAUDE_PID=$$\n")
        try:
            yield Client(home, session, process)
        finally:
            process.kill()
