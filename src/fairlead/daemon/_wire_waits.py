"""What a connection does after its request was read: waits for what was promised, and for the word that it was printed.

A launcher that is ended (Escape, a timeout, `kill -9`) is not heard by its client, whatever it was told. So one that
can say so writes a byte when all is printed; mail in an answer without that byte was never seen.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

if TYPE_CHECKING:
    from collections.abc import Callable

    from uvicorn.server import ServerState

    from fairlead.daemon._desk import Reply
    from fairlead.daemon._house import House

ACKS = b"fairlead-acks: 1\r\n"
"""The header of a launcher that can say so."""
_WAIT = re.compile(rb"GET /v1/waits/([A-Za-z0-9_-]{1,64}) HTTP/1\.1\r\n((?:[A-Za-z-]+: *[^\r\n]*\r\n)*)\r\n")


def asked_to_wait(data: bytes) -> tuple[str, bool] | None:
    """Read the request of a launcher that waits: the token, and whether it can say that it has printed the answer."""
    match = _WAIT.fullmatch(data)
    return None if match is None else (match[1].decode(), ACKS in match[2])


def in_http(reply: Reply, more: bytes = b"") -> bytes:
    """Write an answer."""
    head = b"".join(b"%b: %b\r\n" % header for header in reply.headers())
    return b"%b%b%bconnection: close\r\n\r\n%b%b" % (STATUS_LINE[reply.status], head, more, reply.stdout, reply.stderr)


def send_mail(house: House, server: ServerState, transport: Any, reply: Reply, *, acks: bool) -> None:
    """Write an answer that shows mail. If nobody has seen it, that is taken back."""

    def take_back() -> None:
        house.mail.was_elsewhere(reply.shows)

    server.total_requests += 1
    if transport.is_closing():
        take_back()
    elif acks:
        transport.write(in_http(reply, b"fairlead-ack: 1\r\n"))
        transport.set_protocol(_Receipt(server, transport, take_back))
    else:
        transport.write(in_http(reply))
        transport.close()


class _Receipt(asyncio.Protocol):
    """Waits for the word that an answer was printed."""

    def __init__(self, server: ServerState, transport: Any, missing: Callable[[], None]) -> None:
        self._server = server
        self._transport = transport
        self._missing: Callable[[], None] | None = missing
        server.connections.add(self)  # type: ignore[arg-type] # it wants `shutdown` of them, and that is here

    def data_received(self, data: bytes) -> None:  # noqa: ARG002 - as asyncio calls it
        self._missing = None
        self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - likewise
        self._server.connections.discard(self)
        if self._missing is not None:
            self._missing()

    def shutdown(self) -> None:
        """Stay: it is a matter of milliseconds."""


class Waiting(asyncio.Protocol):
    """Waits for what was promised. Who closes the connection waits no more, and has seen nothing."""

    def __init__(self, house: House, server: ServerState, transport: Any, token: str, *, acks: bool) -> None:
        self._house = house
        self._server = server
        self._transport = transport
        self._acks = acks
        server.connections.add(self)  # type: ignore[arg-type] # as above
        self._task = asyncio.get_running_loop().create_task(house.stays.hold(token, transport.is_closing))
        self._task.add_done_callback(self._answer)

    def _answer(self, task: asyncio.Task[Reply]) -> None:
        self._server.connections.discard(self)
        reply = None if task.cancelled() or task.exception() else task.result()
        if reply is None:
            self._transport.abort()
        elif reply.shows:
            send_mail(self._house, self._server, self._transport, reply, acks=self._acks)
        else:
            self._transport.write(in_http(reply))
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncio calls it
        self._server.connections.discard(self)
        self._task.cancel()

    def shutdown(self) -> None:
        """Stay until the answer, which is at hand: the house sends all away that wait."""
