"""Real sessions in the default permission mode: they write to each other, listen while idle, know their subagents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from e2e.installed import ERRAND, with_mail
from e2e.interactive import Gate, at_terminal
from e2e.model import bash

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.interactive import Person
    from e2e.model import Turn

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
    with with_mail(client, "--skill") as here:
        script: list[Turn] = [
            [bash("fairlead identity rename alpha")],
            "I am alpha.",
            [bash('fairlead send alpha --request "Which port? It\'s for the tests." && fairlead poll --wait 60s')],
            [bash('fairlead reply 1 "It is 8443."')],
            "Over.",
            "Over.",
        ]
        with at_terminal(here, script=script) as person:
            person.prompts("Who are you?")
            person.sees("I am alpha.")
            person.is_idle()
            asked = person.room.start(str(here.client), "-p", "Ask alpha.", "--permission-mode", "default")
            person.until(lambda: any(agent["unread"] for agent in agents(person)), "the question has come")
            person.prompts("Anything new?")
            out, errors = asked.communicate(timeout=60)
            person.is_idle()
            assert "Do you want to proceed" not in person.screen
        assert (asked.returncode, out.strip(), errors) == (0, "Over.", "")
        results = [result for request in person.room.requests() for result in request.results]
        assert any("It is 8443." in result for result in results), "the one who asked has read the answer"
        assert not any("requires approval" in result for result in results)


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
    with with_mail(client, "--stay", "wake") as here:
        with at_terminal(here, script=["Woken at the start.", "Woken after clear."]) as person:
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
        first, second = person.room.requests()
        assert first.holds("The build is broken")
        assert second.holds("The build is green")
        assert not second.holds("The build is broken")


def test_the_oldest_client_wakes_an_agent_from_its_start(oldest_client: Path) -> None:
    with with_mail(oldest_client, "--stay", "wake") as here:
        with at_terminal(here, script=["Woken at the start."] * 3) as person:
            person.until(lambda: is_listening(person), "it listens before its first prompt")
            person.fairlead("send", agents(person)[0]["name"], "The build is broken")
            person.sees("Woken at the start.")
        assert any(request.holds("The build is broken") for request in person.room.requests())


def test_the_agent_of_a_resumed_session_is_back_and_listens(client: Path) -> None:
    with with_mail(client, "--stay", "wake") as here:
        with at_terminal(here, script=["Ready.", "Woken after resume."]) as person:
            person.prompts("Begin.")
            person.sees("Ready.")
            person.is_idle()
            first = agents(person)[0]
            person.prompts("/clear")
            person.until(lambda: session(person) not in (first["session"], None), "another session")
            person.is_idle()
            person.prompts("/resume")
            person.sees("Resume session")
            person.answers("Search", "Enter")

            person.until(lambda: session(person) == first["session"], "the first session again")
            person.until(lambda: is_listening(person), "it listens, and it alone")
            assert agents(person)[0]["name"] == first["name"]
            person.fairlead("send", first["name"], "Welcome back")
            person.sees("Woken after resume.")
        assert person.room.requests()[-1].holds("Welcome back")


def test_an_agent_is_woken_after_an_escape_in_a_woken_turn(client: Path) -> None:
    with with_mail(client, "--stay", "wake") as here:
        gate = Gate(here.folder / "answer")
        with at_terminal(here, script=[gate.before("Too late."), "Woken again."]) as person:
            person.until(lambda: is_listening(person), "it listens")
            name = agents(person)[0]["name"]
            person.fairlead("send", name, "one")
            gate.is_reached()
            person.presses("Escape")
            person.is_idle()
            gate.opens()

            person.fairlead("send", name, "two")

            person.sees("Woken again.")
        assert person.room.requests()[-1].holds("two")


@pytest.mark.parametrize("how", ["is killed", "stops"])
def test_an_idle_agent_is_woken_although_the_daemon_is_another_one(client: Path, how: str) -> None:
    with with_mail(client, "--stay", "wake") as here:
        with at_terminal(here, script=["Woken by the next daemon."]) as person:
            person.until(lambda: is_listening(person), "it listens")
            first = (here.state / "run/daemon.lock").read_text()
            if how == "stops":
                assert person.fairlead("daemon", "stop", "--yes").returncode == 0
            else:
                assert person.room.run("sh", "-c", here.kill_daemon).returncode == 0

            person.until(lambda: is_listening(person), "it listens at the next daemon")
            assert (here.state / "run/daemon.lock").read_text() != first
            sent = person.fairlead("send", agents(person)[0]["name"], "The build is broken")
            assert "listening now" in sent.stdout, sent
            person.sees("Woken by the next daemon.")
        (request,) = person.room.requests()
        assert request.holds("The build is broken")


def test_a_subagents_command_acts_as_the_subagent(client: Path) -> None:
    with with_mail(client, "--skill") as here:
        run = here.prompt(
            [here.when_warm([bash("fairlead identity rename alpha")]), [ERRAND], "Done.", "Over."],
            subagent=[
                [bash("fairlead identity")],
                [bash('fairlead send alpha "it\'s done" && fairlead poll')],
                "None.",
            ],
        )
    results = [result for request in run.requests if request.who == "subagent" for result in request.results]
    assert any(result.startswith("alpha/general-purpose-1\n") for result in results)
    assert any("sent as #1 to alpha" in result and "no new messages" in result for result in results)
    assert run.model_saw("From: alpha/general-purpose-1")
