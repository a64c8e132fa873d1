"""The history in the store: counted once, searched with and without an index, deleted with its events."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from store.checks import problems
from store.records import START, at, commands, event, many

from fairlead.journal import CostRecord, EventRecord
from fairlead.sessions import EventText, HistoryQuery
from fairlead.store import Store
from fairlead.store.history import _search

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fairlead.journal import Record


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{tmp_path}/fairlead.db")) as opened:
        yield opened


def text_of(record: EventRecord, text: str, kind: str = "command") -> EventText:
    return EventText(record.id, record.session, record.at, kind, text)  # type: ignore[arg-type]  # one of the kinds


def test_a_record_that_is_read_again_counts_once(store: Store) -> None:
    """After a damaged database was salvaged, the journal is read from its start."""
    cost = CostRecord(at=START + 1, session="s", counter=2.0, added=2.0)
    prompt = replace(event(2, kind="UserPromptSubmit"), verdict="none")
    records: list[Record] = [event(1), prompt, commands(1), cost]
    texts = [text_of(prompt, "do it", "prompt")]
    for _ in range(2):
        store.add_records(records, at(10), texts)
    store.add_records([event(3), event(3)], at(20))
    (one,) = store.find_history(HistoryQuery()).sessions
    assert (one.events, one.prompts, one.tools, one.blocked, one.total_usd) == (3, 1, 2, 2, 2.0)
    assert (one.prompt, one.folder) == ("do it", "/p")
    assert len(store.find_history(HistoryQuery(search="do it")).matches) == 1


def test_a_cost_that_was_not_reported_is_unknown_and_not_zero(store: Store) -> None:
    """A client without a status line, such as `claude -p`, reports no cost; another may report that it was free."""

    def known() -> tuple[dict[str, float | None], float | None, int]:
        page = store.find_history(HistoryQuery())
        assert all(one.cost_usd == one.total_usd for one in page.sessions)
        absence = store.summarize(0.0, START + 100)
        assert (absence.usd, absence.unknown) == (page.usd, page.unknown)
        return {one.id: one.cost_usd for one in page.sessions}, page.usd, page.unknown

    assert known() == ({}, 0.0, 0)
    store.add_records([event(1, session="silent"), event(2, session="free")], at(1))
    assert known() == ({"silent": None, "free": None}, None, 2)
    store.add_records([CostRecord(at=START + 1, session="free", counter=0.0, added=0.0)], at(2))
    assert known() == ({"silent": None, "free": 0.0}, 0.0, 1)
    store.add_records([CostRecord(at=START + 2, session="paid", counter=1.5, added=1.5)], at(3))
    assert known() == ({"silent": None, "free": 0.0, "paid": 1.5}, 1.5, 1)

    assert [one.total_usd for one in store.history_of("silent")] == [None]
    copies = store.sessions_to_copy(["silent", "free"], blocked_only=False)
    assert {copy.session.id: copy.session.total_usd for copy in copies} == {"silent": None, "free": 0.0}
    later = store.find_history(HistoryQuery(since=START + 1.5))
    assert ({one.id: one.cost_usd for one in later.sessions}["paid"], later.usd) == (1.5, 1.5)
    elsewhere = store.find_history(HistoryQuery(folder="/elsewhere"))
    assert (elsewhere.usd, elsewhere.unknown) == (0.0, 0)


def test_an_event_that_its_commands_block_is_counted(store: Store) -> None:
    stop = replace(event(1, kind="Stop"), verdict="none")
    store.add_records([stop], at(1))
    store.add_records([replace(commands(1), verdict="blocked")], at(2))
    store.add_records([replace(commands(1), verdict="blocked")], at(3))
    assert [one.blocked for one in store.find_history(HistoryQuery()).sessions] == [1]


def test_a_session_that_goes_on_has_not_ended(store: Store) -> None:
    end = event(1, kind="SessionEnd")
    store.add_records([end], at(1), (), {end.id: "other"})
    (one,) = store.find_history(HistoryQuery()).sessions
    assert (one.ended, one.end_reason) == (START + 1, "other")
    store.add_records([event(2, kind="SessionStart")], at(2))
    (one,) = store.find_history(HistoryQuery()).sessions
    assert (one.ended, one.end_reason) == (None, "")


@pytest.mark.parametrize("has_index", [True, False], ids=["index", "no index"])
def test_a_search_finds_the_text_itself(store: Store, has_index: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_index:
        monkeypatch.setattr(_search, "has_index", lambda _: False)
    written = ["git push", "100% done_now", 'say "hi" \\ there', "Größe ändern", "x"]
    records = [event(number) for number in range(len(written))]
    store.add_records(records, at(1), [text_of(one, text) for one, text in zip(records, written, strict=True)])

    def found(text: str) -> list[str]:
        return [match.text for match in store.find_history(HistoryQuery(search=text)).matches]

    assert found("GIT PU") == ["git push"]
    assert found("0% done_") == ["100% done_now"]
    assert found("%") == ["100% done_now"]
    assert found("\\ there") == ['say "hi" \\ there']
    assert found('"hi"') == ['say "hi" \\ there']
    assert found("Größe") == ["Größe ändern"]
    assert found("push git") == []
    assert found("x") == ["x"]


def test_what_is_deleted_leaves_no_trace_in_the_index(store: Store, tmp_path: Path) -> None:
    records = [replace(one, at=START + number) for number, one in enumerate(many(500)) if isinstance(one, EventRecord)]
    texts = [text_of(one, f"marmalade number {number}") for number, one in enumerate(records)]
    store.add_records([*records, CostRecord(at=START, session="s", counter=1.0, added=1.0)], at(1), texts)
    store.prune(older_than=START + 450)
    with closing(sqlite3.connect(tmp_path / "fairlead.db")) as database:
        assert database.execute("SELECT count(*) FROM history_texts").fetchone() == (50,)
        assert database.execute("SELECT count(*) FROM history_costs").fetchone() == (0,)
        indexed = "SELECT count(*) FROM history_search WHERE history_search MATCH '\"mar\"'"
        assert database.execute(indexed).fetchone() == (50,)
        database.execute("INSERT INTO history_search (history_search, rank) VALUES ('integrity-check', 1)")
    assert len(store.find_history(HistoryQuery(search="marmalade", limit=100)).matches) == 50
    store.prune(older_than=START + 1000)
    assert store.find_history(HistoryQuery()).sessions == []
    assert problems(store) == []


def test_the_history_survives_a_damaged_database(tmp_path: Path) -> None:
    file = tmp_path / "fairlead.db"
    records = [event(number, session=f"s{number % 40:02}") for number in range(2000)]
    with closing(Store.open(f"sqlite:///{file}")) as store:
        store.add_records(records, at(1), [text_of(one, f"text {one.id}") for one in records])
    data = bytearray(file.read_bytes())
    data[30 * 4096 : 31 * 4096] = b"\xff" * 4096
    file.write_bytes(data)
    with closing(Store.open(f"sqlite:///{file}")) as store:
        assert "was set aside" in store.warnings[0]
        assert problems(store) == []
        assert store.find_history(HistoryQuery(limit=100)).sessions
        assert store.find_history(HistoryQuery(search="text e0")).matches
