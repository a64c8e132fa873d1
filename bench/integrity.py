"""The integrity check at PostToolUse of a Bash call: what 1 000 protected files add to the event, at the socket."""

from __future__ import annotations

import json
import socket
from itertools import count
from time import monotonic, perf_counter, sleep, time_ns
from typing import TYPE_CHECKING

from bench._home import TIMEOUT, daemon, scratch_home
from bench._table import Row, Target
from fairlead.testing import make_payload

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bench._harness import Effort, Variant
    from bench._home import Daemon, Home

FILES = 1000
FOLDERS = 50
CALLS = 5
"""Calls of one sample."""

_numbers = count(1)


def rows(effort: Effort) -> list[Row]:
    with scratch_home() as home, daemon(home) as server:
        times = effort.compare_processes({mode: _post_tool_use(home, server, mode) for mode in ("report", "off")})
    what = f"PostToolUse of Bash, {FILES} protected files in {FOLDERS} folders"
    target = Target("difference", 3)
    return [
        Row("integrity", what, "ms", times["report"], "the same, off", times["off"], shows="difference", target=target)
    ]


def _post_tool_use(home: Home, server: Daemon, mode: str) -> Variant:
    """Return a variant that times the second event of a call, after the first one in the same project."""
    project = _project(home.folder / mode, mode)

    def sample() -> float:
        return sum(_call(home, project) for _ in range(CALLS)) / CALLS

    _call(home, project)
    deadline = monotonic() + TIMEOUT
    while mode != "off" and not _is_known(server, project):
        if monotonic() > deadline:
            raise RuntimeError(f"{project} was not searched within {TIMEOUT:g} s")
        sleep(0.01)
    return sample


def _project(folder: Path, mode: str) -> Path:
    for number in range(FILES):
        file = folder / f"package{number % FOLDERS}" / f"key{number}.pem"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{number}\n" * 100)
    rules = {"integrity": mode, "uneditableFiles": ["*.pem"]}
    (folder / ".fairlead.yaml").write_text(json.dumps({"preToolUse": rules}))
    return folder


def _is_known(server: Daemon, project: Path) -> bool:
    known = [one for one in server.status()["integrity"] if one["folders"] == [str(project.resolve())]]
    return any(one["files"] == FILES + 1 and one["ready"] for one in known)


def _call(home: Home, project: Path) -> float:
    """Send both events of a call, and return how long the second one took."""
    call = {"tool_name": "Bash", "tool_input": {"command": "true"}, "tool_use_id": f"toolu_{next(_numbers)}"}
    _send(home, "PreToolUse", project, call)
    return _send(home, "PostToolUse", project, {**call, "tool_response": {"stdout": "", "stderr": ""}})


def _send(home: Home, event: str, project: Path, fields: Mapping[str, object]) -> float:
    """Send an event as the launcher does. The answer must be empty: nothing has changed."""
    session = f"integrity-{project.name}"  # each project is trusted as the one in which its session began
    body = json.dumps(make_payload(event, session_id=session, cwd=str(project), **fields)).encode()
    variables = ";".join(f"{name}={value}" for name, value in home.environment().items() if name.endswith("HOME"))
    head = [
        *(f"POST /v1/events/{event}?client=claude HTTP/1.1", "host: fairlead", "connection: close"),
        *(f"fairlead-cwd: {project}", f"fairlead-env: {variables}"),
        *(f"fairlead-id: {time_ns():016x}-{next(_numbers):x}", f"content-length: {len(body)}", "", ""),
    ]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(home.socket)
        started = perf_counter()
        connection.sendall("\r\n".join(head).encode() + body)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
        took = perf_counter() - started
    if not answer.startswith(b"HTTP/1.1 200") or not answer.endswith(b"\r\n\r\n"):
        raise RuntimeError(f"{event} in {project}: {answer.decode(errors='replace')}")
    return took
