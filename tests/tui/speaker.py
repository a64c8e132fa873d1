"""A daemon as the view sees it: a real Unix socket that lists sessions, streams their changes and tells of events."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from fairlead.sessions import Session

from fairlead.sessions._session import SessionMemory

EVENTS = [
    {"at": 1_790_000_000.0, "event": "UserPromptSubmit", "verdict": "none"},
    {"at": 1_790_000_003.0, "event": "PreToolUse", "tool": "Bash", "verdict": "blocked", "reason": "no rm here"},
    {"at": 1_790_000_009.0, "event": "PostToolUse", "tool": "Read", "seconds": 2.4, "exit": 0},
]


class Speaker:
    """Serves one home until it is stopped; may be started again."""

    def __init__(self, place: Path, sessions: Iterable[Session] = ()) -> None:
        self.place = place
        self.sessions = {session.id: session for session in sessions}
        self.revision = 0
        self.asked: list[str] = []
        self.status = 200
        self._log: list[tuple[int, bytes]] = []
        self._forgot = 0
        """Revisions up to this one are not known any more."""
        self._changed = threading.Condition()
        self._server: socket.socket | None = None
        self._open: set[socket.socket] = set()

    def start(self) -> None:
        self.place.unlink(missing_ok=True)
        server = self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind(str(self.place))
        server.listen()
        threading.Thread(target=self._serve, args=(server,), daemon=True).start()

    def stop(self, *, forget: bool = False) -> None:
        """Go, as a daemon that is killed; `forget` what happened, so that whoever comes back gets a reset."""
        server, self._server = self._server, None
        if server is not None:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            server.close()
        with self._changed:
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            self._open.clear()
            if forget:
                self._forgot = self.revision + 1
            self._changed.notify_all()
        self.place.unlink(missing_ok=True)

    def put(self, session: Session) -> None:
        with self._changed:
            self.sessions[session.id] = session
            self._tell(b"session", _encoded(session))

    def drop(self, name: str) -> None:
        with self._changed:
            self.sessions.pop(name, None)
            self._tell(b"gone", json.dumps({"id": name}).encode())

    def say(self, kind: str, data: str) -> None:
        """Say anything, also nonsense."""
        with self._changed:
            self._tell(kind.encode(), data.encode())

    def _tell(self, kind: bytes, data: bytes) -> None:
        self.revision += 1
        self._log.append((self.revision, b"id: %d\nevent: %s\ndata: %s\n\n" % (self.revision, kind, data)))
        self._changed.notify_all()

    def _serve(self, server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            self._open.add(connection)
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            asked = connection.recv(65536).decode().split()[1]
            self.asked.append(asked)
            parts = urlsplit(asked)
            if self.status != 200:
                connection.sendall(b"HTTP/1.1 %d No\r\ncontent-length: 0\r\n\r\n" % self.status)
            elif parts.path == "/v1/sessions":
                self._whole(connection, self._all())
            elif parts.path == "/v1/sessions/stream":
                self._stream(connection, int(parse_qs(parts.query)["after"][0]))
            elif unquote(parts.path).removeprefix("/v1/sessions/").removesuffix("/events") in self.sessions:
                self._whole(connection, json.dumps({"events": EVENTS}).encode())
            else:
                self._whole(connection, b'{"events": []}')

    def _all(self) -> bytes:
        sessions = b",".join(_encoded(session) for session in self.sessions.values())
        return b'{"revision": %d, "now": 0.0, "sessions": [%s]}' % (self.revision, sessions)

    def _whole(self, connection: socket.socket, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        connection.sendall(head % len(body) + body)

    def _stream(self, connection: socket.socket, after: int) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        connection.sendall(head + _chunk(b": hello\n\n"))
        with self._changed:
            if after < self._forgot:
                connection.sendall(_chunk(b"id: %d\nevent: reset\ndata: %s\n\n" % (self.revision, self._all())))
                after = self.revision
        while self._server is not None:
            with self._changed:
                while self._server is not None and self.revision <= after and self._changed.wait(timeout=5):
                    pass
                news = [said for revision, said in self._log if revision > after]
                after = self.revision
            connection.sendall(_chunk(b"".join(news) or b": heartbeat\n\n"))


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _encoded(session: Session) -> bytes:
    told: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(session, memory=SessionMemory()))
    told.pop("memory", None)
    return msgspec.json.encode(told)
