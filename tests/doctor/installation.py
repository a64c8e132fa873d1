"""A home with hooks installed, a client on the PATH, and the doctor to run on it."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from daemon.daemon_home import BIN, LAUNCHER, scratch_home

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from daemon.daemon_home import DaemonHome

NO_DAEMON = {"FAIRLEAD_NO_DAEMON": "1"}
"""Nothing starts a daemon; each event takes a tenth of a second then."""


@dataclass
class Report:
    """The doctor's JSON."""

    exit_code: int
    document: dict[str, Any]
    found: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.found = {one["check"]: one for one in self.document["findings"]}

    def level(self, check: str) -> str:
        return self.found[check]["level"] if check in self.found else "absent"

    def text(self, check: str) -> str:
        return self.found[check]["found"]

    @property
    def errors(self) -> set[str]:
        return {check for check, one in self.found.items() if one["level"] == "wrong"}

    def run(self, event: str) -> dict[str, Any]:
        return next(run for run in self.document["runs"] if run["event"] == event)


@dataclass
class Installation:
    """The home, and the files in it."""

    home: DaemonHome

    @property
    def user(self) -> Path:
        return self.home.folder / ".claude/settings.json"

    @property
    def project(self) -> Path:
        return self.home.project / ".claude/settings.json"

    @property
    def local(self) -> Path:
        return self.home.project / ".claude/settings.local.json"

    def bin(self, name: str, text: str) -> Path:
        """Put a program on the PATH."""
        file = self.home.folder / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
        return file

    def client(self, version: str) -> None:
        self.bin("claude", f"#!/bin/sh\necho '{version} (Claude Code)'\n")

    def install(self, *words: str) -> None:
        done = self.home.fairlead("hooks", "install", *words)
        assert done.exit_code == 0, done

    def doctor(self, *words: str, **env: str) -> Report:
        done = self.home.fairlead("doctor", "--json", *words, **env)
        assert done.stderr == ""
        return Report(done.exit_code, json.loads(done.stdout))

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.user.read_text())
        return document

    def ours(self, event: str) -> dict[str, Any]:
        """Our hook, as installed."""
        hook: dict[str, Any] = self.document()["hooks"][event][0]["hooks"][0]
        return hook

    def keep_hooks(self, *events: str) -> None:
        """Remove all hooks but those of these events: without a daemon each takes a tenth of a second."""
        document = self.document()
        document["hooks"] = {event: document["hooks"][event] for event in events}
        self.user.write_text(json.dumps(document))

    def use(self, *, launcher: Path = LAUNCHER, python: str = "") -> None:
        """Make the installed hooks start something else."""
        text = self.user.read_text().replace(json.dumps(str(LAUNCHER)), json.dumps(str(launcher)))
        if python:
            text = text.replace(json.dumps(str(BIN / "python")), json.dumps(python))
        self.user.write_text(text)

    def launcher(self, content: bytes, mode: int = 0o755) -> Path:
        """Write another launcher."""
        file = self.home.folder / "other/fairlead-hook"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
        file.chmod(mode)
        return file


def put(file: Path, document: object) -> None:
    """Write a settings file."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(document if isinstance(document, str) else json.dumps(document))


def entry(hook: dict[str, Any], event: str = "PreToolUse") -> dict[str, Any]:
    """Settings with one hook."""
    return {"hooks": {event: [{"hooks": [hook]}]}}


@contextmanager
def installation(**env: str) -> Iterator[Installation]:
    """Make a home with the client 2.1.325, and our hooks in the user's settings."""
    with scratch_home(**env) as home:
        home.env["PATH"] = f"{home.folder}/bin:{BIN}:/usr/bin:/bin"
        made = Installation(home)
        made.client("2.1.325")
        made.install()
        yield made


def without_times(text: str) -> str:
    """Replace what differs from run to run."""
    return re.sub(r" +\d+\.\d ms", " … ms", text)
