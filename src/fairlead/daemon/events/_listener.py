"""The Unix socket: accepts connections, and answers events directly on them.

A transport costs about as much as the decision, and an event needs none: a launcher writes its request, reads the
reply and exits. Everything that is not an event of a launcher is handed to uvicorn.

A launcher that is killed (Escape, a timeout, `kill -9`) prints nothing, whatever was sent to it. So a launcher writes
a byte when it has printed everything, if it is new enough; mail in a reply without that byte was never seen.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from socket import AF_UNIX, SOCK_STREAM, SocketType
from typing import TYPE_CHECKING, Any

from fairlead.daemon._peer import is_own_user, peer_pid
from fairlead.daemon.commands._service import PREFIX, parse_command_request
from fairlead.daemon.events._messages import PLAN, NotHookRequest, RequestReader, encode_reply, parse_wait_request
from fairlead.daemon.http._resumed import ResumedHttpProtocol
from fairlead.policy import shared_lookups

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from uvicorn import Config
    from uvicorn.server import ServerState

    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.commands._service import CommandRequest
    from fairlead.daemon.events._messages import HookReply, HookRequest

_READ_SIZE = 64 * 1024
"""Bytes of one read. The memory for more would be mapped for each read, which takes ten times as long as the read."""
_MAX_READS = 4
_ACCEPT_BATCH = 16
"""The maximum number of connections that are accepted before the loop does other work."""
_ACCEPT_PAUSE = 0.1
"""Seconds until the next attempt if no connection can be accepted, as when too many files are open."""
_MAX_REPLY = 1.0
"""Seconds after which a launcher is told to wait. After two seconds without a reply, it assumes that the daemon is
dead."""
_DONTWAIT = socket.MSG_DONTWAIT


class UnixListener:
    """Accepts connections of this user only."""

    def __init__(self, listener: socket.socket, config: Config, server: ServerState, daemon: Daemon) -> None:
        self.server = server
        self.endpoint = daemon.endpoint
        self.idle = daemon.idle
        self.commands = daemon.commands
        self.answers = daemon.answers
        self.extensions = daemon.extensions
        self.recorder = daemon.recorder
        self.reader = RequestReader()
        self.loop = asyncio.get_running_loop()
        self._errors = daemon.errors
        self._config = config
        self._listener = listener
        self._is_open = False
        self._is_busy = False
        """Whether several connections were waiting the last time."""
        self._is_failing = False
        """Whether it was reported that no connection can be accepted."""

    def open(self) -> None:
        """Start accepting."""
        self._listener.settimeout(0)
        self._is_open = True
        self._watch()

    def close(self) -> None:
        """Stop accepting."""
        if self._is_open:
            self._is_open = False
            self.loop.remove_reader(self._listener.fileno())

    def _watch(self) -> None:
        if self._is_open:
            self.loop.add_reader(self._listener.fileno(), self._accept)

    def _accept(self) -> None:
        """Accept the waiting connections, and serve the requests that have arrived.

        They are served together: all were sent before the first is served, so a lookup for one of them is up to date
        for the others. A single one is served before the next is looked for, unless there were several the last time.
        """
        ready: list[HookConnection] = []
        count = 0
        while count < _ACCEPT_BATCH:
            try:
                descriptor, _ = self._listener._accept()  # type: ignore[attr-defined] # noqa: SLF001 - of the C type; `accept` is slower
            except (BlockingIOError, ConnectionAbortedError, InterruptedError):
                break
            except OSError as error:
                self._pause(error)
                break
            self._is_failing = False
            count += 1
            connection = SocketType(AF_UNIX, SOCK_STREAM, 0, descriptor)
            if not is_own_user(connection):
                connection.close()
            elif (accepted := HookConnection(self, connection)).receive():
                ready.append(accepted)
                if not self._is_busy:
                    self.serve(ready)
                    ready = []
        self._is_busy = count > 1
        if ready:
            self.serve(ready)

    def serve(self, ready: list[HookConnection]) -> None:
        """Answer requests that have arrived. Those handled in the event loop are recorded by one write, then answered.

        The extensions handle the records after the replies: launchers wait only for the decision and its record.
        """
        decided: list[tuple[HookConnection, HookReply | None]] = []
        shared_lookups.stamps = {}
        try:
            self.recorder.collect()
            for connection in ready:
                try:
                    decided.append((connection, connection.decide()))
                except Exception as error:  # it must not keep the others from their reply
                    self._report(error)
            unwritten = self.recorder.flush()
        finally:
            shared_lookups.stamps = None
        for connection, reply in decided:
            try:
                connection.answer(reply, unwritten)
            except Exception as error:
                self._report(error)
        self.recorder.pass_on()

    def _report(self, error: Exception) -> None:
        self.loop.call_exception_handler({"message": "an event could not be served", "exception": error})

    def _pause(self, error: OSError) -> None:
        if not self._is_failing:
            self._is_failing = True
            self._errors.report(f"no connection can be accepted: {error}")
        self.loop.remove_reader(self._listener.fileno())
        self.loop.call_later(_ACCEPT_PAUSE, self._watch)

    def start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine that shutdown waits for."""
        task = self.loop.create_task(work)
        self.server.tasks.add(task)
        task.add_done_callback(self.server.tasks.discard)
        return task

    async def pass_to_uvicorn(self, accepted: SocketType, data: bytes) -> None:
        """Hand a connection to uvicorn, with the data that was read from it."""
        state = {"peer": peer_pid(accepted)}
        connection = socket.socket(fileno=accepted.detach())
        connection.settimeout(0)
        try:
            await self.loop.connect_accepted_socket(
                lambda: ResumedHttpProtocol(data, self._config, self.server, state), connection
            )
        except OSError:
            connection.close()  # the other side has closed it meanwhile


class HookConnection:
    """One accepted connection."""

    __slots__ = ("_connection", "_data", "_is_closed", "_listener", "_may_close", "_on_data", "_request")

    def __init__(self, listener: UnixListener, connection: SocketType) -> None:
        self._listener = listener
        self._connection = connection
        self._data = b""
        self._request: tuple[HookRequest, bytes] | None = None
        self._on_data: Callable[[], None] | None = None
        """Called when there is something to read; `None` while the connection is not watched."""
        self._may_close = True
        self._is_closed = False

    # -- reading ---------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read the data that has arrived, and answer once the request is complete."""
        if self.receive():
            self._listener.serve([self])

    def receive(self) -> bool:
        """Read the data that has arrived, and return whether a hook's request is complete.

        Returns `False` as well for requests of other kinds, which it passes on: commands, waits, HTTP.
        """
        try:
            data = self._receive()
            if data is None:
                self._watch(self.read)
            elif not data:
                self._close()
            else:
                self._data = data = self._data + data if self._data else data
                self._request = self._listener.reader.read(data)
                if self._request is not None:
                    return True
                self._watch(self.read)
        except NotHookRequest:
            self._other_request()
        except BaseException:
            self._close()  # without a reply the launcher decides without a daemon
            raise
        return False

    def _receive(self) -> bytes | None:
        """Return the data that was sent; `b""` if the other side has closed, and `None` if there is none yet."""
        try:
            data = self._connection.recv(_READ_SIZE, _DONTWAIT)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return b""
        return data if len(data) < _READ_SIZE else self._receive_more(data)

    def _receive_more(self, data: bytes) -> bytes:
        """Return the data of a large request with what else has arrived."""
        parts = [data]
        with suppress(OSError):
            while len(parts[-1]) == _READ_SIZE and len(parts) < _MAX_READS:
                parts.append(self._connection.recv(_READ_SIZE, _DONTWAIT))
        return b"".join(parts)

    def _watch(self, on_data: Callable[[], None]) -> None:
        if self._on_data is None:
            self._on_data = on_data
            self._listener.server.connections.add(self)  # type: ignore[arg-type] # it only calls `shutdown`
            self._listener.loop.add_reader(self._connection.fileno(), on_data)

    def _unwatch(self) -> None:
        if self._on_data is not None:
            self._on_data = None
            self._listener.server.connections.discard(self)
            self._listener.loop.remove_reader(self._connection.fileno())

    def _close(self) -> None:
        self._is_closed = True
        self._unwatch()
        self._connection.close()

    def shutdown(self) -> None:
        """Close the connection, or leave that to the reply if one is about to be sent."""
        if self._may_close:
            self._close()

    def _other_request(self) -> None:
        if self._data.startswith(PREFIX):
            return self._read_command()
        self._unwatch()
        if wait := parse_wait_request(self._data):
            self._wait(*wait)
        else:
            self._listener.start_task(self._listener.pass_to_uvicorn(self._connection, self._data))
        return None

    def _read_command(self) -> None:
        try:
            request = parse_command_request(self._data)
        except ValueError:
            return self._close()  # the launcher runs the command itself
        if request is None:
            return self._watch(self.read)
        self._unwatch()
        self._may_close = False
        self._listener.start_task(self._run_command(request))
        return None

    # -- replying --------------------------------------------------------------------------------------

    def decide(self) -> HookReply | None:
        """Return the reply to the request that was received; `None` if it must be handled in a thread."""
        if self._request is None:
            return None
        try:
            return self._listener.endpoint.reply_in_loop(*self._request)
        except BaseException:
            self._close()  # without a reply the launcher decides without a daemon
            raise

    def answer(self, reply: HookReply | None, unwritten: frozenset[str]) -> None:
        """Send the reply; without one, or if the event is not recorded, handle the request in a thread.

        `unwritten` has the ids of the events that could not be recorded.
        """
        if self._request is None:
            return
        request, payload = self._request
        try:
            if reply is not None and (not unwritten or request.is_report or request.id not in unwritten):
                self._send(reply, acks=request.acks)
            else:
                self._unwatch()
                self._listener.start_task(self._serve_slowly(request, payload))
        except BaseException:
            self._close()
            raise

    async def _serve_slowly(self, request: HookRequest, payload: bytes) -> None:
        endpoint = self._listener.endpoint
        try:
            reply = self._listener.loop.create_task(endpoint.reply_in_thread(request, payload))
            done, _ = await asyncio.wait((reply,), timeout=_MAX_REPLY if request.launched else None)
            if done or not endpoint.may_tell_to_wait(request):
                self._send(await reply, acks=request.acks)
            else:
                self._send(endpoint.tell_to_wait(reply, self._listener.extensions.undo), acks=False)
        except BaseException:
            self._close()
            raise

    async def _run_command(self, request: CommandRequest) -> None:
        try:
            self._send(await self._listener.commands.reply(request, peer_pid(self._connection)), acks=True)
        except BaseException:
            self._close()
            raise

    def _send(self, reply: HookReply, *, acks: bool) -> None:
        """Send a reply; with `acks`, ask the launcher to acknowledge it.

        If the reply cannot be delivered, the extensions undo what they have marked.
        """
        acks = acks and bool(reply.undo_id)
        data = encode_reply(reply, acks=acks)
        try:
            sent = 0 if self._is_closed else self._connection.send(data, _DONTWAIT)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self._is_closed = True
        if self._is_closed:
            self._undelivered(reply)
        elif sent < len(data):
            self._listener.start_task(self._send_rest(data[sent:], reply, acks=acks))
        else:
            self._sent(reply, acks=acks)

    async def _send_rest(self, data: bytes, reply: HookReply, *, acks: bool) -> None:
        """Send the rest of a reply, which did not fit into the socket's buffer."""
        self._unwatch()
        self._connection = connection = socket.socket(fileno=self._connection.detach())
        connection.settimeout(0)
        try:
            await self._listener.loop.sock_sendall(connection, data)
        except OSError:
            self._undelivered(reply)
        else:
            self._sent(reply, acks=acks)

    def _sent(self, reply: HookReply, *, acks: bool) -> None:
        if not acks:
            return self._close()
        self._unwatch()
        self._may_close = reply.status == PLAN  # commands may take long, else it is a matter of milliseconds

        def on_acknowledgement() -> None:
            data = self._receive()
            if data:
                self._close()
            elif data is not None:
                self._undelivered(reply)

        return self._watch(on_acknowledgement)

    def _undelivered(self, reply: HookReply) -> None:
        self._close()
        if reply.undo_id:
            self._listener.extensions.undo(reply.undo_id)

    # -- waiting ---------------------------------------------------------------------------------------

    def _wait(self, token: str, acks: bool) -> None:  # noqa: FBT001 - as `parse_wait_request` returns it
        """Reply when a wait ends. A launcher that closes the connection no longer waits, and has printed nothing."""
        sources = self._listener.commands, self._listener.endpoint, self._listener.answers
        source = next((candidate for candidate in sources if candidate.issued(token)), self._listener.idle)
        task = self._listener.loop.create_task(source.wait(token, lambda: self._is_closed))
        self._may_close = False  # shutdown ends the wait, which sends the reply

        def on_reply(task: asyncio.Task[HookReply]) -> None:
            if task.cancelled() or task.exception():
                self._close()
            else:
                self._unwatch()
                self._send(task.result(), acks=acks)
            self._listener.answers.on_sent(token)

        def on_close() -> None:
            if self._receive() == b"":
                self._close()
                task.cancel()

        task.add_done_callback(on_reply)
        self._watch(on_close)
