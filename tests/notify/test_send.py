"""A note reaches the user, and never delays or fails a hook.

The bus, the notification service on it, the web server and the sending process are all real.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from notify.receivers import Desktop, Service, session_bus, unavailable

from fairlead.notify import NO_CHANNEL, NO_DESKTOP, Note, has_desktop, log_file, send
from fairlead.notify.__main__ import trim_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOTE = Note("Fairlead - SubagentStart", "coder: Subagent started", "success")
FAILED = Note("Fairlead - Stop Failed", "make test: exit 2", "failure")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without a desktop, unless a test provides one."""
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={tmp_path}/nobody")
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "home"


def logged(home: Path, text: str) -> list[str]:
    """Wait until the log contains a text, and return its lines without their times."""
    path = home / "notify.log"
    until(lambda: path.exists() and text in path.read_text())
    return [line.partition(" ")[2] for line in path.read_text().splitlines()]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.01)


# -- the desktop ---------------------------------------------------------------------------------------


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A separate session bus."""
    with session_bus() as address:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        yield


@pytest.fixture
def desktop(bus: None) -> Iterator[Desktop]:
    service = Desktop()
    yield service
    service.close()


@pytest.fixture
def without_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without the optional libraries."""
    folder = tmp_path / "missing"
    folder.mkdir()
    for name in ("desktop_notifier", "apprise"):
        (folder / f"{name}.py").write_text(f"raise ModuleNotFoundError(name={name!r})\n")
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_a_note_is_shown_on_the_desktop(desktop: Desktop) -> None:
    send(NOTE)

    assert desktop.shown.get(timeout=30) == {
        "app": "Fairlead",
        "icon": "",
        "title": "Fairlead - SubagentStart",
        "body": "coder: Subagent started",
        "urgency": 1,
    }


def test_a_failure_is_urgent(desktop: Desktop) -> None:
    send(FAILED)

    assert desktop.shown.get(timeout=30)["urgency"] == 2


TRICKY = r"""<b>&amp;</b> $(id) `id` "; do shell script "id" \074i\076 %s --help"""
SHOWN = r"""&lt;b&gt;&amp;amp;&lt;/b&gt; $(id) `id` "; do shell script "id" \074i\076 %s --help"""


def test_a_text_is_never_markup(desktop: Desktop) -> None:
    send(Note("--help <b>", TRICKY, "success"))

    shown = desktop.shown.get(timeout=30)
    assert (shown["title"], shown["body"]) == ("--help <b>", SHOWN)


def test_without_the_library_notify_send_shows_the_note(desktop: Desktop, without_libraries: None, home: Path) -> None:
    """To that program the text is not an option, an escape or a script either."""
    if not shutil.which("notify-send"):
        unavailable("libnotify-bin")

    send(Note("--help <b>", TRICKY, "failure"))

    assert desktop.shown.get(timeout=30) == {
        "app": "Fairlead",
        "icon": "",
        "title": "--help <b>",
        "body": SHOWN,
        "urgency": 2,
    }
    assert logged(home, "desktop") == [
        "--help <b>: desktop, by desktop-notifier: not installed; try: pip install 'fairlead[notify]'"
    ]


def test_without_library_and_program_the_log_says_what_to_install(
    without_libraries: None, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(home))

    send(NOTE, ["json://localhost"])

    assert logged(home, "channels") == [
        f"{NOTE.title}: desktop, by desktop-notifier: not installed; try: pip install 'fairlead[notify]'",
        f"{NOTE.title}: desktop, by notify-send: not installed",
        f"{NOTE.title}: channels, by apprise: not installed; try: pip install 'fairlead[notify]'",
    ]


def test_a_bus_without_a_notification_service_is_logged(bus: None, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(home))

    send(NOTE)

    nobody = "The name org.freedesktop.Notifications was not provided by any .service files"
    assert logged(home, "notify-send") == [
        f"{NOTE.title}: desktop, by desktop-notifier: Notification failed: {nobody}",
        f"{NOTE.title}: desktop, by notify-send: not installed",
    ]


def test_a_desktop_that_does_not_answer_is_called_once(bus: None, home: Path) -> None:
    desktop = Desktop(silent=True)
    try:
        send(NOTE)
        assert logged(home, "desktop") == [f"{NOTE.title}: desktop, by desktop-notifier: no answer within 5 s"]
        assert desktop.shown.qsize() == 1
    finally:
        desktop.close()


@pytest.mark.parametrize(
    ("address", "runtime", "is_there"),
    [
        ("unix:path={bus},guid=1", "", True),
        ("unix:path={bus};tcp:host=nowhere", "", True),
        ("unix:path=/nowhere/bus", "{folder}", False),
        ("unix:abstract=/tmp/dbus-1", "", True),
        ("", "{folder}", True),
        ("", "/nowhere", False),
        ("", "", False),
    ],
)
def test_there_may_be_a_desktop_if_there_is_a_session_bus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, runtime: str, *, is_there: bool
) -> None:
    if sys.platform == "darwin":
        pytest.skip("there is always a desktop on macOS")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as bus:
        bus.bind("bus")  # a relative name: the folder's path may be too long for a socket
        paths = {"bus": tmp_path / "bus", "folder": tmp_path}
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address.format(**paths))
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime.format(**paths))
        assert has_desktop() is is_there


# -- channels ------------------------------------------------------------------------------------------


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_note_is_sent_to_every_channel(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The secret is only in the environment."""
    monkeypatch.setenv("TEAM_TOKEN", "hunter2")
    url = f"json://127.0.0.1:{service.server_port}"

    send(FAILED, [f"{url}/${{TEAM_TOKEN}}/", f"{url}/second/"])

    content = {"title": "Fairlead - Stop Failed", "message": "make test: exit 2", "type": "failure"}
    received = sorted((service.received.get(timeout=30), service.received.get(timeout=30)), key=lambda each: each[0])
    assert received == [("/hunter2/", content), ("/second/", content)]


def test_a_channel_gets_the_text_as_it_is(service: Service) -> None:
    send(Note("T", TRICKY, "blocked"), [f"json://127.0.0.1:{service.server_port}"])

    assert service.received.get(timeout=30)[1] == {"title": "T", "message": TRICKY, "type": "warning"}


def test_channel_errors_are_logged_without_secrets(
    service: Service, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_TOKEN", "hunter2")
    monkeypatch.delenv("NOT_SET", raising=False)
    service.code = 403
    channels = [
        "slack://${NOT_SET}/${NOT_SET}/x",
        "swordfish-and-no-service",
        "nosuch://${TEAM_TOKEN}",
        f"json://user:sekret@127.0.0.1:{service.server_port}/${{TEAM_TOKEN}}",
    ]

    send(NOTE, channels)

    lines = logged(home, "channel 4")
    assert sorted(line for line in lines if ": channel " in line) == [
        f"{NOTE.title}: channel 1 (slack): not set in the environment: NOT_SET",
        f"{NOTE.title}: channel 2: Apprise does not understand this URL",
        f"{NOTE.title}: channel 3 (nosuch): Apprise does not understand this URL",
        f"{NOTE.title}: channel 4 (json): not sent",
    ]
    assert [line for line in lines if "error=403" in line] == [
        f"{NOTE.title}: apprise: Failed to send JSON POST notification: error=403."
    ]
    assert not [line for line in lines for secret in ("hunter2", "sekret", "swordfish") if secret in line]


@pytest.mark.parametrize(
    ("code", "desktop", "failed"),
    [(200, False, 0), (200, True, NO_DESKTOP), (500, False, NO_CHANNEL)],
)
def test_the_callback_gets_what_failed(service: Service, home: Path, code: int, failed: int, *, desktop: bool) -> None:
    service.code = code
    codes: Queue[int] = Queue()

    send(NOTE, [f"json://127.0.0.1:{service.server_port}"], desktop=desktop, then=codes.put)

    assert codes.get(timeout=60) == failed
    assert ("desktop" in (home / "notify.log").read_text()) is desktop


# -- the hook is not delayed -----------------------------------------------------------------------------


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that accepts a connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_a_hanging_channel_does_not_delay_the_hook(silent: socket.socket, home: Path) -> None:
    channel = f"json://127.0.0.1:{silent.getsockname()[1]}"

    assert min(seconds(lambda: send(NOTE, [channel])) for _ in range(3)) < 0.05

    assert f"{NOTE.title}: channel 1 (json): not sent" in logged(home, "channel 1")


def seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def test_the_hooks_own_output_is_untouched_and_ends_with_the_hook(silent: socket.socket) -> None:
    """The client reads to the end of the pipe: a process that kept it open would delay the client."""
    program = (
        "import sys; from fairlead.notify import Note, send; send(Note('T', 'b', 'success'), sys.argv[1:]);"
        "print(sorted({'asyncio', 'json', 'logging', 'pathlib', 'subprocess', 'apprise'} & set(sys.modules)))"
    )
    channel = f"json://127.0.0.1:{silent.getsockname()[1]}"

    with subprocess.Popen(
        [sys.executable, "-c", program, channel], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as hook:
        stdout, stderr = hook.communicate()
        connection, _ = silent.accept()  # the hook has ended, and its note is still being sent

    connection.close()
    assert (hook.returncode, stdout, stderr) == (0, "[]\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_sending_process_has_its_own_session_and_gets_no_text_as_argument(silent: socket.socket) -> None:
    send(NOTE, [f"json://127.0.0.1:{silent.getsockname()[1]}"])

    connection, _ = silent.accept()
    with connection:
        pid = child("fairlead.notify")
        assert os.getsid(pid) == pid
        assert Path(f"/proc/{pid}/cmdline").read_text().split("\0")[1:] == ["-P", "-m", "fairlead.notify", ""]
    until(lambda: not Path(f"/proc/{pid}").exists())  # and it is not left as a zombie


def child(module: str) -> int:
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    pids = [pid for each in children for pid in each.read_text().split()]
    return next(int(pid) for pid in pids if module in Path(f"/proc/{pid}/cmdline").read_text())


def test_a_process_that_cannot_be_started_is_logged(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    codes: list[int] = []

    send(NOTE, then=codes.append)

    assert codes == [NO_DESKTOP | NO_CHANNEL]

    assert (home / "notify.log").read_text() == (
        f"{NOTE.title}: cannot start the sending process: [Errno 2] No such file or directory: '/nowhere/python'\n"
    )


@pytest.mark.usefixtures("home")
def test_the_result_is_reported_although_the_exit_code_is_not_known() -> None:
    """If SIGCHLD is ignored, no child can be waited for."""
    codes: Queue[int] = Queue()
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        send(NOTE, desktop=False, then=codes.put)
        assert codes.get(timeout=30) == NO_DESKTOP | NO_CHANNEL
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_log_that_cannot_be_written_does_not_prevent_sending(
    desktop: Desktop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path / "file/home"))

    send(NOTE)

    assert desktop.shown.get(timeout=30)["title"] == NOTE.title


# -- the log -------------------------------------------------------------------------------------------


def test_only_the_user_can_read_the_log(home: Path) -> None:
    send(NOTE)

    logged(home, "desktop")
    assert stat.S_IMODE((home / "notify.log").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_where_the_log_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert (log_file() or "").endswith("/home/notify.log")
    monkeypatch.delenv("FAIRLEAD_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert log_file() == "/state/fairlead/notify.log"
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    assert log_file() == "/home/me/.local/state/fairlead/notify.log"


def test_a_long_log_is_trimmed_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "notify.log"
    lines = [f"line {number}\n" for number in range(20_000)]
    path.write_text("".join(lines))

    with path.open("r+b") as log:
        trim_log(log.fileno())

    kept = path.read_text().splitlines(keepends=True)
    assert kept == lines[-len(kept) :]
    assert 49_900 < path.stat().st_size <= 50_000


def test_a_log_within_the_limit_is_not_trimmed(tmp_path: Path) -> None:
    path = tmp_path / "notify.log"
    path.write_bytes(b"x" * 100_000)

    with path.open("r+b") as log:
        trim_log(log.fileno())

    assert path.stat().st_size == 100_000
