"""Two real sessions and a lease: the one that does not hold it cannot change the file, by Bash or by a file tool."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest
from e2e.installed import machine
from e2e.interactive import at_terminal
from e2e.model import bash
from e2e.sealed import claude

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.model import Turn

pytestmark = pytest.mark.timeout(240)

MAY_RUN = ("--allowedTools", "Bash", "Write", "Edit")


def test_a_lease_stops_the_bash_and_the_file_tools_of_another_session(client: Path) -> None:
    with machine(client) as here:
        done = here.fairlead("hooks", "install")
        assert (done.exit_code, done.stderr) == (0, ""), done
        here.policy("leases: block\npreToolUse: {preventRootAdditions: false}\n")
        file = here.project / "parser.py"
        file.write_text("one\n")
        lease = shlex.join([str(here.program), "lease", "parser.py", "--for", "1h", "--why", "splitting it"])
        script: list[Turn] = [
            [bash(lease)],
            "I hold it.",
            [bash("sed -i s/one/two/ parser.py"), here.write("parser.py", "three\n")],
            [bash("echo four > other.py")],
            "I leave it.",
            [bash("sed -i s/one/five/ parser.py")],
            "Changed.",
        ]
        with at_terminal(here, *MAY_RUN, script=script) as person:
            person.prompts("Lease the parser.")
            person.sees("I hold it.")
            person.is_idle()
            other = person.room.start(*claude(here.client, "Change it.", *MAY_RUN))
            out, errors = other.communicate(timeout=90)
            assert (other.returncode, out.strip(), errors) == (0, "I leave it.", "")
            assert file.read_text() == "one\n"
            assert (here.project / "other.py").read_text() == "four\n"

            person.prompts("Change it.")
            person.sees("Changed.")
            person.is_idle()

        assert file.read_text() == "five\n"
        requests = person.room.requests()
        blocked = [result for request in requests for result in request.results if "leases: block" in result]
        assert len(blocked) >= 2, "Bash and Write"
        assert all("holds a lease on it" in result and "'splitting it'" in result for result in blocked)
        assert all("fairlead send " in result for result in blocked)
        assert any(request.holds("wanted to change") for request in requests[5:]), "the holder hears of it"


def test_two_sessions_that_change_one_file_without_a_lease_are_both_told(client: Path) -> None:
    with machine(client) as here:
        done = here.fairlead("hooks", "install")
        assert (done.exit_code, done.stderr) == (0, ""), done
        here.policy("preToolUse: {preventRootAdditions: false}\n")
        file = here.project / "parser.py"
        file.write_text("one\n")
        script: list[Turn] = [
            [bash("echo two >> parser.py")],
            "First.",
            [bash("echo three >> parser.py")],
            "Second.",
            "I see.",
        ]
        with at_terminal(here, *MAY_RUN, script=script) as person:
            person.until(here.socket.exists, "a daemon is there")
            person.prompts("Change it.")
            person.sees("First.")
            person.is_idle()
            other = person.room.start(*claude(here.client, "Change it.", *MAY_RUN))
            out, errors = other.communicate(timeout=90)
            assert (other.returncode, out.strip(), errors) == (0, "Second.", "")
            person.prompts("Anything new?")
            person.sees("I see.")
        assert file.read_text() == "one\ntwo\nthree\n", "nobody is stopped"
        requests = person.room.requests()
        assert requests[3].holds("in another session, and was notified."), "the second one, at its call"
        assert requests[4].holds("in another session; you changed it "), "the first one, at its next prompt"
