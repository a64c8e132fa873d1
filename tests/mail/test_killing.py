"""Every message that was accepted is there exactly once, at whatever moment the process is killed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from mail.killing import kill_rounds

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = int(os.environ.get("FAIRLEAD_TEST_KILLS", "20"))
SENDS = int(os.environ.get("FAIRLEAD_TEST_SENDS", "3000"))


@pytest.mark.timeout(60 + ROUNDS * 15)
def test_no_message_is_lost_doubled_or_half_done_when_the_process_is_killed(tmp_path: Path) -> None:
    outcome = kill_rounds(tmp_path, ROUNDS, SENDS)

    assert outcome.wrong == []
    assert outcome.kills > ROUNDS // 2
    assert len(outcome.accepted) >= SENDS
    assert len(outcome.shown) > ROUNDS
