"""A person at the real client, and beside it the commands that act on its session, and the view."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.installed import with_hooks
from e2e.interactive import Gate, at_terminal
from e2e.model import call

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e.installed import Machine
    from e2e.interactive import Person
    from e2e.model import Turn

pytestmark = pytest.mark.timeout(240)

OUTER = call("Agent", description="outer", prompt="Outer.", subagent_type="general-purpose", run_in_background=True)
INNER = call("Agent", description="inner", prompt="Inner.", subagent_type="Explore", run_in_background=True)


@pytest.fixture
def machine(client: Path) -> Iterator[Machine]:
    with with_hooks(client) as made:
        yield made


def main_of(person: Person) -> dict[str, Any]:
    """The row of the main session that runs."""
    rows = [row for row in person.sessions().values() if "parent" not in row and row["is"] != "ended"]
    return rows[0] if rows else {}


def state_of(person: Person) -> tuple[str, str]:
    row = main_of(person)
    return row.get("is", ""), row.get("state", {}).get("detail", "")


def run(person: Person, *words: str) -> str:
    done = person.fairlead(*words)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def test_a_nested_subagent_in_the_background_keeps_its_main_session_working(machine: Machine) -> None:
    last, outer, launch, inner = (Gate(machine.folder / name) for name in ("last", "outer", "launch", "inner"))
    script: list[Turn] = [[OUTER], last.before("Launched."), "All done."]
    subagent: dict[str, list[Turn]] = {
        "Outer.": [launch.before([INNER]), outer.before("Outer done."), "Outer done again."],
        "Inner.": [inner.before("Inner done.")],
    }
    with at_terminal(machine, script=script, subagent=subagent) as person:
        person.prompts("Do it.")
        last.is_reached()
        launch.is_reached()
        last.opens()
        person.until(lambda: state_of(person) == ("working", "general-purpose in background"), "it has answered")

        launch.opens()  # so the list of tasks at its Stop did not have the inner one
        inner.is_reached()
        outer.is_reached()
        outer.opens()
        person.until(lambda: state_of(person) == ("working", "Explore in background"), "only the inner one works")
        tree = run(person, "sessions", "--tree")
        assert [line.split()[:2] for line in tree.splitlines() if "working" in line][1:] == [["●", "working"]] * 2
        assert "└ Explore: inner" in tree, tree
        assert run(person, "sessions", "--line") == "1 working\n"

        inner.opens()
        person.sees("All done.")
        person.until(lambda: state_of(person) == ("idle", ""), "all have ended")


def test_a_session_is_renamed_interrupted_written_to_read_and_ended_from_outside(machine: Machine) -> None:
    thought, again = Gate(machine.folder / "thought"), Gate(machine.folder / "again")
    with at_terminal(machine, script=[thought.before("Never said."), again.before("Never said.")]) as person:
        person.until(machine.socket.exists, "a daemon is there")
        person.prompts("/rename login form")
        person.until(lambda: main_of(person).get("title") == "login form", "the client's own title is its name")
        session = main_of(person)["id"]

        idle = person.fairlead("sessions", "interrupt", session)
        assert (idle.returncode, idle.stderr) == (1, "fairlead: it is idle: there is nothing to interrupt\n")
        person.prompts("Think.")
        thought.is_reached()
        person.until(lambda: state_of(person)[0] == "working", "it works")
        assert run(person, "sessions", "interrupt", session[:8]) == "interrupted: Escape was pressed in pane %0\n"
        person.until(lambda: person.status.get("status") == "idle", "the client has heard it")
        person.until(lambda: state_of(person)[0] == "idle", "and so have we")

        assert run(person, "sessions", "mail", session, "Mind the gap.").startswith("sent to ")
        person.presses("C-u")  # the client gives an unanswered prompt back
        person.prompts("Again.")
        again.is_reached()
        assert "you:\nAgain." in run(person, "sessions", "transcript", session)
        acts_in_the_view(person)

        asked = person.fairlead("sessions", "end", session)
        assert asked.returncode == 1
        assert "needs a confirmation" in asked.stderr
        pid = person.status["pid"]
        assert run(person, "sessions", "end", session, "--yes") == f"ended: process {pid}\n"
        person.until(lambda: not person.status, "the client has ended")
        assert person.sessions()[session]["is"] == "ended"
        waited = person.fairlead("sessions", "wait", "--session", session)
        assert (waited.returncode, waited.stdout) == (0, "ended\n")
    assert any(request.holds("Mind the gap.") for request in person.room.requests())


def acts_in_the_view(person: Person) -> None:
    """Do the same from `watch`: read, write, interrupt, and do not end it after all."""
    view = person.watches()
    view.sees("login form")
    view.presses("j", "o")
    view.sees("Again.")
    view.presses("q")
    view.sees_no_more("you:")
    view.presses("m")
    view.sees("to login form:")
    view.types("Well.")
    view.presses("Enter")
    view.sees("sent to ")
    view.presses("X")
    view.sees(f"End 'login form', process {person.status['pid']}, working?")
    view.presses("y")
    view.sees("End it, with everything that it and its subagents are doing?")
    view.presses("n")
    view.presses("I")
    view.sees("interrupted: Escape was pressed in pane %0")
    person.until(lambda: person.status.get("status") == "idle", "the client has heard it")
    view.closes()


def test_a_dialog_that_blocks_a_start_is_a_row_with_its_pane(machine: Machine) -> None:
    elsewhere = machine.folder / "elsewhere"
    elsewhere.mkdir()
    tmux = ("tmux", "-S", str(machine.folder / "tmux.sock"))
    with at_terminal(machine) as person:
        person.until(machine.socket.exists, "a daemon is there")
        person.room.run(*tmux, "new-window", "-d", "-c", elsewhere, "--", machine.client)

        def starting() -> dict[str, Any]:
            return next((row for row in person.sessions().values() if row["id"].startswith("starting-")), {})

        person.until(starting, "it is a row")
        row = starting()
        assert (row["is"], row["state"]["reason"]) == ("attention", "Trust dialog")
        assert (row["cwd"], row["pane"]) == (str(elsewhere), "%1")
        assert "elsewhere: Trust dialog: may it work in" in run(person, "sessions", "--line")

        def answered() -> bool:
            person.room.run(*tmux, "send-keys", "-t", "%1", "Down", "Enter")
            return not starting()

        person.until(answered, "it is gone when it is answered")
        person.until(
            lambda: any(row["cwd"] == str(elsewhere) and row["is"] == "idle" for row in person.sessions().values()),
            "its session has begun",
        )


def test_a_session_that_no_event_has_told_of_knows_its_pane(client: Path) -> None:
    """The hooks are installed when the client runs already: it is known from its own file, and its pane from /proc."""
    with with_hooks(client) as machine:
        settings = machine.settings.read_text()
        machine.settings.write_text("{}")
        with at_terminal(machine) as person:
            machine.settings.write_text(settings)
            person.until(lambda: main_of(person), "it is discovered")
            row = main_of(person)
            assert (row["evidence"]["source"], row["pane"]) == ("client", "%0")
            assert row["tmux"].startswith(f"{machine.folder / 'tmux.sock'},")
            assert json.loads(run(person, "sessions", "go", row["id"], "--json"))["session"] == row["id"]
