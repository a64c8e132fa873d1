"""Fast enough to be far behind nothing: the daemon is to take 4 000 events a second on one core."""

from __future__ import annotations

import time
import tracemalloc
from contextlib import closing
from typing import TYPE_CHECKING

from store.records import at, event, many

from fairlead.store import Store

if TYPE_CHECKING:
    from pathlib import Path


def test_a_batch_of_a_thousand_is_taken_at_more_than_4000_a_second(tmp_path: Path) -> None:
    """Measured in time of this process's processor, so that other work on the machine does not count."""
    payload = b'"%s"' % (b"x" * 1500)
    batches = [[event(batch * 1000 + number, payload=payload) for number in range(1000)] for batch in range(5)]
    with closing(Store.open(f"sqlite:///{tmp_path}/fairlead.db")) as store:
        began = time.process_time()
        for batch in batches:
            store.take(batch, at(1))
        assert 5000 / (time.process_time() - began) > 4000


def test_the_memory_of_a_large_batch_is_bounded(tmp_path: Path) -> None:
    with closing(Store.open(f"sqlite:///{tmp_path}/fairlead.db")) as store:
        store.take(many(10), at(1))
        records = many(20_000)
        tracemalloc.start()
        store.take(records, at(2))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 8_000_000
