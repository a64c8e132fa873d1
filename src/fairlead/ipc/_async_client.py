"""Requests to the daemon over its socket, for an event loop."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fairlead.ipc._errors import RequestRefused, daemon_error
from fairlead.ipc._http import OK, EventStreamParser, ResponseParser, encode_request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fairlead.ipc._http import ServerSentEvent

_TIMEOUT = 5.0
_READ_SIZE = 1 << 18


class ResponseStream:
    """A response whose body is read as it arrives.

    Reading raises `DaemonNotResponding` if no data arrives in time, or if the connection breaks.
    """

    def __init__(self, socket_path: str, reader: asyncio.StreamReader) -> None:
        self._socket_path = socket_path
        self._reader = reader
        self._parser = ResponseParser()
        self._first = b""

    async def read_headers(self) -> None:
        """Wait until the headers have arrived. Raises `RequestRefused` if the status is not 2xx."""
        while not self._parser.status:
            self._first = await self._receive(_TIMEOUT)
        if self._parser.status not in OK:
            raise RequestRefused(self._parser.status, await self.read())

    async def read(self) -> bytes:
        """Return the complete body."""
        return b"".join([piece async for piece in self.pieces(_TIMEOUT)])

    async def pieces(self, timeout: float) -> AsyncIterator[bytes]:
        """Yield the body in pieces as they arrive. `timeout` is the limit for each wait, in seconds."""
        yield self._first
        while not self._parser.is_complete:
            yield await self._receive(timeout)

    async def events(self, timeout: float) -> AsyncIterator[ServerSentEvent]:
        """Yield the server-sent events of the body, including heartbeats, until the daemon closes the connection."""
        parser = EventStreamParser()
        self._parser.is_endless = True
        async for piece in self.pieces(timeout):
            for event in parser.feed(piece):
                yield event

    async def _receive(self, timeout: float) -> bytes:
        try:
            return self._parser.feed(await asyncio.wait_for(self._reader.read(_READ_SIZE), timeout))
        except (OSError, ValueError) as error:
            raise daemon_error(error, self._socket_path, timeout) from None


@asynccontextmanager
async def open_stream(socket_path: str, path: str, method: str = "GET") -> AsyncIterator[ResponseStream]:
    """Send a request without a body, and yield the response once its headers have arrived.

    Raises `DaemonUnavailable` if there is no daemon, if it does not answer in time, or if it refuses.
    """
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_unix_connection(socket_path), _TIMEOUT)
    except OSError as error:
        raise daemon_error(error, socket_path, _TIMEOUT) from None
    try:
        writer.write(encode_request(method, path))
        stream = ResponseStream(socket_path, reader)
        await stream.read_headers()
        yield stream
    finally:
        writer.close()
