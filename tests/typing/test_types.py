"""What the type checker must refuse, it refuses: each program in `rejected/` has one mistake."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

EXPECTED = {
    "wrong_event.py:6": 'has incompatible type "Callable[[Stop], None]"; expected "Callable[[PreToolUse, ',
    "wrong_event_async.py:6": 'has incompatible type "Callable[[PreToolUse, HookContext], Coroutine[',
    "wrong_answer.py:6": 'Value of type variable "R" of "__call__" of "Decorator" cannot be "str"',
    "wrong_option.py:6": 'No overload variant of "on" of "HookManager" matches',
    "one_of_two_events.py:6": 'expected "Callable[[PreToolUse | PostToolUse, ',
    "assignment.py:5": 'Property "tool_name" defined in "PreToolUse" is read-only',
}
"""File and line → what mypy says there. Line 6 is the decorator."""


def mypy(*paths: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.timeout(180)
def test_mypy_rejects_each_program_at_the_line_of_its_mistake() -> None:
    done = mypy(*sorted((HERE / "rejected").glob("*.py")))
    first: dict[str, str] = {}
    for line in done.stdout.splitlines():
        if found := re.match(r".*[/\\](\w+\.py:\d+): error: (.*)", line):
            first.setdefault(found[1], found[2])
    for location, message in EXPECTED.items():
        assert message in first.get(location, "nothing"), done.stdout
    assert {location.split(":")[0] for location in first} == {path.name for path in (HERE / "rejected").glob("*.py")}


@pytest.mark.timeout(180)
def test_mypy_accepts_what_is_right() -> None:
    done = mypy(HERE / "accepted.py")
    assert done.returncode == 0, done.stdout
