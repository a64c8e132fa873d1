"""The daemon may let the launcher wait for an answer: in one small process that can be ended at any time."""

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
from launcher.build import compile_sanitized, unavailable, write_twin
from launcher.fakes import Launcher, answer_200, answer_202, answer_303, headers
from launcher.test_local_evaluation import GARBAGE

if TYPE_CHECKING:
    import socket

    from launcher.fakes import Daemon

PAYLOAD = b'{"session_id": "s1"}\0\xff' * 5000
OTHERS = ("host", "connection", "content-type", "content-length")
GOOD = answer_303("abc")
BAD = {
    "no location": GOOD.replace(b"location", b"x-location"),
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
    "another location": GOOD.replace(b"/v1/waits/", b"/v1/events/"),
    "another machine": GOOD.replace(b"/v1/waits/", b"http://elsewhere/v1/waits/"),
    "two locations": GOOD.replace(b"location", b"location: /v1/waits/abc\r\nlocation"),
    "two times": GOOD.replace(b"fairlead-wait", b"fairlead-wait: 5\r\nfairlead-wait"),
    "no time at all": answer_303("abc", 0),
    "over the limit": answer_303("abc", 2_000_000_001),
    "negative": answer_303("abc", -1),
    "over 64 bits": answer_303("abc", 2**64 + 5),
    "a fraction": GOOD.replace(b"30000", b"3e4"),
    "chunked": GOOD.replace(b"content-length", b"transfer-encoding: chunked\r\ncontent-length"),
    "307": GOOD.replace(b"303", b"307"),
}


@pytest.mark.parametrize("event", ["Stop", "PreToolUse"])
def test_the_answer_after_a_wait_is_printed(launcher: Launcher, daemon: Daemon, event: str) -> None:
    daemon.answers = [answer_303("A_z-09"), answer_200(b"out\n", b"err\n", 2)]
    done = launcher.run(event, "--client", "claude", stdin=PAYLOAD)
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 2)
    posted, waited = daemon.requests
    assert posted.endswith(b"\r\n\r\n" + PAYLOAD)
    assert (waited[:35], waited[-4:]) == (b"GET /v1/waits/A_z-09 HTTP/1.1\r\nhost", b"\r\n\r\n")
    common = {name: value for name, value in headers(posted).items() if name not in OTHERS}
    assert headers(waited) == {"host": "fairlead", "connection": "close", **common}
    assert not launcher.record.exists()


def test_a_plan_may_follow_a_wait(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answers = [GOOD, answer_202(b'{"steps": []}')]
    launcher.run("Stop", stdin=PAYLOAD)
    record = launcher.ran()
    assert record["argv"][5:9] == ["Stop", "--client", "claude", "--id"]
    assert (record["plan"], launcher.stdin()) == ('{"steps": []}', PAYLOAD)
    assert record["argv"][9] == headers(daemon.requests[0])["fairlead-id"]


def test_a_wait_may_be_renewed(launcher: Launcher, daemon: Daemon) -> None:
    names = ["a", "b" * 64, "c", "a", "a"]
    daemon.answers = [*map(answer_303, names), answer_200(b"at last")]
    assert launcher.run("Stop").stdout == b"at last"
    lines = [request.partition(b" HTTP")[0].decode() for request in daemon.requests]
    assert lines == ["POST /v1/events/Stop?client=claude", *(f"GET /v1/waits/{name}" for name in names)]


@pytest.mark.parametrize("kind", ["sanitized", "python"])
def test_a_wait_is_not_renewed_for_ever(kind: str, daemon: Daemon, home: Path, tmp_path: Path) -> None:
    """The real limit is 100 000."""
    program = tmp_path / kind / "fairlead-hook"
    program.parent.mkdir()
    if (
        problem := compile_sanitized(
            program,
            *("-DMAX_WAITS=5", "-DMAX_STOP=3590000"),
            *("-DMAX_SHORT=20000", "-DMAX_SESSION_END=8000", "-DMAX_OTHER=40000"),
        )
        if kind == "sanitized"
        else write_twin(program, MAX_WAITS=5)
    ):
        unavailable(problem)
    launcher = Launcher(program, home)
    daemon.answer = GOOD
    launcher.run("Stop", stdin=PAYLOAD)
    assert launcher.evaluated_locally("Stop", "--waited", stdin=PAYLOAD)
    assert len(daemon.requests) == 6

    daemon.answers = [GOOD] * 5
    daemon.answer = answer_200(b"yes")
    assert launcher.run("Stop", stdin=PAYLOAD).stdout == b"yes"


def test_an_invalid_wait_is_ignored(launcher: Launcher, daemon: Daemon) -> None:
    for count, (name, answer) in enumerate(BAD.items(), 1):
        daemon.answer = answer
        done = launcher.run("PreToolUse", stdin=PAYLOAD)
        assert (done.stdout, done.stderr, done.returncode) == (b"", b"", 0), name
        assert launcher.evaluated_locally("PreToolUse", stdin=PAYLOAD)
        assert len(daemon.requests) == count, f"{name}: the launcher does not wait"


def test_the_headers_of_a_wait_are_ignored_in_other_answers(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = answer_200(b"yes").replace(b"OK\r\n", b"OK\r\nlocation: /x y\r\nfairlead-wait: long\r\n")
    assert launcher.run("Stop").stdout == b"yes"
    assert len(daemon.requests) == 1


@pytest.mark.parametrize("event", ["Stop", "PreToolUse"])
def test_if_the_daemon_fails_during_a_wait_python_evaluates(launcher: Launcher, daemon: Daemon, event: str) -> None:
    waited = ["--waited"] if event == "Stop" else []  # a gate is evaluated again
    for name in ("nothing", "head cut off", "body too short", "503", "binary"):
        daemon.answers = [GOOD, GARBAGE[name]]
        launcher.run(event, stdin=PAYLOAD)
        assert launcher.evaluated_locally(event, *waited, stdin=PAYLOAD)


def test_if_the_daemon_fails_while_a_person_is_asked_nothing_is_printed(launcher: Launcher, daemon: Daemon) -> None:
    """The event was decided before, and the client asks the person, too."""
    for name in ("nothing", "head cut off", "body too short", "503", "binary"):
        daemon.answers = [answer_303("answer-abc"), GARBAGE[name]]
        done = launcher.run("PermissionRequest", stdin=PAYLOAD)
        assert (done.stdout, done.stderr, done.returncode) == (b"", b"", 0), name
        assert not launcher.record.exists(), name


def test_a_gate_never_passes_because_a_person_was_to_be_asked(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answers = [answer_303("answer-abc"), GARBAGE["nothing"]]
    launcher.run("PreToolUse", stdin=PAYLOAD)
    assert launcher.evaluated_locally("PreToolUse", stdin=PAYLOAD)


def test_if_the_daemon_has_stopped_before_the_wait_python_evaluates(launcher: Launcher, daemon: Daemon) -> None:
    def stop(connection: socket.socket) -> None:
        daemon.path.unlink()
        connection.sendall(GOOD)

    daemon.answer = stop
    launcher.run("Stop", stdin=PAYLOAD)
    assert launcher.evaluated_locally("Stop", "--waited", stdin=PAYLOAD)
    assert len(daemon.requests) == 1


def test_a_wait_lasts_its_time_and_two_seconds_more(launcher: Launcher, daemon: Daemon) -> None:
    """The deadline of an event does not apply."""
    daemon.answers = [answer_303("abc", 200), lambda _: daemon.over.wait()]
    started_at = time.monotonic()
    launcher.run("Stop", env=launcher.env(FAIRLEAD_DEADLINE_MS="60000"))
    assert 2.2 <= time.monotonic() - started_at < 40
    assert launcher.evaluated_locally("Stop", "--waited")


def test_a_wait_costs_almost_nothing(launcher: Launcher, daemon: Daemon) -> None:
    """No CPU time, and in the compiled launcher hardly any memory; the deadline of an event does not end it."""
    memory: list[int] = []
    started = threading.Event()

    def answer_later(connection: socket.socket) -> None:
        started.wait()
        memory.append(resident(process.pid))
        daemon.over.wait(1.2)
        connection.sendall(answer_200(b"yes"))

    daemon.answers = [GOOD, answer_later]
    command, env = launcher.command("Stop"), launcher.env(FAIRLEAD_DEADLINE_MS="1000")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        started.set()
        assert process.communicate()[0] == b"yes"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1
    if launcher.program.parent.name == "compiled" and memory[0]:
        assert memory[0] < 1000, "KiB"


def resident(pid: int) -> int:
    """Return the memory of a process in KiB; 0 if it is unknown."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("args", [("Stop",), ("PreToolUse",), ("--wait", "abc", "30000", "Stop")])
def test_a_signal_ends_it_at_once_and_closes_the_connection(
    launcher: Launcher, daemon: Daemon, number: signal.Signals, args: tuple[str, ...]
) -> None:
    ended = queue.Queue[bytes]()
    started = threading.Event()

    def kill(connection: socket.socket) -> None:
        started.wait()
        process.send_signal(number)
        ended.put(connection.recv(1))

    daemon.answers = [kill] if args[0] == "--wait" else [GOOD, kill]
    command = launcher.command(*args)
    with subprocess.Popen(command, env=launcher.env(), stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        started.set()
        assert process.communicate(PAYLOAD)[1] == b""
    assert process.returncode == -number
    assert ended.get(timeout=40) == b""
    assert not launcher.record.exists()


# -- a wake ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [("Stop", "--wake"), ("Stop", "--wake", "--client", "claude")])
def test_a_wake_is_requested_at_its_own_path(launcher: Launcher, daemon: Daemon, args: tuple[str, ...]) -> None:
    daemon.answers = [GOOD, answer_200(b"", b"You have mail.\n", 2)]
    done = launcher.run(*args, stdin=PAYLOAD)
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"You have mail.\n", 2)
    posted, waited = daemon.requests
    assert posted.startswith(b"POST /v1/wakes/Stop?client=claude HTTP/1.1\r\n")
    assert waited.startswith(b"GET /v1/waits/abc HTTP/1.1\r\n")
    assert posted.endswith(b"\r\n\r\n" + PAYLOAD)


def test_a_wake_without_a_daemon_is_left_to_python(launcher: Launcher) -> None:
    launcher.run("Stop", "--wake", stdin=PAYLOAD)
    assert launcher.evaluated_locally("Stop", "--wake", stdin=PAYLOAD)


def test_the_daemon_gets_the_variables_for_staying(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = answer_200(b"")
    launcher.run("Stop", env=launcher.env(FAIRLEAD_STAY="always", CLAUDE_CODE_ENTRYPOINT="sdk-cli"))
    variables = headers(daemon.requests[0])["fairlead-env"].split(";")
    assert {"FAIRLEAD_STAY=always", "CLAUDE_CODE_ENTRYPOINT=sdk-cli"} <= set(variables)


# -- starting with a wait, as after a plan --------------------------------------------------------------


def test_it_can_start_with_a_wait(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answers = [answer_303("next"), answer_200(b"yes")]
    assert launcher.run("--wait", "first", "30000", "Stop", "--id", "0a1b-2c", stdin=PAYLOAD).stdout == b"yes"
    assert [request.partition(b" HTTP")[0] for request in daemon.requests] == [
        b"GET /v1/waits/first",
        b"GET /v1/waits/next",
    ]
    assert {headers(request)["fairlead-id"] for request in daemon.requests} == {"0a1b-2c"}


def test_options_of_the_event_are_passed_to_python(launcher: Launcher, daemon: Daemon) -> None:
    args = ("Stop", "--wake", "--rules", "a b", "--client", "claude")
    daemon.answers = [answer_200(b"yes"), b""]
    assert launcher.run("--wait", "abc", "30000", *args, stdin=PAYLOAD).stdout == b"yes"
    launcher.run("--wait", "abc", "30000", *args, stdin=PAYLOAD)
    assert launcher.evaluated_locally(*args, "--waited", stdin=PAYLOAD)
    assert len(daemon.requests) == 2


def test_an_invalid_id_is_replaced(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = answer_200(b"yes")
    for own in ("", "x" * 40, "a b", "a\r\nx: y"):
        launcher.run("--wait", "abc", "30000", "Stop", "--id", own)
        used = headers(daemon.requests[-1])["fairlead-id"]
        assert used != own
        assert len(used) > 16


@pytest.mark.parametrize("answer", [b"", answer_202(b"{}")], ids=["no answer", "a plan"])
def test_stdin_is_not_read_during_a_wait(launcher: Launcher, daemon: Daemon, answer: bytes) -> None:
    daemon.answer = answer
    payload = launcher.home / "payload"
    payload.write_bytes(b"0123456789")
    with payload.open("rb") as file:
        os.lseek(file.fileno(), 4, os.SEEK_SET)
        launcher.run("--wait", "abc", "30000", "Stop", "--client", "claude", "--id", "0a-1", stdin_file=file)
    assert launcher.stdin() == b"456789"
    assert ("--plan-fd" in launcher.ran()["argv"]) == bool(answer)
    assert answer or launcher.evaluated_locally_as("0a-1", "Stop", "--client", "claude", "--waited", stdin=b"456789")


def test_without_a_daemon_python_evaluates_instead_of_waiting(launcher: Launcher) -> None:
    launcher.run("--wait", "abc", "30000", "Stop")
    assert launcher.evaluated_locally("Stop", "--waited")


INVALID_ARGUMENTS: list[tuple[str, ...]] = [
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
]


def test_invalid_arguments_of_a_wait_are_left_to_python(launcher: Launcher, daemon: Daemon) -> None:
    for args in INVALID_ARGUMENTS:
        launcher.run(*args)
        assert launcher.evaluated_locally(*args)
    assert not daemon.requests
