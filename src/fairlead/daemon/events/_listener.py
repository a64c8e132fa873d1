"""The Unix socket: who connects is let in here, and an event is answered here, where it comes off the socket.

A transport costs about as much as the decision, and an event needs none: a launcher writes its request, reads the
answer and is gone. Everything that is no launcher's event is uvicorn's, as if that had been there from the beginning.

A launcher that is ended (Escape, a timeout, `kill -9`) is not heard by its client, whatever it was told. So one that
can say so writes a byte when all is printed; mail in an answer without that byte was never seen.
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fairlead.daemon._lifecycle import peer_pid, peer_uid
from fairlead.daemon.events._wire import NotHookRequest, encode_reply, parse_wait_request

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from uvicorn import Config
    from uvicorn.server import ServerState

    from fairlead.daemon.events._handler import HookReply
    from fairlead.daemon.events._request import HookRequest
    from fairlead.daemon.http._app import App

_BLOCK = 256 * 1024
_AT_ONCE = 16
"""So many are let in before the loop sees to the others."""
_PAUSE = 0.1
"""Seconds, if nobody can be let in: there are too many open files."""
_NOW = socket.MSG_DONTWAIT
_PLANNED = 202
_OURS = {os.getuid(), None}


class UnixListener:
    """Lets processes of this user in, and nobody else."""

    def __init__(self, listener: socket.socket, config: Config, server: ServerState) -> None:
        app: Any = config.app
        self.app: App = app
        self.server = server
        self._config = config
        self._listener = listener
        self.loop = asyncio.get_running_loop()
        self._is_open = False
        self._is_told = False
        """Whether it was said that nobody can be let in, since somebody was."""

    def open(self) -> None:
        """Begin to let in."""
        self._listener.settimeout(0)
        self._is_open = True
        self._watch()

    def close(self) -> None:
        """Let nobody in any more."""
        if self._is_open:
            self._is_open = False
            self.loop.remove_reader(self._listener.fileno())

    def _watch(self) -> None:
        if self._is_open:
            self.loop.add_reader(self._listener.fileno(), self._let_in)

    def _let_in(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError, InterruptedError):
                return None
            except OSError as error:
                return self._pause(error)
            self._is_told = False
            if peer_uid(connection) in _OURS:
                HookConnection(self, connection).read()
            else:
                connection.close()
        return None

    def _pause(self, error: OSError) -> None:
        if not self._is_told:
            self._is_told = True
            self.app.house.trouble(f"nobody can be let in: {error}")
        self.loop.remove_reader(self._listener.fileno())
        self.loop.call_later(_PAUSE, self._watch)

    def do(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do what takes its time; the end waits for it."""
        task = self.loop.create_task(work)
        self.server.tasks.add(task)
        task.add_done_callback(self.server.tasks.discard)
        return task

    async def hand_over(self, connection: socket.socket, data: bytes) -> None:
        """Leave somebody to uvicorn, with what was said so far."""
        state = {"peer": peer_pid(connection)}
        connection.settimeout(0)
        try:
            await self.loop.connect_accepted_socket(
                lambda: ResumedHttpProtocol(data, self._config, self.server, state), connection
            )
        except OSError:
            connection.close()  # it has gone meanwhile


class ResumedHttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol, for a connection of which something was read already."""

    def __init__(self, data: bytes, config: Config, server: ServerState, state: dict[str, Any]) -> None:
        super().__init__(config, server, state)
        self._begun = data

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        self.data_received(self._begun)


class HookConnection:
    """Somebody who was let in."""

    def __init__(self, door: UnixListener, connection: socket.socket) -> None:
        self._door = door
        self._connection = connection
        self._data = b""
        self._on_data: Callable[[], None] | None = None
        """What is called when there is something to read, as soon as it is waited for."""
        self._may_close = True
        self._is_gone = False

    # -- reading ---------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read; answer once the request is whole."""
        try:
            data = self._heard()
            if data is None:
                return self._listen(self.read)
            if not data:
                return self._close()
            self._data = data = self._data + data if self._data else data
            read = self._door.app.reader.read(data)
            return self._listen(self.read) if read is None else self._serve(*read)
        except NotHookRequest:
            return self._not_an_event()
        except BaseException:
            self._close()  # without an answer the launcher goes the other road
            raise

    def _heard(self) -> bytes | None:
        """Give what was said; nothing if it has gone, and `None` if it has not spoken yet."""
        try:
            return self._connection.recv(_BLOCK, _NOW)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return b""

    def _listen(self, on_data: Callable[[], None]) -> None:
        if self._on_data is None:
            self._on_data = on_data
            self._door.server.connections.add(self)  # type: ignore[arg-type] # it wants `shutdown` of them
            self._door.loop.add_reader(self._connection.fileno(), on_data)

    def _listen_no_more(self) -> None:
        if self._on_data is not None:
            self._on_data = None
            self._door.server.connections.discard(self)
            self._door.loop.remove_reader(self._connection.fileno())

    def _close(self) -> None:
        self._is_gone = True
        self._listen_no_more()
        self._connection.close()

    def shutdown(self) -> None:
        """Go, unless an answer is at hand; then that ends it."""
        if self._may_close:
            self._close()

    def _not_an_event(self) -> None:
        self._listen_no_more()
        if wait := parse_wait_request(self._data):
            self._wait(*wait)
        else:
            self._door.do(self._door.hand_over(self._connection, self._data))

    # -- answering -------------------------------------------------------------------------------------

    def _serve(self, ask: HookRequest, payload: bytes) -> None:
        reply = self._door.app.answer_quickly(ask, payload)
        if reply is not None:
            self._send(reply, acks=ask.acks)
        else:
            self._listen_no_more()
            self._door.do(self._serve_slowly(ask, payload))

    async def _serve_slowly(self, ask: HookRequest, payload: bytes) -> None:
        try:
            self._send(await self._door.app.answer(ask, payload), acks=ask.acks)
        except BaseException:
            self._close()
            raise

    def _send(self, reply: HookReply, *, acks: bool) -> None:
        """Answer. If mail is shown in it that nobody has seen, that is taken back."""
        acks = acks and bool(reply.shows)
        data = encode_reply(reply, acks=acks)
        try:
            sent = 0 if self._is_gone else self._connection.send(data, _NOW)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self._is_gone = True
        if self._is_gone:
            self._unseen(reply)
        elif sent < len(data):
            self._door.do(self._send_rest(data[sent:], reply, acks=acks))
        else:
            self._sent(reply, acks=acks)

    async def _send_rest(self, data: bytes, reply: HookReply, *, acks: bool) -> None:
        """Send what did not fit in at once."""
        self._listen_no_more()
        self._connection.settimeout(0)
        try:
            await self._door.loop.sock_sendall(self._connection, data)
        except OSError:
            self._unseen(reply)
        else:
            self._sent(reply, acks=acks)

    def _sent(self, reply: HookReply, *, acks: bool) -> None:
        if not acks:
            return self._close()
        self._listen_no_more()
        self._may_close = reply.status == _PLANNED  # commands may take their time, else it is a matter of milliseconds

        def receipt() -> None:
            said = self._heard()
            if said:
                self._close()
            elif said is not None:
                self._unseen(reply)

        return self._listen(receipt)

    def _unseen(self, reply: HookReply) -> None:
        self._close()
        if reply.shows:
            self._door.app.house.mail.undo_delivery(reply.shows)

    # -- waiting ---------------------------------------------------------------------------------------

    def _wait(self, token: str, acks: bool) -> None:  # noqa: FBT001 - as it was asked
        """Wait for what was promised. Who closes the connection waits no more, and has seen nothing."""
        task = self._door.loop.create_task(self._door.app.house.stays.hold(token, lambda: self._is_gone))
        self._may_close = False  # the answer is at hand: the house sends all away that wait

        def answer(task: asyncio.Task[HookReply]) -> None:
            if task.cancelled() or task.exception():
                self._close()
            else:
                self._listen_no_more()
                self._send(task.result(), acks=acks)

        def left() -> None:
            if self._heard() == b"":
                self._close()
                task.cancel()

        task.add_done_callback(answer)
        self._listen(left)
