"""The guards of a policy with twenty rules: in process, and as the whole command."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench._harness import wall_time
from bench._table import Row, Target
from fairlead import PreToolUse
from fairlead.policy import Guards, find_layers

if TYPE_CHECKING:
    from bench._harness import Effort

PATTERNS = [f'"{name}"' for name in (".env", "*.lock", "dist/**", "/vendor/", "*.pem", "secrets/**", "*.min.js")]
COMMANDS = ["git push --force*", "npm publish*", "sudo *", "rm -rf /*", "curl * | sh", "docker system prune*"]
POLICY = "\n".join(
    [
        "preToolUse:",
        "  preventRootAdditions: false",
        f"  uneditableFiles: [{', '.join(PATTERNS)}]",
        f"  unreadableFiles: [{', '.join(PATTERNS)}]",
        "  toolUsageValidation:",
        *(f'    - {{tool: Bash, commandPattern: "{command}", action: block}}' for command in COMMANDS),
    ]
)
COMMAND = (
    "cd packages/app && npm run build --silent 2>&1 | tail -20; git add -A && git commit -m 'build: new assets' "
    "--no-verify; grep -rn 'TODO' src | head -5 > todo.txt; cp todo.txt ../docs/todo.txt && ls -la ../docs"
)
BARE = [sys.executable, "-I", "-c", "import json"]
LAUNCHED = "from fairlead.cli.main import launched; launched()"
OURS = [sys.executable, "-E", "-P", "-c", LAUNCHED, "PreToolUse", "--launched", "0000000000000001-1,1,1"]
"""As the launcher starts it, if there is no daemon."""


def rows(effort: Effort) -> list[Row]:
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "src").mkdir()
        (folder / "src" / "main.py").touch()
        (folder / ".fairlead.yaml").write_text(POLICY)
        return [*_in_process(effort, folder), *_as_command(effort, folder)]


def _in_process(effort: Effort, folder: Path) -> list[Row]:
    guards = Guards(find_layers(str(folder)))
    edit = _event(folder, "Edit", {"file_path": str(folder / "src" / "main.py")})
    bash = _event(folder, "Bash", {"command": COMMAND})
    assert not guards.check(edit).output.blocked
    assert guards.check(bash).output.permission is None
    times = effort.compare(
        {
            "edit": effort.looped(lambda: guards.check(edit)),
            "realpath": effort.looped(lambda: os.path.realpath(str(folder / "src" / "main.py"))),
            "bash": effort.looped(lambda: guards.check(bash)),
            "shlex": effort.looped(lambda: shlex.split(COMMAND)),
        }
    )
    what = f"Bash, {len(COMMAND)} characters, 20 rules"
    return [
        Row(
            "policy",
            "Edit, 20 rules",
            "µs",
            times["edit"],
            "os.path.realpath",
            times["realpath"],
            target=Target("time", 60),
        ),
        Row("policy", what, "µs", times["bash"], "shlex.split", times["shlex"], target=Target("time", 300)),
    ]


def _as_command(effort: Effort, folder: Path) -> list[Row]:
    calls = {"Edit": {"file_path": "src/main.py"}, "Bash": {"command": COMMAND}}
    variants = {"bare": wall_time(BARE, home=folder)}
    for tool, tool_input in calls.items():
        call = {"tool_name": tool, "tool_input": tool_input}
        payload = folder / f"{tool}.json"
        payload.write_text(json.dumps({"session_id": "s", "cwd": str(folder), "hook_event_name": "PreToolUse", **call}))
        variants[tool] = wall_time(OURS, stdin=payload, home=folder, env={"FAIRLEAD_NO_DAEMON": "1"})
    times = effort.compare_processes(variants)
    bare = 'python -I -c "import json"'
    return [
        Row(
            "policy",
            f"fairlead PreToolUse, {tool}",
            "ms",
            times[tool],
            bare,
            times["bare"],
            target=Target("ratio", ratio),
        )
        for tool, ratio in (("Edit", 2.2), ("Bash", 4))
    ]


def _event(folder: Path, tool: str, tool_input: dict[str, str]) -> PreToolUse:
    return PreToolUse(session_id="s", cwd=str(folder), tool_name=tool, tool_input=dict(tool_input))
