"""A person's machine: the real client, a Fairlead of its own that was put in by its installer, and a project.

The installation is the tests' Fairlead under another prefix, so that a test may break its programs.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import sysconfig
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from e2e import sealed
from e2e.model import after, call

from fairlead.journal import CommandsRecord, EventRecord, JournalReader, read_spool, record_key
from fairlead.journal import DaemonRecord as Remark

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from e2e.model import Meanwhile, ToolCall, Turn

    from fairlead.journal import Record

ERRAND = call("Agent", description="errand", prompt="Go.", subagent_type="general-purpose", run_in_background=False)

_FAIRLEAD = "#!{python}\nimport sys\n\nfrom fairlead.cli.main import main\n\nsys.exit(main())\n"

_CONNECT = """
import socket, sys, time
while socket.socket(socket.AF_UNIX).connect_ex(sys.argv[1]):
    time.sleep(0.02)
"""


@dataclass(frozen=True)
class Machine:
    """Where everything is."""

    client: Path
    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        """The folder that the agent works in."""
        return self.folder / "project"

    @property
    def settings(self) -> Path:
        """The client's settings."""
        return self.folder / "home/.claude/settings.json"

    @property
    def state(self) -> Path:
        """Fairlead's own folder."""
        return self.folder / "state"

    @property
    def socket(self) -> Path:
        """The daemon's."""
        return self.state / "run/daemon.sock"

    @property
    def python(self) -> Path:
        """The Python that the settings name."""
        return self.folder / "venv/bin/python"

    @property
    def launcher(self) -> Path:
        """The program that the client starts for each event."""
        return self.folder / "venv/bin/fairlead-hook"

    @property
    def program(self) -> Path:
        """What a person starts."""
        return self.folder / "venv/bin/fairlead"

    @property
    def environment(self) -> dict[str, str]:
        """What a program sees here, beside what every sealed one does."""
        path = f"{self.client.parent}{os.pathsep}{os.environ['PATH']}"
        return {"FAIRLEAD_HOME": str(self.state), "PATH": path, **self.env}

    # -- what happens on it ----------------------------------------------------------------------------

    def fairlead(self, *words: str) -> sealed.Run:
        """Run a command of a person's; the client is on the PATH."""
        return self._sealed([self.program, *words], ())

    def prompt(
        self,
        script: Sequence[Turn],
        *,
        subagent: Sequence[Turn] = (),
        words: Sequence[str] = (),
        disk: str = "",
        timeout: float = sealed.TIMEOUT,
    ) -> sealed.Run:
        """Prompt the agent. `disk` is the size of one that Fairlead's own folder is on, for this run alone."""
        argv = sealed.claude(self.client, "Go.", *words)
        if disk:
            mount = f'mount -t tmpfs -o size={disk} tmpfs {self.state} && exec "$@"'
            argv = ["sh", "-c", mount, "sh", *argv]
        return self._sealed(argv, script, subagent, timeout)

    def _sealed(
        self,
        argv: Sequence[str | Path],
        script: Sequence[Turn],
        subagent: Sequence[Turn] = (),
        timeout: float = sealed.TIMEOUT,
    ) -> sealed.Run:
        return sealed.run(
            argv, folder=self.folder, script=script, subagent=subagent, env=self.environment, timeout=timeout
        )

    def policy(self, text: str) -> None:
        """Write the project's policy."""
        (self.project / ".fairlead.yaml").write_text(dedent(text))

    def attention(self, **settings: object) -> None:
        """Write the user-wide policy."""
        self.state.mkdir(exist_ok=True)
        (self.state / "config.yaml").write_text(json.dumps({"attention": settings}))

    # -- what the script is made of --------------------------------------------------------------------

    def write(self, name: str, text: str = "x\n") -> ToolCall:
        """Write a file that was not there."""
        return call("Write", file_path=str(self.project / name), content=text)

    def when_warm(self, turn: str | list[ToolCall]) -> Meanwhile:
        """Answer when the daemon does, which the first event of the session has begun."""
        return after(self.wait_for_daemon, turn)

    @property
    def wait_for_daemon(self) -> str:
        """The command that waits until the daemon answers. A run that never gets there ends by its own timeout."""
        return f"{sys.executable} -ISc '{_CONNECT}' {self.socket}"

    @property
    def kill_daemon(self) -> str:
        """The command that kills the daemon, and waits until it is gone."""
        lock = f"{self.state}/run/daemon.lock"
        return f"pid=$(cat {lock}); kill -9 $pid; while grep -qs '^State:.[^Z]' /proc/$pid/status; do sleep 0.02; done"

    # -- what it left behind ---------------------------------------------------------------------------

    def journal(self) -> list[Record]:
        """All that is in the journal."""
        return [record for _, record in JournalReader(str(self.state / "journal")).read()]

    def happened(self) -> list[EventRecord]:
        """The events in the order in which they began, whether the daemon has taken them in or they still wait."""
        return sorted((one for one in self._records() if isinstance(one, EventRecord)), key=lambda event: event.id)

    def done(self) -> dict[str, CommandsRecord]:
        """How the commands of events ended, by the event's id."""
        return {record.id: record for record in self._records() if isinstance(record, CommandsRecord)}

    def _records(self) -> list[Record]:
        """All records; what is double in the journal itself is so here."""
        taken = self.journal()
        names = {record_key(record) for record in taken}
        return taken + [
            record for _, record in read_spool(str(self.state / "spool")) if record_key(record) not in names
        ]

    def turns(self) -> list[str]:
        """What the daemon says of itself."""
        return [record.what for record in self.journal() if isinstance(record, Remark)]

    def hook(self, event: str) -> dict[str, Any]:
        """The hook that the installer wrote for an event."""
        ((hook,),) = (entry["hooks"] for entry in json.loads(self.settings.read_text())["hooks"][event])
        found: dict[str, Any] = hook
        return found


@contextmanager
def machine(client: Path, **env: str) -> Iterator[Machine]:
    """Set up a machine, without hooks yet. Its path is short: a socket's may not be long."""
    folder = Path(tempfile.mkdtemp(prefix="fl", dir="/tmp"))
    made = Machine(client, folder, env)
    try:
        made.project.mkdir()
        _put_fairlead(folder / "venv")
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def with_hooks(client: Path, *words: str, **env: str) -> Iterator[Machine]:
    """Set up a machine, and install the hooks as a person would, with these words."""
    with machine(client, **env) as made:
        done = made.fairlead("hooks", "install", *words)
        assert (done.exit_code, done.stderr) == (0, ""), done
        yield made


@contextmanager
def with_answers(client: Path) -> Iterator[Machine]:
    """Set up a machine on which questions can be answered from anywhere."""
    with with_hooks(client, "--answer") as made:
        made.attention(answer=True)
        yield made


@contextmanager
def with_mail(client: Path, *words: str, **env: str) -> Iterator[Machine]:
    """Set up a machine whose owner has installed the hooks with these words, and has `fairlead` on the PATH."""
    with machine(client, **env) as bare:
        path = f"{bare.program.parent}{os.pathsep}{bare.environment['PATH']}"
        made = replace(bare, env={**env, "PATH": path})
        done = made.fairlead("hooks", "install", *words)
        assert (done.exit_code, done.stderr) == (0, ""), done
        yield made


def _put_fairlead(prefix: Path) -> None:
    """Make a prefix with programs of its own, and the libraries of the tests."""
    own = Path(sys.prefix)
    programs = prefix / "bin"
    programs.mkdir(parents=True)
    shutil.copy(own / "pyvenv.cfg", prefix)
    (prefix / "lib").symlink_to(own / "lib")
    (programs / "python").symlink_to(Path(sys.executable).resolve())
    scripts = Path(sysconfig.get_path("scripts"))
    shutil.copy(scripts / "fairlead-hook", programs)
    in_python = ["fairlead-python"]
    if (scripts / "fairlead").read_bytes().startswith(b"#!"):
        in_python.append("fairlead")
    else:
        shutil.copy(scripts / "fairlead", programs)
    for name in in_python:
        (programs / name).write_text(_FAIRLEAD.format(python=programs / "python"))
        (programs / name).chmod(0o755)
