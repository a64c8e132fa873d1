"""`fairlead watch` under load: 1 000 sessions with 10 subagents each, 500 changes a second.

It is the real program on a terminal of its own, and only its own processor time counts. The latency is that from a key,
or from a change, to the words on the terminal which it brings about.
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

from bench._harness import Timing
from bench._storm import CHILDREN, RATE, SESSIONS, storm
from bench._table import Row, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench._harness import Effort

SHARE, PATIENCE, LIVE = 0.25, 0.05, 0.1
"""What is to be reached: of a core; seconds from a key to the screen, and from a change."""

_SIZE = (40, 120)
_START = "from fairlead.cli.main import main; main(['watch'])"
_SORTS = ("state", "activity", "cost", "context", "start")


def rows(effort: Effort) -> list[Row]:
    if not Path("/proc/self/stat").exists():
        return _table(None, None, None, None)
    seconds = 4.0 if effort.process_rounds < 5 else 10.0
    with TemporaryDirectory(prefix="fl") as folder, storm(Path(folder)) as blowing, _view(folder) as view:
        view.wait_for(b"live", 60)
        view.read_for(2.0)
        shares = []
        for number in range(max(2, min(5, effort.process_rounds))):
            effort.tick(f"round {number + 1}")
            before, begun = view.cpu(), monotonic()
            view.read_for(seconds / 4)
            shares.append((view.cpu() - before) / (monotonic() - begun))
        keys = [view.answer(b"s", f"sorted by {_SORTS[number % len(_SORTS)]}") for number in range(20)]
        letters = [view.filter() for _ in range(10)]
        marks = [view.until(f"mark {number} ", partial(blowing.mark, f"mark {number} ")) for number in range(20)]
    return _table(Timing.of(shares), Timing.of(keys), Timing.of(letters), Timing.of(marks))


def _table(share: Timing | None, key: Timing | None, letter: Timing | None, mark: Timing | None) -> list[Row]:
    absent = "needs /proc"
    what, way = f"{SESSIONS} sessions x {CHILDREN} subagents, {RATE} changes/s", "to the screen"
    to_answer, to_show = Target("time", 1000 * PATIENCE), Target("time", 1000 * LIVE)
    return [
        Row("watch", f"{what}, share of a core", "", share, "", target=Target("time", SHARE), absent=absent),
        Row("watch", f"the same, from a key {way}", "ms", key, "", target=to_answer, absent=absent),
        Row(
            "watch",
            f"the same, from a letter of the filter {way}",
            "ms",
            letter,
            "",
            target=to_answer,
            absent=absent,
        ),
        Row("watch", f"the same, from a change {way}", "ms", mark, "", target=to_show, absent=absent),
    ]


# -- the view ------------------------------------------------------------------------------------------


class _View:
    """The program, seen from its terminal."""

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
                raise RuntimeError(f"{words!r} never came to the terminal; the last was {seen[-300:]!r}")
            seen = seen[-100_000:] + self._read(0.5)

    def answer(self, key: bytes, words: str) -> float:
        """Press a key, and give the seconds until the terminal says these words."""
        return self.until(words, lambda: os.write(self.terminal, key))

    def filter(self) -> float:
        """Give the seconds from a letter that no session has to the screen that says so."""
        os.write(self.terminal, b"/")
        self.read_for(0.3)
        took = self.answer(b"#", "nothing has these words")
        os.write(self.terminal, b"\x1b")
        self.read_for(0.5)
        return took

    def until(self, words: str, begin: Callable[[], object]) -> float:
        """Begin something, and give the seconds until the terminal says these words."""
        begun = monotonic()
        begin()
        self.wait_for(words.encode(), 10)
        took = monotonic() - begun
        self.read_for(0.15)
        return took

    def _read(self, seconds: float) -> bytes:
        ready, _, _ = select.select([self.terminal], [], [], seconds)
        return os.read(self.terminal, 1 << 20) if ready else b""


@contextmanager
def _view(home: str) -> Iterator[_View]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *_SIZE, 0, 0))
    env = {**os.environ, "FAIRLEAD_HOME": home, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
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
