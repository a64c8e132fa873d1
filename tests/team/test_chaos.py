"""Nothing is lost, doubled or out of order, and every ledger is true, whatever happens to daemons, relay and network.

That such a test can fail is shown by `tests/mail/test_team_machine.py`: the same crashes without the key of origin and
number double every message.
"""

from __future__ import annotations

import pytest
from kills import ROUND, kill_rounds
from team.chaos import play


@pytest.mark.parametrize(("seed", "rounds"), kill_rounds(4))
@pytest.mark.timeout(300 + 15 * ROUND)
def test_nothing_is_lost_doubled_or_out_of_order_and_every_ledger_is_true(seed: int, rounds: int) -> None:
    outcome = play(rounds, seed)

    assert outcome.lost == []
    assert outcome.doubled == []
    assert outcome.out_of_order == []
    assert outcome.untrue == []
    assert outcome.failed == []
    assert len(outcome.faults) == rounds
    assert outcome.sent > rounds
