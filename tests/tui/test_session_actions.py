"""Acting on the selected session: gestures, and what they do to a real process, a real pane, a real mailbox."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import scratch_home
from daemon.daemon_home import until as until_true
from tui.sample_sessions import NOW, session
from tui.screens import lines_of, snapshot_of, until, watching
from tui.test_snapshots import compare

from fairlead.process import process_start_time
from fairlead.sessions import AttentionNeeded, Evidence, Session, Working
from fairlead.tui import SessionSource, interrupt_session
from fairlead.tui._session_control import NotPossible, end_session

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when a process started")

TITLE = "Checkout: pay by invoice"
PRINTS_KEYS = """
import os, tty
tty.setraw(0)
print("ready", end="", flush=True)
while True:
    print(ord(os.read(0, 1)))
"""


@pytest.fixture(autouse=True)
def _a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run below a session of an agent; what they test is what a person does."""
    monkeypatch.setattr("fairlead.tui._session_control.client_above", lambda _: None)


@contextmanager
def process_of_a_session(**fields: object) -> Iterator[tuple[subprocess.Popen[bytes], Session]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        start = process_start_time(process.pid)
        try:
            yield process, session("s1", title=TITLE, pid=process.pid, pid_start=start, state=Working(), **fields)
        finally:
            process.kill()


async def test_a_session_is_ended_after_two_confirmations() -> None:
    with process_of_a_session() as (process, one):
        async with watching([one]) as (app, pilot):
            await pilot.press("j", "X")
            await pilot.pause()
            assert f"End '{TITLE}', process {process.pid}, working? y/n" in lines_of(app)[-1]
            await pilot.press("y")
            await pilot.pause()
            assert "End it, with everything that it and its subagents are doing? y/n" in lines_of(app)[-1]
            assert process.poll() is None
            await pilot.press("y")
            await until(lambda: f"ended: process {process.pid}" in lines_of(app)[-1])
            assert app.focused is app.list
        assert process.wait(10) == -signal.SIGTERM


@pytest.mark.parametrize("keys", [("n",), ("enter",), ("escape",), ("y", "n"), ("y", "q")], ids=str)
async def test_without_two_confirmations_nothing_ends(keys: tuple[str, ...]) -> None:
    with process_of_a_session() as (process, one):
        async with watching([one]) as (app, pilot):
            await pilot.press("j", "X", *keys)
            await until(lambda: app.focused is app.list)
            assert str(process.pid) not in lines_of(app)[-1], "nothing is reported about its end"
            assert app.is_running
        assert process.poll() is None


def test_a_process_that_only_has_the_pid_is_not_ended() -> None:
    with process_of_a_session() as (process, one):
        other = session("s2", pid=process.pid, pid_start=one.pid_start - 1)
        with pytest.raises(NotPossible, match="is gone"):
            end_session(other)
        with pytest.raises(NotPossible, match="is not known"):
            end_session(session("s3", pid=process.pid))
        with pytest.raises(NotPossible, match="cannot be ended alone"):
            end_session(session("s1/a", parent="s1", agent_id="a", pid=process.pid, pid_start=one.pid_start))
        assert process.poll() is None


async def test_a_session_whose_process_is_not_known_is_not_asked_about() -> None:
    async with watching([session("s1", title=TITLE)]) as (app, pilot):
        await pilot.press("j", "X")
        assert "its process, or when that started, is not known" in lines_of(app)[-1]


async def test_below_a_session_of_an_agent_nothing_is_interrupted_or_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("CLAUDECODE", "1")
    with process_of_a_session() as (process, one):
        async with watching([one], (120, 40)) as (app, pilot):
            await pilot.press("j", "X", "y", "y")
            await until(lambda: "only a person can end a session" in lines_of(app)[-1])
            await pilot.press("I")
            await until(lambda: "only a person can interrupt a session" in lines_of(app)[-1])
        assert process.poll() is None


# -- a real tmux ----------------------------------------------------------------------------------------


@pytest.fixture
def tmux() -> Iterator[str]:
    """The socket of a server whose first pane prints each key that it gets, as a number."""
    if not shutil.which("tmux"):
        assert os.environ.get("CI") != "true", "CI must have tmux"
        pytest.skip("there is no tmux here")
    with tempfile.TemporaryDirectory(prefix="fl") as folder:
        socket = f"{folder}/tmux.sock"
        Path(folder, "keys.py").write_text(PRINTS_KEYS)
        env = {**os.environ, "TERM": "xterm-256color"}
        command = ["tmux", "-S", socket, "-f", os.devnull]
        subprocess.run([*command, "new-session", "-d", f"exec {sys.executable} {folder}/keys.py"], env=env, check=True)
        until_true(lambda: "ready" in screen(socket), "the pane is ready")
        try:
            yield socket
        finally:
            subprocess.run([*command, "kill-server"], check=True)


def ask_tmux(socket: str, *words: str) -> str:
    done = subprocess.run(["tmux", "-S", socket, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def screen(socket: str) -> str:
    return ask_tmux(socket, "capture-pane", "-p", "-t", "%0")


async def test_interrupting_presses_escape_in_the_pane_of_the_process(tmux: str) -> None:
    pid = int(ask_tmux(tmux, "display-message", "-p", "-t", "%0", "#{pane_pid}"))
    fields = {"tmux": f"{tmux},1,0", "pane": "%0", "state": Working("Bash")}
    one = session("s1", pid=pid, pid_start=process_start_time(pid), **fields)
    ask_tmux(tmux, "copy-mode", "-t", "%0")  # the user has scrolled up: the key must not go to that

    async with watching([one]) as (app, pilot):
        await pilot.press("j", "I")
        await until(lambda: "interrupted: Escape was pressed in pane %0" in lines_of(app)[-1])
    until_true(lambda: "27" in screen(tmux), "the program got Escape")

    gone = pytest.raises(NotPossible, match="does not run in pane %0 any more")
    with process_of_a_session(tmux=f"{tmux},1,0", pane="%0") as (_, elsewhere), gone:
        await interrupt_session(elsewhere)
    assert screen(tmux).count("27") == 1


async def test_what_cannot_be_interrupted_says_why() -> None:
    with process_of_a_session() as (process, one):
        with pytest.raises(NotPossible, match="only a session in a tmux pane"):
            await interrupt_session(one)
        idle = session("s1", pid=process.pid, pid_start=one.pid_start)
        with pytest.raises(NotPossible, match="nothing to interrupt"):
            await interrupt_session(idle)
        with pytest.raises(NotPossible, match="it has ended"):
            await interrupt_session(session("s1", ended=NOW))


# -- mail and the transcript ----------------------------------------------------------------------------


async def test_a_message_reaches_the_agent_of_the_session() -> None:
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as home, home.daemon():
        until_true(home.has_mail, "there is mail")
        done = home.hook("SessionStart", home.payload(hook_event_name="SessionStart", source="startup"))
        assert done.exit_code == 0, done
        until_true(lambda: home.ask("GET", "/v1/mail/agents?all=true")["agents"], "the agent has a mailbox")
        async with watching(source=SessionSource(str(home.socket)), size=(120, 40)) as (app, pilot):
            await until(lambda: any("s1" in line for line in lines_of(app)))
            await pilot.press("j")
            await until(lambda: app.list.selected is not None and app.list.selected.kind == "session")
            await pilot.press("m", *"Mend", "space", *"it!")
            await until(lambda: "to s1: Mend it!" in lines_of(app)[-1])
            await pilot.press("enter")
            await until(lambda: "message 1" in lines_of(app)[-1])
            await pilot.press("m", *"no", "escape")
            await until(lambda: app.focused is app.list)
        shown = home.hook("UserPromptSubmit", home.payload(hook_event_name="UserPromptSubmit", prompt="Go."))
        assert "Mend it!" in shown.stdout
        assert "message 2" not in shown.stdout


async def test_a_transcript_that_is_not_there_is_explained() -> None:
    async with watching([session("s1", title=TITLE)]) as (app, pilot):
        await pilot.press("j", "o")
        assert "its transcript is not known" in lines_of(app)[-1]


@pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=str)
async def test_the_question_before_an_end_stands_in_the_last_line(size: tuple[int, int]) -> None:
    evidence = Evidence("PermissionRequest", NOW - 5, "Bash")
    asking = AttentionNeeded("Permission for Bash", "make deploy")
    sessions = [
        session("s1", title=TITLE, state=Working("Edit"), pid=4711, pid_start=1),
        session("s2", title="Release", state=asking, evidence=evidence, since=NOW - 5),
    ]
    async with watching(sessions, size) as (app, pilot):
        await pilot.press("j", "j", "X")
        await pilot.pause()
        compare(f"end-{size[0]}x{size[1]}", snapshot_of(app))
