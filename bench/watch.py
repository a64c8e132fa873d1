"""`fairlead watch` under load: 1 000 sessions with 10 subagents each, 500 changes a second.

It is the real program on a terminal of its own. A small server plays the daemon, in this process, so that only the
view's own processor time counts. The latency is that from a key to the words on the terminal which it brings about.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import socket
import struct
import sys
import termios
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic, sleep, time
from typing import TYPE_CHECKING

import msgspec

from bench._harness import Timing
from bench._table import Row, Target
from fairlead.sessions import AttentionNeeded, Evidence, Session, Usage, Working

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench._harness import Effort

SESSIONS, CHILDREN, RATE = 1000, 10, 500
SHARE, PATIENCE = 0.25, 0.05
"""What is to be reached: of a core; seconds from a key to the screen."""

_BATCH = 0.02
_SIZE = (40, 120)
_START = "from fairlead.cli.watch import run; run([])"
_SORTS = ("state", "activity", "cost", "context", "name")


def rows(effort: Effort) -> list[Row]:
    if not Path("/proc/self/stat").exists():
        return _table(None, None)
    seconds = 4.0 if effort.process_rounds < 5 else 10.0
    with TemporaryDirectory(prefix="fl") as folder, _daemon(Path(folder)), _view(folder) as view:
        view.wait_for(b"live", 60)
        view.read_for(2.0)
        shares = []
        for number in range(max(2, min(5, effort.process_rounds))):
            effort.tick(f"round {number + 1}")
            before, begun = view.cpu(), monotonic()
            view.read_for(seconds / 4)
            shares.append((view.cpu() - before) / (monotonic() - begun))
        keys = [view.key(_SORTS[number % len(_SORTS)]) for number in range(20)]
    return _table(Timing.of(shares), Timing.of(keys))


def _table(share: Timing | None, key: Timing | None) -> list[Row]:
    absent = "needs /proc"
    what = f"{SESSIONS} sessions x {CHILDREN} subagents, {RATE} changes/s"
    return [
        Row("watch", f"{what}, share of a core", "", share, "", target=Target("time", SHARE), absent=absent),
        Row("watch", "the same, from a key to the screen", "ms", key, "", target=Target("time", 1000 * PATIENCE)),
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

    def key(self, sort: str) -> float:
        """Press `s`, and give the seconds until the last line says by what it is sorted."""
        begun = monotonic()
        os.write(self.terminal, b"s")
        self.wait_for(f"sorted by {sort}".encode(), 10)
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


# -- what plays the daemon -----------------------------------------------------------------------------


@contextmanager
def _daemon(home: Path) -> Iterator[None]:
    (home / "run").mkdir()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(home / "run/daemon.sock"))
    server.listen()
    end = threading.Event()
    threading.Thread(target=_serve, args=(server, end), daemon=True).start()
    try:
        yield
    finally:
        end.set()
        server.close()


def _serve(server: socket.socket, end: threading.Event) -> None:
    team = _team()
    while not end.is_set():
        try:
            connection, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=(connection, team, end), daemon=True).start()


def _answer(connection: socket.socket, team: dict[str, Session], end: threading.Event) -> None:
    with suppress(OSError), connection:
        path = connection.recv(65536).split()[1]
        if path == b"/v1/sessions":
            body = msgspec.json.encode({"revision": 0, "now": time(), "sessions": list(team.values())})
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            return
        connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for number, batch in enumerate(_changes(team), 1):
            if end.is_set():
                return
            told = b"".join(b"id: %d\nevent: session\ndata: %s\n\n" % (number, each) for each in batch)
            connection.sendall(b"%x\r\n%s\r\n" % (len(told), told))
            sleep(_BATCH)


def _team() -> dict[str, Session]:
    now = time()
    team: dict[str, Session] = {}
    for number in range(SESSIONS):
        name = f"{number:08x}-0000-4000-8000-000000000000"
        usage = Usage(model="claude-opus-4-8", context_percent=number % 100, cost_usd=number / 100)
        place = f"/home/me/project{number % 60}"
        usual = Session(id=name, started=now - 3600, last_activity=now, since=now - number, cwd=place)
        team[name] = msgspec.structs.replace(usual, title=f"Session number {number}", usage=usage)
        for child in range(CHILDREN):
            own = f"{name}/a{child}"
            team[own] = msgspec.structs.replace(usual, id=own, parent=name, agent_id=f"a{child}", agent_type="coder")
    return team


def _changes(team: dict[str, Session]) -> Iterator[list[bytes]]:
    """Give the changes of a fiftieth of a second, again and again: tools that run, and now and then a question."""
    chance, names = Random(5), list(team)  # noqa: S311 - a load, no secret
    while True:
        batch = []
        for _ in range(int(RATE * _BATCH)):
            name, now = chance.choice(names), time()
            evidence = Evidence("PreToolUse", now, "Edit", f"/home/me/project/src/file{chance.randrange(99)}.py")
            state = AttentionNeeded("Permission") if chance.random() < 0.01 else Working("Edit")
            changed = msgspec.structs.replace(team[name], state=state, evidence=evidence, last_activity=now, since=now)
            batch.append(msgspec.json.encode(changed))
        yield batch
