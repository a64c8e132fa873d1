"""Two real sessions at terminals and one file: both are told that both change it; a lease stops the one without it."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest
from e2e.installed import with_hooks
from e2e.interactive import at_terminal
from e2e.model import bash

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.interactive import Person
    from e2e.model import Turn

pytestmark = pytest.mark.timeout(240)

MAY_RUN = ("--allowedTools", "Bash", "Write", "Edit")


def test_two_sessions_that_change_one_file_are_told_and_a_lease_stops_the_other(client: Path) -> None:
    with with_hooks(client) as here:
        here.policy("leases: block\npreToolUse: {preventRootAdditions: false}\n")
        free, leased = here.project / "free.py", here.project / "parser.py"
        for file in (free, leased):
            file.write_text("one\n")
        lease = shlex.join([str(here.program), "lease", "parser.py", "--for", "1h", "--why", "splitting it"])
        script: dict[str, list[Turn]] = {
            "I am the first.": [
                [bash("echo two >> free.py")],
                "First has changed it.",
                [bash(lease)],
                "First holds it.",
                [bash("sed -i s/one/five/ parser.py")],
                "First is through.",
            ],
            "I am the second.": [
                [bash("echo three >> free.py")],
                "Second has changed it.",
                [bash("sed -i s/one/two/ parser.py"), here.write("parser.py", "three\n")],
                [bash("echo four > other.py")],
                "Second leaves it.",
            ],
        }
        with at_terminal(here, *MAY_RUN, script=script) as first:
            second = first.starts_another(*MAY_RUN)
            first.until(here.socket.exists, "a daemon is there")
            asks(first, "I am the first.", "First has changed it.")
            asks(second, "I am the second.", "Second has changed it.")
            assert free.read_text() == "one\ntwo\nthree\n", "nobody is stopped without a lease"

            asks(first, "Lease the parser.", "First holds it.")
            asks(second, "Change the parser.", "Second leaves it.")
            assert leased.read_text() == "one\n"
            assert (here.project / "other.py").read_text() == "four\n"
            first.until(lambda: has_queued_mail(first), "the message to the holder is sent")
            asks(first, "Change the parser.", "First is through.")
            assert leased.read_text() == "five\n"

        to_first, to_second = ([request for request in first.room.requests() if request.holds(name)] for name in script)
        assert [request.holds("in another session, and was notified.") for request in to_second[:2]] == [False, True]
        assert [request.holds("in another session; you changed it ") for request in to_first[1:3]] == [False, True]
        blocked = to_second[3].results[-2:]
        assert all("leases: block" in result and "holds a lease on it" in result for result in blocked), (
            "Bash and Write"
        )
        assert all("'splitting it'" in result and "fairlead send " in result for result in blocked)
        assert [request.holds("wanted to change") for request in to_first[3:5]] == [False, True], (
            "the holder hears of it"
        )


def has_queued_mail(person: Person) -> bool:
    """Return whether an agent has mail that it was not shown."""
    return any(agent["queued"] for agent in json.loads(person.fairlead("agents", "--json").stdout)["agents"])


def asks(person: Person, prompt: str, answer: str) -> None:
    """Prompt an agent, and wait until it has answered and is through."""
    person.prompts(prompt)
    person.sees(answer)
    person.is_idle()
