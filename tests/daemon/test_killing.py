"""Every event that was answered is written down exactly once, at whatever moment the daemon is killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from daemon.killing import kill_rounds

if TYPE_CHECKING:
    from daemon.daemon_home import DaemonHome

ROUNDS = 15


@pytest.mark.timeout(120)
def test_no_event_is_lost_doubled_or_let_through_when_the_daemon_is_killed(open_home: DaemonHome) -> None:
    outcome = kill_rounds(open_home, ROUNDS)

    assert outcome.wrong == []
    assert outcome.lost == []
    assert outcome.doubled == []
    assert outcome.spooled == 0
    assert outcome.kills == ROUNDS
    assert outcome.routes["daemon"] >= 1, "how many more depends on how fast the machine is"
    assert outcome.routes["cold"] >= ROUNDS, "each daemon was started by an event that found none"
