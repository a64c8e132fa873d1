"""A person at the real client, and `fairlead sessions` beside it: at each step it says what is true."""

from __future__ import annotations

import json
from contextlib import contextmanager
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from e2e.installed import with_hooks
from e2e.interactive import PATIENCE, Gate, at_terminal
from e2e.model import bash, call

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from e2e.installed import Machine
    from e2e.interactive import Person
    from e2e.model import Subagents, Turn

Row: TypeAlias = tuple[str, str, str]
"""The type and description of a subagent ("" is the main session), its state, with what it works or what it needs."""

pytestmark = pytest.mark.timeout(240)

EXPLORE = call("Agent", description="look around", prompt="Look.", subagent_type="Explore")
PLAN = call("Agent", description="make a plan", prompt="Plan.", subagent_type="general-purpose")
EXPLORER, PLANNER = "Explore: look around", "general-purpose: make a plan"

ASK = call(
    "AskUserQuestion",
    questions=[
        {
            "question": "Which colour?",
            "header": "Colour",
            "multiSelect": False,
            "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
        }
    ],
)

PROCEED = "Do you want to proceed?"
LOOK_INTERVAL = 0.1
IN_FRONT = {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}
"""At a terminal the client has subagents in the background only, whatever `run_in_background` says."""


@pytest.fixture
def machine(client: Path) -> Iterator[Machine]:
    with with_hooks(client) as made:
        yield made


@pytest.fixture
def machine_in_front(client: Path) -> Iterator[Machine]:
    """One whose subagents keep their maker waiting."""
    with with_hooks(client, **IN_FRONT) as made:
        yield made


@contextmanager
def watched(machine: Machine, *, script: Sequence[Turn], subagent: Subagents = ()) -> Iterator[Person]:
    """Start the client; a daemon comes with the first event, and knows an idle session."""
    with at_terminal(machine, script=script, subagent=subagent) as person:
        person.until(machine.socket.exists, "a daemon is there")
        tells(person, ("", "idle", ""))
        yield person


def told(person: Person) -> list[Row]:
    """Ask the command who runs."""
    done = person.fairlead("sessions", "--json")
    assert (done.returncode, done.stderr) == (0, ""), done
    return sorted((_name(row), row["is"], _about(row["state"])) for row in json.loads(done.stdout)["sessions"])


def tells(person: Person, *rows: Row) -> None:
    """Wait until the command says just this."""
    tells_one_of(person, rows)


def tells_one_of(person: Person, *pictures: Iterable[Row]) -> None:
    """Wait until the command says one of these, where the client leaves it open which."""
    deadline = monotonic() + PATIENCE
    while (now := told(person)) not in [sorted(rows) for rows in pictures]:
        assert monotonic() < deadline, f"{now} is none of {pictures}\n{person.screen}"
        sleep(LOOK_INTERVAL)  # each look starts a process, and keeps the client's screen busy


def _name(row: dict[str, Any]) -> str:
    return f"{row['agent_type']}: {row.get('description')}" if "agent_id" in row else ""


def _about(state: dict[str, str]) -> str:
    return state.get("detail") or state.get("reason") or ""


def tokens(person: Person) -> dict[str, tuple[int, int]]:
    """Give what the subagents have used: in all, and of their context windows."""
    rows = {_name(row): row.get("usage", {}) for row in person.sessions().values() if "agent_id" in row}
    return {name: (usage.get("tokens"), usage.get("context_tokens")) for name, usage in rows.items()}


def main_of(person: Person) -> dict[str, Any]:
    """Give the row of the main session that runs."""
    (row,) = (row for row in person.sessions().values() if "parent" not in row and row["is"] != "ended")
    return row


# -- subagents, and a question ---------------------------------------------------------------------------


def test_two_subagents_in_the_background_and_a_permission(machine: Machine) -> None:
    first, launched, tool, last, woken, look, plan = (
        Gate(machine.folder / name) for name in ("first", "launched", "tool", "last", "woken", "look", "plan")
    )
    script: list[Turn] = [
        first.before([EXPLORE, PLAN]),
        launched.before([bash(f"touch granted; {tool.command}")]),
        last.before("They are on their way."),
        woken.before("That was all."),
    ]
    subagent = {"Look.": [look.before("I have looked.")], "Plan.": [plan.before("I have planned.")]}
    with watched(machine, script=script, subagent=subagent) as person:
        person.prompts("Do it.")
        first.is_reached()
        tells(person, ("", "working", ""))
        assert main_of(person)["first_prompt"] == "Do it."

        first.opens()
        for gate in (look, plan, launched):
            gate.is_reached()
        tells(person, ("", "working", "Thinking"), (EXPLORER, "working", ""), (PLANNER, "working", ""))

        waiting = person.room.start(machine.program, "sessions", "wait", "--until", "attention", "--timeout", "60")
        launched.opens()
        person.sees(PROCEED)
        out, err = waiting.communicate(timeout=PATIENCE)
        main = main_of(person)
        assert (waiting.returncode, out, err) == (0, f"{main['id']}\n", "")
        assert (main["is"], main["state"]["reason"]) == ("attention", "Permission for Bash")
        assert (main["evidence"]["event"], main["evidence"]["tool"]) == ("PermissionRequest", "Bash")
        tells(person, ("", "attention", "Permission for Bash"), (EXPLORER, "working", ""), (PLANNER, "working", ""))

        person.answers(PROCEED, "Enter")
        tool.is_reached()
        tells(person, ("", "working", "Bash"), (EXPLORER, "working", ""), (PLANNER, "working", ""))

        look.opens()
        tells(person, ("", "working", "Bash"), (PLANNER, "working", ""))

        tool.opens()
        last.is_reached()
        last.opens()
        tells(person, ("", "working", "general-purpose in background"), (PLANNER, "working", ""))

        plan.opens()
        woken.is_reached()
        tells(person, ("", "working", ""))
        woken.opens()
        person.sees("That was all.")
        tells(person, ("", "idle", ""))

        assert person.leaves() == 0
        tells(person)
        ended = {_name(row): (row["is"], row["end_reason"]) for row in person.sessions().values()}
    assert ended == {
        "": ("ended", "prompt_input_exit"),
        EXPLORER: ("ended", "completed"),
        PLANNER: ("ended", "completed"),
    }


def test_two_subagents_in_front_of_which_one_asks(machine_in_front: Machine) -> None:
    machine = machine_in_front
    look, plan, planned, last = (Gate(machine.folder / name) for name in ("look", "plan", "planned", "last"))
    subagent = {
        "Look.": [look.before("I have looked.")],
        "Plan.": [plan.before([bash("touch granted")]), planned.before("I have planned.")],
    }
    script: list[Turn] = [[EXPLORE, PLAN], last.before("Done.")]
    with watched(machine, script=script, subagent=subagent) as person:
        person.prompts("Do it.")
        look.is_reached()
        plan.is_reached()
        children: list[Row] = [(EXPLORER, "working", ""), (PLANNER, "working", "")]
        lasts = ("Explore", "general-purpose", "Agent")  # by which of their hooks was heard last
        tells_one_of(person, *([("", "working", last), *children] for last in lasts))

        look.opens()
        tells(person, ("", "working", "general-purpose"), (PLANNER, "working", ""))

        plan.opens()
        person.sees(PROCEED)
        waited = person.fairlead("sessions", "wait", "--until", "attention", "--timeout", "30")
        (child,) = (row for row in person.sessions().values() if row["is"] == "attention")
        assert (waited.stdout, child["evidence"]["event"]) == (f"{child['id']}\n", "PermissionRequest")
        tells(person, ("", "working", "general-purpose"), (PLANNER, "attention", "Permission for Bash"))

        person.answers(PROCEED, "Enter")
        planned.is_reached()
        tells(person, ("", "working", "general-purpose"), (PLANNER, "working", "Thinking"))

        planned.opens()
        last.is_reached()
        tells(person, ("", "working", "Thinking"))
        last.opens()
        tells(person, ("", "idle", ""))
        used = {EXPLORER: (15, 15), PLANNER: (30, 15)}  # of one answer of the model, and of two
        person.until(lambda: tokens(person) == used, "the tokens of both are told, from their transcripts")


# -- what fires no event ---------------------------------------------------------------------------------


def test_what_the_person_interrupts_is_idle_after_a_moment(machine_in_front: Machine) -> None:
    machine = machine_in_front
    thought, tool, look, plan = (Gate(machine.folder / name) for name in ("thought", "tool", "look", "plan"))
    script: list[Turn] = [
        thought.before("Never said."),
        [bash(f"touch granted; {tool.command}")],
        [bash("touch dismissed")],
        [EXPLORE, PLAN],
    ]
    subagent = {"Look.": [look.before("Never said.")], "Plan.": [plan.before("Never said.")]}
    with watched(machine, script=script, subagent=subagent) as person:
        person.prompts("Think.")
        thought.is_reached()
        tells(person, ("", "working", ""))
        person.presses("Escape")
        tells(person, ("", "idle", ""))
        assert main_of(person)["evidence"]["why"] == "an interrupt fires no event"

        person.presses("C-u")  # the client gives an unanswered prompt back
        person.prompts("Run it.")
        person.answers(PROCEED, "Enter")
        tool.is_reached()
        tells(person, ("", "working", "Bash"))
        person.presses("Escape")
        tells(person, ("", "idle", ""))

        person.prompts("Ask me.")
        person.sees(PROCEED)
        tells(person, ("", "attention", "Permission for Bash"))
        person.answers(PROCEED, "Escape")
        tells(person, ("", "idle", ""))

        person.prompts("Send them.")
        look.is_reached()
        plan.is_reached()
        children: list[Row] = [(EXPLORER, "working", ""), (PLANNER, "working", "")]
        lasts = ("Explore", "general-purpose", "Agent")  # by which of their hooks was heard last
        tells_one_of(person, *([("", "working", last), *children] for last in lasts))
        person.presses("Escape")
        tells(person, ("", "idle", ""))

    assert not [happened.event for happened in machine.happened() if happened.event == "Stop"]
    assert not (machine.project / "dismissed").exists()


def test_a_question_an_error_a_clear_and_a_killed_client(machine: Machine) -> None:
    answered = Gate(machine.folder / "answered")
    refusals: list[Turn] = [{"refuse": "The kettle is empty."}] * 10  # the client tries again and again
    with watched(machine, script=[[ASK], answered.before("Red it is."), *refusals]) as person:
        person.prompts("Paint it.")
        person.sees("Which colour?")
        tells(person, ("", "attention", "AskUserQuestion"))
        person.answers("Enter to select", "Enter")
        answered.is_reached()
        tells(person, ("", "working", "Thinking"))
        answered.opens()
        tells(person, ("", "idle", ""))

        person.prompts("Boil it.")
        tells(person, ("", "attention", "API error: unknown"))
        assert main_of(person)["state"]["about"] == "API Error: 400 The kettle is empty."
        assert person.fairlead("sessions", "--line").stdout == "! project: API Error: 400 The kettle is empty.\n"

        before = main_of(person)["id"]
        person.is_idle()
        person.prompts("/clear")
        person.until(lambda: person.status.get("sessionId") not in (None, before), "the client has another session")
        tells(person, ("", "idle", ""))
        after = main_of(person)
        assert (after["id"], after["previous"]) == (person.status["sessionId"], [before])
        rows = person.sessions()
        assert (rows[before]["end_reason"], rows[before]["next_id"]) == ("clear", after["id"])

        person.room.run("kill", "-KILL", str(person.status["pid"]))
        tells(person)
        assert person.sessions()[after["id"]]["end_reason"] == "process gone"
