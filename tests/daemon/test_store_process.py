"""The process of the store: it ends with the daemon, is started again, and stores each event once."""

from __future__ import annotations

import math
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from daemon.daemon_home import until
from daemon.talk import talk

from fairlead.daemon._metrics import resident_memory
from fairlead.daemon.events._recorder import MAX_BACKLOG
from fairlead.daemon.store import __main__ as store_program
from fairlead.daemon.store._messages import Finish, MessageReader, SessionEvents, StoreAnswer, decode_reply
from fairlead.daemon.store._messages import send as send_message
from fairlead.daemon.store._writer import BATCH_SIZE
from fairlead.journal import DaemonRecord, EventRecord, Journal, journal_folder
from fairlead.store import Store, StoredEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome

pytestmark = pytest.mark.usefixtures("new_interpreters")


def store_pid(home: DaemonHome) -> int:
    status = home.status()
    assert status is not None
    return int(status["store_pid"])


def is_running(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    return False


def stored_sessions(home: DaemonHome) -> list[str]:
    store = Store.open(f"sqlite:///{home.state}/fairlead.db")
    try:
        return [event.event.session for event in store.events(newest_first=False, limit=10_000)]
    finally:
        store.close()


def send(home: DaemonHome, *sessions: str) -> None:
    for session in sessions:
        home.hook("Stop", home.payload(hook_event_name="Stop", session_id=session))


def test_it_ends_with_the_daemon_however_that_ends(home: DaemonHome) -> None:
    with home.daemon():
        until(lambda: store_pid(home), "it is started")
        first = store_pid(home)
    assert not is_running(first), "the daemon waits for it"

    daemon = home.start()
    until(lambda: store_pid(home), "it is started")
    second = store_pid(home)
    daemon.kill()
    daemon.wait()
    until(lambda: not is_running(second), "it notices that the daemon is gone")


def test_killed_again_and_again_it_stores_each_event_once(home: DaemonHome) -> None:
    sessions = [f"s{number}" for number in range(30)]
    killed: set[int] = set()
    with home.daemon():
        for number, session in enumerate(sessions):
            send(home, session)
            if number % 10 == 5 and len(killed) < 2:
                until(lambda: store_pid(home), "it has started")
                pid = store_pid(home)
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
                until(lambda: store_pid(home) not in {0, *killed}, "it is started again")
        until(lambda: len(stored_sessions(home)) == len(sessions), "all are stored")

        assert stored_sessions(home) == sessions
        assert len(killed) == 2
        troubles = [record.what for record in home.journal() if isinstance(record, DaemonRecord)]
        assert "the process of the store is started again: it ended with exit code -9" in troubles


def test_a_question_sees_what_was_recorded_before_it(home: DaemonHome) -> None:
    """The process cannot have stored it when it is asked: it is stopped meanwhile."""
    with home.daemon(), ThreadPoolExecutor(1) as asking:
        until(lambda: (home.status() or {})["stored"], "it has read what there is")
        os.kill(store_pid(home), signal.SIGSTOP)
        send(home, "new")
        answer = asking.submit(home.ask, "GET", "/v1/sessions/new/events")
        os.kill(store_pid(home), signal.SIGCONT)

        assert [row["event"] for row in answer.result()["events"]] == ["Stop"]


@pytest.mark.parametrize(("seconds", "seen"), [(math.inf, ["new"]), (0.0, [])])
def test_a_question_waits_for_several_batches_but_not_for_ever(
    seconds: float, seen: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How far it gets in a time depends on the machine: so it may wait for any time here, or not at all."""
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path))
    monkeypatch.setattr(store_program, "_MAX_WAIT", seconds)
    journal = Journal(journal_folder())
    for number in range(3 * BATCH_SIZE):
        session = "new" if number + 1 == 3 * BATCH_SIZE else "old"
        journal.append(EventRecord(id=f"{number:016x}-1", at=float(number), event="Stop", session=session))
    journal.close()
    ours, theirs = socket.socketpair()
    with ours, theirs, ThreadPoolExecutor(1) as feeding:
        send_message(ours, SessionEvents(1, "new", 5))
        fed = feeding.submit(lambda: store_program.StoreServer(theirs).run())
        answer = next(reply for reply in replies(ours) if isinstance(reply, StoreAnswer))
        send_message(ours, Finish())
        fed.result()

    assert [row.event.session for row in msgspec.json.decode(answer.value, type=list[StoredEvent])] == seen


def replies(connection: socket.socket) -> Iterator[object]:
    reader = MessageReader(connection)
    while (messages := reader.receive()) is not None:
        yield from map(decode_reply, messages)


def test_the_memory_of_the_daemon_is_that_of_both(home: DaemonHome) -> None:
    with home.daemon() as daemon:
        until(lambda: (home.status() or {})["stored"], "it has loaded all that it needs")

        def counts_both() -> bool:
            return (
                int((home.status() or {})["memory"])
                > resident_memory(daemon.pid) + resident_memory(store_pid(home)) / 2
            )

        until(counts_both, "the memory of both is counted, once the daemon has opened the mail")


def test_a_second_one_does_not_write_at_the_same_time(home: DaemonHome) -> None:
    """A killed daemon's may live on for a moment."""
    held = Store.open(f"sqlite:///{home.state}/fairlead.db", exclusive=True)
    with home.daemon():
        send(home, "a")
        until(lambda: store_pid(home), "it is started")
        assert stored_sessions(home) == []
        held.close()
        until(lambda: stored_sessions(home) == ["a"], "it goes on")


def test_while_it_is_far_behind_events_are_recorded_without_their_payloads(home: DaemonHome) -> None:
    """What it has not read cannot be deleted: the journal would grow without bound, on a disk that is too slow."""
    text = "some words " * 1450

    def record(number: int) -> bytes:
        payload = home.payload(hook_event_name="PostToolUse", tool_name="Read", tool_input={}, tool_response=text)
        talk(home.socket, "POST", "/v1/events/PostToolUse", payload, fairlead_id=f"{number:016x}-1")
        return bytes(home.happened()[-1].payload) if number in {100, 1200, 1300} else b""

    with home.daemon():
        until(lambda: (home.status() or {})["stored"], "it has read what there is")
        os.kill(store_pid(home), signal.SIGSTOP)
        kept = [record(number) for number in range(1, 1201)]
        size = sum(file.stat().st_size for file in (home.state / "journal").glob("*"))
        os.kill(store_pid(home), signal.SIGCONT)
        until(lambda: (home.status() or {})["stored"] > 1200, "it has caught up")
        assert text.encode() in kept[99]
        assert text.encode() not in kept[-1]
        assert b'"tool_name":"Read"' in kept[-1]
        assert MAX_BACKLOG < size < MAX_BACKLOG + 1_000_000
        record(1201)
        assert text.encode() in record(1300), "payloads are recorded again"
        said = [record.what for record in home.journal() if isinstance(record, DaemonRecord)]
        assert said[1:] == [
            "the database is 16 MB behind: until it has caught up, no payloads are recorded",
            "the database has caught up: payloads are recorded again",
        ]
