"""What the daemon tells of itself, and that no client can keep it from answering the others."""

from __future__ import annotations

import resource
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from daemon import exposition
from daemon.daemon_home import scratch_home, until
from daemon.talk import connect, read_answer, talk
from daemon.talk import request as post

from fairlead.daemon._metrics import Metrics
from fairlead.journal import DaemonRecord, EventRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from daemon.daemon_home import DaemonHome

POLICY = "preToolUse: {uneditableFiles: [kept.txt]}\n"


@pytest.fixture
def home() -> Iterator[DaemonHome]:
    """A home with a policy and a daemon."""
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as made:
        made.policy(POLICY)
        with made.daemon():
            yield made


def metrics(home: DaemonHome) -> dict[str, exposition.Family]:
    answer = talk(home.socket, "GET", "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return exposition.read(answer.text)


def value(home: DaemonHome, name: str, **labels: str) -> float:
    return metrics(home)[f"fairlead_{name}"].value(f"fairlead_{name}", **labels)


def test_what_prometheus_reads_is_well_formed_and_counts(home: DaemonHome) -> None:
    for name in ("kept.txt", "kept.txt", "src/a.txt"):
        home.hook("PreToolUse", home.edit(name))
    home.hook("Odd", home.payload(hook_event_name="Odd"))
    until(lambda: value(home, "store_behind_bytes") == 0, "all of it is stored")

    read = metrics(home)

    events = read["fairlead_events_total"]
    assert events.kind == "counter"
    assert events.value("fairlead_events_total", event="PreToolUse", verdict="blocked") == 2
    assert events.value("fairlead_events_total", event="PreToolUse", verdict="none") == 1
    assert events.value("fairlead_events_total", event="Odd", verdict="none") == 1
    decided = read["fairlead_decision_seconds"]
    assert decided.value("fairlead_decision_seconds_count") == 4
    assert 0 < decided.value("fairlead_decision_seconds_sum") < 5
    assert value(home, "info", version="0.1.0") == 1
    assert value(home, "resident_memory_bytes") > 10_000_000
    assert value(home, "uptime_seconds") > 0
    assert value(home, "spool_pending") == 0
    for name in ("elsewhere", "spooled", "doubles", "troubles"):
        assert value(home, f"{name}_total") == 0


def test_names_that_nobody_knows_are_counted_together_in_the_end() -> None:
    counted = Metrics()
    for number in range(2000):
        counted.after_record(EventRecord(id=f"{number}", at=1.0, event=f"Odd{number}"), None)

    read = exposition.read(counted.text(version="1", memory=0, more={}))["fairlead_events_total"]

    assert counted.total == 2000
    assert read.value("fairlead_events_total", event="Odd0", verdict="none") == 1
    assert read.value("fairlead_events_total", event="other", verdict="none") == 1500


def test_an_event_that_comes_twice_is_taken_once_and_counted(home: DaemonHome) -> None:
    for _ in range(2):
        answer = talk(home.socket, "POST", "/v1/events/PreToolUse", home.edit("kept.txt"), fairlead_id="1-1")
        assert (answer.status, answer.headers["fairlead-exit"]) == (200, "2")

    assert len(home.happened()) == 1
    assert value(home, "doubles_total") == 1


def test_how_it_is_can_be_asked(home: DaemonHome) -> None:
    home.hook("PreToolUse", home.edit("kept.txt"))

    status = talk(home.socket, "GET", "/v1/status").json

    assert set(status) == {
        *("pid", "version", "listens", "uptime", "events", "under_way", "idle", "leaving", "memory"),
        *("loop_lag", "loop_blocked", "spool", "troubles", "stored", "store_failures", "waiting", "attention"),
        *("integrity", "store_pid", "hook_workers"),
    }
    assert (status["events"], status["under_way"], status["leaving"], status["troubles"]) == (1, 0, "", 0)


# -- others --------------------------------------------------------------------------------------------


@pytest.fixture(params=["launcher", "other"])
def whole(home: DaemonHome, request: pytest.FixtureRequest) -> Callable[[], bytes]:
    """Requests as a launcher writes them, or as others do."""
    numbers = count()

    def written() -> bytes:
        own = {"fairlead_id": f"{next(numbers):016x}-1"} if request.param == "launcher" else {}
        return post("POST", "/v1/events/PreToolUse", home.edit("kept.txt"), **own)

    return written


def test_who_asks_by_halves_keeps_nobody_from_an_answer(home: DaemonHome, whole: Callable[[], bytes]) -> None:
    halves = [(connect(home.socket), whole()) for _ in range(20)]
    for number, (connection, said) in enumerate(halves):
        connection.sendall(said[: len(said) * number // 20])

    assert home.hook("PreToolUse", home.edit("kept.txt")).exit_code == 2
    assert [record.route for record in home.happened()] == ["daemon"]

    for number, (connection, said) in enumerate(halves):
        connection.sendall(said[len(said) * number // 20 :])
        assert read_answer(connection).headers["fairlead-exit"] == "2"
        connection.close()


def test_a_request_that_comes_byte_by_byte_is_read(home: DaemonHome, whole: Callable[[], bytes]) -> None:
    with connect(home.socket) as connection:
        for byte in whole():
            connection.sendall(bytes([byte]))
        assert read_answer(connection).headers["fairlead-exit"] == "2"


def test_who_leaves_before_the_answer_harms_nobody(home: DaemonHome, whole: Callable[[], bytes]) -> None:
    said = whole()
    head = said.index(b"\r\n\r\n") + 4
    for size in (0, 10, head, head + 1, len(said) - 5):
        with connect(home.socket) as connection:
            connection.sendall(said[:size])

    assert home.hook("PreToolUse", home.edit("kept.txt")).exit_code == 2
    assert len(home.happened()) == 1, "what was not asked to the end is no event"
    status = home.status()
    assert status is not None
    assert status["under_way"] == 0
    assert "Traceback" not in (home.folder / "daemon.err").read_text()


def test_what_is_no_http_is_refused(home: DaemonHome) -> None:
    for nonsense in (b"\0" * 100, b"GET\r\n\r\n", b"POST /v1/events/X HTTP/9.9\r\n\r\n", b"\x16\x03\x01"):
        with connect(home.socket) as connection:
            connection.sendall(nonsense)
            assert connection.recv(12) in {b"", b"HTTP/1.1 400"}
    assert home.hook("PreToolUse", home.edit("kept.txt")).exit_code == 2


def test_two_hundred_at_once_are_answered(home: DaemonHome, whole: Callable[[], bytes]) -> None:
    """The first of all, and in several threads: each of them reads the policy."""
    connections = [connect(home.socket) for _ in range(200)]
    for connection in connections:
        connection.sendall(whole())

    codes = [read_answer(connection).headers["fairlead-exit"] for connection in connections]
    for connection in connections:
        connection.close()

    assert codes == ["2"] * 200
    assert len(home.happened()) == 200


def test_an_answer_that_does_not_fit_into_the_socket_comes_whole(home: DaemonHome) -> None:
    script = ": " + "x" * 1_000_000
    home.policy(f"stop: {{commands: [{{run: '{script}'}}]}}\n")
    payload = home.payload(hook_event_name="Stop", stop_hook_active=False)
    for number in range(3):
        with connect(home.socket) as connection:
            connection.sendall(post("POST", "/v1/events/Stop", payload, fairlead_id=f"1-{number}"))
            if number == 1:
                connection.recv(100)
                continue  # and is gone in the middle of it
            answer = read_answer(connection)
        assert answer.status == 202
        assert answer.json["plan"]["steps"][0]["run"] == script
    assert "Traceback" not in (home.folder / "daemon.err").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets another process's limits be set")
def test_more_who_say_nothing_than_files_can_be_open_are_outlived(whole: Callable[[], bytes], home: DaemonHome) -> None:
    status = home.status()
    assert status is not None
    open_now = len(list(Path(f"/proc/{status['pid']}/fd").iterdir()))
    resource.prlimit(status["pid"], resource.RLIMIT_NOFILE, (open_now + 20, open_now + 20))
    silent = [connect(home.socket) for _ in range(60)]
    with connect(home.socket) as waiting:
        waiting.sendall(whole())
        until(lambda: "no connection can be accepted: [Errno 24] Too many open files" in troubles(home), "it says so")
        for connection in silent:
            connection.close()
        assert read_answer(waiting).headers["fairlead-exit"] == "2"


def troubles(home: DaemonHome) -> str:
    return "\n".join(record.what for record in home.journal() if isinstance(record, DaemonRecord))


# -- the loop ------------------------------------------------------------------------------------------


def test_a_slow_decision_is_made_in_a_thread_and_others_are_answered_meanwhile(home: DaemonHome) -> None:
    """A command of many commands takes long to look through."""
    home.hook("PreToolUse", home.edit("src/a.txt"))
    slow = home.payload(tool_name="Bash", tool_input={"command": "sh -c 'rm src/x'; " * 3_500})
    took: list[float] = []
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(talk, home.socket, "POST", "/v1/events/PreToolUse", slow)
        while not asked.done():
            begun = monotonic()
            assert talk(home.socket, "POST", "/v1/events/PreToolUse", home.edit("kept.txt")).status == 200
            took.append(monotonic() - begun)
        assert asked.result().status == 200

    seconds = max(record.seconds for record in home.happened())
    assert seconds > 0.05, "it was slow"
    assert len(took) > 5
    assert sorted(took)[len(took) // 2] < seconds / 4
    status = home.status()
    assert status is not None
    assert status["loop_lag"] < seconds, "the loop was not kept waiting by it"
    assert value(home, "loop_lag_seconds") >= status["loop_lag"] - 1e-6, "it is told in both places"
