"""Questions and plans of a real agent, answered in `fairlead watch`, by a command, or in the client; and a form."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from e2e.installed import with_answers
from e2e.interactive import Gate, at_terminal
from e2e.model import FOUND, call, quoting

from fairlead.journal import CommandsRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.installed import Machine
    from e2e.interactive import Person, Terminal
    from e2e.model import ToolCall, Turn

pytestmark = pytest.mark.timeout(240)

PLAN = "# The plan\n\n1. Paint it blue.\n"
PLAN_FILE = r"/\S+/plans/\S+\.md"
"""Where the client tells the model to write its plan."""
EXIT_PLAN = call("ExitPlanMode")
FORM = "requests your input"


@pytest.fixture
def machine(client: Path) -> Iterator[Machine]:
    with with_answers(client) as made:
        yield made


def ask(*questions: str) -> ToolCall:
    """Ask for colours: one for each question, and several if that is about colours."""
    options = [{"label": "Red", "description": "as a brick"}, {"label": "Blue", "description": "as the sky"}]
    asked = [
        {"question": text, "header": "Paint", "multiSelect": "colours" in text, "options": options}
        for text in questions
    ]
    return call("AskUserQuestion", questions=asked)


def open_question(person: Person, text: str) -> str:
    """Wait until the daemon lists a question, and return its id."""

    def listed() -> dict[str, str]:
        told = json.loads(person.fairlead("answer", "--json").stdout or '{"questions": []}')["questions"]
        return {one["text"].partition("\n")[0]: one["id"] for one in told}

    person.until(lambda: list(listed()) == [text], f"{text!r} can be answered")
    return listed()[text]


def answer(person: Person, text: str, *words: str) -> str:
    """Answer a question by the command."""
    done = person.fairlead("answer", open_question(person, text), *words)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def answer_in(view: Terminal, person: Person, text: str, shown: str, *keys: str) -> None:
    """Answer a question by keys in the view, once it is there and the form is open."""
    open_question(person, text)
    view.sees(text)
    view.presses("n", "a")
    view.sees(shown)
    view.presses(*keys)


def test_questions_and_plans_are_answered_in_the_view_by_command_and_in_the_client(machine: Machine) -> None:
    script: list[Turn] = [
        [ask("Which wall?", "Which colours?")],
        [ask("Which door?")],
        [ask("Which roof?")],
        quoting(PLAN_FILE, [call("Write", file_path=FOUND, content=PLAN)]),
        [EXIT_PLAN],
        [EXIT_PLAN],
        [EXIT_PLAN],
        [call("EnterPlanMode")],
        [EXIT_PLAN],
        "Painted.",
    ]
    with at_terminal(machine, "--permission-mode", "plan", script=script, ready="plan mode on") as person:
        person.until(machine.socket.exists, "a daemon is there")
        view = person.watches()
        person.prompts("Paint it.")
        answer_in(view, person, "Which wall?", "(1 of 2)", "1")
        view.sees("Which colours? (2 of 2)")
        view.presses("1", "2", "Enter")
        view.sees("answered: AskUserQuestion")
        assert answer(person, "Which door?", "allow", "--choose", "blue") == "answered: AskUserQuestion: Which door?\n"
        open_question(person, "Which roof?")
        person.answers("Which roof?", "Enter")  # the first option, in the client

        answer_in(view, person, "# The plan", "y allow once", "d", "Another", "Space", "colour.", "Enter")
        view.sees("denied: ExitPlanMode")
        assert answer(person, "# The plan", "deny", "--reason", "Still no.") == "denied: ExitPlanMode: # The plan\n"
        assert answer(person, "# The plan", "allow") == "allowed once: ExitPlanMode: # The plan\n"
        answer_in(view, person, "# The plan", "y allow once", "y")
        view.sees("allowed once: ExitPlanMode")
        person.sees("Painted.")

    wall, door, roof, _, denied, again, allowed, _, last = person.room.requests()[-1].results
    assert '"Which wall?"="Red", "Which colours?"="Red, Blue"' in wall
    assert '"Which door?"="Blue"' in door
    assert '"Which roof?"="Red"' in roof
    assert (denied, again) == ("Another colour.", "Still no.")
    assert all("User has approved your plan" in result and "1. Paint it blue." in result for result in (allowed, last))
    given = [record for record in machine.journal() if isinstance(record, CommandsRecord)]
    verdicts = ["allowed", "allowed", "blocked", "blocked", "allowed", "allowed"]
    assert [record.verdict for record in given] == verdicts, "what the client was told itself is no answer of ours"
    by_view = ["with fairlead watch (pid " in record.reason for record in given]
    assert by_view == [True, False, True, False, False, True]


def test_a_form_of_an_mcp_server_is_a_row_and_stays_in_the_client(machine: Machine) -> None:
    """The client shows it only once the hooks of the event have ended: this is why Fairlead does not hold it."""
    held = Gate(machine.folder / "hook")
    machine.policy(f"elicitation: {{commands: {{form: [{{run: {json.dumps(held.command)}}}]}}}}")
    servers = machine.folder / "servers.json"
    server = Path(__file__).with_name("mcp_server.py")
    servers.write_text(json.dumps({"mcpServers": {"form": {"command": sys.executable, "args": [str(server)]}}}))
    words = ("--mcp-config", str(servers), "--allowedTools", "mcp__form__ask")
    with at_terminal(machine, *words, script=[[call("mcp__form__ask")], "Painted."]) as person:
        person.until(machine.socket.exists, "a daemon is there")
        person.prompts("Paint it.")
        held.is_reached()
        person.sees("running Elicitation hook")
        assert FORM not in person.screen
        held.opens()

        person.sees(FORM)
        person.until(lambda: state(person) == asks_for_input, "the row says what is asked")
        assert person.fairlead("answer").stdout == "no open questions\n"
        person.answers("Accept    Decline", "Enter")
        person.sees("Painted.")
        person.until(lambda: state(person) == {"is": "idle"}, "the session is idle")
    assert person.room.requests()[-1].results == ['{"action": "accept", "content": {}}']


asks_for_input = {"is": "attention", "reason": "MCP input", "about": "May I paint it?"}


def state(person: Person) -> dict[str, Any]:
    (row,) = person.sessions().values()
    found: dict[str, Any] = row["state"]
    return found
