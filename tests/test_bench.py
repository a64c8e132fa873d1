"""The benchmarks run and report. No figure is looked at: whether it is fast is for people to read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parent.parent

ROWS = [
    ("fire: 10 async hooks, per hook", "bare await, same functions", "≤ 5 µs"),
    ("fire: 10 that suspend once, per hook", "bare await, same functions", ""),
    ("fire: 10 hooks, none matches, per event", "await of an empty one", ""),
    ("fire_sync: 10 plain hooks, inline, per hook", "bare call, same functions", ""),
    ("fire_sync: 10 plain hooks, inline, per hook", "pluggy 1.7, same functions", ""),
    ("fire_sync: 10 plain hooks, threaded, per hook", "ThreadPoolExecutor, same", ""),
    ("parse: 1019 bytes of PreToolUse", "json.loads", "≤ 5 µs"),
    ("encode: the same event", "json.dumps", ""),
    ("merge: 10 outputs into one", "{**a, **b} of 10 dicts", ""),
    ("command: CommandHook that runs `true`", "subprocess.run, same", ""),
    ("import: import fairlead", "import json, re", "≤ 2 x"),
    ("import: from fairlead import HookManager, PreToolUse", "import json, re", ""),
    ("cold road: fairlead PreToolUse --hooks FILE", 'python -I -c "import json"', "≤ 4 x"),
    ("cold road: fairlead PreToolUse --hooks FILE", "cchooks 0.1.5, same check", ""),
    ("cold road: fairlead PreToolUse --hooks FILE", "hcom 0.7.31, native, no check", ""),
    ("policy: Edit, 20 rules", "os.path.realpath", "≤ 60 µs"),
    ("policy: Bash, 208 characters, 20 rules", "shlex.split", "≤ 300 µs"),
    ("policy: fairlead PreToolUse, Edit", 'python -I -c "import json"', "≤ 4 x"),
    ("policy: fairlead PreToolUse, Bash", 'python -I -c "import json"', "≤ 4 x"),
]
KEYS = ["subject", "what", "unit", "ours", "baseline", "theirs", "difference", "ratio", "target", "reached"]

WITHOUT_PEERS = """
import sys
sys.modules.update(pluggy=None, cchooks=None)
from bench import cold_road
cold_road.which = lambda *_, **__: None
from bench.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def bench(start: Sequence[str], kept: Path) -> tuple[list[list[str]], dict[str, Any], str]:
    """Run it as a user would; give the cells of its table, what it kept, and its stderr."""
    command = [sys.executable, *start, "--quick", "--json", str(kept)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return cells, json.loads(kept.read_text(encoding="utf-8")), done.stderr


def test_the_table_has_every_row_and_the_file_every_key(tmp_path: Path) -> None:
    """Every row is printed, with its baseline and target, and kept as JSON with all its keys."""
    cells, kept, progress = bench(["-m", "bench"], tmp_path / "results.json")
    assert cells[0] == ["what", "ours", "baseline", "result", "target", "reached"]
    assert [(what, baseline.partition(": ")[0], target) for what, _, baseline, _, target, _ in cells[2:]] == ROWS
    assert [(f"{row['subject']}: {row['what']}", row["baseline"]) for row in kept["rows"]] == [
        (what, baseline) for what, baseline, _ in ROWS
    ]
    assert [list(row) for row in kept["rows"]] == [KEYS] * len(ROWS)
    assert progress.startswith("1/7 fire: done\n")


def test_the_file_says_where_it_ran_but_not_on_whose_machine(tmp_path: Path) -> None:
    """Python, platform, CPUs and versions are kept; no host name, no path."""
    _, kept, _ = bench(["-m", "bench"], tmp_path / "results.json")
    assert list(kept) == ["machine", "quick", "rows"]
    assert list(kept["machine"]) == ["when", "python", "implementation", "platform", "cpus", "versions"]
    assert kept["quick"] is True
    assert str(ROOT) not in json.dumps(kept)


def test_a_peer_that_is_not_installed_is_named(tmp_path: Path) -> None:
    """Without the peers everything else is measured, and their rows say how to get them."""
    cells, kept, _ = bench(["-c", WITHOUT_PEERS], tmp_path / "results.json")
    absent = [row["baseline"] for row in kept["rows"] if row["theirs"] is None]
    assert absent == ["pluggy 1.7, same functions", "cchooks 0.1.5, same check", "hcom 0.7.31, native, no check"]
    assert [line[2] for line in cells if "not installed" in line[2]] == [
        f"{name}: not installed: pip install -e '.[bench]'" for name in absent
    ]


@pytest.mark.parametrize("arguments", [["--json", "no/such/folder/results.json"], ["--rounds", "3"]])
def test_a_bad_command_line_is_refused_before_anything_runs(arguments: list[str]) -> None:
    """It ends with the usage and exit code 2."""
    command = [sys.executable, "-m", "bench", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: python -m bench [-h] [--quick] [--json FILE]\n")
