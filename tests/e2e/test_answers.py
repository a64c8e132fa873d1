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


def is_asked(person: Person, prompt: str) -> str:
    """Prompt the client, wait until it asks the person, and return the id of the question."""
    person.prompts(prompt)
    person.sees(PROCEED)
    return str(question(person)["id"])


def test_a_permission_is_allowed_in_watch_denied_by_command_or_answered_in_the_client_first(machine: Machine) -> None:
    """The last command is a long one: no event tells that it was allowed, only the client's own file."""
    tool = Gate(machine.folder / "tool")
    script: list[Turn] = [
        *([bash("touch granted")], "All done."),
        *([bash("touch refused")], "Then not."),
        *([bash(tool.command)], "Over at last."),
    ]
    with at_terminal(machine, script=script) as person:
        is_warm(machine, person)
        is_asked(person, "Do it.")
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

        person.is_idle()
        refused = is_asked(person, "Do more.")
        watch.sees("touch refused")
        watch.presses("n", "a")
        watch.sees("y allow once")
        watch.closes()
        assert [one["id"] for one in listed(person)] == [refused], "a view that is closed has answered nothing"
        assert PROCEED in person.screen
        done = person.fairlead("answer", refused, "deny", "--reason", "Not in this folder.")
        assert (done.returncode, done.stdout, done.stderr) == (0, "denied: Bash: touch refused\n", "")
        person.sees("Then not.")
        assert person.room.requests()[-1].results[-1] == "Not in this folder."
        assert not (machine.project / "refused").exists()

        person.is_idle()
        late = is_asked(person, "Take long.")
        person.answers(PROCEED, "Enter")
        tool.is_reached()
        person.until(lambda: not listed(person), "the question is over")
        person.until(lambda: not hooks_of(person), "the hook has ended")
        told = person.fairlead("answer", late, "deny")
        assert (told.returncode, "no open question has the id" in told.stderr) == (1, True)
        tool.opens()
        person.sees("Over at last.")
    allowed, blocked = answers(machine)
    assert (allowed.verdict, blocked.verdict) == ("allowed", "blocked")
    assert ", with fairlead watch (pid " in allowed.reason
    assert " at /dev/pts/" in allowed.reason


def test_after_an_escape_when_time_is_up_and_without_a_daemon_the_client_alone_is_answered(machine: Machine) -> None:
    script: list[Turn] = [
        *([bash("touch escaped")], [bash("touch late")], "All done."),
        *([bash("touch left")], "Over at last."),
    ]
    with at_terminal(machine, script=script) as person:
        is_warm(machine, person)
        escaped = is_asked(person, "Do it.")
        person.answers(PROCEED, "Escape")
        person.until(lambda: not listed(person), "the question is over")
        assert person.fairlead("answer", escaped, "allow").returncode == 1
        person.is_idle()
        assert not (machine.project / "escaped").exists()

        machine.attention(answer=True, answerTimeout=1)
        person.prompts("Do it late.")
        person.sees(PROCEED)
        person.until(lambda: events(machine).count("PermissionRequest") == 2, "the client has asked")
        is_left_to_the_client(machine, person, "late")
        person.sees("All done.")
        person.is_idle()

        machine.attention(answer=True)
        is_asked(person, "Do it alone.")
        assert person.room.run("sh", "-c", machine.kill_daemon).returncode == 0
        is_left_to_the_client(machine, person, "left")
        person.sees("Over at last.")
    assert answers(machine) == []
    assert [(machine.project / name).exists() for name in ("escaped", "late", "left")] == [False, True, True]


def events(machine: Machine) -> list[str]:
    return [event.event for event in machine.happened()]


def is_left_to_the_client(machine: Machine, person: Person, name: str) -> None:
    """See that the hook ends without an answer, and the client still asks; allow it there."""
    person.until(lambda: not hooks_of(person), "the hook has ended")
    assert PROCEED in person.screen
    assert not (machine.project / name).exists()
    person.answers(PROCEED, "Enter")


def hooks_of(person: Person) -> str:
    """The launchers that wait for an answer."""
    return person.room.run("pgrep", "-f", "fairlead-hook PermissionRequest").stdout


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
