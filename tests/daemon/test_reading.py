"""Every message is shown exactly once, at whatever moment the daemon and the hooks that show it are killed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from daemon.reading import kill_while_reading

if TYPE_CHECKING:
    from daemon.daemon_home import DaemonHome

KILLS = int(os.environ.get("FAIRLEAD_KILLS", "3"))


@pytest.mark.timeout(120 + 10 * KILLS)
def test_no_message_is_lost_or_doubled_when_daemon_and_hooks_are_killed(open_home: DaemonHome) -> None:
    mail = kill_while_reading(open_home, KILLS)

    assert mail.lost == set()
    assert mail.doubled == []
    assert mail.kills == KILLS
    assert len(mail.sent) > KILLS
