"""The real client draws its status line: the person's own as before, and Fairlead knows what the session has used."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.installed import machine
from e2e.interactive import at_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.installed import Machine
    from e2e.interactive import Person

pytestmark = pytest.mark.timeout(240)

TOLD = "told.json"
MINE = (
    f"""tee ~/{TOLD} | grep -c session_id | sed "s/^/it's mine: /"; env > ~/environment; ls -l /proc/$$/exe > ~/shell"""
)


def used(person: Person) -> dict[str, Any]:
    """What is known of the one session to have been used."""
    (session,) = person.sessions().values()
    found: dict[str, Any] = session.get("usage", {})
    return found


def install(made: Machine, *words: str) -> None:
    done = made.fairlead("hooks", "install", *words)
    assert (done.exit_code, done.stderr) == (0, ""), done


def test_the_persons_own_line_is_shown_and_its_figures_are_known(client: Path) -> None:
    with machine(client) as made:
        made.settings.parent.mkdir(parents=True)
        before = json.dumps({"statusLine": {"type": "command", "command": MINE, "padding": 1}})
        made.settings.write_text(before)
        install(made)

        with at_terminal(made, script=["Here it is."], ready="it's mine: 1") as person:
            person.prompts("What is it?")
            person.sees("Here it is.")
            person.until(lambda: used(person).get("cost_usd"), "the cost is known")
            status = json.loads((made.folder / "home" / TOLD).read_text())
            assert used(person)["cost_usd"] == status["cost"]["total_cost_usd"]
            assert used(person)["model"] == status["model"]["id"]
            assert used(person)["context_window"] == status["context_window"]["context_window_size"]
            assert person.sessions().keys() == {status["session_id"]}
            assert person.leaves() == 0

        environment = (made.folder / "home/environment").read_text()
        assert "FAIRLEAD_HOME=" in environment, "as the client gave it"
        assert [event.event for event in made.happened() if event.event == "StatusLine"] == []
        assert made.fairlead("hooks", "uninstall", "--yes").exit_code == 0
        assert made.settings.read_text() == before


def test_who_has_none_sees_ours(client: Path) -> None:
    with machine(client) as made:
        install(made, "--status-line")
        with at_terminal(made, script=["Here it is."], ready="  $0.00  ") as person:
            person.prompts("What is it?")
            person.sees("Here it is.")
            person.until(lambda: used(person).get("cost_usd"), "the cost is known")
            person.sees("░░░ 0%  $0.0")
            assert person.leaves() == 0
