"""The events of many sessions as their launchers send them: recorded payloads as HTTP requests in a file."""

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
"""The number of projects of the sessions, each with its own policy."""

TURN = (
    "UserPromptSubmit",
    *("Read", "Read", "Bash", "Edit", "Read", "Edit", "Bash", "Write", "Bash", "Edit"),
    "Stop",
)
"""The events of one turn of a session. The name of a tool stands for two: before and after the call."""


def write_sessions(file: Path, home: Home, clients: Clients, number: int) -> None:
    """Write the requests of a number of sessions, in the format of `load.c`."""
    recorded = _recorded()
    with file.open("wb") as out:
        out.write(struct.pack("=I", number))
        for session in range(number):
            requests = list(_requests(recorded, home, clients, session))
            out.write(struct.pack("=I", len(requests)))
            for request in requests:
                out.write(struct.pack("=I", len(request)) + request)


def _recorded() -> dict[str, dict[str, Any]]:
    """Return a payload for each event and tool: the last one, which is of the newest client.

    Events of subagents are left out: a subagent has one turn, and here all turns are the same.
    """
    payloads = {}
    for event in samples():
        if event.agent_id:
            continue
        payload = json.loads(encode(event))
        payloads[f"{event.event_name} {payload.get('tool_name', '')}".strip()] = payload
    return payloads


def _requests(recorded: dict[str, dict[str, Any]], home: Home, clients: Clients, session: int) -> Iterator[bytes]:
    project = str(home.project(session % PROJECTS))
    name = f"{session:08x}-0000-4000-8000-000000000000"
    client = clients.pid_of(name)
    for step in TURN:
        for key in (f"PreToolUse {step}", f"PostToolUse {step}") if f"PreToolUse {step}" in recorded else (step,):
            yield _request({**recorded[key], "session_id": name}, project, home, client)


def _request(payload: dict[str, Any], project: str, home: Home, client: int) -> bytes:
    """Return the request of a launcher. The load fills in the id."""
    body = msgspec.json.encode(payload).replace(b"/home/user/project", project.encode())
    env = home.environment()
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
