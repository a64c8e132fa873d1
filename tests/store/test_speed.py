"""The store is fast enough: the daemon must store 4 000 events a second on one core."""

from __future__ import annotations

import time
import tracemalloc
from contextlib import closing
from typing import TYPE_CHECKING

from store.records import at, event, many

from fairlead.store import Store

if TYPE_CHECKING:
    from pathlib import Path


def test_batches_of_a_thousand_are_stored_at_more_than_4000_a_second(tmp_path: Path) -> None:
    """Measured in CPU time, so that other work on the machine does not count."""
    payload = b'"%s"' % (b"x" * 1500)
    batches = [[event(batch * 1000 + number, payload=payload) for number in range(1000)] for batch in range(5)]
    with closing(Store.open(f"sqlite:///{tmp_path}/fairlead.db")) as store:
        started_at = time.process_time()
        for batch in batches:
            store.add_records(batch, at(1))
        assert 5000 / (time.process_time() - started_at) > 4000


def test_the_memory_for_a_large_batch_is_bounded(tmp_path: Path) -> None:
    with closing(Store.open(f"sqlite:///{tmp_path}/fairlead.db")) as store:
        store.add_records(many(10), at(1))
        records = many(6_000)
        tracemalloc.start()
        store.add_records(records, at(2))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 4_000_000
