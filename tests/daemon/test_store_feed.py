"""The way from the journal to the store: in batches, exactly once, and made anew where the store breaks."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec
from daemon.daemon_home import until

from fairlead.daemon.events import _recorder
from fairlead.daemon.store._writer import BATCH_SIZE, StoreWriter
from fairlead.journal import DaemonRecord, EventRecord, Journal, spool_record
from fairlead.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from daemon.daemon_home import DaemonHome


def stored(home: DaemonHome) -> list[str]:
    """The sessions of the events in the store, the oldest first."""
    store = Store.open(f"sqlite:///{home.state}/fairlead.db")
    try:
        assert store.warnings == ()
        return [event.event.session for event in store.events(newest_first=False, limit=10_000)]
    finally:
        store.close()


def send(home: DaemonHome, *sessions: str) -> None:
    for session in sessions:
        home.hook("Stop", home.payload(hook_event_name="Stop", session_id=session))


def count(home: DaemonHome) -> int:
    status = home.status()
    assert status is not None
    return int(status["stored"])


def damage(database: Path) -> None:
    """Make a table begin at a page that is not there."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET rootpage = 99999 WHERE name = 'events'")
        connection.execute("PRAGMA schema_version = 9999")
        connection.commit()


def troubles(home: DaemonHome) -> list[str]:
    turns = [record.what for record in home.journal() if isinstance(record, DaemonRecord)]
    return [what for what in turns if not what.startswith(("started", "stopped"))]


def test_events_reach_the_store(home: DaemonHome) -> None:
    with home.daemon():
        send(home, "a", "b", "c")
        until(lambda: count(home) >= 4, "the events and the daemon's start are stored")

        assert stored(home) == ["a", "b", "c"]


def test_what_was_stored_is_not_stored_again_after_a_kill(home: DaemonHome) -> None:
    daemon = home.start()
    send(home, "a", "b")
    until(lambda: count(home) >= 3, "they are stored")
    daemon.kill()
    daemon.wait()

    with home.daemon():
        send(home, "c")
        until(lambda: "c" in stored(home), "the next one is stored")

        assert stored(home) == ["a", "b", "c"]
        assert count(home) <= 3, "what was stored before has not been read again"


def test_a_store_that_cannot_be_opened_is_told_once_and_tried_again(home: DaemonHome) -> None:
    database = home.state / "fairlead.db"
    database.mkdir()
    with home.daemon():
        send(home, "a", "b")
        until(lambda: troubles(home), "it is told")
        assert home.hook("PreToolUse", home.edit("src/a")).exit_code == 0
        database.rmdir()
        until(lambda: count(home) > 0, "it is tried again")

        (told,) = troubles(home)
        assert told.startswith(f"events are kept in the journal only for now: {database} is not a file; move it away")
        assert stored(home)[:2] == ["a", "b"]


def test_a_store_that_breaks_while_it_is_open_is_set_aside_and_made_anew(home: DaemonHome) -> None:
    database = home.state / "fairlead.db"
    with home.daemon():
        send(home, "a", "b")
        until(lambda: count(home) >= 3, "they are stored")
        damage(database)
        send(home, "c")
        until(lambda: len(troubles(home)) >= 2, "it is set aside")
        until(lambda: stored(home) == ["a", "b", "c"], "all is fed from the journal again")

        failed, aside = troubles(home)
        assert failed.startswith(f"events are kept in the journal only for now: {database} is damaged")
        assert f"it was set aside as {database}.damaged-" in aside
        assert len(home.happened()) == 3


def test_a_store_that_is_gone_is_made_anew_by_the_next_daemon(home: DaemonHome) -> None:
    with home.daemon():
        send(home, "a")
        until(lambda: count(home) >= 2, "it is stored")
    for file in home.state.glob("fairlead.db*"):
        file.unlink()
    with home.daemon():
        send(home, "b")
        until(lambda: count(home) >= 4, "the store is there again")
        until(lambda: "b" in stored(home), "all is fed from the journal")

        assert stored(home) == ["a", "b"]


def test_many_are_brought_in_batches(home: DaemonHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_HOME", str(home.state))
    journal = Journal(str(home.state / "journal"))
    events = 2 * BATCH_SIZE + 200
    for number in range(events):
        journal.append(EventRecord(id=f"{number:016x}-1", at=float(number), event="Stop", session=f"s{number}"))
    reports: list[str] = []
    writer = StoreWriter(journal, reports.append)

    assert [writer.write_batch() for _ in range(4)] == [True, True, False, False]

    assert (writer.stored, writer.failures, writer.position) == (events, 0, journal.end())
    assert writer.has_event(f"{7:016x}-1")
    assert not writer.has_event("ffffffffffffffff-1")
    writer.close()
    journal.close()
    assert reports == []


def test_journal_and_store_stay_below_their_limits_while_many_events_come(
    home: DaemonHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no quiet moment: every batch is followed by more events. More is written than may be kept."""
    monkeypatch.setenv("FAIRLEAD_HOME", str(home.state))
    max_store, max_journal = 36 * 1024 * 1024, 4 * 1024 * 1024
    journal = Journal(str(home.state / "journal"), segment_bytes=256 * 1024)
    reports: list[str] = []
    writer = StoreWriter(journal, reports.append, max_store=max_store, max_journal=max_journal)
    payload = msgspec.Raw(b'{"text": "%s"}' % (b"x" * 12_000))
    sizes = []
    for number in range(4000):
        journal.append(EventRecord(id=f"{number:016x}-1", at=float(number), event="Stop", payload=payload))
        if number % 20 == 0:
            writer.write_batch()
            sizes.append((folder_size(home.state / "journal", "*"), folder_size(home.state, "fairlead.db*")))
    writer.close()

    assert journal.end() == writer.position
    assert reports == []
    assert max(size for size, _ in sizes) < max_journal
    assert max(size for _, size in sizes) < max_store
    assert stored_ids(home)[-1] == f"{3999:016x}-1", "the newest are kept"
    assert max(size for _, size in sizes) > max_store / 2, "and not only a few of them"


def folder_size(folder: Path, names: str) -> int:
    return sum(file.stat().st_size for file in folder.glob(names))


def stored_ids(home: DaemonHome) -> list[str]:
    store = Store.open(f"sqlite:///{home.state}/fairlead.db")
    try:
        return [event.event.id for event in store.events(newest_first=False, limit=10_000)]
    finally:
        store.close()


def test_what_lies_in_the_spool_and_in_the_journal_is_taken_once(home: DaemonHome) -> None:
    """A daemon was killed after it had written an event down, and before it had removed the file."""
    send(home, "a", "b")
    kept = home.folder / "kept"
    shutil.copytree(home.state / "spool", kept)
    with home.daemon():
        assert home.spooled() == []
    for file in kept.iterdir():
        shutil.copy(file, home.state / "spool")

    with home.daemon():
        assert home.spooled() == []
        assert [record.session for record in home.happened()] == ["a", "b"]
        assert "\nfairlead_doubles_total 2\n" in home.ask("GET", "/metrics")


def test_the_spool_is_taken_in_while_events_come(home: DaemonHome) -> None:
    """Both write to one journal, in two threads."""
    with home.daemon():
        for number in range(30):
            spool_record(
                str(home.state / "spool"),
                EventRecord(
                    id=f"{number:016x}-1", at=float(number), event="Stop", session=f"cold{number}", route="cold"
                ),
            )
            send(home, f"live{number}")
        until(lambda: not home.spooled(), "the spool is taken in")

        sessions = [record.session for record in home.happened()]
        assert len(sessions) == len(set(sessions)) == 60


def test_the_spool_is_taken_in_before_the_store_is_loaded(home: DaemonHome) -> None:
    """It takes a third of a second to load, and somebody waits for the first answer."""
    send(home, "a", "b")
    look = (
        "import sys\n"
        "from fairlead.daemon._runtime import Daemon\n"
        "daemon = Daemon('0'); daemon.open(); daemon.close()\n"
        "print(daemon.metrics.spooled, 'sqlalchemy' in sys.modules)\n"
    )

    done = home.run([sys.executable, "-c", look], b"")

    assert (done.stdout, done.stderr) == ("2 False\n", "")
    assert [record.session for record in home.happened()] == ["a", "b"]


def test_only_what_may_have_been_forgotten_is_looked_up_in_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_recorder, "_MAX_RECENT", 3)
    recent = _recorder._RecentIds()
    recent.load(["1-a", "2-a"], 3)
    assert not recent.may_have_dropped("0-a"), "all that ever was is remembered"

    recent.add(["3-a", "4-a", "3-a"])

    assert [name for name in ("1-a", "2-a", "3-a", "4-a") if name in recent] == ["2-a", "3-a", "4-a"]
    assert recent.may_have_dropped("1-a")
    assert recent.may_have_dropped("0-a")
    assert not recent.may_have_dropped("2-a")
    assert not recent.may_have_dropped("5-a"), "newer than all that was forgotten"
    full = _recorder._RecentIds()
    full.load(["1-a", "2-a", "3-a"], 3)
    assert full.may_have_dropped("0-a"), "what stood before may have been many"
