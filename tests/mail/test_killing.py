"""Every accepted message is stored exactly once, no matter when the process is killed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from mail.killing import kill_rounds

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = int(os.environ.get("FAIRLEAD_KILLS", "12"))
SENDS = int(os.environ.get("FAIRLEAD_SENDS", "2000"))


@pytest.mark.timeout(60 + ROUNDS * 15)
def test_no_message_is_lost_duplicated_or_incomplete_when_the_process_is_killed(tmp_path: Path) -> None:
    outcome = kill_rounds(tmp_path, ROUNDS, SENDS)

    assert outcome.wrong == []
    assert outcome.kills > ROUNDS // 2
    assert len(outcome.accepted) >= SENDS
    assert len(outcome.shown) > ROUNDS
