"""What a session costs when the real client is killed and continued: its counter starts again, the sum does not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from e2e.installed import machine
from e2e.interactive import at_terminal
from e2e.model import costly

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.installed import Machine
    from e2e.interactive import Person

pytestmark = pytest.mark.timeout(240)

REPORTS = "reports.jsonl"
MINE = f"tee -a ~/{REPORTS} | grep -c session_id | sed 's/^/mine: /'; echo >> ~/{REPORTS}"


def counters(made: Machine) -> list[tuple[str, float]]:
    """What the client itself has reported, in order: the session and what its process says it has cost."""
    file = made.folder / "home" / REPORTS
    reports = [json.loads(line) for line in file.read_text().splitlines() if line.strip()]
    return [(one["session_id"], one["cost"]["total_cost_usd"]) for one in reports]


def reported(person: Person, more_than: float, count: int) -> float:
    """Wait for a report of the client after so many others, with a higher counter, and return that."""

    def higher() -> list[float]:
        return [usd for _, usd in counters(person.machine)[count:] if usd > more_than]

    person.until(higher, "the client has reported a cost")
    return higher()[-1]


def run(person: Person, *words: str) -> str:
    done = person.fairlead(*words)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def sums(person: Person, session: str) -> tuple[float, float, float, float]:
    """What today has cost, and what the session has: as `sessions` says, and as `history` does."""
    listed, past = (json.loads(run(person, *words, "--json")) for words in (("sessions", "--all"), ("history",)))
    (row,) = [one for one in listed["sessions"] if one["id"] == session]
    (ended,) = [one for one in past["sessions"] if one["id"] == session]
    return listed["costs"]["usd"], row["usage"]["cost_usd"], past["usd"], ended["total_usd"]


def all_show(person: Person, session: str, usd: float) -> None:
    """Wait until every command has the same sum."""
    person.until(lambda: all(one == pytest.approx(usd) for one in sums(person, session)), "all say the same")
    shown = f"${usd:.2f}"
    person.until(lambda: run(person, "sessions", "--line") == f"1 idle | {shown} today\n", "the line says it")
    assert f"{shown} today" in run(person, "sessions", "--tree")
    assert f"1 running, {shown}" in run(person, "history").splitlines()[0]


def test_a_session_whose_client_was_killed_costs_what_all_its_processes_did(client: Path) -> None:
    """Killed, it counts from 0 again, and says so before its first answer; after an orderly end it goes on counting.

    The second answer costs more than all before it, and is not taken for a counter that goes on.
    """
    with machine(client) as made:
        made.settings.parent.mkdir(parents=True)
        made.settings.write_text(json.dumps({"statusLine": {"type": "command", "command": MINE}}))
        assert made.fairlead("hooks", "install").exit_code == 0
        script = [costly("First answer.", 20_000), costly("Second answer.", 100_000), costly("Third answer.", 40_000)]
        with at_terminal(made, script=script, ready="mine: 1") as person:
            person.prompts("One.")
            person.sees("First answer.")
            first, before = reported(person, 0, 0), len(counters(made))

            person.room.run("kill", "-9", str(person.status["pid"]))
            person.starts_again("--continue", ready="mine: 1")
            person.prompts("Two.")
            person.sees("Second answer.")
            second = reported(person, 0, before)
            assert {name for name, _ in counters(made)} == {counters(made)[0][0]}
            assert counters(made)[before][1] == 0
            assert second > first

            session = counters(made)[0][0]
            all_show(person, session, first + second)

            before = len(counters(made))
            assert person.leaves() == 0
            person.starts_again("--continue", ready="mine: 1")
            person.prompts("Three.")
            person.sees("Third answer.")
            last = reported(person, second, before)
            assert counters(made)[before][1] == second, "a client that has left restores its counter"
            all_show(person, session, first + last)
