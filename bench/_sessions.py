"""The events of many sessions, as their launchers would send them: real payloads, as whole HTTP requests in a file."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead import __version__
from fairlead.events import encode
from fairlead.process import process_start_time
from fairlead.testing import samples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench._home import Clients, Home

PROJECTS = 20
"""Folders that the sessions work in, each with a policy of its own."""

TURN = (
    "UserPromptSubmit",
    *("Read", "Read", "Bash", "Edit", "Read", "Edit", "Bash", "Write", "Bash", "Edit"),
    "Stop",
)
"""What a session sends, again and again. A tool's name stands for two events: before the call, and after it."""


def write_sessions(file: Path, place: Home, clients: Clients, number: int) -> None:
    """Write the requests of so many sessions, in the form that `load.c` reads."""
    recorded = _recorded()
    with file.open("wb") as out:
        out.write(struct.pack("=I", number))
        for session in range(number):
            requests = list(_requests(recorded, place, clients, session))
            out.write(struct.pack("=I", len(requests)))
            for request in requests:
                out.write(struct.pack("=I", len(request)) + request)


def _recorded() -> dict[str, dict[str, Any]]:
    """Find a payload for each event and tool: the last, which is of the newest client.

    Not of subagents: those of one turn are gone in the next, and here every turn is the same.
    """
    found = {}
    for event in samples():
        if event.agent_id:
            continue
        payload = json.loads(encode(event))
        found[f"{event.event_name} {payload.get('tool_name', '')}".strip()] = payload
    return found


def _requests(recorded: dict[str, dict[str, Any]], place: Home, clients: Clients, session: int) -> Iterator[bytes]:
    project = str(place.project(session % PROJECTS))
    name = f"{session:08x}-0000-4000-8000-000000000000"
    client = clients.pid_of(name)
    for step in TURN:
        for key in (f"PreToolUse {step}", f"PostToolUse {step}") if f"PreToolUse {step}" in recorded else (step,):
            yield _request({**recorded[key], "session_id": name}, project, place, client)


def _request(payload: dict[str, Any], project: str, place: Home, client: int) -> bytes:
    """Write what a launcher sends. The load fills in the id."""
    body = msgspec.json.encode(payload).replace(b"/home/user/project", project.encode())
    env = place.environment()
    variables = ";".join(f"{name}={env[name]}" for name in ("FAIRLEAD_HOME", "HOME"))
    head = [
        f"POST /v1/events/{payload['hook_event_name']}?client=claude HTTP/1.1",
        "host: fairlead",
        "content-type: application/json",
        "connection: close",
        f"fairlead-version: {__version__}",
        f"fairlead-pid: {client}",
        f"fairlead-start: {process_start_time(client)}",
        f"fairlead-cwd: {project}",
        f"fairlead-env: {variables}",
        "fairlead-id: 0000000000000000-1f3a",
        f"content-length: {len(body)}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + body
