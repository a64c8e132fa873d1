"""Asks the guards about the lines of the corpus, with the policy from the disk, as an event without a daemon does.

`python tests/policy/corpus/judge.py ways everyday` prints what became of each family, and the lines that are wrong.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

import msgspec

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from policy.corpus.lines import Line, read_lines
from policy.corpus.project import Places, build_project

from fairlead import PreToolUse
from fairlead.decide import decide, find_policy
from fairlead.policy import Guards

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Answer = Literal["blocked", "asked", "narrowed", "passed"]
ANSWERS: tuple[Answer, ...] = ("blocked", "asked", "narrowed", "passed")
_VARIABLES = ("FAIRLEAD_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "CLAUDE_CONFIG_DIR")


class Judged(msgspec.Struct, frozen=True):
    """A line, and the answer of the guards."""

    line: Line
    answer: Answer
    reason: str

    @property
    def is_expected(self) -> bool:
        """Whether the answer is the one that the line wants."""
        return (self.answer == "passed") == (self.line.expected == "pass")


@contextmanager
def example_project(folder: Path) -> Iterator[Places]:
    """Build the project, with the environment of a session in it."""
    places = build_project(folder.resolve(), sys.prefix, sysconfig.get_paths()["purelib"])
    before = dict(os.environ)
    for name in _VARIABLES:
        os.environ.pop(name, None)
    os.environ |= {"HOME": places.home, "CLAUDE_PROJECT_DIR": places.root}
    try:
        yield places
    finally:
        os.environ.clear()
        os.environ |= before


def judge(lines: Iterable[Line], places: Places) -> list[Judged]:
    """Ask the guards about each line."""
    return [_judge(line, places) for line in lines]


def _judge(line: Line, places: Places) -> Judged:
    cwd = os.path.join(places.root, line.folder) if line.folder else places.root  # noqa: PTH118 - a tool's input is text
    tool, tool_input = line.call(places.fill(line.text))
    event = PreToolUse(session_id="s", cwd=cwd, tool_name=tool, tool_input=tool_input)
    policy = find_policy(cwd)
    assert policy.broken is None, policy.broken
    output = decide(event, policy, Guards(policy.layers)).output
    answer: Answer = "passed"
    if output.permission == "ask":
        answer = "asked"
    elif output.blocked:
        answer = "blocked"
    elif output.updated_input is not None:
        answer = "narrowed"
    return Judged(line, answer, (output.permission_reason or output.reason or "").replace("\n", " "))


def rate(judged: Iterable[Judged], *answers: Answer) -> float:
    """Return the share of the lines that got one of the answers."""
    counted = Counter(one.answer in answers for one in judged)
    return counted[True] / (counted.total() or 1)


def _report(name: str, places: Places) -> None:
    judged = judge(read_lines(f"{name}.txt"), places)
    families: dict[str, Counter[str]] = {}
    for one in judged:
        families.setdefault(one.line.family, Counter())[one.answer] += 1
    print(f"{name}: {len(judged)} lines, {len(families)} families")
    print("".join(f"{column:>10}" for column in ANSWERS))
    for family, counts in families.items():
        print("".join(f"{counts[column]:>10}" for column in ANSWERS), "", family)
    print("".join(f"{rate(judged, column):>10.1%}" for column in ANSWERS), "", "all")
    for one in judged:
        if not one.is_expected:
            text = one.line.text.replace("\n", "⏎")
            print(f"{one.line.where} [{one.line.family}] {one.answer}: {text}    {one.reason[:200]}")


if __name__ == "__main__":
    with TemporaryDirectory() as scratch, example_project(Path(scratch)) as built:
        for wanted in sys.argv[1:] or ["ways", "everyday"]:
            _report(wanted, built)
