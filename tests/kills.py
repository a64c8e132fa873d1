"""How often the tests kill: a few times in `make test`, a thousand times in `make kills`."""

from __future__ import annotations

import os

ROUND = 50
"""Kills at most in one test, so that rounds run side by side, and each tells what it found."""


def kill_rounds(default: int) -> list[tuple[int, int]]:
    """Split FAIRLEAD_KILLS, or the default, into rounds: a seed and the number of kills of each."""
    kills = int(os.environ.get("FAIRLEAD_KILLS", default))
    return [(seed, min(ROUND, kills - start)) for seed, start in enumerate(range(0, kills, ROUND))]
