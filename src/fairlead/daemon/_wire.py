"""Events on the shortest road: the request of a launcher is read and answered here, where it comes off the socket.

Everything else about HTTP is uvicorn's. A request for anything but an event, one that is written otherwise than a
launcher writes it, and all that comes over loopback are handed to its protocol, as if that had been there from the
beginning; what it makes of an event comes to the same answer.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from typing import TYPE_CHECKING, Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fairlead.daemon._ask import read_ask
from fairlead.daemon._life import peer_pid, peer_uid
from fairlead.daemon._wire_waits import Waiting, asked_to_wait, in_http, send_mail

if TYPE_CHECKING:
    from uvicorn import Config
    from uvicorn.server import ServerState

    from fairlead.daemon._app import App
    from fairlead.daemon._ask import Ask
    from fairlead.daemon._desk import Reply

_EVENT = b"POST /v1/events/"
_HEAD = re.compile(rb"POST /v1/events/([A-Za-z]+)(?:\?([^ #]*))? HTTP/1\.1\r\n((?:[a-z-]+: [^\r\n]*\r\n)+)\r\n")
_LONGEST_HEAD = 64 * 1024
_LARGEST = 256 * 1024
"""Bytes of a payload that comes in few pieces."""
_LONGEST_SIZE = 9
"""Digits of its size."""
_UNUSUAL = frozenset({b"transfer-encoding", b"expect", b"upgrade"})
_MOST_KNOWN = 4096
_OURS = {os.getuid(), None}


class Unusual(Exception):
    """A request that is uvicorn's to read."""


class Reader:
    """Reads the requests of launchers. Of those that asked before, only the id and the payload are new."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Ask] = {}

    def read(self, data: bytes) -> tuple[Ask, bytes] | None:
        """Give what is asked, and the payload; `None` while there is more to come. Raises `Unusual`."""
        match = _HEAD.match(data)
        if match is None:
            if b"\r\n\r\n" in data or len(data) > _LONGEST_HEAD:
                raise Unusual
            return None
        told = dict(line.split(b": ", 1) for line in match[3].split(b"\r\n") if line)
        size, name = told.pop(b"content-length", b""), told.pop(b"fairlead-id", b"")
        if not (size.isdigit() and len(size) <= _LONGEST_SIZE and name) or told.keys() & _UNUSUAL:
            raise Unusual
        end = match.end() + int(size)
        if int(size) > _LARGEST or len(data) > end:
            raise Unusual
        if len(data) < end:
            return None
        return msgspec.structs.replace(self._ask(match, told), id=name.decode("latin-1")), data[match.end() :]

    def _ask(self, match: re.Match[bytes], told: dict[bytes, bytes]) -> Ask:
        key = (match[1], match[2], *told.items())
        ask = self._known.get(key)
        if ask is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            ask = self._known[key] = read_ask(match[1].decode(), match[2] or b"", told.items())
        return ask


class Doorman(asyncio.Protocol):
    """Who a connection meets first. Speaks to processes of this user alone."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._config = config
        self._server = server_state
        self._state = app_state
        app: Any = config.app
        self._app: App = app
        self._data = b""
        self._is_asked = False
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Look who it is."""
        self._transport = transport
        connection = transport.get_extra_info("socket")
        if connection.family != socket.AF_UNIX:
            self._hand_over()
        elif peer_uid(connection) not in _OURS:
            self._transport.abort()
        else:
            self._server.connections.add(self)  # type: ignore[arg-type] # it wants `shutdown` of them, and that is here

    def data_received(self, data: bytes) -> None:
        """Read; answer once the request is whole."""
        if self._is_asked:
            return None
        self._data = data = self._data + data if self._data else data
        if not (data.startswith(_EVENT) or _EVENT.startswith(data)):
            return self._hand_over()
        try:
            read = self._app.reader.read(data)
        except Unusual:
            return self._hand_over()
        if read is not None:
            self._is_asked = True
            self._serve(*read)
        return None

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncio calls it
        """Be gone."""
        self._server.connections.discard(self)

    def shutdown(self) -> None:
        """Close, unless somebody waits for an answer; then that closes it."""
        if not self._is_asked:
            self._transport.close()

    def _serve(self, ask: Ask, payload: bytes) -> None:
        reply = self._app.answer_quickly(ask, payload)
        if reply is not None:
            return self._send(ask, reply)
        task = asyncio.get_running_loop().create_task(self._serve_slowly(ask, payload))
        self._server.tasks.add(task)
        task.add_done_callback(self._server.tasks.discard)
        return None

    async def _serve_slowly(self, ask: Ask, payload: bytes) -> None:
        try:
            self._send(ask, await self._app.answer(ask, payload))
        except BaseException:
            self._transport.abort()  # without an answer the launcher goes the other road
            raise

    def _send(self, ask: Ask, reply: Reply) -> None:
        if reply.shows:
            self._server.connections.discard(self)
            return send_mail(self._app.house, self._server, self._transport, reply, acks=ask.acks)
        self._server.total_requests += 1
        self._transport.write(in_http(reply))
        self._transport.close()
        return None

    def _hand_over(self) -> None:
        self._server.connections.discard(self)
        if wait := asked_to_wait(self._data):
            token, acks = wait
            self._transport.set_protocol(Waiting(self._app.house, self._server, self._transport, token, acks=acks))
            return
        state = {**self._state, "peer": peer_pid(self._transport.get_extra_info("socket"))}
        successor = HttpToolsProtocol(self._config, self._server, state)
        successor.connection_made(self._transport)
        self._transport.set_protocol(successor)
        if self._data:
            successor.data_received(self._data)
