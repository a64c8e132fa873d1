"""The daemon is killed repeatedly while events arrive: how many are lost, duplicated, or answered wrongly.

This measures reliability, not speed. The daemon's tests do the same for a few rounds.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bench._data import ROOT
from bench._harness import Timing
from bench._table import Row, Target

if TYPE_CHECKING:
    from bench._harness import Effort

ROUNDS = 1000
QUICK_ROUNDS = 3
_BATCH_SIZE = 50
"""Kills in one home, and between two reports of progress."""


def rows(effort: Effort) -> list[Row]:
    rounds = QUICK_ROUNDS if effort.is_quick else ROUNDS
    sys.path.append(str(ROOT / "tests"))
    what = f"{rounds} kills: events lost, duplicated or wrong"
    try:
        from daemon.daemon_home import scratch_home
        from daemon.killing import kill_rounds
    except ImportError as error:
        return [Row("daemon", what, "", None, "", target=Target("time", 0), absent=f"not measured: {error}")]
    errors = 0
    for done in range(0, rounds, _BATCH_SIZE):
        effort.tick(f"kill {done} of {rounds}")
        with scratch_home() as home:
            outcome = kill_rounds(home, min(_BATCH_SIZE, rounds - done), seed=done)
            errors += len(outcome.lost) + len(outcome.doubled) + len(outcome.wrong)
    return [Row("daemon", what, "", Timing(errors, errors), "", target=Target("time", 0))]
