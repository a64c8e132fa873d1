"""Imports, as whole processes: CPU time above that of a Python process that does nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bench._harness import cpu_time
from bench._table import Row, Target

if TYPE_CHECKING:
    from bench._harness import Effort

BASELINE = "import json, re"
LAZY = "import fairlead"
USED = "from fairlead import HookManager, PreToolUse"


def rows(effort: Effort) -> list[Row]:
    lines = ("pass", BASELINE, LAZY, USED)
    times = effort.compare_processes({line: cpu_time([sys.executable, "-I", "-c", line]) for line in lines})
    above = {line: times[line].above(times["pass"]) for line in lines}
    return [
        Row("import", LAZY, "ms", above[LAZY], BASELINE, above[BASELINE], target=Target("ratio", 2)),
        Row("import", USED, "ms", above[USED], BASELINE, above[BASELINE]),
    ]
