"""A client that asks for a permission: the real launcher, which waits, and what it prints in the end."""

from __future__ import annotations

import json
import signal
import subprocess
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from daemon.daemon_home import LAUNCHER, PATIENCE, until

if TYPE_CHECKING:
    from daemon.daemon_home import DaemonHome

_calls = count()
ON = "attention:\n  answer: true\n"
ALLOW = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}


def turn_on(home: DaemonHome, text: str = ON) -> None:
    """Write the user-wide policy."""
    home.state.mkdir(parents=True, exist_ok=True)
    (home.state / "config.yaml").write_text(text)


@dataclass
class Asking:
    """One question, and the hook that waits for its answer."""

    home: DaemonHome
    process: subprocess.Popen[bytes]
    id: str = ""
    """Of the question, if it can be answered."""
    session: str = "s1"

    @property
    def is_waiting(self) -> bool:
        return self.process.poll() is None

    def ends(self) -> Any:
        """Wait until the hook has ended, and return what the client reads: nothing leaves it to ask."""
        out, err = self.process.communicate(timeout=PATIENCE)
        assert (self.process.returncode, err) == (0, b""), (self.process.returncode, out, err)
        return json.loads(out) if out else None

    def is_killed(self, number: int = signal.SIGKILL) -> None:
        """End the hook as the client does; it prints nothing."""
        self.process.send_signal(number)
        assert self.process.communicate(timeout=PATIENCE) == (b"", b"")

    def answer(self, decision: str = "allow", **more: Any) -> Any:
        """Answer as a person does, over the socket."""
        return self.home.ask("POST", f"/v1/answers/{self.id}", body={"decision": decision, **more})


def questions(home: DaemonHome) -> list[dict[str, Any]]:
    """What can be answered now."""
    asked: list[dict[str, Any]] = home.ask("GET", "/v1/answers")["questions"]
    return asked


def start_hook(home: DaemonHome, event: str, payload: bytes, **more: str) -> subprocess.Popen[bytes]:
    """Start the launcher as the client does."""
    process = subprocess.Popen(
        [str(LAUNCHER), event],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=home.project,
        env=home.environment(CLAUDE_CODE_SESSION_ATTENDED="1", **more),
    )
    assert process.stdin is not None
    process.stdin.write(payload)
    process.stdin.close()
    process.stdin = None
    return process


def call_of(home: DaemonHome, event: str = "PermissionRequest", command: str = "make", **more: Any) -> bytes:
    """The payload of a call of the shell."""
    fields = {"hook_event_name": event, "tool_name": "Bash", "tool_input": {"command": command}, **more}
    return home.payload(**fields)


def ask(home: DaemonHome, command: str = "make", **more: Any) -> Asking:
    """Ask for a permission, and wait until it can be answered."""
    before = {one["id"] for one in questions(home)}
    home.hook("PreToolUse", call_of(home, "PreToolUse", command, tool_use_id=f"call {next(_calls)}", **more))
    asking = Asking(home, start_hook(home, "PermissionRequest", call_of(home, command=command, **more)))
    until(lambda: not asking.is_waiting or _new(home, before), "the question can be answered")
    asking.id = next(iter(_new(home, before)), "")
    return asking


def _new(home: DaemonHome, before: set[str]) -> set[str]:
    return {one["id"] for one in questions(home)} - before
