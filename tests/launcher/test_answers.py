"""The client gets exactly what the daemon answers."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from launcher.build import VERSION
from launcher.fakes import answer_200, answer_202, headers, program

if TYPE_CHECKING:
    import socket

    from launcher.fakes import Daemon, Launcher

BIG = bytes(range(256)) * 4096  # 1 MiB


@pytest.mark.parametrize(
    ("stdout", "stderr", "code"),
    [
        (b"", b"", 0),
        (b'{"decision": 1}\n', b"", 0),
        (b"", b"no, since\n", 2),
        (b"out\0\xff\n", b"err\0\xff\n", 2),
        (BIG, BIG[::-1], 0),
    ],
)
def test_an_answer_is_printed_byte_for_byte(
    launcher: Launcher, daemon: Daemon, stdout: bytes, stderr: bytes, code: int
) -> None:
    daemon.answer = answer_200(stdout, stderr, code)
    done = launcher.run("PreToolUse")
    assert (done.stdout, done.stderr, done.returncode) == (stdout, stderr, code)
    assert not launcher.record.exists()


def test_the_payload_arrives_byte_for_byte(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = answer_200(b"yes")
    for size in (0, 1, 65535, 65536, 65537, 1 << 20, 5 << 20):
        payload = (BIG * 5)[:size]
        assert launcher.run("Stop", stdin=payload).stdout == b"yes"
        assert daemon.requests[-1].partition(b"\r\n\r\n")[2] == payload


def test_the_request_has_all_headers_of_the_protocol(launcher: Launcher, daemon: Daemon, tmp_path: Path) -> None:
    here = tmp_path / "a b%;=\N{SNOWMAN}"
    here.mkdir()
    daemon.answer = answer_200()
    more = {"HOME": "/h;o=m%e", "XDG_STATE_HOME": "", "TMUX": "/t,1,0", "TMUX_PANE": "%3", "SECRET": "no"}
    before = time.time_ns()
    launcher.run("PreToolUse", "--client", "claude", env=launcher.env(**more), cwd=here)
    first = daemon.requests[0].partition(b"\r\n")[0]
    assert first == b"POST /v1/events/PreToolUse?client=claude HTTP/1.1"
    got = headers(daemon.requests[0])
    event_id = re.fullmatch(r"([0-9a-f]{16})-[0-9a-f]+", got.pop("fairlead-id"))
    assert event_id is not None
    assert before <= int(event_id[1], 16) <= time.time_ns()
    start = got.pop("fairlead-start", None)
    if Path("/proc/self/stat").exists():
        assert start == Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19]
    assert got == {
        "host": "fairlead",
        "content-type": "application/json",
        "content-length": "2",
        "connection": "close",
        "fairlead-acks": "2",
        **({} if launcher.twin else {"fairlead-steps": "1"}),
        "fairlead-version": VERSION,
        "fairlead-pid": str(os.getpid()),
        "fairlead-cwd": f"{tmp_path}/a%20b%25%3B%3D%E2%98%83",
        "fairlead-env": f"FAIRLEAD_HOME={launcher.home};HOME=/h%3Bo%3Dm%25e;XDG_STATE_HOME=;TMUX=/t,1,0;TMUX_PANE=%253",
    }


def test_the_client_can_name_its_pid(launcher: Launcher, daemon: Daemon) -> None:
    daemon.answer = answer_200()
    for pid in ("1", "0", "", "-1", "12x", "99999999999999999999"):
        launcher.run("Stop", env=launcher.env(CLAUDE_PID=pid))
    pids = [headers(request)["fairlead-pid"] for request in daemon.requests]
    assert pids == ["1", *[str(os.getpid())] * 5]


@pytest.mark.parametrize("event", ["PreToolUse", "Stop"])
@pytest.mark.parametrize("plan", [b'{"commands": []}', b"x" * 100_000])
def test_a_plan_is_passed_to_python_with_the_payload_on_stdin(
    launcher: Launcher, daemon: Daemon, event: str, plan: bytes
) -> None:
    daemon.answer = answer_202(plan)
    done = launcher.run(event, stdin=BIG, env=launcher.env(DO="print('ran'); sys.exit(2)"))
    assert (done.stdout, done.stderr, done.returncode) == (b"ran\n", b"", 2)
    record = launcher.ran()
    event_id = headers(daemon.requests[0])["fairlead-id"]
    number = record["argv"][-1]
    start = ["-E", "-P", "-c", program("from fairlead.execute import main", "main()")]
    assert record["argv"][1:] == [*start, event, "--client", "claude", "--id", event_id, "--plan-fd", number]
    assert record["plan"].encode() == plan
    assert launcher.stdin() == BIG
    if record["files"]:
        assert set(record["files"]) <= {0, 1, 2, int(number), max(record["files"])}, "nothing else is left open"


@pytest.mark.parametrize("size", [1, 40])
def test_an_answer_may_arrive_in_pieces(launcher: Launcher, daemon: Daemon, size: int) -> None:
    whole = answer_200(b"yes\n", b"well\n", 0)

    def slowly(connection: socket.socket) -> None:
        for at in range(0, len(whole), size):
            connection.sendall(whole[at : at + size])
            time.sleep(0)  # so that the launcher can read it

    daemon.answer = slowly
    done = launcher.run("PreToolUse")
    assert (done.stdout, done.stderr, done.returncode) == (b"yes\n", b"well\n", 0)


def test_headers_have_any_case_and_unknown_ones_are_ignored(launcher: Launcher, daemon: Daemon) -> None:
    lines = [b"HTTP/1.1 200", b"Date: today", b"FAIRLEAD-EXIT:1", b"Fairlead-Stdout: \t 2 ", b"Content-Length:3", b"X:"]
    daemon.answer = b"\r\n".join(lines) + b"\r\n\r\nabc"
    done = launcher.run("Stop")
    assert (done.stdout, done.stderr, done.returncode) == (b"ab", b"c", 1)


def test_the_client_may_write_the_payload_slowly(launcher: Launcher, daemon: Daemon) -> None:
    """The deadline is for the daemon, not for the client."""
    daemon.answer = answer_200(b"yes")
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    env = launcher.env(FAIRLEAD_DEADLINE_MS="2000")
    with subprocess.Popen(launcher.command("Stop"), stdin=reading, stdout=subprocess.PIPE, env=env) as process:
        os.close(reading)
        for piece in (b'{"a":', b" 1}"):
            os.write(writing, piece)
            assert process.poll() is None
        os.close(writing)
        assert process.communicate()[0] == b"yes"
    assert daemon.requests[0].endswith(b'\r\n\r\n{"a": 1}')
