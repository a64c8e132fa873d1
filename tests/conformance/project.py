"""A project with a policy file, a desktop that writes down what it is told, and the real command line in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

POLICY = ".fairlead.yaml"

NOTIFY_SEND = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
printf '%s\\t%s\\n' "$2" "$3" >> '{notes}'
"""


def logging_policy(*patterns: str) -> str:
    """A policy with a command for each pattern of SubagentStop, which writes the pattern into a log."""
    by_pattern = {pattern: [{"run": f"echo '{pattern}' >> log"}] for pattern in patterns}
    return json.dumps({"subagentStop": {"commands": by_pattern}})  # JSON is YAML


def policy_for_all(*commands: dict[str, Any]) -> str:
    """A policy with commands for the end of every subagent."""
    return json.dumps({"subagentStop": {"commands": {"*": commands}}})


class Note(NamedTuple):
    """What the person was told."""

    title: str
    body: str


@dataclass(frozen=True)
class Done:
    """What one call of the command line left behind, once every process that it started for the person has ended."""

    exit_code: int
    stdout: str
    stderr: str
    notes: list[Note]

    @property
    def answer(self) -> dict[str, Any]:
        """The client's JSON; nothing printed is an answer without content."""
        answer: dict[str, Any] = json.loads(self.stdout or "{}")
        return answer


class Project:
    """A folder for the agent's session. Commands of the policy run in it, and leave their traces there."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "project"
        self.folder.mkdir()
        self._notes = root / "notes"
        self._programs = root / "programs"
        self._programs.mkdir()
        self.program("notify-send", NOTIFY_SEND.format(notes=self._notes))
        ours = ("FAIRLEAD_", "CONCLAUDE_", "DBUS_", "XDG_")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
            "FAIRLEAD_HOME": str(root / "home"),
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={root}/no-bus",  # so that notify-send is the only way left
            "XDG_RUNTIME_DIR": str(root),
        }

    def policy(self, text: str, name: str = POLICY) -> None:
        """Write the policy, as a person does before a session: all sessions begin with it."""
        (self.folder / name).write_text(text)
        for record in self.folder.parent.rglob("beginnings/*.msgpack"):
            record.unlink()

    def program(self, name: str, script: str) -> None:
        """Put a program where it is found before any other of its name."""
        (self._programs / name).write_text(script)
        (self._programs / name).chmod(0o755)

    def start_payload(self, **changes: Any) -> dict[str, Any]:
        """The specification's own payload, of a session in this folder."""
        return {**START, "cwd": str(self.folder), **changes}

    def stop_payload(self, **changes: Any) -> dict[str, Any]:
        """The same subagent's end."""
        return {**STOP, "cwd": str(self.folder), **changes}

    def fire(self, event: str, payload: object, env: Mapping[str, str] | None = None) -> Done:
        """Run `fairlead <Event>` with a payload, or any text, on stdin; wait for it, and for all notes to arrive."""
        text = payload if isinstance(payload, str) else json.dumps(payload)
        self._notes.write_text("")
        ended, held = os.pipe()  # whoever tells the person inherits the one end; the other is read until all have ended
        with os.fdopen(ended, "rb") as end:
            try:
                done = subprocess.run(
                    [sys.executable, "-m", "fairlead", event],
                    input=text,
                    capture_output=True,
                    text=True,
                    cwd=self.folder,
                    env={**self.environment, **(env or {})},
                    pass_fds=(held,),
                    check=False,
                    timeout=30,
                )
            finally:
                os.close(held)
            end.read()
        return Done(done.returncode, done.stdout, done.stderr, self._told())

    def lines(self, name: str = "log") -> list[str]:
        """What the policy's commands wrote into a file of the project; nothing if there is none."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def variables(self, name: str = "environment") -> dict[str, str]:
        """What a command's `env -0 > environment` has written."""
        pairs = (self.folder / name).read_text().split("\0")
        return dict(pair.split("=", 1) for pair in pairs if pair)

    def _told(self) -> list[Note]:
        return [Note(*line.split("\t")) for line in self._notes.read_text().splitlines()]


START = {
    "session_id": "abc123",
    "transcript_path": "/tmp/main.json",
    "hook_event_name": "SubagentStart",
    "cwd": "/home/user/project",
    "permission_mode": "default",
    "agent_id": "coder",
    "subagent_type": "coder",
    "agent_transcript_path": "/tmp/agent_coder.json",
}
"""The payload that the specification shows."""

STOP = {
    "session_id": "abc123",
    "transcript_path": "/tmp/main.json",
    "hook_event_name": "SubagentStop",
    "cwd": "/home/user/project",
    "permission_mode": "default",
    "stop_hook_active": False,
    "agent_id": "coder",
    "agent_transcript_path": "/tmp/agent_coder.json",
}
