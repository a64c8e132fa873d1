"""The contract of the event store. The tests of a backend provide its URL and run all of this."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

import msgspec
import pytest
from store.checks import problems, sizes
from store.records import START, at, commands, daemon_record, event, many

from fairlead.journal import Caller, CommandResult, CommandsRecord, DaemonRecord, EventRecord
from fairlead.store import Counts, EventKey, Store, StoredEvent

if TYPE_CHECKING:
    from collections.abc import Iterator


def ids(found: list[StoredEvent]) -> list[str]:
    return [one.event.id for one in found]


class StoreContract:
    """Subclass this with a fixture `url` that names an empty database."""

    @pytest.fixture
    def store(self, url: str) -> Iterator[Store]:
        store = Store.open(url)
        assert store.warnings == ()
        yield store
        store.close()

    def test_a_new_store_is_empty(self, store: Store) -> None:
        assert store.position() is None
        assert store.sync() is None
        assert store.events() == []
        assert store.daemon_records() == []
        assert store.counts() == Counts(0, 0, None, None, {})
        assert store.stored_ids(["e000001"]) == set()

    def test_stored_records_are_returned_complete(self, store: Store) -> None:
        assert store.add_records([event(1), commands(1), daemon_record(1)], at(10)) == 3
        assert store.events() == [StoredEvent(event(1), commands(1))]
        assert store.daemon_records() == [daemon_record(1)]
        assert bytes(store.events()[0].event.payload) == b'{"a":1}'

    def test_records_with_defaults_are_returned_complete(self, store: Store) -> None:
        plain, ended = EventRecord(id="x", at=1.0, event="Stop"), CommandsRecord(id="x", at=2.0)
        store.add_records([plain, ended], at(1))
        assert store.events() == [StoredEvent(plain, ended)]

    def test_stored_records_are_there_after_the_store_is_opened_again(self, url: str, store: Store) -> None:
        store.add_records([event(1)], at(10, segment=3))
        store.close()
        again = Store.open(url)
        assert (again.warnings, again.position(), ids(again.events())) == ((), at(10, segment=3), ["e000001"])
        again.close()

    def test_the_position_is_the_last_one_given_even_without_a_record(self, store: Store) -> None:
        store.add_records([event(1)], at(10))
        assert store.add_records([], at(0, segment=2)) == 0
        assert store.position() == at(0, segment=2)
        assert store.sync() == at(0, segment=2)

    def test_no_record_is_stored_twice(self, store: Store) -> None:
        assert store.add_records([event(1), event(1), commands(1), daemon_record(1)], at(10)) == 3
        assert store.add_records([event(1), commands(1), daemon_record(1), event(2)], at(20)) == 1
        assert ids(store.events()) == ["e000002", "e000001"]
        assert store.daemon_records() == [daemon_record(1)]

    def test_of_two_records_with_the_same_id_the_first_is_kept(self, store: Store) -> None:
        store.add_records([event(1, session="first"), commands(1, exit_code=0)], at(10))
        store.add_records([event(1, session="second"), commands(1, exit_code=1)], at(20))
        assert store.events() == [StoredEvent(event(1, session="first"), commands(1, exit_code=0))]

    def test_a_commands_record_that_arrives_before_its_event_is_joined(self, store: Store) -> None:
        store.add_records([commands(1)], at(10))
        assert store.events() == []
        store.add_records([event(1)], at(20))
        assert store.events() == [StoredEvent(event(1), commands(1))]

    def test_daemon_records_that_differ_are_all_kept_newest_first(self, store: Store) -> None:
        both = DaemonRecord(at=START + 2, what="stopped", pid=2)
        store.add_records([daemon_record(1), daemon_record(2), both], at(1))
        assert store.daemon_records()[-1] == daemon_record(1)
        assert len(store.daemon_records()) == 3
        assert len(store.daemon_records(limit=2)) == 2

    def test_stored_ids_returns_the_stored_events_among_many(self, store: Store) -> None:
        store.add_records([*many(1200), commands(5000)], at(1))
        asked = [f"e{number:06}" for number in range(1100, 6000)]
        assert store.stored_ids(asked) == {f"e{number:06}" for number in range(1100, 1200)}

    def test_a_failed_batch_stores_nothing(self, store: Store) -> None:
        """The journal never yields such a record: its id is not text."""
        store.add_records([event(1)], at(10))
        with pytest.raises(AttributeError):
            store.add_records([event(2), msgspec.structs.replace(event(3), id=3)], at(20))
        assert (store.position(), ids(store.events())) == (at(10), ["e000001"])

    @pytest.mark.parametrize(
        "text", ["half \ud800 a pair", "nul \0 inside", "\N{PILE OF POO}", "'); drop table events"]
    )
    def test_any_text_can_be_stored(self, store: Store, text: str) -> None:
        record = EventRecord(
            id=text, at=1, event=text, session=text, cwd=text, reason=text, caller=Caller(project=text, pane=text)
        )
        ended = CommandsRecord(id=text, at=1, reason=text, steps=(CommandResult(text, text),))
        assert store.add_records([record, ended, DaemonRecord(at=1, what=text)], at(1)) == 3
        assert store.add_records([record, ended, DaemonRecord(at=1, what=text)], at(1)) == 0
        assert store.stored_ids([text, "other"]) == {text}
        [found] = store.events(session=text, event=text)
        assert found.commands is not None
        assert found.commands.id == found.event.id

    def test_any_number_and_any_bytes_can_be_stored(self, store: Store) -> None:
        odd = EventRecord(id="x", at=math.nan, event="E", exit=2**70, steps=-(2**70), payload=msgspec.Raw(b'"\xff\0"'))
        store.add_records([odd, event(2)], at(1))
        assert ids(store.events()) == ["e000002", "x"]
        found = store.events()[1].event
        assert (found.at, found.exit, found.steps) == (0.0, 2**63 - 1, -(2**63 - 1))
        assert bytes(found.payload).decode() == '"\ufffd\ufffd"'

    def test_events_are_filtered_by_session_kind_and_time(self, store: Store) -> None:
        store.add_records(
            [
                event(number, session="even" if number % 2 == 0 else "odd", kind="Stop" if number > 5 else "PreToolUse")
                for number in range(10)
            ],
            at(1),
        )
        assert ids(store.events(session="even")) == ["e000008", "e000006", "e000004", "e000002", "e000000"]
        assert ids(store.events(event="Stop", session="odd")) == ["e000009", "e000007"]
        assert ids(store.events(since=START + 3, until=START + 5)) == ["e000004", "e000003"]
        assert ids(store.events(limit=2, newest_first=False)) == ["e000000", "e000001"]
        assert store.events(session="neither") == []
        counts = store.counts()
        assert counts == Counts(10, 2, START, START + 9, {"PreToolUse": 6, "Stop": 4})

    @pytest.mark.parametrize("newest_first", [True, False])
    def test_paging_returns_every_event_once_although_many_have_the_same_time(
        self, store: Store, *, newest_first: bool
    ) -> None:
        records = [msgspec.structs.replace(event(number), at=START + number // 4) for number in range(50)]
        store.add_records(records, at(1))
        seen: list[str] = []
        after: EventKey | None = None
        while found := store.events(after=after, limit=7, newest_first=newest_first):
            seen += ids(found)
            after = found[-1].key
        expected = [record.id for record in records]
        assert seen == (expected[::-1] if newest_first else expected)

    def test_old_events_are_pruned_with_everything_that_belongs_to_them(self, store: Store) -> None:
        store.add_records([*many(1300), commands(10), commands(1250), daemon_record(20), daemon_record(1299)], at(7))
        store.add_records(
            [msgspec.structs.replace(commands(0), id="never came"), msgspec.structs.replace(commands(1299), id="new")],
            at(7),
        )
        assert store.prune(older_than=START + 1200) == 1200
        assert store.counts().oldest == START + 1200
        assert store.daemon_records() == [daemon_record(1299)]
        assert store.add_records([commands(10)], at(8)) == 1, "its commands were deleted, too"
        assert store.add_records([commands(1250)], at(8)) == 0
        assert store.add_records([msgspec.structs.replace(commands(0), id="never came")], at(8)) == 1
        assert store.add_records([msgspec.structs.replace(commands(1299), id="new")], at(8)) == 0, (
            "its event may still arrive"
        )
        assert store.position() == at(8)

    def test_the_oldest_are_pruned_until_the_rest_fits_and_the_space_is_released(self, store: Store) -> None:
        store.add_records([event(number, payload=b'"%s"' % (b"x" * 1000)) for number in range(4000)], at(1))
        store.add_records([daemon_record(1), daemon_record(3999)], at(1))
        before = sizes(store).size
        deleted = store.prune(max_bytes=before // 2)
        assert 1500 < deleted < 3000
        after = sizes(store)
        assert after.size <= before // 2
        assert after.free == 0
        assert store.counts().oldest == START + deleted
        assert store.daemon_records() == [daemon_record(3999)]
        assert store.prune(max_bytes=before // 2) == 0

    def test_prune_without_limits_deletes_nothing_and_with_zero_bytes_everything(self, store: Store) -> None:
        store.add_records(many(10), at(1))
        assert store.prune() == 0
        assert store.prune(max_bytes=0) == 10
        assert store.events() == []
        assert store.position() == at(1)

    def test_a_healthy_store_has_no_problems(self, store: Store) -> None:
        store.add_records(many(10), at(1))
        assert problems(store) == []
        assert sizes(store).size > 0

    def test_many_threads_write_read_and_prune_at_once(self, store: Store) -> None:
        failures: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for batch in range(10):
                    store.add_records(many(20, first=number * 1000 + batch * 20), at(batch))
                    store.events(limit=5)
                    store.stored_ids(["e000000"])
                    if number == 0:
                        store.prune(older_than=START)
                        store.sync()
            except BaseException as error:  # noqa: BLE001 - reported by the test
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert store.counts().events == 6 * 200
