"""A real tmux: `fairlead watch` runs in one pane, switches to another, and shows its last lines."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from tui.fake_daemon import FakeDaemon
from tui.sample_sessions import session

from fairlead.sessions import AttentionNeeded
from fairlead.tui import _tmux

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

START = "import sys; from fairlead.cli.main import main; sys.exit(main(sys.argv[1:]))"


class Tmux:
    """A server of our own, with a terminal that shows it."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "tmux.sock"
        self.home = folder

    def run(self, *words: str) -> str:
        env = {key: value for key, value in os.environ.items() if not key.startswith("TMUX")}
        env |= {
            "FAIRLEAD_HOME": str(self.home),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "CLAUDE_CONFIG_DIR": str(self.home / "claude"),
        }
        command = ["tmux", "-S", str(self.socket), "-f", os.devnull, *words]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=20).stdout.strip()

    def screen(self, pane: str) -> str:
        return self.run("capture-pane", "-p", "-t", pane)

    def wait(self, condition: Callable[[], object]) -> None:
        deadline = monotonic() + 60
        while not condition():
            assert monotonic() < deadline, self.screen("watch:0")
            sleep(0.02)


@pytest.fixture
def tmux() -> Iterator[Tmux]:
    if not shutil.which("tmux"):
        assert os.environ.get("CI") != "true", "CI must have tmux"
        pytest.skip("there is no tmux here")
    with tempfile.TemporaryDirectory(prefix="fl") as folder:
        made = Tmux(Path(folder))
        made.run(
            "new-session",
            "-d",
            "-s",
            "agent",
            "-x",
            "100",
            "-y",
            "30",
            "printf 'may I run rm?\\n  1. yes    \\342\\224\\202\\n'; exec cat",
        )
        try:
            yield made
        finally:
            made.run("kill-server")


@pytest.fixture
def waiting(tmux: Tmux) -> Iterator[FakeDaemon]:
    """A daemon with one session, which waits for the user in the agent's pane."""
    (tmux.home / "run").mkdir()
    pane = tmux.run("display-message", "-p", "-t", "agent", "#{pane_id}")
    one = session("s1", title="Clean up", state=AttentionNeeded("Permission"), tmux=f"{tmux.socket},1,0", pane=pane)
    daemon = FakeDaemon(tmux.home / "run/daemon.sock", [one])
    daemon.start()
    yield daemon
    daemon.stop()


@pytest.mark.timeout(120)
def test_enter_goes_to_the_pane_and_p_peeks_at_it(tmux: Tmux, waiting: FakeDaemon) -> None:
    watch = tmux.run("new-session", "-dP", "-F", "#{pane_id}", "-s", "watch", "-x", "100", "-y", "30")
    tmux.run("new-session", "-d", "-s", "outer", "-x", "100", "-y", "30")
    tmux.run("send-keys", "-t", watch, f"exec {sys.executable} -c '{START}' watch", "Enter")
    tmux.wait(lambda: "Clean up" in tmux.screen(watch) and "live" in tmux.screen(watch))

    # a terminal inside a pane of the same server is a client like any other
    tmux.run("send-keys", "-t", "outer", f"env -u TMUX tmux -S {tmux.socket} attach -t watch", "Enter")
    tmux.wait(lambda: "watch" in tmux.run("list-clients", "-F", "#{session_name}"))

    tmux.run("send-keys", "-t", watch, "p")
    tmux.wait(lambda: "may I run rm?" in tmux.screen(watch))
    tmux.wait(lambda: "   1. yes    │" in tmux.screen(watch))  # a picture keeps its spaces
    tmux.run("send-keys", "-t", watch, "p")
    tmux.run("send-keys", "-t", watch, "Enter")
    tmux.wait(lambda: tmux.run("list-clients", "-F", "#{session_name}") == "agent")
    tmux.wait(lambda: "switched to agent:0" in tmux.screen(watch))

    tmux.run("send-keys", "-t", watch, "y")
    tmux.wait(lambda: "s1" in tmux.run("list-buffers", "-F", "#{buffer_sample}"))

    one = waiting.sessions["s1"]
    waiting.put(replace(one, pane="%99", title="Gone by now"))
    tmux.wait(lambda: "Gone by now" in tmux.screen(watch))
    tmux.run("send-keys", "-t", watch, "Enter")
    tmux.wait(lambda: "the pane %99 is gone" in tmux.screen(watch))
    tmux.run("resize-window", "-t", watch, "-x", "20", "-y", "5")
    tmux.wait(lambda: "Gone by n…" in tmux.screen(watch))
    tmux.run("resize-window", "-t", watch, "-x", "80", "-y", "24")
    tmux.wait(lambda: "activity" in tmux.screen(watch))
    tmux.run("send-keys", "-t", watch, "q")
    tmux.wait(lambda: "watch" not in tmux.run("list-sessions", "-F", "#{session_name}"))


@pytest.mark.timeout(120)
def test_after_ctrl_c_the_terminal_shows_what_it_showed_before(tmux: Tmux, waiting: FakeDaemon) -> None:
    pane = tmux.run("new-session", "-dP", "-F", "#{pane_id}", "-s", "watch", "-x", "100", "-y", "30", "exec /bin/sh")
    tmux.run("send-keys", "-t", pane, f"echo be''fore; {sys.executable} -c '{START}' watch; echo code $?", "Enter")
    tmux.wait(lambda: "Clean up" in tmux.screen(pane))
    assert "before" not in tmux.screen(pane)

    tmux.run("send-keys", "-t", pane, "C-c")

    tmux.wait(lambda: "before\nfairlead: interrupted\ncode 130\n" in tmux.screen(pane))
    assert waiting.sessions


def transcript(home: Path) -> Path:
    """A conversation of many lines, in the client's folder; each of them would change the colour of the terminal."""
    file = home / "claude/projects/webshop/t.jsonl"
    file.parent.mkdir(parents=True)
    said = [{"type": "text", "text": "\n".join(f"step {number} \x1b[31m" for number in range(200))}]
    entries = [
        {"type": "user", "message": {"role": "user", "content": "How do I pay?"}},
        {"type": "assistant", "message": {"role": "assistant", "content": said}},
    ]
    file.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    return file


@pytest.mark.timeout(120)
@pytest.mark.skipif(not shutil.which("less"), reason="there is no less here")
def test_o_lends_the_terminal_to_a_pager_and_the_view_comes_back(tmux: Tmux, waiting: FakeDaemon) -> None:
    file = transcript(tmux.home)
    waiting.put(replace(waiting.sessions["s1"], transcript=str(file)))
    watch = tmux.run("new-session", "-dP", "-F", "#{pane_id}", "-s", "watch", "-x", "100", "-y", "30")
    tmux.run("send-keys", "-t", watch, f"exec env PAGER=less LESS= {sys.executable} -c '{START}' watch", "Enter")
    tmux.wait(lambda: "Clean up" in tmux.screen(watch) and "live" in tmux.screen(watch))

    tmux.run("send-keys", "-t", watch, "o")
    tmux.wait(lambda: "How do I pay?" in tmux.screen(watch) and "step 20" in tmux.screen(watch))
    assert "live" not in tmux.screen(watch)
    tmux.run("send-keys", "-t", watch, "C-c")  # which the terminal sends to the view as well
    # less rings the bell for it, and drops the keys that came before it did
    tmux.wait(lambda: tmux.run("display-message", "-p", "-t", watch, "#{window_bell_flag}") == "1")
    tmux.run("send-keys", "-t", watch, "G")
    tmux.wait(lambda: "step 199" in tmux.screen(watch) and "(END)" in tmux.screen(watch))
    assert "\x1b[31m" not in tmux.run("capture-pane", "-ep", "-t", watch), (
        "nothing of it reaches the terminal as a code"
    )

    waiting.put(replace(waiting.sessions["s1"], title="Cleaned meanwhile"))
    tmux.run("send-keys", "-t", watch, "q")
    tmux.wait(lambda: "Cleaned meanwhile" in tmux.screen(watch) and "live" in tmux.screen(watch))
    assert "step 199" not in tmux.screen(watch)
    tmux.run("send-keys", "-t", watch, "?")
    tmux.wait(lambda: "open its transcript" in tmux.screen(watch))
    tmux.run("send-keys", "-t", watch, "q", "q")
    tmux.wait(lambda: "watch" not in tmux.run("list-sessions", "-F", "#{session_name}"))


@pytest.mark.timeout(120)
def test_a_pager_that_cannot_be_started_is_explained_in_the_view(tmux: Tmux, waiting: FakeDaemon) -> None:
    file = transcript(tmux.home)
    waiting.put(replace(waiting.sessions["s1"], transcript=str(file)))
    watch = tmux.run("new-session", "-dP", "-F", "#{pane_id}", "-s", "watch", "-x", "100", "-y", "30")
    tmux.run("send-keys", "-t", watch, f"exec env PAGER=/nowhere/pager {sys.executable} -c '{START}' watch", "Enter")
    tmux.wait(lambda: "Clean up" in tmux.screen(watch) and "live" in tmux.screen(watch))
    tmux.run("send-keys", "-t", watch, "o")
    tmux.wait(lambda: "the pager cannot be started: /nowhere/pager: No such file" in tmux.screen(watch))


async def test_a_pane_that_no_terminal_shows_is_selected(tmux: Tmux) -> None:
    other = tmux.run("split-window", "-dP", "-F", "#{pane_id}", "-t", "agent", "exec cat")
    message = await _tmux.go_to_pane(f"{tmux.socket},1,0", other)

    assert message == f"selected pane {other}, but no terminal shows it; run: tmux -S {tmux.socket} attach -t agent:0"
    assert tmux.run("display-message", "-p", "-t", "agent", "#{pane_id}") == other


@pytest.mark.parametrize(
    ("tmux", "pane", "message"),
    [
        ("", "", "does not run in tmux"),
        ("/nowhere/sock,1,0", "%1", r"the tmux of this session is gone \(/nowhere/sock\)"),
        ("relative,1,0", "%1", "not a tmux pane"),
        ("/x,1,0", "-t", "not a tmux pane"),
        ("/x,1,0", "%1; kill-server", "not a tmux pane"),
    ],
)
async def test_a_pane_that_cannot_be_reached_is_explained(tmux: str, pane: str, message: str) -> None:
    if not shutil.which("tmux"):
        pytest.skip("there is no tmux here")
    with pytest.raises(_tmux.NoPane, match=message):
        await _tmux.go_to_pane(tmux, pane)


async def test_no_tmux_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(_tmux.NoPane, match="tmux is not installed here"):
        await _tmux.capture_pane("/x,1,0", "%1", 10)
