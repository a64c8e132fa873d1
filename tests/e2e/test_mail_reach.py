"""Real sessions in the default permission mode: they write to each other, listen while idle, know their subagents."""

from __future__ import annotations

import json
from time import time
from typing import TYPE_CHECKING, Any

import pytest
from e2e.installed import ERRAND, with_mail
from e2e.interactive import Gate, at_terminal
from e2e.model import bash

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.interactive import Person
    from e2e.model import Request, Turn

pytestmark = pytest.mark.timeout(240)


def agents(person: Person) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(person.fairlead("agents", "--json").stdout)["agents"]
    return told


def session(person: Person) -> str | None:
    """The session of the only agent: none while the client has ended one session and has not begun the next."""
    told = agents(person)
    return told[0]["session"] if told else None


def is_listening(person: Person) -> bool:
    return [agent["reach"] for agent in agents(person)] == ["now"]


def test_two_agents_in_the_default_mode_write_to_each_other_without_a_question(client: Path) -> None:
    """One waits in its call for the answer; the other is idle, and woken; each asks, and each answers."""
    script: dict[str, list[Turn]] = {
        "You are alpha.": [
            [bash("fairlead identity rename alpha")],
            "I am alpha.",
            [bash('fairlead send beta --request "Which host?" && fairlead reply 1 "It is 8443."')],
            *["Alpha is through."] * 5,
        ],
        "You are beta.": [
            [bash('fairlead identity rename beta && fairlead send alpha --request "It\'s for the tests: which port?"')],
            [bash("fairlead poll --wait 60s")],
            [bash('fairlead reply 2 "It is localhost."')],
            *["Beta is through."] * 5,
        ],
    }
    with with_mail(client, "--skill", "--stay", "wake") as here:
        with at_terminal(here, script=script) as alpha:
            beta = alpha.starts_another()
            alpha.prompts("You are alpha.")
            alpha.sees("I am alpha.")
            alpha.is_idle()

            beta.prompts("You are beta. Ask alpha.")

            alpha.until(lambda: hears(alpha, "alpha", "It is localhost."), "alpha has its answer")
            beta.until(lambda: hears(beta, "beta", "It is 8443."), "beta has its answer")
            for person in (alpha, beta):
                person.is_idle()
            alpha.until(lambda: [agent["reach"] for agent in agents(alpha)] == ["now", "now"], "both listen again")
        requests = alpha.room.requests()
        to_alpha = [request for request in requests if request.holds("You are alpha.")]
        assert [request.holds("which port?") for request in to_alpha[:3]] == [False, False, True], (
            "it was idle, and woken"
        )
        assert not any("approval" in result for request in requests for result in request.results)


def hears(person: Person, name: str, text: str) -> bool:
    """Whether the agent that was given a name has read a text."""
    return any(request.holds(f"You are {name}.") and request.holds(text) for request in person.room.requests())


def test_only_the_mail_commands_are_allowed(client: Path) -> None:
    marks = ["a", "b", "c", "d", "e"]
    refused = [
        "fairlead send User hi; touch a",
        'fairlead send User "$(touch b)"',
        "fairlead send User hi > c",
        "PATH=. fairlead send User hi",
        "fairlead daemon stop",
        "fairlead send User --file .git",
    ]
    allowed = ["fairlead send User 'a; b $(c)'", "fairlead send User - < notes.md", "fairlead inbox"]
    with with_mail(client, "--skill") as here:
        here.project.mkdir(exist_ok=True)
        (here.project / "notes.md").write_text("long\n")
        run = here._sealed(
            [here.client, "-p", "Go.", "--permission-mode", "default"],
            [*([bash(command)] for command in (*refused, *allowed)), "Over."],
            (),
            120,
        )
        assert run.stdout.strip() == "Over."
        results = dict(zip((*refused, *allowed), run.requests[-1].results, strict=True))
        assert [command for command in allowed if "sent as" not in results[command]] == ["fairlead inbox"]
        assert [command for command in refused if "sent as" in results[command]] == []
        assert "no messages" in results["fairlead inbox"] or "approval" not in results["fairlead inbox"]
        assert not [mark for mark in marks if (here.project / mark).exists()]


def test_an_idle_agent_is_woken_from_its_start_and_after_clear(client: Path) -> None:
    script = ["Woken at the start.", "Woken after clear.", "Woken once more."]
    with with_mail(client, "--stay", "wake") as here:
        with at_terminal(here, script=script) as person:
            person.until(lambda: is_listening(person), "it listens before its first prompt")
            name = agents(person)[0]["name"]
            sent = person.fairlead("send", name, "The build is broken")
            assert "listening now" in sent.stdout, sent
            person.sees("Woken at the start.")
            person.is_idle()
            before = agents(person)[0]["session"]

            person.prompts("/clear")

            person.until(lambda: session(person) not in (before, None) and is_listening(person), "it listens again")
            assert agents(person)[0]["name"] == name
            person.fairlead("send", name, "The build is green")
            person.sees("Woken after clear.")
            person.is_idle()
            before = agents(person)[0]["session"]

            person.types("/clear")
            assert person.room.run("sh", "-c", here.kill_daemon).returncode == 0
            person.presses("Enter")

            person.until(lambda: session(person) not in (before, None) and is_listening(person), "it listens there too")
            assert agents(person)[0]["name"] == name
            person.fairlead("send", name, "The build is blue")
            person.sees("Woken once more.")
            person.is_idle()
        first, second, third = person.room.requests()
        assert first.holds("The build is broken")
        assert second.holds("The build is green")
        assert not second.holds("The build is broken")
        assert third.holds("The build is blue")


def test_the_oldest_client_wakes_an_agent_from_its_start(oldest_client: Path) -> None:
    with with_mail(oldest_client, "--stay", "wake") as here:
        with at_terminal(here, script=["Woken at the start."] * 3) as person:
            person.until(lambda: is_listening(person), "it listens before its first prompt")
            person.fairlead("send", agents(person)[0]["name"], "The build is broken")
            person.sees("Woken at the start.")
        assert any(request.holds("The build is broken") for request in person.room.requests())


def test_an_agent_is_woken_after_an_escape_in_a_woken_turn_and_is_back_when_its_session_is_resumed(
    client: Path,
) -> None:
    with with_mail(client, "--stay", "wake") as here:
        gate = Gate(here.folder / "answer")
        script: list[Turn] = [gate.before("Too late."), "Woken again.", "Woken after resume."]
        with at_terminal(here, script=script) as person:
            person.until(lambda: is_listening(person), "it listens")
            first = agents(person)[0]
            person.fairlead("send", first["name"], "one")
            gate.is_reached()
            person.presses("Escape")
            person.is_idle()
            gate.opens()
            person.fairlead("send", first["name"], "two")
            person.sees("Woken again.")
            person.is_idle()
            assert person.room.requests()[-1].holds("two")

            person.prompts("/clear")
            person.until(lambda: session(person) not in (first["session"], None), "another session")
            person.is_idle()
            resumed = time()
            person.prompts("/resume")
            person.sees("Resume session")
            person.answers("Search", "Enter")

            person.until(lambda: session(person) == first["session"], "the first session again")
            person.until(lambda: is_listening(person), "it listens, and it alone")
            assert agents(person)[0]["name"] == first["name"]
            assert person.sessions()[first["session"]]["since"] >= resumed, "it is idle since then"
            person.fairlead("send", first["name"], "Welcome back")
            person.sees("Woken after resume.")
        assert person.room.requests()[-1].holds("Welcome back")


def test_an_idle_agent_is_woken_although_the_daemon_is_another_one(client: Path) -> None:
    """The first is killed, the second stops."""
    with with_mail(client, "--stay", "wake") as here:
        lock = here.state / "run/daemon.lock"
        with at_terminal(here, script=["Woken by the second daemon.", "Woken by the third daemon."]) as person:
            person.until(lambda: is_listening(person), "it listens")
            before = lock.read_text()
            assert person.room.run("sh", "-c", here.kill_daemon).returncode == 0
            is_woken_at_another(person, before, "The build is broken", "Woken by the second daemon.")

            before = lock.read_text()
            assert person.fairlead("daemon", "stop", "--yes").returncode == 0
            is_woken_at_another(person, before, "The build is green", "Woken by the third daemon.")
        first, second = person.room.requests()
        assert first.holds("The build is broken")
        assert second.holds("The build is green")


def is_woken_at_another(person: Person, before: str, subject: str, answer: str) -> None:
    """Wait until the agent listens at another daemon than before, and see that a message wakes it."""
    person.until(lambda: is_listening(person), "it listens at the next daemon")
    assert (person.machine.state / "run/daemon.lock").read_text() != before
    sent = person.fairlead("send", agents(person)[0]["name"], subject)
    assert "listening now" in sent.stdout, sent
    person.sees(answer)
    person.is_idle()
    person.until(lambda: is_listening(person), "it listens again")


def test_a_subagent_acts_as_itself_and_has_mail_of_its_own(client: Path) -> None:
    """At a terminal it runs in the background, beside its parent, and asks for no permission to write to it."""
    script: list[Turn] = [[bash("fairlead identity rename alpha")], [ERRAND], "Launched.", *["Over."] * 4]
    with with_mail(client, "--skill") as here:
        report = Gate(here.folder / "report")
        subagent: list[Turn] = [
            [bash("fairlead identity")],
            [bash('fairlead send alpha "it\'s done" && fairlead poll')],
            report.before("None."),
            "None, really.",
        ]
        with at_terminal(here, script=script, subagent=subagent) as person:
            person.until(here.socket.exists, "a daemon is there")
            person.prompts("Send somebody.")
            report.is_reached()
            person.sees("Launched.")
            for name in ("alpha", "alpha/general-purpose-1"):
                assert person.fairlead("send", name, f"This is for {name}.").returncode == 0
            report.opens()
            person.until(lambda: any(one.holds("This is for alpha.") for one in to(person, "main")), "the parent reads")
            person.is_idle()
        identity, sent, *_ = to(person, "subagent")[-1].results
        assert identity.startswith("alpha/general-purpose-1\n")
        assert "sent as #1 to alpha" in sent
        assert "no new messages" in sent, "what it sent to its parent is no mail of its own"
        mine = "This is for alpha/general-purpose-1."
        assert [one.holds(mine) for one in to(person, "subagent")] == [False, False, False, True]
        assert to(person, "subagent")[-1].holds("repeat your whole report")
        assert not any(one.holds("This is for alpha.") for one in to(person, "subagent"))
        assert any(one.holds("New message from alpha/general-purpose-1") for one in to(person, "main"))
        assert not any(one.holds(mine) for one in to(person, "main"))


def to(person: Person, who: str) -> list[Request]:
    """What the model was asked by the main agent, or by a subagent."""
    return [request for request in person.room.requests() if request.who == who]
