"""One daemon for each user: it comes, is found, and goes, whatever its predecessor left behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import PATIENCE, until
from daemon.talk import connect, read_answer, request, talk

from fairlead.journal import DaemonRecord

if TYPE_CHECKING:
    from pathlib import Path

    from daemon.daemon_home import DaemonHome

pytestmark = pytest.mark.usefixtures("new_interpreters")

root_only = pytest.mark.skipif(os.getuid() != 0, reason="needs a second user, so it must run as root")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def turns(home: DaemonHome) -> list[str]:
    return [record.what for record in home.journal() if isinstance(record, DaemonRecord)]


# -- what is there -------------------------------------------------------------------------------------


def test_folder_socket_and_lock_are_the_users_alone(home: DaemonHome) -> None:
    (home.state / "run").mkdir(mode=0o755)

    with home.daemon() as daemon:
        assert mode(home.state / "run") == 0o700
        assert mode(home.socket) == 0o600
        assert stat.S_ISSOCK(home.socket.stat().st_mode)
        assert mode(home.state / "run/daemon.lock") == 0o600
        assert (home.state / "run/daemon.lock").read_text() == f"{daemon.pid}\n"
        assert mode(home.state / "journal") == 0o700

    assert daemon.returncode == 0
    assert not home.socket.exists()
    assert turns(home) == [f"started: {home.socket}", "stopped: signal SIGTERM"]


def test_a_second_daemon_says_that_one_is_running(home: DaemonHome) -> None:
    with home.daemon() as daemon:
        second = home.fairlead("daemon", "run")

        assert (second.exit_code, second.stderr) == (
            1,
            f"fairlead: a daemon is running already (pid {daemon.pid})\n",
        )
        status = home.status()
        assert status is not None
        assert status["pid"] == daemon.pid


def test_what_a_killed_daemon_left_is_no_obstacle(home: DaemonHome) -> None:
    first = home.start()
    first.kill()
    first.wait()
    assert home.socket.exists()

    with home.daemon() as second:
        assert (home.state / "run/daemon.lock").read_text() == f"{second.pid}\n"
        assert home.hook("PreToolUse", home.edit("a")).exit_code == 0
        assert [record.route for record in home.happened()] == ["daemon"]


def test_a_line_that_a_killed_daemon_left_is_cut_off_and_told(home: DaemonHome) -> None:
    with home.daemon():
        home.hook("PreToolUse", home.edit("a"))
    (segment,) = (home.state / "journal").glob("*.jsonl")
    with segment.open("ab") as file:
        file.write(b'{"kind":"event","id":"half')

    with home.daemon():
        home.hook("PreToolUse", home.edit("b"))

    assert f"{segment}: cut off 26 bytes of a line that a killed daemon left" in turns(home)
    assert len(home.happened()) == 2


@root_only
def test_a_runtime_folder_of_another_user_is_refused(home: DaemonHome) -> None:
    (home.state / "run").mkdir(mode=0o700)
    os.chown(home.state / "run", 12345, 12345)

    done = home.fairlead("daemon", "run")

    assert done.exit_code == 1
    assert "belongs to another user, so no socket is put there; set FAIRLEAD_HOME" in done.stderr


@root_only
def test_a_process_of_another_user_gets_no_answer(home: DaemonHome) -> None:
    ask = (
        "import os, socket, sys\n"
        "os.setuid(int(sys.argv[2]))\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
        "try:\n"
        "    s.sendall(b'GET /v1/status HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n'); print(s.recv(100))\n"
        "except OSError as error: print('refused:', error.strerror)\n"
    )
    with home.daemon():
        for path in (home.folder, home.state, home.state / "run", home.socket):
            path.chmod(0o777)
        command = [sys.executable, "-I", "-c", ask, str(home.socket)]
        ours = subprocess.run([*command, "0"], capture_output=True, text=True, check=True)
        theirs = subprocess.run([*command, "12345"], capture_output=True, text=True, check=True)

        assert ours.stdout.startswith("b'HTTP/1.1 200")
        assert theirs.stdout in {"b''\n", "refused: Broken pipe\n", "refused: Connection reset by peer\n"}
        assert home.hook("PreToolUse", home.edit("a")).exit_code == 0
    assert (home.folder / "daemon.err").read_text().count("\n") == 1, "it has nothing to say but where it listens"


def test_a_path_that_is_too_long_for_a_socket_is_told_and_events_are_answered(home: DaemonHome) -> None:
    home.policy("preToolUse: {uneditableFiles: [kept.txt]}\n")
    long = str(home.folder / ("x" * 120))

    done = home.fairlead("daemon", "run", FAIRLEAD_HOME=long)
    blocked = home.hook("PreToolUse", home.edit("kept.txt"), FAIRLEAD_HOME=long)

    assert done.exit_code == 1
    assert "too long for a socket, at most 107 bytes; set FAIRLEAD_HOME to a shorter one" in done.stderr
    assert blocked.exit_code == 2


def test_a_path_that_just_fits_a_socket_works(home: DaemonHome) -> None:
    room = 107 - len(f"{home.folder}//run/daemon.sock")
    home.env["FAIRLEAD_HOME"] = str(home.folder / ("x" * room))

    daemon = subprocess.Popen([sys.executable, "-m", "fairlead.daemon"], env=home.environment(), stderr=subprocess.PIPE)
    try:
        assert daemon.stderr is not None
        assert daemon.stderr.readline().startswith(b"fairlead: listening at ")
        assert home.fairlead("daemon", "status").exit_code == 0
    finally:
        daemon.terminate()
        daemon.communicate(timeout=PATIENCE)


# -- going ---------------------------------------------------------------------------------------------


def test_told_to_go_it_finishes_what_is_under_way(home: DaemonHome) -> None:
    payload = home.edit("a")
    asked = request("POST", "/v1/events/PreToolUse?client=claude", payload, fairlead_id="0000000000000001-1")
    with home.daemon() as daemon, connect(home.socket) as connection:
        connection.sendall(asked[:-10])
        until(lambda: talk(home.socket, "GET", "/v1/status").status == 200, "it has read what came before")

        daemon.send_signal(signal.SIGTERM)
        until(lambda: not home.socket.exists(), "it is found no more")
        connection.sendall(asked[-10:])

        assert read_answer(connection).status == 200
        assert daemon.wait(PATIENCE) == 0
    assert [record.id for record in home.happened()] == ["0000000000000001-1"]


def test_who_never_finishes_asking_does_not_hold_it_up(home: DaemonHome) -> None:
    with home.daemon() as daemon, connect(home.socket) as silent, connect(home.socket) as half:
        half.sendall(b"POST /v1/events/Stop HTTP/1.1\r\ncontent-le")
        assert talk(home.socket, "GET", "/v1/status").status == 200

        daemon.terminate()

        assert daemon.wait(PATIENCE) == 0
        assert silent.recv(1) == b""


def test_it_stops_when_nobody_comes(home: DaemonHome) -> None:
    daemon = home.start("--idle", "0.2")

    assert daemon.wait(PATIENCE) == 0
    assert turns(home)[-1] == "stopped: idle for 0.2 s"
    assert not home.socket.exists()


def test_without_its_socket_it_goes_so_that_another_can_come(home: DaemonHome) -> None:
    """While it lives it holds the lock: nobody could reach it, and nobody take its place."""
    daemon = home.start()
    home.socket.unlink()

    assert daemon.wait(PATIENCE) == 0
    assert turns(home)[-1] == f"stopped: the socket is gone: {home.socket}"


def test_who_connects_while_daemons_change_is_answered_or_finds_none(home: DaemonHome) -> None:
    seen: dict[str, int] = {}
    over = threading.Event()

    def knock() -> None:
        while not over.is_set():
            try:
                what = str(talk(home.socket, "GET", "/v1/status").status)
            except (FileNotFoundError, ConnectionRefusedError):
                what = "none"
            except OSError as error:
                what = repr(error)
            seen[what] = seen.get(what, 0) + 1

    knocking = threading.Thread(target=knock)
    knocking.start()
    try:
        for _ in range(4):
            with home.daemon():
                before = seen.get("200", 0)
                until(lambda before=before: seen.get("200", 0) > before + 20, "it is answered")  # type: ignore[misc]
    finally:
        over.set()
        knocking.join()

    assert set(seen) == {"200", "none"}


ASKED_AS_IT_STOPS = """
import os, signal, socket, time
from fairlead.daemon._lifecycle import SocketFile
from fairlead.daemon.command import main
asking = socket.socket(socket.AF_UNIX)
exists, remove = SocketFile.exists, SocketFile.remove
def stand_still(file):
    SocketFile.exists = exists
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.3)
    return True
def ask_and_remove(file):
    SocketFile.remove = remove
    asking.connect(file.path)
    asking.sendall(b"GET /v1/status HTTP/1.1\\r\\nhost: localhost\\r\\nconnection: close\\r\\n\\r\\n")
    remove(file)
SocketFile.exists, SocketFile.remove = stand_still, ask_and_remove
code = main([])
print(code, asking.recv(1 << 16).partition(b"\\r\\n")[0].decode())
"""


def test_who_has_asked_before_it_removes_its_socket_is_answered(home: DaemonHome) -> None:
    """Also if it stood still, as on a busy machine, and does all that is due at once: it looks who is there first."""
    done = home.run([sys.executable, "-c", ASKED_AS_IT_STOPS], b"")

    assert done.stdout == "0 HTTP/1.1 200 OK\n", done


def test_its_log_is_bounded(home: DaemonHome) -> None:
    log = home.state / "daemon.log"
    log.write_bytes(b"x" * 2_000_000)

    assert home.fairlead("daemon", "start").exit_code == 0
    until((home.state / "daemon.log.old").exists, "the log has been turned over")

    assert home.fairlead("daemon", "stop").exit_code == 0
    assert log.stat().st_size < 1000
    assert mode(log) == 0o600
