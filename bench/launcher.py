"""The launcher with a warm daemon: one event, one process, against a native hook that does nothing, and peers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

from bench._data import ROOT
from bench._harness import wall_time
from bench._home import NO_COMPILER, compiled, daemon, scratch_home
from bench._table import Row, Target
from bench.without_daemon import PYTHON, peers
from fairlead import __version__
from fairlead.testing import make_payload

if TYPE_CHECKING:
    from bench._harness import Effort, Timing, Variant
    from bench._home import Home

LAUNCHER = Path(sys.executable).with_name("fairlead-hook")
NOTHING = "int main(void) { return 0; }\n"
COMMAND = "git status --short && npm test"
CHECKED = 1
"""The number of the project whose policy has a command."""


def rows(effort: Effort) -> list[Row]:
    with scratch_home() as home, daemon(home):
        payloads = _payloads(home)
        hook = [str(LAUNCHER), "PreToolUse", "--python", PYTHON]
        _check_answers(hook, home)
        cold = {**home.environment("cold"), "FAIRLEAD_NO_DAEMON": "1"}
        warm, edit = home.environment(), payloads["Edit"]
        _add_check(home)
        variants: dict[str, Variant] = {
            "Stop": wall_time([str(LAUNCHER), "Stop", "--python", PYTHON], stdin=payloads["Stop"], env=warm),
            "shell": wall_time([which("bash") or "/bin/sh", "-c", "true"], stdin=payloads["Stop"], env=warm),
            "Edit": wall_time(hook, stdin=edit, env=warm),
            "Bash": wall_time(hook, stdin=payloads["Bash"], env=warm),
            "pass": wall_time([PYTHON, "-c", "pass"], stdin=edit, env=warm),
            "python": wall_time(
                [PYTHON, _python_launcher(home), "PreToolUse", "--python", PYTHON], stdin=edit, env=warm
            ),
            "cold": wall_time(hook, stdin=edit, env=cold),
            **{name: wall_time(command, stdin=edit, env=warm) for name, command in peers().items()},
        }
        if nothing := _nothing(home):
            variants["nothing"] = wall_time([nothing], stdin=edit, env=warm)
        times = effort.compare_processes(variants)
    return _compared(times)


def _compared(times: dict[str, Timing]) -> list[Row]:
    edit, bash = "fairlead-hook PreToolUse, Edit", "fairlead-hook PreToolUse, Bash"
    twice, nothing = Target("ratio", 2), "static C program that does nothing"
    others = {
        "hcom": "hcom 0.7.31, native, no check",
        "cchooks": "cchooks 0.1.5, another check",
        "pass": "python -c pass",
        "python": "the launcher in Python",
        "cold": "the launcher, no daemon",
    }
    return [
        Row("launcher", edit, "ms", times["Edit"], nothing, times.get("nothing"), target=twice, absent=NO_COMPILER),
        Row("launcher", bash, "ms", times["Bash"], nothing, times.get("nothing"), target=twice, absent=NO_COMPILER),
        *(Row("launcher", edit, "ms", times["Edit"], other, times.get(name)) for name, other in others.items()),
        Row(
            "launcher",
            "fairlead-hook Stop, one command",
            "ms",
            times["Stop"],
            "bash -c true",
            times["shell"],
            target=Target("time", 4.5),
        ),
    ]


def _payloads(home: Home) -> dict[str, Path]:
    """Write the payload of a call of each tool."""
    project = home.project()
    calls = {
        "Edit": {"file_path": str(project / "src/main.py"), "old_string": "hello", "new_string": "goodbye"},
        "Bash": {"command": COMMAND, "description": "Run the tests"},
    }
    files = {}
    for tool, tool_input in calls.items():
        files[tool] = home.folder / f"{tool}.json"
        payload = make_payload("PreToolUse", cwd=str(project), tool_name=tool, tool_input=tool_input)
        files[tool].write_text(json.dumps(payload))
    files["Stop"] = home.folder / "Stop.json"
    # A session of its own, which begins under that policy: the commands of another project would have to be trusted.
    stop = make_payload("Stop", cwd=str(home.project(CHECKED)), session_id="stops")
    files["Stop"].write_text(json.dumps(stop))
    return files


def _add_check(home: Home) -> None:
    """Write a policy with one command for the project that stops."""
    (home.project(CHECKED) / ".fairlead.yaml").write_text('stop: {commands: [{run: "true"}]}\n')


def _check_answers(hook: list[str], home: Home) -> None:
    """Check the launcher before it is timed: the daemon must block an edit of `.env`."""
    project = home.project()
    call = {"tool_name": "Edit", "tool_input": {"file_path": str(project / ".env")}}
    payload = json.dumps(make_payload("PreToolUse", cwd=str(project), **call)).encode()
    env = home.environment()
    done = subprocess.run(hook, input=payload, capture_output=True, check=False, env=env)
    spooled = list((home.folder / "state").glob("spool/*.json"))
    if done.returncode != 2 or spooled:
        raise RuntimeError(f"{' '.join(hook)}: exit {done.returncode}: {done.stderr.decode(errors='replace').strip()}")


def _python_launcher(home: Home) -> str:
    """Return the launcher in Python, as in a wheel that was built without a C compiler."""
    program = home.folder / "launcher.py"
    program.write_text((ROOT / "launcher/hook.py").read_text("utf-8").replace("@VERSION@", __version__), "utf-8")
    return str(program)


def _nothing(home: Home) -> str | None:
    source, program = home.folder / "nothing.c", home.folder / "nothing"
    source.write_text(NOTHING)
    return str(program) if compiled(source, program) else None
