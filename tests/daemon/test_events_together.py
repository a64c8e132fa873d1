"""Events that arrive together are recorded by one write, and none of them is answered before it."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from daemon.talk import Answer, connect, read_answer, request

from fairlead.daemon._error_log import ErrorLog
from fairlead.daemon._metrics import Metrics
from fairlead.daemon.events._extension import ExtensionRegistry
from fairlead.daemon.events._recorder import EventRecorder
from fairlead.daemon.store._process import StoreProcess
from fairlead.journal import Caller, EventRecord, Journal

if TYPE_CHECKING:
    from pathlib import Path

    from daemon.daemon_home import DaemonHome

NAMES = ("src/a.txt", "kept.txt") * 5
"""Every other edit is blocked."""


@pytest.fixture
def warm(home: DaemonHome) -> DaemonHome:
    """A home whose daemon handles edits in its event loop."""
    home.policy("preToolUse: {uneditableFiles: [kept.txt]}\n")
    return home


def _edits(home: DaemonHome, ids: list[str]) -> list[Answer]:
    """Send edits that all arrive before the daemon goes on, and return the answers."""
    status = home.status()
    assert status is not None
    env = f"HOME={home.folder};FAIRLEAD_HOME={home.state}"
    os.kill(status["pid"], signal.SIGSTOP)
    try:
        connections = [connect(home.socket) for _ in ids]
        for connection, name, event_id in zip(connections, NAMES, ids, strict=True):
            where = {"fairlead_cwd": str(home.project), "fairlead_env": env, "fairlead_id": event_id}
            connection.sendall(request("POST", "/v1/events/PreToolUse?client=claude", home.edit(name), **where))
    finally:
        os.kill(status["pid"], signal.SIGCONT)
    answers = []
    for connection in connections:
        with connection:
            answers.append(read_answer(connection))
    return answers


def _ids(turn: int) -> list[str]:
    return [f"{0x17A0000000000000 + turn * 100 + number:016x}-1" for number in range(len(NAMES))]


def test_all_of_them_are_answered_and_recorded_once(warm: DaemonHome) -> None:
    with warm.daemon():
        for turn in range(4):
            ids = _ids(turn)
            ids[-1] = ids[1]  # the launcher of a blocked edit asks a second time
            answers = _edits(warm, ids)
            assert [answer.headers["fairlead-exit"] for answer in answers] == ["0", "2"] * 5
        recorded = Counter(record.id for record in warm.happened())
    assert recorded == Counter({event_id: 1 for turn in range(4) for event_id in _ids(turn)[:-1]})


def test_none_is_answered_if_they_cannot_be_recorded(warm: DaemonHome) -> None:
    journal = warm.state / "journal"
    with warm.daemon():
        for turn in range(3):
            _edits(warm, _ids(turn))
        shutil.move(journal, warm.folder / "kept-journal")
        for segment in (warm.folder / "kept-journal").iterdir():
            segment.unlink()
        journal.write_text("no folder")
        assert {answer.status for answer in _edits(warm, _ids(3))} == {503}
        journal.unlink()
        answers = _edits(warm, _ids(3))
        assert [answer.headers["fairlead-exit"] for answer in answers] == ["0", "2"] * 5
        assert Counter(record.id for record in warm.happened()) == Counter(_ids(3))


def test_an_event_that_the_spool_has_as_well_is_recorded_once(tmp_path: Path) -> None:
    """Its launcher has given up waiting and decided alone, and the daemon goes on with both."""
    journal = Journal(str(tmp_path))
    errors = ErrorLog(journal, Metrics(), "0")
    recorder = EventRecorder(journal, ExtensionRegistry(), Metrics(), errors, StoreProcess(journal, errors))
    records = [EventRecord(id=f"{n:016x}-1", at=1.0, event="Stop", caller=Caller()) for n in range(500)]

    def write_in_loop() -> None:
        for record in records:
            recorder.collect()
            recorder.write_later(record, None)
            assert not recorder.flush()

    with ThreadPoolExecutor() as threads:
        for done in (threads.submit(write_in_loop), threads.submit(lambda: [*map(recorder.write, records)])):
            done.result()

    assert Counter(record.id for _, record in journal.read() if isinstance(record, EventRecord)) == Counter(
        record.id for record in records
    )
