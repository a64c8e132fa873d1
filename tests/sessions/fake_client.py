"""A fake client: sends events by name into a registry, by default one second apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairlead.events import Event, parse
from fairlead.journal import Caller
from fairlead.sessions import Idle, Registry, Session, SessionChange, Working

PAYLOADS = Path(__file__).parents[1] / "payloads/claude"
START = 1_700_000_000.0
THINKING = Working("Thinking")
IDLE = Idle()


def make(name: str, session: str = "abc123", **fields: Any) -> Event:
    """Return an event as a client would send it; required fields that are not given get a plain value."""
    defaults: dict[str, Any] = {}
    if name in {"PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "PermissionDenied"}:
        defaults = {"tool_name": "Bash", "tool_input": {}}
    if name == "PostToolUseFailure":
        defaults["error"] = "no"
    if name == "UserPromptSubmit":
        defaults = {"prompt": "do it"}
    return parse({"session_id": session, "hook_event_name": name, **defaults, **fields})


def recorded(name: str, version: str = "2.1.325", **fields: Any) -> Event:
    """Return the event of a payload that the real client sent."""
    payload = json.loads((PAYLOADS / version / f"{name}.json").read_text("utf-8"))
    return parse({**payload, **fields})


class FakeClient:
    """A registry, a clock, and short methods to send events."""

    def __init__(self, session: str = "abc123") -> None:
        self.registry = Registry()
        self.session = session
        self.now = START
        self.caller = Caller(pid=42, start=1000, pane="%1", tmux="/tmp/tmux,1,0")

    def __call__(self, name: str, *, after: float = 1.0, **fields: Any) -> list[SessionChange]:
        self.now += after
        return self.send(make(name, fields.pop("session", self.session), **fields))

    def send(
        self, event: Event, at: float | None = None, caller: Caller | None = None, **options: Any
    ) -> list[SessionChange]:
        return self.registry.apply_event(event, self.now if at is None else at, caller or self.caller, **options)

    def pre(self, tool: str = "Bash", call: str = "t1", **fields: Any) -> list[SessionChange]:
        return self("PreToolUse", tool_name=tool, tool_use_id=call, **fields)

    def post(self, tool: str = "Bash", call: str = "t1", **fields: Any) -> list[SessionChange]:
        return self("PostToolUse", tool_name=tool, tool_use_id=call, **fields)

    @property
    def main(self) -> Session:
        return self.registry.by_id[self.session]

    @property
    def state(self) -> Any:
        """Typed as Any: type checkers assume that a property does not change between two reads."""
        return self.main.state

    def child(self, agent_id: str) -> Session:
        return self.registry.by_id[f"{self.session}/{agent_id}"]
