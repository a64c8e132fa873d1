"""Real sessions that write to each other, stay, and are woken: what the model reads, and what the person can do."""

from __future__ import annotations

import json
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from e2e.installed import machine
from e2e.interactive import at_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e.installed import Machine
    from e2e.interactive import Person

pytestmark = pytest.mark.timeout(240)

STOPS = 12
"""More than the client lets a hook block in a row by itself."""


@contextmanager
def installed(client: Path, *words: str) -> Iterator[Machine]:
    """A machine whose owner has installed the hooks with these words."""
    with machine(client) as made:
        done = made.fairlead("hooks", "install", *words)
        assert (done.exit_code, done.stderr) == (0, ""), done
        yield made


def waiting(person: Person) -> int:
    """How many hooks wait for mail."""
    told: dict[str, Any] = json.loads(person.fairlead("daemon", "status", "--json").stdout or "{}")
    return int(told.get("waiting", 0))


def test_a_persistent_agent_stays_and_takes_mail_that_comes_while_it_waits(client: Path) -> None:
    with installed(client, "--persistent") as here:
        here.policy("mail: {wait: 1}")
        with at_terminal(here, script=["Nothing to do."] * 100) as person:
            person.prompts("Stay.")
            person.until(lambda: stops(here) >= STOPS, "it stays for longer than eight stops")
            here.policy("mail: {wait: 500}")
            trusted = person.fairlead("trust", str(here.project), "--yes")  # else it is for the next session
            assert trusted.returncode == 0, trusted
            stands_still(here, person)
            before = stops(here)
            sent = person.fairlead("send", the_only_agent(person), "--subject", "Deploy at noon")
            assert sent.returncode == 0, sent
            person.until(lambda: stops(here) == before + 1 and waiting(person) == 1, "it has read it, and waits again")

            person.presses("Escape")

            person.is_idle()
            person.until(lambda: waiting(person) == 0, "nobody waits")
            person.prompts("Hello?")
            person.until(lambda: stops(here) == before + 2 and waiting(person) == 1, "it has answered, and stays")
        requests = person.room.requests()
        assert [request.holds("Deploy at noon") for request in requests[-2:]] == [True, True]
        assert not requests[-3].holds("Deploy at noon")
        assert requests[-1].holds("Hello?")


def stands_still(here: Machine, person: Person) -> None:
    """Wait until the agent waits for longer than a heartbeat."""
    while True:
        before, since = stops(here), monotonic()
        person.until(lambda: waiting(person) == 1, "it waits")
        person.until(lambda: stops(here) > before or monotonic() > since + 3, "it stops again, or time goes by")  # noqa: B023 - called at once
        if stops(here) == before:
            return


def stops(here: Machine) -> int:
    """How often the agent wanted to stop."""
    return sum(event.event == "Stop" for event in here.happened())


def agents(person: Person) -> dict[str, dict[str, Any]]:
    """Who is there, by name."""
    return {agent["name"]: agent for agent in json.loads(person.fairlead("agents", "--all", "--json").stdout)["agents"]}


def the_only_agent(person: Person) -> str:
    (name,) = agents(person)
    return name


def test_an_idle_session_is_woken_and_its_prompt_is_free_meanwhile(client: Path) -> None:
    with installed(client, "--stay", "wake") as here:
        with at_terminal(here, script=["Ready.", "I am awake."]) as person:
            person.prompts("Begin.")
            person.sees("Ready.")
            person.until(lambda: waiting(person) == 1, "somebody waits for its mail")
            person.is_idle()
            person.types("half a th")
            sent = person.fairlead("send", the_only_agent(person), "--subject", "The build is broken")
            assert sent.returncode == 0, sent
            person.sees("I am awake.")
            person.is_idle()
            assert "half a th" in person.screen
            person.until(lambda: waiting(person) == 1, "one waits again, and only one")
        woken = person.room.requests()[-1]
        assert woken.holds("The build is broken")
