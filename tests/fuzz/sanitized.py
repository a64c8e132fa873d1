"""The launcher's C under sanitizers, at its three inputs: arguments and environment, the daemon's answers, stdin."""

from __future__ import annotations

import base64
import json
import os
from typing import TYPE_CHECKING, Any

from fuzz.mutations import PAYLOADS, mutate_bytes
from fuzz.targets import Finding, run_in_time
from launcher.build import compile_sanitized
from launcher.fakes import Daemon, answer_200, answer_202, answer_303

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

_SANITIZER = 99
_PLAN = b"1\0s\x000\x001\0A\x001\0B=1\x001\0failure\x002000\0/\x000\x003\0/bin/sh\0-c\0true\0"
"""One step that runs `true`, as src/fairlead/execute/_native.py writes it."""
PLAN_ANSWER = b"HTTP/1.1 202 Accepted\r\nfairlead-exit: 2\r\nfairlead-steps: %d\r\ncontent-length: %d\r\n\r\n%s{}" % (
    len(_PLAN),
    len(_PLAN) + 2,
    _PLAN,
)
_ANSWERS = (
    answer_200(b'{"decision":"block"}\n', b"reason\n", 2),
    answer_200(b"", b"", 0),
    answer_202(b"{}"),
    answer_303("token", 50),
    PLAN_ANSWER,
)
_ARGUMENTS = (
    ["PreToolUse"],
    ["PreToolUse", "--client", "claude"],
    ["pre-tool-use"],
    ["Stop", "--wake"],
    ["--wait", "token", "50", "Stop", "--id", "1-2"],
    ["StatusLine", "--then", "true"],
    ["sessions", "--json"],
)
_VARIABLES = ("HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "TMPDIR", "CLAUDE_PID", "TMUX", "FAIRLEAD_DEADLINE_MS")


class SanitizedLaunchers:
    """No input breaks a rule of C, and none opens the gate: what is not understood is left to Python, which fails."""

    name = "sanitized"

    def __init__(self, folder: Path, program: Path | None = None) -> None:
        """Compile the launcher into the folder, unless there is one already."""
        self._home = folder
        self._program = program or folder / "sanitized-hook"
        self._run = folder / "run"
        self._run.mkdir(exist_ok=True)
        self.problem = "" if program else compile_sanitized(self._program)

    def make(self, random: Random) -> bytes:
        args = list(random.choice(_ARGUMENTS))
        if random.random() < 0.3 and "--then" not in args:  # which runs its value
            at = random.randrange(len(args))
            args[at] = _text(mutate_bytes(args[at].encode(), random))
        env = {name: _text(mutate_bytes(b"/tmp:1000", random)) for name in _VARIABLES if random.random() < 0.2}
        answers = [random.choice(_ANSWERS) for _ in range(random.randint(1, 3))]
        if random.random() < 0.8:
            at = random.randrange(len(answers))
            answers[at] = mutate_bytes(answers[at], random)
        return encode_case(args, answers, mutate_bytes(random.choice(PAYLOADS), random), env)

    def run(self, case: bytes) -> None:
        document = json.loads(case)
        socket = self._run / "daemon.sock"
        socket.unlink(missing_ok=True)
        with Daemon(socket) as daemon:
            daemon.answers = [base64.b64decode(answer) for answer in document["answers"]]
            self._call(document)

    def _call(self, document: dict[str, Any]) -> None:
        sanitizers = {
            "ASAN_OPTIONS": f"exitcode={_SANITIZER}:detect_leaks=0",
            "UBSAN_OPTIONS": f"exitcode={_SANITIZER}",
        }
        env = {"FAIRLEAD_DEADLINE_MS": "1000", **document["env"], "FAIRLEAD_HOME": str(self._home), **sanitizers}
        args = [*document["args"], "--python", "/bin/false"]
        done = run_in_time([self._program, *args], base64.b64decode(document["stdin"]), self._run, env)
        if done.returncode == _SANITIZER or done.returncode < 0 or b"runtime error" in done.stderr:
            raise Finding(f"exit code {done.returncode}: {done.stderr.decode('utf-8', 'replace')[:2000]}")
        if "PreToolUse" in document["args"] and done.returncode not in {0, 2}:
            raise Finding(f"a gate ended with exit code {done.returncode}")


def encode_case(args: list[str], answers: list[bytes], stdin: bytes = b"", env: dict[str, str] | None = None) -> bytes:
    """Return a case as it is kept in the corpus."""
    texts = [base64.b64encode(data).decode() for data in (stdin, *answers)]
    return json.dumps({"args": args, "env": env or {}, "stdin": texts[0], "answers": texts[1:]}).encode()


def _text(value: bytes) -> str:
    return os.fsdecode(value.replace(b"\0", b"")) or "x"
