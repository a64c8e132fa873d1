"""What every store keeps to, whatever database it is in. A backend's tests give its URL, and run all of this."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

import msgspec
import pytest
from store.records import START, at, done, event, many, turn

from fairlead.journal import Caller, CommandResult, CommandsRecord, DaemonRecord, EventRecord
from fairlead.store import Counts, Key, Store, StoredEvent

if TYPE_CHECKING:
    from collections.abc import Iterator


def ids(found: list[StoredEvent]) -> list[str]:
    return [one.happened.id for one in found]


class StoreContract:
    """Subclass it with a fixture `url` that names an empty database."""

    @pytest.fixture
    def store(self, url: str) -> Iterator[Store]:
        store = Store.open(url)
        assert store.warnings == ()
        yield store
        store.close()

    def test_a_new_store_is_empty(self, store: Store) -> None:
        assert store.position() is None
        assert store.settle() is None
        assert store.events() == []
        assert store.turns() == []
        assert store.counts() == Counts(0, 0, None, None, {})
        assert store.known(["e000001"]) == set()

    def test_what_was_taken_comes_back_whole(self, store: Store) -> None:
        assert store.take([event(1), done(1), turn(1)], at(10)) == 3
        assert store.events() == [StoredEvent(event(1), done(1))]
        assert store.turns() == [turn(1)]
        assert bytes(store.events()[0].happened.payload) == b'{"a":1}'

    def test_what_has_only_defaults_comes_back_whole(self, store: Store) -> None:
        plain, ended = EventRecord(id="x", at=1.0, event="Stop"), CommandsRecord(id="x", at=2.0)
        store.take([plain, ended], at(1))
        assert store.events() == [StoredEvent(plain, ended)]

    def test_what_was_taken_is_there_after_the_store_is_opened_again(self, url: str, store: Store) -> None:
        store.take([event(1)], at(10, segment=3))
        store.close()
        again = Store.open(url)
        assert (again.warnings, again.position(), ids(again.events())) == ((), at(10, segment=3), ["e000001"])
        again.close()

    def test_the_position_is_the_last_one_told_also_without_a_record(self, store: Store) -> None:
        store.take([event(1)], at(10))
        assert store.take([], at(0, segment=2)) == 0
        assert store.position() == at(0, segment=2)
        assert store.settle() == at(0, segment=2)

    def test_nothing_is_taken_twice(self, store: Store) -> None:
        assert store.take([event(1), event(1), done(1), turn(1)], at(10)) == 3
        assert store.take([event(1), done(1), turn(1), event(2)], at(20)) == 1
        assert ids(store.events()) == ["e000002", "e000001"]
        assert store.turns() == [turn(1)]

    def test_of_two_with_one_id_the_first_counts(self, store: Store) -> None:
        store.take([event(1, session="first"), done(1, exit_code=0)], at(10))
        store.take([event(1, session="second"), done(1, exit_code=1)], at(20))
        assert store.events() == [StoredEvent(event(1, session="first"), done(1, exit_code=0))]

    def test_an_end_that_is_told_before_its_event_is_joined(self, store: Store) -> None:
        store.take([done(1)], at(10))
        assert store.events() == []
        store.take([event(1)], at(20))
        assert store.events() == [StoredEvent(event(1), done(1))]

    def test_turns_that_differ_are_all_kept_the_newest_first(self, store: Store) -> None:
        both = DaemonRecord(at=START + 2, what="stopped", pid=2)
        store.take([turn(1), turn(2), both], at(1))
        assert store.turns()[-1] == turn(1)
        assert len(store.turns()) == 3
        assert len(store.turns(limit=2)) == 2

    def test_known_names_the_stored_events_among_many(self, store: Store) -> None:
        store.take([*many(1200), done(5000)], at(1))
        asked = [f"e{number:06}" for number in range(1100, 6000)]
        assert store.known(asked) == {f"e{number:06}" for number in range(1100, 1200)}

    def test_a_batch_that_cannot_be_stored_leaves_nothing_behind(self, store: Store) -> None:
        """A record that no journal gives: its id is no text."""
        store.take([event(1)], at(10))
        with pytest.raises(AttributeError):
            store.take([event(2), msgspec.structs.replace(event(3), id=3)], at(20))
        assert (store.position(), ids(store.events())) == (at(10), ["e000001"])

    @pytest.mark.parametrize(
        "text", ["half \ud800 a pair", "nul \0 inside", "\N{PILE OF POO}", "'); drop table events"]
    )
    def test_no_text_stops_the_store(self, store: Store, text: str) -> None:
        happened = EventRecord(
            id=text, at=1, event=text, session=text, cwd=text, reason=text, caller=Caller(project=text, pane=text)
        )
        ended = CommandsRecord(id=text, at=1, reason=text, steps=(CommandResult(text, text),))
        assert store.take([happened, ended, DaemonRecord(at=1, what=text)], at(1)) == 3
        assert store.take([happened, ended, DaemonRecord(at=1, what=text)], at(1)) == 0
        assert store.known([text, "other"]) == {text}
        [found] = store.events(session=text, event=text)
        assert found.done is not None
        assert found.done.id == found.happened.id

    def test_no_number_and_no_bytes_stop_the_store(self, store: Store) -> None:
        odd = EventRecord(id="x", at=math.nan, event="E", exit=2**70, steps=-(2**70), payload=msgspec.Raw(b'"\xff\0"'))
        store.take([odd, event(2)], at(1))
        assert ids(store.events()) == ["e000002", "x"]
        found = store.events()[1].happened
        assert (found.at, found.exit, found.steps) == (0.0, 2**63 - 1, -(2**63 - 1))
        assert bytes(found.payload).decode() == '"\ufffd\ufffd"'

    def test_events_are_chosen_by_session_kind_and_time(self, store: Store) -> None:
        store.take(
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
    def test_page_by_page_every_event_is_seen_once_though_many_have_one_time(
        self, store: Store, *, newest_first: bool
    ) -> None:
        records = [msgspec.structs.replace(event(number), at=START + number // 4) for number in range(50)]
        store.take(records, at(1))
        seen: list[str] = []
        after: Key | None = None
        while found := store.events(after=after, limit=7, newest_first=newest_first):
            seen += ids(found)
            after = found[-1].key
        expected = [record.id for record in records]
        assert seen == (expected[::-1] if newest_first else expected)

    def test_old_events_go_with_all_that_belongs_to_them(self, store: Store) -> None:
        store.take([*many(1300), done(10), done(1250), turn(20), turn(1299)], at(7))
        store.take(
            [msgspec.structs.replace(done(0), id="never came"), msgspec.structs.replace(done(1299), id="new")], at(7)
        )
        assert store.retain(older_than=START + 1200) == 1200
        assert store.counts().oldest == START + 1200
        assert store.turns() == [turn(1299)]
        assert store.take([done(10)], at(8)) == 1, "its end went, too"
        assert store.take([done(1250)], at(8)) == 0
        assert store.take([msgspec.structs.replace(done(0), id="never came")], at(8)) == 1
        assert store.take([msgspec.structs.replace(done(1299), id="new")], at(8)) == 0, "its event may yet come"
        assert store.position() == at(8)

    def test_the_oldest_go_until_the_rest_fits_and_the_room_is_given_back(self, store: Store) -> None:
        store.take([event(number, payload=b'"%s"' % (b"x" * 1000)) for number in range(4000)], at(1))
        store.take([turn(1), turn(3999)], at(1))
        before = store.check().size
        gone = store.retain(at_most_bytes=before // 2)
        assert 1500 < gone < 3000
        after = store.check()
        assert after.size <= before // 2
        assert after.free == 0
        assert store.counts().oldest == START + gone
        assert store.turns() == [turn(3999)]
        assert store.retain(at_most_bytes=before // 2) == 0

    def test_nothing_goes_if_nothing_is_asked_and_everything_if_nothing_may_stay(self, store: Store) -> None:
        store.take(many(10), at(1))
        assert store.retain() == 0
        assert store.retain(at_most_bytes=0) == 10
        assert store.events() == []
        assert store.position() == at(1)

    def test_the_doctor_finds_nothing_wrong(self, store: Store) -> None:
        store.take(many(10), at(1))
        health = store.check()
        assert health.problems == ()
        assert health.revision == health.head
        assert health.size > 0

    def test_many_threads_take_read_and_sweep_at_once(self, store: Store) -> None:
        failures: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for batch in range(10):
                    store.take(many(20, first=number * 1000 + batch * 20), at(batch))
                    store.events(limit=5)
                    store.known(["e000000"])
                    if number == 0:
                        store.retain(older_than=START)
                        store.settle()
            except BaseException as error:  # noqa: BLE001 - told to the test
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert store.counts().events == 6 * 200
