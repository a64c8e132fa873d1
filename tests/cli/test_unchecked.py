"""An installation that is broken blocks what it cannot check, and keeps no agent going for ever."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import scratch_home

from fairlead.cli import unchecked
from fairlead.policy.commands import _planner
from fairlead.policy.config import _lookup
from fairlead.policy.config._types import Stop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome, Done

MISSING = "fairlead: internal error: ModuleNotFoundError: import of fairlead.execute halted; None in sys.modules\n"


@pytest.fixture
def home() -> Iterator[DaemonHome]:
    """A home whose Python cannot load all of Fairlead, as during an upgrade."""
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as made:
        (made.folder / "sitecustomize.py").write_text("import sys\nsys.modules['fairlead.execute'] = None\n")
        python = made.folder / "python"
        python.write_text(f'#!/bin/sh\nshift\nPYTHONPATH={made.folder} exec {sys.executable} "$@"\n')  # without -E
        python.chmod(0o755)
        yield made


def decide(home: DaemonHome, event: str, **more: str) -> Done:
    payload = home.payload(hook_event_name=event, prompt="/deploy")
    return home.hook(event, payload, "--python", str(home.folder / "python"), CLAUDE_PID="1", **more)


def test_a_stop_is_blocked_five_times_and_then_the_person_is_told(home: DaemonHome) -> None:
    home.policy("stop: {commands: [{run: 'true'}]}\n")
    check = f"the check `stop` of {home.project}/.fairlead.yaml could not be made"
    done = [decide(home, "Stop") for _ in range(7)]

    assert [one.exit_code for one in done] == [2, 2, 2, 2, 2, 1, 2]
    assert done[0].stderr.startswith(MISSING)
    blocked = f"fairlead: {check}, so the event is blocked. Reinstall Fairlead if this continues\n"
    assert done[0].stderr.endswith(blocked)
    assert done[5].stderr.endswith(f"fairlead: blocked 5 times, so the event now passes, although {check}\n")


def test_what_keeps_no_agent_going_is_blocked_each_time(home: DaemonHome) -> None:
    home.policy("userPromptSubmit: {slashCommands: {commands: {deploy: [{run: 'true'}]}}}\n")

    assert {decide(home, "UserPromptSubmit").exit_code for _ in range(6)} == {2}
    assert decide(home, "Stop").exit_code == 1, "it has no check"


def test_the_policies_of_the_project_and_of_the_user_count_too(home: DaemonHome) -> None:
    other = home.folder / "other"
    other.mkdir()
    (other / ".conclaude.yml").write_text("stop:\n")
    assert decide(home, "Stop").exit_code == 1
    assert decide(home, "Stop", CLAUDE_PROJECT_DIR=f"{other}/below/").exit_code == 2
    (home.state / "config.yaml").write_text("stop:\n")
    assert decide(home, "Stop").exit_code == 2


@pytest.mark.parametrize(
    ("line", "found"),
    [
        *(
            ("stop:", True),
            ("'stop' : {}", True),
            ('{"stop": {}}', True),
            ("{a: 1,stop: {}}", True),
            ("  stop: x", True),
        ),
        *(("# stop:", False), ("unstop:", False), ("stopFailure:", False), ("on: stop", False), ("  # stop: x", False)),
    ],
)
def test_a_section_is_found_however_it_is_written(line: str, *, found: bool) -> None:
    assert unchecked._has_key(f"{line}\n", "stop") is found


def test_the_tables_are_those_of_the_policy() -> None:
    kinds = _planner._KINDS
    blocking = {event for event, kind in kinds.items() if kind.on_failure != "never"}
    assert set(unchecked.SECTIONS) == blocking | {"UserPromptSubmit"}
    assert unchecked._NAMES == _lookup.NAMES
    assert Stop().max_blocks == unchecked.MAX_BLOCKS
