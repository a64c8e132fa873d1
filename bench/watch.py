"""`fairlead watch` under load: 1 000 sessions with 10 subagents each, 500 changes a second.

It is the real program on its own terminal; its CPU time is measured alone. The latency is the time from a key, or from
a change, to the text that follows on the terminal.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import sys
import termios
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING

from bench._fake_daemon import CHILDREN, RATE, SESSIONS, fake_daemon
from bench._harness import Timing
from bench._table import Row, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench._harness import Effort

MAX_CPU_SHARE, MAX_KEY_LATENCY, MAX_CHANGE_LATENCY = 0.25, 0.05, 0.1
"""The targets: the share of a core; the seconds from a key to the screen, and from a change."""

_SIZE = (40, 120)
_START = "from fairlead.cli.main import main; main(['watch'])"
_SORTS = ("state", "activity", "cost", "context", "start")


def rows(effort: Effort) -> list[Row]:
    if not Path("/proc/self/stat").exists():
        return _table(None, None, None, None)
    seconds, often = (1.0, 4) if effort.is_quick else (10.0, 20)
    with TemporaryDirectory(prefix="fl") as folder, fake_daemon(Path(folder)) as daemon, _view(folder) as view:
        view.wait_for(b"live", 60)
        view.read_for(seconds / 5)
        shares = []
        for number in range(max(2, min(5, effort.process_rounds))):
            effort.tick(f"round {number + 1}")
            cpu, start = view.cpu(), monotonic()
            view.read_for(seconds / 4)
            shares.append((view.cpu() - cpu) / (monotonic() - start))
        keys = [view.answer(b"s", f"sorted by {_SORTS[number % len(_SORTS)]}") for number in range(often)]
        characters = [view.filter() for _ in range(often // 2)]
        changes = [
            view.until(f"mark {number} ", partial(daemon.request_attention, f"mark {number} "))
            for number in range(often)
        ]
    return _table(Timing.of(shares), Timing.of(keys), Timing.of(characters), Timing.of(changes))


def _table(share: Timing | None, key: Timing | None, character: Timing | None, change: Timing | None) -> list[Row]:
    absent = "needs /proc"
    what, suffix = f"{SESSIONS} sessions x {CHILDREN} subagents, {RATE} changes/s", "to the screen"
    to_answer, to_show = Target("time", 1000 * MAX_KEY_LATENCY), Target("time", 1000 * MAX_CHANGE_LATENCY)
    return [
        Row("watch", f"{what}, share of a core", "", share, "", target=Target("time", MAX_CPU_SHARE), absent=absent),
        Row("watch", f"the same, from a key {suffix}", "ms", key, "", target=to_answer, absent=absent),
        Row(
            "watch",
            f"the same, from a character of the filter {suffix}",
            "ms",
            character,
            "",
            target=to_answer,
            absent=absent,
        ),
        Row("watch", f"the same, from a change {suffix}", "ms", change, "", target=to_show, absent=absent),
    ]


# -- the view ------------------------------------------------------------------------------------------


class _View:
    """The program and its terminal."""

    def __init__(self, pid: int, terminal: int) -> None:
        self.pid = pid
        self.terminal = terminal

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def read_for(self, seconds: float) -> None:
        deadline = monotonic() + seconds
        while (left := deadline - monotonic()) > 0:
            self._read(left)

    def wait_for(self, words: bytes, seconds: float) -> None:
        deadline, seen = monotonic() + seconds, b""
        while words not in seen:
            if monotonic() > deadline:
                raise RuntimeError(f"{words!r} was not shown on the terminal; the last output was {seen[-300:]!r}")
            seen = seen[-100_000:] + self._read(0.5)

    def answer(self, key: bytes, words: str) -> float:
        """Press a key, and return the seconds until the terminal shows a text."""
        return self.until(words, lambda: os.write(self.terminal, key))

    def filter(self) -> float:
        """Return the seconds from a character that no session contains to the screen that says so."""
        os.write(self.terminal, b"/")
        self.read_for(0.3)
        elapsed = self.answer(b"#", "no session matches the filter")
        os.write(self.terminal, b"\x1b")
        self.read_for(0.5)
        return elapsed

    def until(self, words: str, action: Callable[[], object]) -> float:
        """Run an action, and return the seconds until the terminal shows a text."""
        start = monotonic()
        action()
        self.wait_for(words.encode(), 10)
        elapsed = monotonic() - start
        self.read_for(0.15)
        return elapsed

    def _read(self, seconds: float) -> bytes:
        ready, _, _ = select.select([self.terminal], [], [], seconds)
        return os.read(self.terminal, 1 << 20) if ready else b""


@contextmanager
def _view(home: str) -> Iterator[_View]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *_SIZE, 0, 0))
    env = {**os.environ, "FAIRLEAD_HOME": home, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    env["FAIRLEAD_NO_DAEMON"] = "1"  # a real daemon would replace the fake one
    files = [(os.POSIX_SPAWN_DUP2, theirs, number) for number in (0, 1, 2)]
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", _START], env, file_actions=files, setsid=True)
    os.close(theirs)
    view = _View(pid, ours)
    try:
        yield view
    finally:
        os.write(ours, b"q")
        with suppress(OSError):
            view.read_for(1.0)
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(ours)
