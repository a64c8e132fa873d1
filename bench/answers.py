"""Answers of a person: from the request to the daemon until the hook that waits has printed the answer."""

from __future__ import annotations

import json
import subprocess
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

from bench._harness import Timing
from bench._home import TIMEOUT, daemon, scratch_home
from bench._table import Row, Target
from bench.launcher import LAUNCHER
from fairlead.ipc import request
from fairlead.testing import make_payload

if TYPE_CHECKING:
    from bench._harness import Effort
    from bench._home import Daemon, Home

POLICY = "attention: {answer: true}\n"
_POLL_INTERVAL = 0.002


def rows(effort: Effort) -> list[Row]:
    """Return the row about answers."""
    rounds = 3 if effort.is_quick else effort.process_rounds
    with scratch_home() as home:
        (home.folder / "state").mkdir()
        (home.folder / "state/config.yaml").write_text(POLICY)
        with daemon(home) as server:
            given = Timing.of([_answer(home, server, number) for number in range(rounds)])
    return [Row("answers", "given, until the client goes on", "ms", given, "", target=Target("time", 20))]


def _answer(home: Home, server: Daemon, number: int) -> float:
    """Return the seconds from the answer to the end of the hook, at which the client goes on."""
    payload = make_payload("PermissionRequest", session_id=f"session {number}", cwd=str(home.project()))
    hook = subprocess.Popen(
        [str(LAUNCHER), "PermissionRequest"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=home.environment()
    )
    assert hook.stdin is not None
    hook.stdin.write(json.dumps(payload).encode())
    hook.stdin.close()
    hook.stdin = None
    while not (asked := _questions(server)):
        sleep(_POLL_INTERVAL)
    start = perf_counter()
    request("POST", f"/v1/answers/{asked[0]['id']}", {"decision": "allow"}, at=server.socket)
    out, _ = hook.communicate(timeout=TIMEOUT)
    seconds = perf_counter() - start
    assert b'"allow"' in out, out
    return seconds


def _questions(server: Daemon) -> list[dict[str, Any]]:
    questions: list[dict[str, Any]] = request("GET", "/v1/answers", at=server.socket)["questions"]
    return questions
