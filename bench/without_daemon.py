"""Without a daemon: one event, one process, from the payload on stdin to the exit code, as a client waits for it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench._data import PAYLOAD, PAYLOAD_FILE, ROOT
from bench._harness import ENVIRONMENT, wall_time
from bench._table import Row, Target

if TYPE_CHECKING:
    from bench._harness import Effort

PYTHON = sys.executable
OURS = [PYTHON, "-m", "fairlead", "PreToolUse", "--hooks", str(ROOT / "examples" / "security.py")]
CCHOOKS = [PYTHON, str(Path(__file__).with_name("cchooks_hook.py"))]
BARE = [PYTHON, "-I", "-c", "import json"]


def rows(effort: Effort) -> list[Row]:
    with TemporaryDirectory() as scratch:
        home = Path(scratch)
        commands = {"ours": OURS, "bare": BARE, **peers()}
        for name in commands.keys() & {"ours", "cchooks"}:
            _check_answers(commands[name], home)
        times = effort.compare_processes(
            {name: wall_time(command, stdin=PAYLOAD_FILE, home=home) for name, command in commands.items()}
        )
    what = "fairlead PreToolUse --hooks FILE"
    ours = times["ours"]
    return [
        Row(
            "without a daemon", what, "ms", ours, 'python -I -c "import json"', times["bare"], target=Target("ratio", 4)
        ),
        Row("without a daemon", what, "ms", ours, "cchooks 0.1.5, same check", times.get("cchooks")),
        Row("without a daemon", what, "ms", ours, "hcom 0.7.31, native, no check", times.get("hcom")),
    ]


def peers() -> dict[str, list[str]]:
    """Return the commands of the installed peers. hcom is a native program next to the interpreter."""
    hcom = which("hcom", path=str(Path(PYTHON).parent))
    return {
        **({"cchooks": CCHOOKS} if find_spec("cchooks") else {}),
        **({"hcom": [hcom, "pre"]} if hcom else {}),
    }


def _check_answers(command: list[str], home: Path) -> None:
    """Check a command before it is timed: it must allow the payload, and block it with `rm -rf`."""
    dangerous = json.loads(PAYLOAD)
    dangerous["tool_input"]["command"] = "cd build && rm -rf /"
    for payload, expected in ((PAYLOAD, 0), (json.dumps(dangerous).encode(), 2)):
        env = {**ENVIRONMENT, "HOME": str(home)}
        done = subprocess.run(command, input=payload, capture_output=True, check=False, env=env)
        if done.returncode != expected:
            message = done.stderr.decode(errors="replace").strip()
            raise RuntimeError(f"{' '.join(command)}: expected exit {expected}, got {done.returncode}: {message}")
