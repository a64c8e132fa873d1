"""A permission of the real client, answered in `fairlead watch`, by a command, in the client first, or by nobody."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.installed import with_answers
from e2e.interactive import Gate, at_terminal
from e2e.model import bash

from fairlead.journal import CommandsRecord

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e.installed import Machine
    from e2e.interactive import Person
    from e2e.model import Turn

pytestmark = pytest.mark.timeout(240)

PROCEED = "Do you want to proceed?"


@pytest.fixture
def machine(client: Path) -> Iterator[Machine]:
    with with_answers(client) as made:
        assert made.hook("PermissionRequest")["timeout"] == 3600
        yield made


def question(person: Person) -> dict[str, Any]:
    """Wait until the client asks and the daemon lists the question, and return it."""
    person.until(lambda: len(listed(person)) == 1, "the question is listed")
    return listed(person)[0]


def listed(person: Person) -> list[dict[str, Any]]:
    asked: list[dict[str, Any]] = json.loads(person.fairlead("answer", "--json").stdout or '{"questions": []}')[
        "questions"
    ]
    return asked


def answers(machine: Machine) -> list[CommandsRecord]:
    return [record for record in machine.journal() if isinstance(record, CommandsRecord)]


def is_warm(machine: Machine, person: Person) -> None:
    person.until(machine.socket.exists, "a daemon is there")


def test_a_permission_is_allowed_in_watch(machine: Machine) -> None:
    with at_terminal(machine, script=[[bash("touch granted")], "All done."]) as person:
        is_warm(machine, person)
        person.prompts("Do it.")
        person.sees(PROCEED)
        asked = question(person)
        assert (asked["tool"], asked["text"]) == ("Bash", "touch granted")

        watch = person.watches()
        watch.sees("touch granted")
        watch.presses("n", "a")
        watch.sees("y allow once")
        assert not (machine.project / "granted").exists()
        watch.presses("y")
        watch.sees("allowed once: Bash")

        person.sees("All done.")
        assert (machine.project / "granted").exists()
        assert listed(person) == []
    (record,) = answers(machine)
    assert record.verdict == "allowed"
    assert ", with fairlead watch (pid " in record.reason
    assert " at /dev/pts/" in record.reason


def test_a_permission_is_denied_by_command(machine: Machine) -> None:
    with at_terminal(machine, script=[[bash("touch granted")], "Then not."]) as person:
        is_warm(machine, person)
        person.prompts("Do it.")
        person.sees(PROCEED)
        asked = question(person)["id"]
        watch = person.watches()
        watch.sees("touch granted")
        watch.presses("n", "a")
        watch.sees("y allow once")
        watch.closes()
        assert [one["id"] for one in listed(person)] == [asked], "a view that is closed has answered nothing"
        assert PROCEED in person.screen
        done = person.fairlead("answer", asked, "deny", "--reason", "Not in this folder.")
        assert (done.returncode, done.stdout, done.stderr) == (0, "denied: Bash: touch granted\n", "")
        person.sees("Then not.")
        room = person.room
    assert room.requests()[-1].results == ["Not in this folder."]
    assert not (machine.project / "granted").exists()
    assert [record.verdict for record in answers(machine)] == ["blocked"]


def test_when_the_time_is_up_the_client_still_asks(machine: Machine) -> None:
    machine.attention(answer=True, answerTimeout=1)
    with at_terminal(machine, script=[[bash("touch granted")], "All done."]) as person:
        is_warm(machine, person)
        person.prompts("Do it.")
        person.sees(PROCEED)
        person.until(lambda: machine.happened()[-1].event == "PermissionRequest", "the client has asked")
        person.until(lambda: not hooks_of(person), "the hook has ended")
        assert PROCEED in person.screen
        assert not (machine.project / "granted").exists()
        person.answers(PROCEED, "Enter")
        person.sees("All done.")
    assert (machine.project / "granted").exists()
    assert answers(machine) == []


def hooks_of(person: Person) -> str:
    """The launchers that wait for an answer."""
    return person.room.run("pgrep", "-f", "fairlead-hook PermissionRequest").stdout


def test_the_client_is_answered_first(machine: Machine) -> None:
    """A long command: no event tells that it was allowed, only the client's own file."""
    tool = Gate(machine.folder / "tool")
    with at_terminal(machine, script=[[bash(tool.command)], "All done."]) as person:
        is_warm(machine, person)
        person.prompts("Do it.")
        person.sees(PROCEED)
        late = question(person)["id"]
        person.answers(PROCEED, "Enter")
        tool.is_reached()
        person.until(lambda: not listed(person), "the question is over")
        person.until(lambda: not hooks_of(person), "the hook has ended")
        refused = person.fairlead("answer", late, "deny")
        assert (refused.returncode, "no open question has the id" in refused.stderr) == (1, True)
        tool.opens()
        person.sees("All done.")
    assert answers(machine) == []


def test_escape_in_the_client_ends_the_question(machine: Machine) -> None:
    with at_terminal(machine, script=[[bash("touch granted")], "Never said."]) as person:
        is_warm(machine, person)
        person.prompts("Do it.")
        person.sees(PROCEED)
        late = question(person)["id"]
        person.answers(PROCEED, "Escape")
        person.until(lambda: not listed(person), "the question is over")
        assert person.fairlead("answer", late, "allow").returncode == 1
        person.is_idle()
    assert not (machine.project / "granted").exists()
    assert answers(machine) == []


def test_a_killed_daemon_leaves_the_question_in_the_client(machine: Machine) -> None:
    with at_terminal(machine, script=[[bash("touch granted")], "All done."]) as person:
        is_warm(machine, person)
        person.prompts("Do it.")
        person.sees(PROCEED)
        question(person)
        assert person.room.run("sh", "-c", machine.kill_daemon).returncode == 0
        person.until(lambda: not hooks_of(person), "the hook has ended")
        assert PROCEED in person.screen
        assert not (machine.project / "granted").exists()
        person.answers(PROCEED, "Enter")
        person.sees("All done.")
    assert (machine.project / "granted").exists()


def test_an_agent_cannot_answer_for_the_person(machine: Machine) -> None:
    """A session asks; another one, whose shell may run anything, tries to answer: by the command, and by a program.

    The guards stop what they can read. The rest the daemon refuses, as it sees which process answers.
    """
    name, words = machine.folder / "question", machine.project / "words"
    (machine.project / "try.py").write_text("import subprocess\nsubprocess.run(open('words').read().split())\n")
    script: dict[str, list[Turn]] = {
        "Do it.": [[bash("touch granted")], "Then not."],
        "Help it.": [[bash(f"{machine.program} answer $(cat {name}) allow"), bash("python3 try.py")], "I may not."],
    }
    with at_terminal(machine, script=script) as person:
        helper = person.starts_another("--allowedTools", "Bash")
        is_warm(machine, person)
        person.prompts("Do it.")
        person.sees(PROCEED)
        asked = question(person)["id"]
        name.write_text(asked)
        words.write_text(f"{machine.program} answer {asked} allow")

        helper.prompts("Help it.")
        helper.sees("I may not.")

        assert [one["id"] for one in listed(person)] == [asked]
        assert person.fairlead("answer", asked, "deny").returncode == 0
        person.sees("Then not.")
    by_command, by_program = next(one for one in person.room.requests() if len(one.results) > 1).results
    assert "running `fairlead answer" in by_command
    assert "only a person can answer, not a session of Claude Code" in by_program
    assert not (machine.project / "granted").exists()
    assert [record.verdict for record in answers(machine)] == ["blocked"]
