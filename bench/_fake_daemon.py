"""A fake daemon for `fairlead watch`: 1 000 sessions with 10 subagents each, 500 changes a second.

It implements the daemon's protocol on a socket, in this process, so that the CPU time of the view is measured alone.
"""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from random import Random
from time import time
from typing import TYPE_CHECKING

import msgspec

from fairlead.sessions import AttentionNeeded, Evidence, Session, Usage, Working

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SESSIONS, CHILDREN, RATE = 1000, 10, 500
_BATCH = 0.02


class FakeDaemon:
    """Serves the sessions and the stream of their changes."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._closed = threading.Event()
        self._sessions = _create_sessions()
        self._urgent: SimpleQueue[bytes] = SimpleQueue()

    def request_attention(self, reason: str) -> None:
        """Send a change of the session that has waited for longest, which is at the top of the screen."""
        session = Session(
            id="mark", title="Mark", started=1.0, since=1.0, last_activity=time(), state=AttentionNeeded(reason)
        )
        self._urgent.put(msgspec.json.encode(session))

    def serve(self) -> None:
        """Accept connections until `close`."""
        while not self._closed.is_set():
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._closed.set()
        self._server.close()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            path = connection.recv(65536).split()[1]
            if path == b"/v1/sessions":
                body = msgspec.json.encode({"revision": 0, "now": time(), "sessions": list(self._sessions.values())})
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
                return
            if not path.startswith(b"/v1/sessions/stream"):  # such as the note that the user is there
                connection.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                return
            connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            for number, batch in enumerate(_changes(self._sessions), 1):
                if self._closed.is_set():
                    return
                self._send(connection, number, batch)
                with suppress(Empty):
                    self._send(connection, number, [self._urgent.get(timeout=_BATCH)])

    def _send(self, connection: socket.socket, number: int, batch: list[bytes]) -> None:
        frame = b"".join(b"id: %d\nevent: session\ndata: %s\n\n" % (number, each) for each in batch)
        connection.sendall(b"%x\r\n%s\r\n" % (len(frame), frame))


@contextmanager
def fake_daemon(home: Path) -> Iterator[FakeDaemon]:
    """Serve on the socket of a home."""
    (home / "run").mkdir()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(home / "run/daemon.sock"))
    server.listen()
    daemon = FakeDaemon(server)
    threading.Thread(target=daemon.serve, daemon=True).start()
    try:
        yield daemon
    finally:
        daemon.close()


def _create_sessions() -> dict[str, Session]:
    now = time()
    sessions: dict[str, Session] = {}
    for number in range(SESSIONS):
        name = f"{number:08x}-0000-4000-8000-000000000000"
        usage = Usage(model="claude-opus-4-8", context_percent=number % 100, cost_usd=number / 100)
        cwd = f"/home/me/project{number % 60}"
        default = Session(id=name, started=now - 3600, last_activity=now, since=now - number, cwd=cwd)
        sessions[name] = msgspec.structs.replace(default, title=f"Session number {number}", usage=usage)
        for child in range(CHILDREN):
            child_id = f"{name}/a{child}"
            sessions[child_id] = msgspec.structs.replace(
                default, id=child_id, parent=name, agent_id=f"a{child}", agent_type="coder"
            )
    return sessions


def _changes(sessions: dict[str, Session]) -> Iterator[list[bytes]]:
    """Yield batches of changes, one for each fiftieth of a second: running tools, and sometimes a question."""
    random, names = Random(5), list(sessions)
    while True:
        batch = []
        for _ in range(int(RATE * _BATCH)):
            name, now = random.choice(names), time()
            evidence = Evidence("PreToolUse", now, "Edit", f"/home/me/project/src/file{random.randrange(99)}.py")
            state = AttentionNeeded("Permission") if random.random() < 0.01 else Working("Edit")
            changed = msgspec.structs.replace(
                sessions[name], state=state, evidence=evidence, last_activity=now, since=now
            )
            batch.append(msgspec.json.encode(changed))
        yield batch
