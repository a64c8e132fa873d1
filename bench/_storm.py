"""Plays a daemon for `fairlead watch`: 1 000 sessions with 10 subagents each, 500 changes a second.

It speaks the protocol of the daemon on a socket, in this process, so that only the view's own processor time counts.
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


class Storm:
    """The daemon, as long as it blows."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._end = threading.Event()
        self._team = _team()
        self._marks: SimpleQueue[bytes] = SimpleQueue()

    def mark(self, words: str) -> None:
        """Let one who has waited for longest need the person for this: it is at the top of the screen."""
        one = Session(
            id="mark", title="Mark", started=1.0, since=1.0, last_activity=time(), state=AttentionNeeded(words)
        )
        self._marks.put(msgspec.json.encode(one))

    def serve(self) -> None:
        """Answer until it ends."""
        while not self._end.is_set():
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def end(self) -> None:
        """Let it be calm."""
        self._end.set()
        self._server.close()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            path = connection.recv(65536).split()[1]
            if path == b"/v1/sessions":
                body = msgspec.json.encode({"revision": 0, "now": time(), "sessions": list(self._team.values())})
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
                return
            connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            for number, batch in enumerate(_changes(self._team), 1):
                if self._end.is_set():
                    return
                self._send(connection, number, batch)
                with suppress(Empty):
                    self._send(connection, number, [self._marks.get(timeout=_BATCH)])

    def _send(self, connection: socket.socket, number: int, batch: list[bytes]) -> None:
        told = b"".join(b"id: %d\nevent: session\ndata: %s\n\n" % (number, each) for each in batch)
        connection.sendall(b"%x\r\n%s\r\n" % (len(told), told))


@contextmanager
def storm(home: Path) -> Iterator[Storm]:
    """Blow on the socket of a home."""
    (home / "run").mkdir()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(home / "run/daemon.sock"))
    server.listen()
    blowing = Storm(server)
    threading.Thread(target=blowing.serve, daemon=True).start()
    try:
        yield blowing
    finally:
        blowing.end()


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
