"""The daemon is killed while events come, over and over: how many events are lost, come twice, or are answered wrongly.

No speed, but what speed must not cost. The daemon's tests have the same for a few rounds.
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
_AT_ONCE = 50
"""Kills in one home; then another is taken, and one can see how far it is."""


def rows(effort: Effort) -> list[Row]:
    rounds = QUICK_ROUNDS if effort.is_quick else ROUNDS
    sys.path.append(str(ROOT / "tests"))
    what = f"{rounds} kills: events lost, doubled or wrong"
    try:
        from daemon.daemon_home import house
        from daemon.killing import kill_rounds
    except ImportError as error:
        return [Row("daemon", what, "", None, "", target=Target("time", 0), absent=f"not measured: {error}")]
    amiss = 0
    for done in range(0, rounds, _AT_ONCE):
        effort.tick(f"kill {done} of {rounds}")
        with house() as home:
            outcome = kill_rounds(home, min(_AT_ONCE, rounds - done), seed=done)
            amiss += len(outcome.lost) + len(outcome.doubled) + len(outcome.wrong)
    return [Row("daemon", what, "", Timing(amiss, amiss), "", target=Target("time", 0))]
