"""How many ways around the rules the guards block, and how many everyday calls they disturb.

This measures no speed. The calls are those of `tests/policy/corpus`. The calls named blind were written without reading
the guards, and first run when they were finished.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench._data import ROOT
from bench._harness import Timing
from bench._table import Row, Target

if TYPE_CHECKING:
    from policy.corpus.judge import Judged

    from bench._harness import Effort

HELD = Target("time", 97, is_floor=True)
ALL_HELD = Target("time", 100, is_floor=True)


def rows(effort: Effort) -> list[Row]:
    sys.path.append(str(ROOT / "tests"))
    from policy.corpus.judge import example_project, judge
    from policy.corpus.lines import read_lines

    found = []
    with TemporaryDirectory() as scratch, example_project(Path(scratch)) as places:
        for prefix, note in (("", ""), ("blind_", ", blind")):
            ways, everyday = (judge(read_lines(f"{prefix}{name}.txt"), places) for name in ("ways", "everyday"))
            found += _rows(ways, everyday, note)
    return found


def _rows(ways: list[Judged], everyday: list[Judged], note: str) -> list[Row]:
    own = [one for one in ways if one.line.goal == "self"]
    others = [one for one in ways if one.line.goal != "self"]
    asked = sum(one.answer == "asked" for one in everyday)
    blocked = sum(one.answer in {"blocked", "narrowed"} for one in everyday)
    return [
        _row(f"ways around held{note}", _held(others), len(others), HELD),
        _row(f"ways to switch it off held{note}", _held(own), len(own), ALL_HELD),
        _row(f"everyday calls questioned{note}", asked, len(everyday), Target("time", 1)),
        _row(f"everyday calls blocked{note}", blocked, len(everyday), Target("time", 0)),
    ]


def _row(what: str, count: int, total: int, target: Target) -> Row:
    share = count / total
    return Row("policy corpus", what, "%", Timing(share, share), "", target=target)


def _held(judged: list[Judged]) -> int:
    return sum(one.answer != "passed" for one in judged)
