"""The daemon may have the launcher wait for an answer: by one small process, which can be ended at any time."""

from __future__ import annotations

import os
import queue
import resource
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from launcher.building import sanitized, unavailable, write_twin
from launcher.stage import Launcher, answer_200, answer_202, answer_303, headers
from launcher.test_cold_road import GARBAGE

if TYPE_CHECKING:
    import socket

    from launcher.stage import Daemon

PAYLOAD = b'{"session_id": "s1"}\0\xff' * 5000
OTHERS = ("host", "connection", "content-type", "content-length")
GOOD = answer_303("abc")
BAD = {
    "no place": GOOD.replace(b"location", b"x-location"),
    "no time": GOOD.replace(b"fairlead-wait", b"x-wait"),
    "no length": GOOD.replace(b"content-length", b"x-length"),
    "a body": GOOD.replace(b"length: 0", b"length: 2") + b"{}",
    "no token": answer_303(""),
    "a token of 65 letters": answer_303("x" * 65),
    "a path": answer_303("a/b"),
    "the folder above": answer_303(".."),
    "a query": answer_303("a?b=c"),
    "a space": answer_303("a b"),
    "an escape": answer_303("a%20b"),
    "a letter beyond ASCII": answer_303("é"),
    "another place": GOOD.replace(b"/v1/waits/", b"/v1/events/"),
    "another machine": GOOD.replace(b"/v1/waits/", b"http://elsewhere/v1/waits/"),
    "two places": GOOD.replace(b"location", b"location: /v1/waits/abc\r\nlocation"),
    "two times": GOOD.replace(b"fairlead-wait", b"fairlead-wait: 5\r\nfairlead-wait"),
    "no time at all": answer_303("abc", 0),
    "over all bounds": answer_303("abc", 2_000_000_001),
    "before now": answer_303("abc", -1),
    "over 64 bits": answer_303("abc", 2**64 + 5),
    "a fraction": GOOD.replace(b"30000", b"3e4"),
    "chunked": GOOD.replace(b"content-length", b"transfer-encoding: chunked\r\ncontent-length"),
    "307": GOOD.replace(b"303", b"307"),
}


@pytest.mark.parametrize("event", ["Stop", "PreToolUse"])
def test_the_answer_that_was_promised_is_printed(launcher: Launcher, daemon: Daemon, event: str) -> None:
    daemon.answers = [answer_303("A_z-09"), answer_200(b"out\n", b"err\n", 2)]
    done = launcher.run(event, "--client", "claude", stdin=PAYLOAD)
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 2)
    posted, waited = daemon.requests
    assert posted.endswith(b"\r\n\r\n" + PAYLOAD)
    assert (waited[:35], waited[-4:]) == (b"GET /v1/waits/A_z-09 HTTP/1.1\r\nhost", b"\r\n\r\n")
    told = {name: value for name, value in headers(posted).items() if name not in OTHERS}
    assert headers(waited) == {"host": "fairlead", "connection": "close", **told}
    assert not launcher.record.exists()


def test_a_plan_may_come_after_a_wait(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answers = [GOOD, answer_202(b'{"steps": []}')]
    launcher.run("Stop", stdin=PAYLOAD)
    told = launcher.ran()
    assert told["argv"][5:9] == ["Stop", "--client", "claude", "--id"]
    assert (told["plan"], launcher.stdin()) == ('{"steps": []}', PAYLOAD)
    assert told["argv"][9] == headers(daemon.requests[0])["fairlead-id"]


def test_a_wait_may_be_renewed(launcher: Launcher, daemon: Daemon) -> None:
    names = ["a", "b" * 64, "c", "a", "a"]
    daemon.answers = [*map(answer_303, names), answer_200(b"at last")]
    assert launcher.run("Stop").stdout == b"at last"
    lines = [request.partition(b" HTTP")[0].decode() for request in daemon.requests]
    assert lines == ["POST /v1/events/Stop?client=claude", *(f"GET /v1/waits/{name}" for name in names)]


@pytest.mark.parametrize("kind", ["sanitized", "python"])
def test_a_wait_is_not_renewed_for_ever(kind: str, daemon: Daemon, home: Path, tmp_path: Path) -> None:
    """100 000 times in earnest."""
    program = tmp_path / kind / "fairlead-hook"
    program.parent.mkdir()
    if problem := sanitized(program, "-DMAX_WAITS=5") if kind == "sanitized" else write_twin(program, MAX_WAITS=5):
        unavailable(problem)
    launcher = Launcher(program, home)
    daemon.answer = GOOD
    launcher.run("Stop", stdin=PAYLOAD)
    assert launcher.went_cold("Stop", "--waited", stdin=PAYLOAD)
    assert len(daemon.requests) == 6

    daemon.answers = [GOOD] * 5
    daemon.answer = answer_200(b"yes")
    assert launcher.run("Stop", stdin=PAYLOAD).stdout == b"yes"


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_waited_for_is_no_answer(launcher: Launcher, daemon: Daemon, name: str) -> None:
    daemon.answer = BAD[name]
    done = launcher.run("PreToolUse", stdin=PAYLOAD)
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"", 0)
    assert launcher.went_cold("PreToolUse", stdin=PAYLOAD)
    assert len(daemon.requests) == 1, "and nobody waits"


def test_a_place_beside_another_answer_means_nothing(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = answer_200(b"yes").replace(b"OK\r\n", b"OK\r\nlocation: /x y\r\nfairlead-wait: long\r\n")
    assert launcher.run("Stop").stdout == b"yes"
    assert len(daemon.requests) == 1


@pytest.mark.parametrize("name", ["nothing", "head cut off", "body too short", "503", "binary"])
@pytest.mark.parametrize("event", ["Stop", "PreToolUse"])
def test_a_daemon_that_falls_meanwhile_leaves_it_to_python(
    launcher: Launcher, daemon: Daemon, event: str, name: str
) -> None:
    daemon.answers = [GOOD, GARBAGE[name]]
    launcher.run(event, stdin=PAYLOAD)
    waited = ["--waited"] if event == "Stop" else []  # a gate is decided again
    assert launcher.went_cold(event, *waited, stdin=PAYLOAD)


def test_a_daemon_that_is_gone_by_then_leaves_it_to_python(launcher: Launcher, daemon: Daemon) -> None:
    def go(connection: socket.socket) -> None:
        daemon.path.unlink()
        connection.sendall(GOOD)

    daemon.answer = go
    launcher.run("Stop", stdin=PAYLOAD)
    assert launcher.went_cold("Stop", "--waited", stdin=PAYLOAD)
    assert len(daemon.requests) == 1


def test_a_wait_has_the_time_that_it_was_given_and_two_seconds_more(launcher: Launcher, daemon: Daemon) -> None:
    """The deadline of an event has nothing to do with it."""
    daemon.answers = [answer_303("abc", 200), lambda _: daemon.over.wait()]
    begun = time.monotonic()
    launcher.run("Stop", env=launcher.env(FAIRLEAD_DEADLINE_MS="60000"))
    assert 2.2 <= time.monotonic() - begun < 40
    assert launcher.went_cold("Stop", "--waited")


def test_a_wait_costs_next_to_nothing(launcher: Launcher, daemon: Daemon) -> None:
    """No processor, and of the compiled one hardly any memory; the deadline of an event does not end it."""
    seen: list[int] = []
    begun = threading.Event()

    def later(connection: socket.socket) -> None:
        begun.wait()
        seen.append(resident(process.pid))
        daemon.over.wait(1.5)
        connection.sendall(answer_200(b"yes"))

    daemon.answers = [GOOD, later]
    command, env = launcher.command("Stop"), launcher.env(FAIRLEAD_DEADLINE_MS="1000")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        begun.set()
        assert process.communicate()[0] == b"yes"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1
    if launcher.program.parent.name == "compiled" and seen[0]:
        assert seen[0] < 1000, "KiB"


def resident(pid: int) -> int:
    """How many KiB of memory a process has; 0 if the system does not say."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("words", [("Stop",), ("PreToolUse",), ("--wait", "abc", "30000", "Stop")])
def test_a_signal_ends_it_at_once_and_the_daemon_sees_it(
    launcher: Launcher, daemon: Daemon, number: signal.Signals, words: tuple[str, ...]
) -> None:
    ended = queue.Queue[bytes]()
    begun = threading.Event()

    def kill(connection: socket.socket) -> None:
        begun.wait()
        process.send_signal(number)
        ended.put(connection.recv(1))

    daemon.answers = [kill] if words[0] == "--wait" else [GOOD, kill]
    command = launcher.command(*words)
    with subprocess.Popen(command, env=launcher.env(), stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        begun.set()
        assert process.communicate(PAYLOAD)[1] == b""
    assert process.returncode == -number
    assert ended.get(timeout=40) == b""
    assert not launcher.record.exists()


# -- a wake ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("Stop", "--wake"), ("Stop", "--wake", "--client", "claude")])
def test_a_wake_is_asked_for_in_another_place(launcher: Launcher, daemon: Daemon, words: tuple[str, ...]) -> None:
    daemon.answers = [GOOD, answer_200(b"", b"You have mail.\n", 2)]
    done = launcher.run(*words, stdin=PAYLOAD)
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"You have mail.\n", 2)
    posted, waited = daemon.requests
    assert posted.startswith(b"POST /v1/wakes?client=claude HTTP/1.1\r\n")
    assert waited.startswith(b"GET /v1/waits/abc HTTP/1.1\r\n")
    assert posted.endswith(b"\r\n\r\n" + PAYLOAD)


def test_a_wake_without_a_daemon_is_for_python(launcher: Launcher) -> None:
    launcher.run("Stop", "--wake", stdin=PAYLOAD)
    assert launcher.went_cold("Stop", "--wake", stdin=PAYLOAD)


def test_the_daemon_is_told_how_the_session_stays(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = answer_200(b"")
    launcher.run("Stop", env=launcher.env(FAIRLEAD_STAY="always", CLAUDE_CODE_ENTRYPOINT="sdk-cli"))
    told = headers(daemon.requests[0])["fairlead-env"].split(";")
    assert {"FAIRLEAD_STAY=always", "CLAUDE_CODE_ENTRYPOINT=sdk-cli"} <= set(told)


# -- what a plan ends with: begin with the wait --------------------------------------------------------


def test_it_can_begin_with_the_wait(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answers = [answer_303("next"), answer_200(b"yes")]
    assert launcher.run("--wait", "first", "30000", "Stop", "--id", "0a1b-2c", stdin=PAYLOAD).stdout == b"yes"
    assert [request.partition(b" HTTP")[0] for request in daemon.requests] == [
        b"GET /v1/waits/first",
        b"GET /v1/waits/next",
    ]
    assert {headers(request)["fairlead-id"] for request in daemon.requests} == {"0a1b-2c"}


def test_options_of_the_event_are_for_python_if_it_comes_to_that(launcher: Launcher, daemon: Daemon) -> None:
    words = ("Stop", "--wake", "--rules", "a b", "--client", "claude")
    daemon.answers = [answer_200(b"yes"), b""]
    assert launcher.run("--wait", "abc", "30000", *words, stdin=PAYLOAD).stdout == b"yes"
    launcher.run("--wait", "abc", "30000", *words, stdin=PAYLOAD)
    assert launcher.went_cold(*words, "--waited", stdin=PAYLOAD)
    assert len(daemon.requests) == 2


@pytest.mark.parametrize("own", ["", "x" * 40, "a b", "a\r\nx: y"])
def test_an_id_that_makes_no_sense_is_not_taken(launcher: Launcher, daemon: Daemon, own: str) -> None:
    daemon.answer = answer_200(b"yes")
    launcher.run("--wait", "abc", "30000", "Stop", "--id", own)
    assert headers(daemon.requests[0])["fairlead-id"] != own
    assert len(headers(daemon.requests[0])["fairlead-id"]) > 16


@pytest.mark.parametrize("answer", [b"", answer_202(b"{}")], ids=["fallen", "a plan"])
def test_stdin_is_left_as_it_was_given(launcher: Launcher, daemon: Daemon, answer: bytes) -> None:
    daemon.answer = answer
    payload = launcher.home / "payload"
    payload.write_bytes(b"0123456789")
    with payload.open("rb") as file:
        os.lseek(file.fileno(), 4, os.SEEK_SET)
        launcher.run("--wait", "abc", "30000", "Stop", "--client", "claude", "--id", "0a-1", stdin_file=file)
    assert launcher.stdin() == b"456789"
    assert ("--plan-fd" in launcher.ran()["argv"]) == bool(answer)
    assert answer or launcher.went_cold_as("0a-1", "Stop", "--client", "claude", "--waited", stdin=b"456789")


def test_without_a_daemon_there_is_nothing_to_wait_for(launcher: Launcher) -> None:
    launcher.run("--wait", "abc", "30000", "Stop")
    assert launcher.went_cold("Stop", "--waited")


@pytest.mark.parametrize(
    "words",
    [
        ("--wait",),
        ("--wait", "abc"),
        ("--wait", "abc", "30000"),
        ("--wait", "abc", "0", "Stop"),
        ("--wait", "abc", "-1", "Stop"),
        ("--wait", "abc", "2000000001", "Stop"),
        ("--wait", "abc", "soon", "Stop"),
        ("--wait", "", "30000", "Stop"),
        ("--wait", "x" * 65, "30000", "Stop"),
        ("--wait", "a/../b", "30000", "Stop"),
        ("--wait", "a\r\nx: y", "30000", "Stop"),
        ("Stop", "--wait", "abc", "30000"),
    ],
)
def test_a_wait_that_makes_no_sense_is_for_python_to_refuse(
    launcher: Launcher, daemon: Daemon, words: tuple[str, ...]
) -> None:
    launcher.run(*words)
    assert launcher.went_cold(*words)
    assert not daemon.requests
