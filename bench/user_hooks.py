"""A user hook in Python: kept loaded by the daemon, against a Python script that the client starts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench._harness import wall_time
from bench._home import daemon, scratch_home
from bench._table import Row, Target
from bench.without_daemon import PYTHON
from fairlead.testing import make_payload

if TYPE_CHECKING:
    from bench._harness import Effort
    from bench._home import Home

FAIRLEAD, LAUNCHER = (str(Path(sys.executable).with_name(name)) for name in ("fairlead", "fairlead-hook"))
HOOKS = """\
from fairlead import HookManager, HookOutput, PreToolUse

hooks = HookManager()


@hooks.on(PreToolUse, matcher="Bash")
def no_force_push(event):
    if "push --force" in event.tool_input["command"]:
        return HookOutput.deny("no force")
"""
SCRIPT = """\
import json
import sys

event = json.load(sys.stdin)
if "push --force" in event["tool_input"]["command"]:
    sys.exit("no force")
"""


def rows(effort: Effort) -> list[Row]:
    with scratch_home() as home:
        folder = project(home)
        with daemon(home):
            hook = [LAUNCHER, "PreToolUse", "--python", PYTHON]
            _check_answers(hook, home, folder)
            payload, env = _payload(home, folder, "git status"), home.environment()
            times = effort.compare_processes(
                {
                    "ours": wall_time(hook, stdin=payload, env=env),
                    "script": wall_time([PYTHON, str(folder / "script.py")], stdin=payload, env=env),
                    "--hooks": wall_time(
                        [FAIRLEAD, "PreToolUse", "--hooks", str(folder / "guards.py")], stdin=payload, env=env
                    ),
                }
            )
    what, target = "fairlead-hook PreToolUse, a hook that the policy lists", Target("ratio", 0.5)
    return [
        Row("user hooks", what, "ms", times["ours"], "a Python script, same check", times["script"], target=target),
        Row("user hooks", what, "ms", times["ours"], "fairlead PreToolUse --hooks FILE", times["--hooks"]),
    ]


def project(home: Home) -> Path:
    """Return a project with a user hook that a person has trusted."""
    folder = home.folder / "hooked"
    folder.mkdir()
    (folder / "guards.py").write_text(HOOKS)
    (folder / "script.py").write_text(SCRIPT)
    add = [FAIRLEAD, "hooks", "add", "guards.py", "--yes"]
    subprocess.run(add, cwd=folder, env=home.environment(), check=True, stdout=subprocess.DEVNULL)
    return folder


def _payload(home: Home, folder: Path, command: str) -> Path:
    payload = make_payload("PreToolUse", cwd=str(folder), tool_name="Bash", tool_input={"command": command})
    file = home.folder / "payload.json"
    file.write_text(json.dumps(payload))
    return file


def _check_answers(hook: list[str], home: Home, folder: Path) -> None:
    """Check that the hook decides before it is timed."""
    for command, expected in (("git status", 0), ("git push --force", 2)):
        stdin = _payload(home, folder, command).read_bytes()
        done = subprocess.run(hook, input=stdin, capture_output=True, check=False, env=home.environment())
        if done.returncode != expected:
            raise RuntimeError(f"{command}: expected exit {expected}, got {done.returncode}: {done.stderr.decode()}")
