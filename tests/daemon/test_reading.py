"""Every message is shown exactly once, at whatever moment the daemon and the hooks that show it are killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from daemon.reading import Mail, Showing, kill_while_reading
from kills import ROUND, kill_rounds

if TYPE_CHECKING:
    from daemon.daemon_home import DaemonHome


@pytest.mark.parametrize(("seed", "kills"), kill_rounds(3))
@pytest.mark.timeout(120 + 10 * ROUND)
def test_no_message_is_lost_or_doubled_when_daemon_and_hooks_are_killed(
    open_home: DaemonHome, seed: int, kills: int
) -> None:
    mail = kill_while_reading(open_home, kills, seed=seed)

    assert mail.lost == set()
    assert mail.doubled == []
    assert mail.kills == kills
    assert len(mail.sent) > kills


def test_a_message_is_doubled_unless_its_hook_was_killed_and_the_next_showing_says_so() -> None:
    mail = Mail(sent={"once", "lost", "twice", "told", "killed", "both", "thrice"})
    for name, *showings in (
        ("once", (False, False)),
        ("twice", (False, False), (False, False)),
        ("told", (False, False), (False, True)),
        ("killed", (True, False), (False, False)),
        ("both", (True, False), (False, True)),
        ("thrice", (True, False), (True, True), (False, True)),
    ):
        mail.shown[name] = [Showing(*showing) for showing in showings]

    assert mail.lost == {"lost"}
    assert mail.doubled == ["twice", "told", "killed"]
