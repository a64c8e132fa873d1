"""`fairlead watch` where there is no terminal: the rows as text, and the messages. What a live view asks for."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import termios
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from cli.command_line import error_of
from daemon.daemon_home import PATIENCE, until
from tui.fake_daemon import FakeDaemon
from tui.sample_sessions import session

from fairlead.sessions import AttentionNeeded

if TYPE_CHECKING:
    from collections.abc import Iterator

START = "import sys; from fairlead.cli.main import main; sys.exit(main(['watch', *sys.argv[1:]]))"


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fl") as folder:
        yield Path(folder)


def run(home: Path, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "FAIRLEAD_HOME": str(home), "COLUMNS": "80", **more}
    command = [sys.executable, "-c", START, *args]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("args", [(), ("--once",)])
def test_without_a_terminal_the_rows_are_printed(home: Path, args: tuple[str, ...]) -> None:
    (home / "run").mkdir()
    one = session("s1", title="Clean up", cwd="/nowhere/shop", state=AttentionNeeded("Permission"), started=0.0)
    gone = session("s2", title="Long over", cwd="/nowhere/shop", ended=1.0)
    daemon = FakeDaemon(home / "run/daemon.sock", [one, gone])
    daemon.start()

    done = run(home, *args)

    daemon.stop()
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].strip().startswith("! 1 needs you")
    assert [[*line.split()[:3], *line.split()[4:5]] for line in lines[3:]] == [
        ["NEEDS", "YOU"],
        ["!", "needs", "you", "shop"],
        [],
        ["▾", "shop", "!1"],
        ["!", "needs", "you", "Clean"],
    ]
    assert done.stderr == (
        "" if args else "fairlead: there is no terminal, so this is the view as it is now, as with --once\n"
    )


def test_an_encoding_without_our_signs_gets_others(home: Path) -> None:
    (home / "run").mkdir()
    daemon = FakeDaemon(home / "run/daemon.sock", [session("s1", title="Clean up")])
    daemon.start()

    done = run(home, "--once", PYTHONIOENCODING="ascii")

    daemon.stop()
    assert (done.returncode, done.stderr) == (0, "")
    assert "? 0 working" in done.stdout


def test_a_dumb_terminal_gets_the_rows_too(home: Path) -> None:
    (home / "run").mkdir()
    daemon = FakeDaemon(home / "run/daemon.sock", [session("s1", title="Clean up")])
    daemon.start()
    ours, theirs = os.openpty()
    env = {**os.environ, "FAIRLEAD_HOME": str(home), "TERM": "dumb"}

    done = subprocess.run(
        [sys.executable, "-c", START], env=env, check=False, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE
    )

    daemon.stop()
    os.close(theirs)
    text = os.read(ours, 65536).decode()
    os.close(ours)
    assert (done.returncode, b"TERM=dumb" in done.stderr) == (0, True)
    assert "Clean up" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("args", [(), ("--here",)])
def test_the_live_view_of_one_host_asks_for_no_other(home: Path, args: tuple[str, ...]) -> None:
    (home / "run").mkdir()
    daemon = FakeDaemon(home / "run/daemon.sock", [session("s1", title="Clean up")])
    daemon.start()
    ours, theirs = os.openpty()
    env = {**os.environ, "FAIRLEAD_HOME": str(home), "FAIRLEAD_NO_DAEMON": "1", "TERM": "xterm"}
    expected = {"/v1/sessions/stream", "/v1/mail/user", *(() if args else ("/v1/team/stream",))}

    def asked() -> set[str]:
        return {urlsplit(one).path for one in list(daemon.requests)}

    command = [sys.executable, "-c", START, *args]
    with subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as view:
        os.close(theirs)
        threading.Thread(target=read_all, args=(ours,)).start()
        until(lambda: expected <= asked(), "it asks for what it shows")
        os.write(ours, b"q")
        assert view.wait(PATIENCE) == 0

    daemon.stop()
    assert ("/v1/team/stream" in asked()) is not bool(args)


LEFT = b"\x1b[?1049l"
"""The terminal shows again what it showed before the view."""


@pytest.mark.parametrize(
    ("ends", "code", "said"),
    [
        (b"q", 0, b""),
        (b"\x03", 130, b"fairlead: interrupted\r\n"),
        (b"?\x03\x03", 130, b"fairlead: interrupted\r\n"),
        (signal.SIGINT, 130, b"fairlead: interrupted\r\n"),
        (signal.SIGTERM, 143, b""),
    ],
)
def test_the_terminal_is_as_before_however_the_view_ends(
    home: Path, ends: bytes | signal.Signals, code: int, said: bytes
) -> None:
    """Ctrl-C ends it as it ends every command, with one line and exit code 130. The first one closes an open help."""
    (home / "run").mkdir()
    daemon = FakeDaemon(home / "run/daemon.sock", [session("s1", title="Clean up")])
    daemon.start()
    ours, theirs = os.openpty()
    before = termios.tcgetattr(theirs)
    env = {**os.environ, "FAIRLEAD_HOME": str(home), "FAIRLEAD_NO_DAEMON": "1", "TERM": "xterm"}
    drawn = bytearray()
    with subprocess.Popen([sys.executable, "-c", START], env=env, stdin=theirs, stdout=theirs, stderr=theirs) as view:
        reader = threading.Thread(target=read_all, args=(ours, drawn))
        reader.start()
        until(lambda: b"Clean up" in drawn, "it shows the session")
        if isinstance(ends, bytes):
            for key in ends:
                os.write(ours, bytes([key]))
        else:
            view.send_signal(ends)
        assert view.wait(PATIENCE) == code
    after = termios.tcgetattr(theirs)
    os.close(theirs)
    reader.join()
    daemon.stop()
    assert after == before
    left, _, shown = bytes(drawn).rpartition(LEFT)
    assert left, "it leaves the screen of the view"
    assert re.sub(rb"\x1b\[[?<>]?[\d;]*[a-z]", b"", shown) == said


def read_all(terminal: int, drawn: bytearray | None = None) -> None:
    """Read what a view draws until it ends, so that it can go on."""
    with suppress(OSError):  # the other end was closed
        while data := os.read(terminal, 65536):
            if drawn is not None:
                drawn += data
    os.close(terminal)


def test_no_daemon_is_an_error_that_says_what_to_do(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAIRLEAD_HOME", str(home))
    monkeypatch.setenv("FAIRLEAD_NO_DAEMON", "1")
    assert error_of(capsys, "watch", ["--once"]).endswith("fairlead daemon start")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--nope"], "unknown option '--nope'; see fairlead watch --help"),
        (["--theme", "pink"], "--theme: expected one of light, dark, plain, got 'pink'"),
        (["--theme"], "--theme needs a value"),
        (["--project=/no/such"], "--project: no such folder: /no/such"),
    ],
)
def test_a_slip_on_the_command_line_is_told(args: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert error_of(capsys, "watch", args) == said
