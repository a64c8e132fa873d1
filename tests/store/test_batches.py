"""However the journal is split into batches, and however often a part repeats, the stored result is the same."""

from __future__ import annotations

import tempfile
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from store.records import at, commands, daemon_record, event

from fairlead.store import Store

if TYPE_CHECKING:
    from fairlead.journal import DaemonRecord, Record
    from fairlead.store import StoredEvent

numbers = st.integers(0, 12)
records = st.one_of(numbers.map(event), numbers.map(commands), numbers.map(daemon_record))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_split_with_any_repeats_gives_the_same_result(data: st.DataObject) -> None:
    journal: list[Record] = data.draw(st.lists(records, max_size=40))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(journal)), max_size=5)))
    edges = [0, *cuts, len(journal)]
    batches = []
    for start, end in pairwise(edges):
        first = data.draw(st.integers(0, start), label="starts again at")
        batches.append((journal[first:end], end))
    assert stored(batches) == stored([(journal, len(journal))])


def stored(batches: list[tuple[list[Record], int]]) -> tuple[list[StoredEvent], list[DaemonRecord], int, int]:
    with tempfile.TemporaryDirectory() as folder, closing(Store.open(f"sqlite:///{folder}/fairlead.db")) as store:
        new = sum(store.add_records(batch, at(end)) for batch, end in batches)
        position = store.position()
        assert position is not None
        return store.events(limit=1000), store.daemon_records(), position.offset, new
