"""What a session on one host asks reaches the person on another: in lists, and by one notification."""

from __future__ import annotations

import re
import signal
from queue import Empty
from typing import TYPE_CHECKING

import pytest
from daemon.asking import ask, questions, turn_on
from daemon.daemon_home import until
from notify.receivers import Desktop, session_bus
from team.daemon_hosts import member, team_host

if TYPE_CHECKING:
    from team.postgres_server import PostgresServer


def test_a_question_is_listed_and_notified_once_and_a_removed_host_cannot_answer_it(
    postgres_server: PostgresServer, database: str
) -> None:
    url = postgres_server.url(database)
    with (
        session_bus() as address,
        team_host("alpha") as alpha,
        team_host("beta", env={"DBUS_SESSION_BUS_ADDRESS": address}) as beta,
    ):
        desktop = Desktop(address)
        try:
            turn_on(alpha.home, "attention: {answer: true}\nteam: {answers: true}\n")
            turn_on(beta.home, "attention: {grace: 0}\n")
            member(alpha, url)
            member(beta, url, alpha)
            first = ask(alpha.home)

            note = desktop.shown.get(timeout=60)
            assert (note["title"], note["body"]) == (
                "Fairlead - project on alpha needs you",
                "Permission for Bash: make",
            )
            view = beta.home.fairlead("watch", "--once").stdout
            assert "! 1 needs you" in view
            assert re.search(r"NEEDS YOU\n +! needs you +\d+s +alpha:\S+ .*Bash: make\b", view)
            assert re.search(r"▾ on alpha !1  last contact \d+s ago", view)
            assert "alpha" not in beta.home.fairlead("watch", "--once", "--here").stdout
            assert beta.home.fairlead("sessions", "--line").stdout.startswith("alpha: ! project: Bash: make")

            beta.stop(signal.SIGKILL)
            beta.start()
            until(lambda: beta.is_connected() and questions(beta.home), "beta is back")
            first.is_killed()
            # The turn ends: a call that follows another one at once would be a second call of the same message.
            alpha.home.hook("Stop", alpha.home.payload(hook_event_name="Stop"))
            second = ask(alpha.home, "make install")
            assert desktop.shown.get(timeout=60)["body"] == "Permission for Bash: make install"
            with pytest.raises(Empty):
                desktop.shown.get_nowait()

            assert alpha.home.fairlead("team", "remove", "beta", "--yes").exit_code == 0
            until(lambda: beta.status().get("connection") == "refused", "beta notices")
            refused = beta.home.fairlead("answer", second.id, "allow")
            assert (refused.exit_code, "this host, beta, was removed from the team" in refused.stderr) == (1, True)
            assert second.is_waiting
            second.is_killed()
        finally:
            desktop.close()
