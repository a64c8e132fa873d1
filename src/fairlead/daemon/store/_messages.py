"""The messages between the daemon and the process of the store, over a socket. Each is a length and JSON."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from fairlead.errors import FairleadError
from fairlead.journal import CommandsRecord, EventRecord, Position
from fairlead.sessions import HistoryQuery

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

_LENGTH = struct.Struct("!I")
_READ_SIZE = 64 * 1024


class StoreUnavailable(FairleadError):
    """The process of the store has ended, or was not started yet."""


class SessionEvents(msgspec.Struct, frozen=True, tag=True):
    """Requests the last events of a session that are in the journal at the time of the request."""

    number: int
    session: str
    limit: int


class SessionEvent(msgspec.Struct, frozen=True):
    """An event, and the result of its commands if they have ended.

    It has the fields of `StoredEvent`, but does not import the store.
    """

    event: EventRecord
    commands: CommandsRecord | None = None


class HasEvent(msgspec.Struct, frozen=True, tag=True):
    """Asks whether an event is stored. The answer waits until the current content of the journal is stored."""

    number: int
    event_id: str


class FindHistory(msgspec.Struct, frozen=True, tag=True):
    """Requests a page of the history."""

    number: int
    query: HistoryQuery


class FindSession(msgspec.Struct, frozen=True, tag=True):
    """Requests the history of the session whose id starts with `session`, with its last events."""

    number: int
    session: str
    limit: int
    before: str
    """The `next` of the previous page; "" for the first page."""


class Summarize(msgspec.Struct, frozen=True, tag=True):
    """Requests a summary of what happened since a time."""

    number: int
    since: float


class CopyEvents(msgspec.Struct, frozen=True, tag=True):
    """Requests the next events to copy to the relay of the team, after a position of the journal."""

    number: int
    after: Position
    blocked_only: bool
    limit: int


class CountEventsToCopy(msgspec.Struct, frozen=True, tag=True):
    """Requests the number of events to copy after a position, up to `keep_bytes` before the end of the journal."""

    number: int
    after: Position
    blocked_only: bool
    keep_bytes: int = 0


class Retain(msgspec.Struct, frozen=True, tag=True):
    """Sets for how many seconds events are kept."""

    seconds: float


class Finish(msgspec.Struct, frozen=True, tag=True):
    """Asks the process to store the rest of the journal within a second, and to exit."""


Query: TypeAlias = SessionEvents | HasEvent | FindHistory | FindSession | Summarize | CopyEvents | CountEventsToCopy
"""A request with an answer."""
Request: TypeAlias = Query | Retain | Finish


class StoreAnswer(msgspec.Struct, frozen=True, tag=True):
    """The answer to a request, by its number."""

    number: int
    value: msgspec.Raw


class Progress(msgspec.Struct, frozen=True, tag=True):
    """How many records are stored, and up to which position of the journal."""

    stored: int
    failures: int
    position: Position


class ErrorReport(msgspec.Struct, frozen=True, tag=True):
    """An error to be reported to the user."""

    message: str


Reply: TypeAlias = StoreAnswer | Progress | ErrorReport

_encode = msgspec.json.Encoder().encode
decode_request = msgspec.json.Decoder(Request).decode
decode_reply = msgspec.json.Decoder(Reply).decode


def send(connection: socket.socket, message: Request | Reply) -> None:
    """Send a message."""
    body = _encode(message)
    connection.sendall(_LENGTH.pack(len(body)) + body)


class MessageReader:
    """Splits the bytes of a connection into messages."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = bytearray()

    def receive(self) -> list[bytes] | None:
        """Wait for bytes, and return the complete messages; `None` at the end of the connection."""
        block = self._connection.recv(_READ_SIZE)
        self._buffer += block
        return list(self._messages()) if block else None

    def _messages(self) -> Iterator[bytes]:
        while len(self._buffer) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._buffer)[0]
            if len(self._buffer) < end:
                return
            yield bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
