"""A daemon as the view sees it: a real Unix socket that lists sessions, streams their changes and serves events."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from fairlead.sessions._session import SessionMemory

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from fairlead.sessions import Session

EVENTS = [
    {"at": 1_790_000_000.0, "event": "UserPromptSubmit", "verdict": "none"},
    {"at": 1_790_000_003.0, "event": "PreToolUse", "tool": "Bash", "verdict": "blocked", "reason": "no rm here"},
    {"at": 1_790_000_009.0, "event": "PostToolUse", "tool": "Read", "seconds": 2.4, "exit": 0},
]


class FakeDaemon:
    """Serves one socket until it is stopped; may be started again."""

    def __init__(self, socket_path: Path, sessions: Iterable[Session] = ()) -> None:
        self.socket_path = socket_path
        self.sessions = {session.id: session for session in sessions}
        self.revision = 0
        self.requests: list[str] = []
        self.status = 200
        self.documents: dict[str, bytes] = {}
        """Answers to other requests, by path."""
        self.mail: dict[int, dict[str, Any]] = {}
        """The messages to the person, by number; what `/v1/mail/inbox` lists, with a `body`."""
        self.replies: list[tuple[int, str]] = []
        self.questions: list[dict[str, Any]] = []
        """What can be answered."""
        self.whole: dict[str, Session] = {}
        """Sessions with all of what they ask, by id."""
        self.bodies: list[bytes] = []
        """The bodies of the answers."""
        self._log: list[tuple[int, bytes]] = []
        self._forgotten = 0
        """Revisions up to this one are no longer known."""
        self._changed = threading.Condition()
        self._server: socket.socket | None = None
        self._connections: set[socket.socket] = set()

    def start(self) -> None:
        self.socket_path.unlink(missing_ok=True)
        server = self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind(str(self.socket_path))
        server.listen()
        threading.Thread(target=self._serve, args=(server,), daemon=True).start()

    def stop(self, *, forget: bool = False) -> None:
        """Stop as if killed. After `forget`, a client that comes back gets a reset."""
        server, self._server = self._server, None
        if server is not None:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            server.close()
        with self._changed:
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._connections.clear()
            if forget:
                self._forgotten = self.revision + 1
            self._changed.notify_all()
        self.socket_path.unlink(missing_ok=True)

    def put(self, session: Session) -> None:
        with self._changed:
            self.sessions[session.id] = session
            self._publish(b"session", _encoded(session))

    def drop(self, name: str) -> None:
        with self._changed:
            self.sessions.pop(name, None)
            self._publish(b"gone", json.dumps({"id": name}).encode())

    def publish(self, kind: str, data: str) -> None:
        """Send any event, valid or not."""
        with self._changed:
            self._publish(kind.encode(), data.encode())

    def _publish(self, kind: bytes, data: bytes) -> None:
        self.revision += 1
        self._log.append((self.revision, b"id: %d\nevent: %s\ndata: %s\n\n" % (self.revision, kind, data)))
        self._changed.notify_all()

    def _serve(self, server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            self._connections.add(connection)
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            if asked := connection.recv(65536).decode():  # nothing: a view that was closed before it had asked
                self._reply(connection, asked)

    def _reply(self, connection: socket.socket, asked: str) -> None:
        head, _, body = asked.partition("\r\n\r\n")
        target = head.split()[1]
        self.requests.append(target)
        parts = urlsplit(target)
        if self.status != 200:
            connection.sendall(b"HTTP/1.1 %d No\r\ncontent-length: 0\r\n\r\n" % self.status)
        elif parts.path in self.documents:
            self._send_json(connection, self.documents[parts.path])
        elif parts.path == "/v1/answers":
            document = {"enabled": bool(self.questions), "questions": self.questions}
            self._send_json(connection, json.dumps(document).encode())
        elif parts.path.startswith("/v1/answers/"):
            self.bodies.append(body.encode())
            self._send_json(connection, b"{}")
        elif parts.path.startswith("/v1/mail/"):
            self._send_json(connection, json.dumps(self._mail(parts.path, asked)).encode())
        elif parts.path == "/v1/sessions":
            self._send_json(connection, self._list())
        elif parts.path == "/v1/sessions/stream":
            self._stream(connection, int(parse_qs(parts.query)["after"][0]))
        elif unquote(parts.path).removeprefix("/v1/sessions/") in self.whole:
            self._send_json(connection, _encoded(self.whole[unquote(parts.path).removeprefix("/v1/sessions/")]))
        elif unquote(parts.path).removeprefix("/v1/sessions/").removesuffix("/events") in self.sessions:
            self._send_json(connection, json.dumps({"events": EVENTS}).encode())
        else:
            self._send_json(connection, b'{"events": []}')

    def _mail(self, path: str, asked: str) -> dict[str, Any]:
        rows = sorted(self.mail.values(), key=lambda row: -row["id"])
        unread = [row for row in rows if row["stage"] in ("queued", "shown")]
        owed = [row for row in rows if row["intent"] == "request" and not row["answered"]]
        if path == "/v1/mail/user":
            waiting = [row for row in rows if row in unread or row in owed]
            return {"unread": len(unread), "owes": len(owed), "waiting": len(waiting)}
        if path == "/v1/mail/inbox":
            return {"you": "User", "messages": rows}
        number = int(path.split("/")[4])
        if path.endswith("/reply"):
            self.replies.append((number, json.loads(asked.partition("\r\n\r\n")[2])["body"]))
            self.mail[number] |= {"answered": 1.0, "stage": "answered"}
            return {"id": 99}
        message = self.mail[number]
        if message["stage"] == "queued":
            message["stage"] = "read"
        return {"message": message, "owed": message in owed}

    def _list(self) -> bytes:
        sessions = b",".join(_encoded(session) for session in self.sessions.values())
        return b'{"revision": %d, "now": 0.0, "sessions": [%s]}' % (self.revision, sessions)

    def _send_json(self, connection: socket.socket, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        connection.sendall(head % len(body) + body)

    def _stream(self, connection: socket.socket, after: int) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        connection.sendall(head + _chunk(b": hello\n\n"))
        with self._changed:
            if after < self._forgotten:
                connection.sendall(_chunk(b"id: %d\nevent: reset\ndata: %s\n\n" % (self.revision, self._list())))
                after = self.revision
        while self._server is not None:
            with self._changed:
                while self._server is not None and self.revision <= after and self._changed.wait(timeout=5):
                    pass
                news = [event for revision, event in self._log if revision > after]
                after = self.revision
            connection.sendall(_chunk(b"".join(news) or b": heartbeat\n\n"))


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _encoded(session: Session) -> bytes:
    fields: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(session, memory=SessionMemory()))
    fields.pop("memory", None)
    return msgspec.json.encode(fields)
