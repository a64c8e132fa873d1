"""The oldest client that hooks are installed for. It ignores `onFailure`, so the launcher alone shuts the gate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from e2e import clients
from e2e.installed import ERRAND, with_hooks
from e2e.model import after, bash

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e.installed import Machine
    from e2e.model import Turn

pytestmark = pytest.mark.timeout(clients.PATIENCE + 60)

POLICY = """
    preToolUse:
      uneditableFiles:
        - pattern: .env
          message: Secrets are set by hand.
    subagentStart:
      context:
        general-*: Say which files you changed.
    subagentStop:
      commands:
        general-purpose:
          - run: cat > stdin; echo "$FAIRLEAD_AGENT_ID $CONCLAUDE_AGENT_TYPE" > ended
    stop:
      commands:
        - run: test -e done || { touch done; exit 1; }
          message: Look again.
    """
REFUSED = "Secrets are set by hand."
"""As it is: this client puts nothing before a reason."""


@pytest.fixture
def here(oldest_client: Path) -> Iterator[Machine]:
    with with_hooks(oldest_client) as made:
        made.policy(POLICY)
        yield made


def test_a_whole_session_goes_as_with_the_newest(here: Machine) -> None:
    run = here.prompt(
        [here.when_warm([here.write(".env")]), [bash("echo that")], [ERRAND], "Done.", "Done, really."],
        subagent=[[here.write(".env")], "None."],
    )

    assert (run.exit_code, run.stdout, run.stderr) == (0, "Done, really.\n", "")
    assert run.asked == ["main", "main", "main", "subagent", "subagent", "main", "main"]
    assert run.requests[-1].results[:2] == [REFUSED, "that"]
    assert run.requests[4].results == [REFUSED]
    assert not (here.project / ".env").exists()
    assert run.requests[3].holds("Say which files you changed.")
    assert run.requests[-1].said("user")[-1] == "Stop hook feedback:\nLook again."
    payload = json.loads((here.project / "stdin").read_text())
    assert (here.project / "ended").read_text() == f"{payload['agent_id']} general-purpose\n"
    events = here.happened()
    assert [event.event for event in events][-3:] == ["Stop", "Stop", "SessionEnd"]
    assert [event.route for event in events[2:]] == ["daemon"] * (len(events) - 2)
    assert {(event.caller.pid, event.caller.start) for event in events} == {(run.pid, run.start)}


def test_it_is_given_the_events_that_it_knows_and_keys_that_it_does_not(here: Machine) -> None:
    events = json.loads(here.settings.read_text())["hooks"]

    assert not events.keys() & {"PreModelSwitch", "PostModelSwitch", "DirectoryAdded"}
    assert here.hook("PreToolUse")["onFailure"] == "block"


def test_the_gate_holds_when_the_daemon_is_killed_and_when_python_breaks_too(here: Machine) -> None:
    here.policy(POLICY.partition("subagentStart")[0])

    run = here.prompt(
        [
            here.when_warm([bash("echo before")]),
            after(here.kill_daemon, [here.write(".env")]),
            [bash("echo between")],
            after(f"ln -sf /bin/false {here.python}", [here.write(".env")]),
            after(f"rm {here.python}", [bash("echo after")]),
            "Done.",
        ]
    )

    why = "fairlead cannot check this call, so it is blocked: "
    before, by_guard, between, by_launcher, without_python = run.requests[-1].results
    assert (run.exit_code, run.stdout, run.asked) == (0, "Done.\n", ["main"] * 6)
    assert (before, by_guard, between) == ("before", REFUSED, "between")
    assert f"{why}Python ended with exit code 1. Reinstall Fairlead if this continues" in by_launcher
    assert without_python == f"{why}cannot run {here.python}: no such file. Reinstall Fairlead if this continues"
    assert not (here.project / ".env").exists()


def test_without_the_launcher_itself_it_has_no_gate(here: Machine) -> None:
    """What no hook can help, and why `fairlead doctor` looks at it."""
    script: list[Turn] = [here.when_warm([here.write(".env")]), after(f"rm {here.launcher}", [here.write(".env")])]

    run = here.prompt([*script, "Done."])

    assert (run.exit_code, run.stdout, run.asked) == (0, "Done.\n", ["main"] * 3)
    assert run.requests[-1].results[0] == REFUSED
    assert (here.project / ".env").exists()
