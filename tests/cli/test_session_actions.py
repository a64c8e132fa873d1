"""`fairlead sessions end` and its siblings: which session is meant, who may act, and how often it asks."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli.command_line import at_terminal
from tui.fake_daemon import FakeDaemon
from tui.sample_sessions import session

from fairlead.cli.sessions.actions import find_session, to_clipboard
from fairlead.errors import UsageError
from fairlead.process import process_start_time

if TYPE_CHECKING:
    from collections.abc import Iterator

START = "import sys; from fairlead.cli.main import main; sys.exit(main(['sessions', *sys.argv[1:]]))"
SESSIONS = [
    session("abc-1", title="One"),
    session("abc-1/x", parent="abc-1", agent_id="x"),
    session("abc-2", ended=5.0),
    session("def-3", ended=5.0),
    session("def-4", ended=5.0),
    session("def-4/yy", parent="def-4", agent_id="yy"),
]


@pytest.mark.parametrize(
    ("given", "found"),
    [("abc-1", "abc-1"), ("abc", "abc-1"), ("abc-2", "abc-2"), ("def-4", "def-4"), ("def-4/", "def-4/yy")],
)
def test_the_beginning_of_an_id_is_enough_if_it_means_one_session(given: str, found: str) -> None:
    assert find_session(SESSIONS, given).id == found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("def", "3 sessions have an id that starts with 'def': def-3, def-4, def-4/yy; give more of it"),
        ("zzz", "no session's id starts with 'zzz'; see fairlead sessions --all"),
        ("", "no session's id starts with ''; see fairlead sessions --all"),
    ],
)
def test_an_id_that_means_none_or_several_is_an_error(given: str, message: str) -> None:
    with pytest.raises(UsageError, match="^" + message.replace("?", "[?]") + "$"):
        find_session(SESSIONS, given)


def test_the_clipboard_gets_the_whole_id() -> None:
    text = to_clipboard("abc-1")
    assert text.startswith("\x1b]52;c;")
    assert base64.b64decode(text.removeprefix("\x1b]52;c;").removesuffix("\x07")) == b"abc-1"


# -- with a process -------------------------------------------------------------------------------------


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fl") as folder:
        Path(folder, "run").mkdir()
        yield Path(folder)


@pytest.fixture
def process(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The process of the session s1, which a daemon lists."""
    with subprocess.Popen(["sleep", "600"]) as made:
        one = session("s1", title="Clean up", pid=made.pid, pid_start=process_start_time(made.pid))
        daemon = FakeDaemon(home / "run/daemon.sock", [one])
        daemon.start()
        try:
            yield made
        finally:
            daemon.stop()
            made.kill()


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"FAIRLEAD_HOME": str(home), "HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **more}


def below_an_agent() -> bool:
    from fairlead.clients import client_above

    return client_above({}) is not None


needs_person = pytest.mark.skipif(below_an_agent(), reason="these tests run below a session of an agent")


@needs_person
@pytest.mark.parametrize("typed", [b"no\n", b"yes\nno\n", b"yes\n\n", b"y\ny\n"])
def test_at_a_terminal_an_end_takes_two_confirmations(
    home: Path, process: subprocess.Popen[bytes], typed: bytes
) -> None:
    words = [sys.executable, "-c", START, "end", "s1"]
    shown = at_terminal(words, environment(home), typed)
    assert f"end 'Clean up' (process {process.pid}, idle for" in shown
    assert "not confirmed, so nothing was changed" in shown
    assert process.poll() is None


@needs_person
def test_at_a_terminal_a_session_is_ended_after_two_confirmations(home: Path, process: subprocess.Popen[bytes]) -> None:
    shown = at_terminal([sys.executable, "-c", START, "end", "s1"], environment(home), b"yes\nyes\n")
    assert shown.endswith(f"ended: process {process.pid}\n")
    assert process.wait(10) == -15


@pytest.mark.parametrize("words", [("end", "--yes"), ("interrupt",), ("go",), ("transcript",), ("copy",)], ids=str)
def test_below_a_session_of_an_agent_each_of_them_is_refused(
    home: Path, process: subprocess.Popen[bytes], words: tuple[str, ...]
) -> None:
    command = [sys.executable, "-c", START, words[0], "s1", *words[1:]]
    env = environment(home, CLAUDECODE="1")
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("fairlead: only a person can ")
    assert process.poll() is None
