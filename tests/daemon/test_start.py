"""The start of the daemon: whatever was left by the last one, it is taken in behind the first answer."""

from __future__ import annotations

import sys
from time import time
from typing import TYPE_CHECKING

import msgspec
import pytest
from daemon.daemon_home import until

from fairlead.journal import EventRecord, Journal, spool_record
from fairlead.store import Store

if TYPE_CHECKING:
    from daemon.daemon_home import DaemonHome

pytestmark = pytest.mark.usefixtures("new_interpreters")

OPEN = """
import os
from fairlead.daemon._runtime import Daemon

def calls():
    fields = dict(line.split(": ") for line in open("/proc/self/io"))
    return int(fields["rchar"]), int(fields["syscr"]) + int(fields["syscw"])

daemon = Daemon("0")
before = calls()
daemon.open()
print(*(after - first for first, after in zip(before, calls())))
"""


def leave(home: DaemonHome, events: int, spooled: int) -> None:
    """Leave a journal of which the store has nothing, and a spool."""
    journal, now = Journal(str(home.state / "journal")), time()
    for number in range(events):
        session = f"s{number % 50}"
        payload = msgspec.Raw(home.payload(hook_event_name="UserPromptSubmit", session_id=session, prompt="go on"))
        name = f"{number:016x}-1"
        journal.append(EventRecord(id=name, at=now - 60, event="UserPromptSubmit", session=session, payload=payload))
    journal.close()
    for number in range(spooled):
        payload = msgspec.Raw(home.payload(hook_event_name="Stop", session_id=f"c{number % 10}"))
        session, name = f"c{number % 10}", f"f{number:015x}-1"
        record = EventRecord(id=name, at=now, event="Stop", session=session, route="cold", payload=payload)
        spool_record(str(home.state / "spool"), record)


@pytest.mark.skipif(sys.platform != "linux", reason="counts the bytes that were read by /proc/self/io")
def test_what_is_read_before_the_first_answer_does_not_grow(home: DaemonHome) -> None:
    leave(home, events=2000, spooled=30)
    few = home.run([sys.executable, "-c", OPEN], b"")
    leave(home, events=18_000, spooled=1000)
    many = home.run([sys.executable, "-c", OPEN], b"")

    assert (few.stderr, many.stderr) == ("", "")
    (few_bytes, few_calls), (many_bytes, many_calls) = (map(int, run.stdout.split()) for run in (few, many))
    assert many_bytes < 1.5 * few_bytes
    assert many_calls < 1.5 * few_calls
    assert len(home.spooled()) == 1000, "the spool is taken in later"


def test_all_that_was_left_is_taken_in_afterwards(home: DaemonHome) -> None:
    leave(home, events=3000, spooled=200)
    with home.daemon():
        live = home.payload(hook_event_name="UserPromptSubmit", session_id="live", prompt="go on")
        assert home.hook("UserPromptSubmit", live).exit_code == 0

        sessions = {one["id"]: one for one in home.ask("GET", "/v1/sessions")["sessions"]}
        assert {f"s{number}" for number in range(50)} <= set(sessions), "the question has waited for them"
        until(lambda: not home.spooled(), "the spool is taken in")
        until(lambda: stored_count(home) == 3201, "all is stored")
        known = {one["id"] for one in home.ask("GET", "/v1/sessions")["sessions"]}
        assert {"live", *(f"c{number}" for number in range(10))} <= known
        ids = [record.id for record in home.happened()]
        assert len(ids) == len(set(ids)) == 3201


def test_a_daemon_that_is_killed_before_it_knew_all_sessions_leaves_them_to_the_next(home: DaemonHome) -> None:
    leave(home, events=3000, spooled=0)
    daemon = home.start()
    daemon.kill()
    daemon.wait()

    with home.daemon():
        known = {one["id"] for one in home.ask("GET", "/v1/sessions")["sessions"]}
        assert {f"s{number}" for number in range(50)} <= known


def stored_count(home: DaemonHome) -> int:
    store = Store.open(f"sqlite:///{home.state}/fairlead.db")
    try:
        return store.counts().events
    finally:
        store.close()
