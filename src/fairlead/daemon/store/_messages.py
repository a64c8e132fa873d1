"""What the daemon and the process of the store say to each other, over a socket: a length, then JSON."""

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
    """The process of the store has ended, or is not started yet."""


class SessionEvents(msgspec.Struct, frozen=True, tag=True):
    """Asks for the last events of a session, as far as they are in the journal when this is asked."""

    number: int
    session: str
    limit: int


class SessionEvent(msgspec.Struct, frozen=True):
    """An event, and how its commands ended if that is known: a `StoredEvent`, without what the store imports."""

    event: EventRecord
    commands: CommandsRecord | None = None


class HasEvent(msgspec.Struct, frozen=True, tag=True):
    """Asks whether an event is stored, once all is that is in the journal now."""

    number: int
    event_id: str


class FindHistory(msgspec.Struct, frozen=True, tag=True):
    """Asks for a page of the history."""

    number: int
    query: HistoryQuery


class FindSession(msgspec.Struct, frozen=True, tag=True):
    """Asks for the history of the session whose id begins like this, with its last events."""

    number: int
    session: str
    limit: int
    before: str
    """The `next` of the page before; "" for the first."""


class Summarize(msgspec.Struct, frozen=True, tag=True):
    """Asks what happened since a time."""

    number: int
    since: float


class CopyEvents(msgspec.Struct, frozen=True, tag=True):
    """Asks for what is to be copied to the relay of the team, after a position of the journal."""

    number: int
    after: Position
    blocked_only: bool
    limit: int


class CountCopies(msgspec.Struct, frozen=True, tag=True):
    """Asks how many events are to be copied after a position, up to so many bytes before the end of the journal."""

    number: int
    after: Position
    blocked_only: bool
    keep_bytes: int = 0


class Retain(msgspec.Struct, frozen=True, tag=True):
    """Sets for how many seconds events are kept."""

    seconds: float


class Finish(msgspec.Struct, frozen=True, tag=True):
    """Asks to write what is left, within a second, and to exit."""


Question: TypeAlias = SessionEvents | HasEvent | FindHistory | FindSession | Summarize | CopyEvents | CountCopies
"""A request with an answer."""
Request: TypeAlias = Question | Retain | Finish


class Answer(msgspec.Struct, frozen=True, tag=True):
    """The answer to a request, by its number."""

    number: int
    value: msgspec.Raw


class Progress(msgspec.Struct, frozen=True, tag=True):
    """How far the store is."""

    stored: int
    failures: int
    position: Position


class Report(msgspec.Struct, frozen=True, tag=True):
    """An error that the user should know of."""

    message: str


Reply: TypeAlias = Answer | Progress | Report

_encode = msgspec.json.Encoder().encode
decode_request = msgspec.json.Decoder(Request).decode
decode_reply = msgspec.json.Decoder(Reply).decode


def send(connection: socket.socket, message: Request | Reply) -> None:
    """Send a message."""
    body = _encode(message)
    connection.sendall(_LENGTH.pack(len(body)) + body)


class MessageReader:
    """Splits what arrives on a connection into messages."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = bytearray()

    def receive(self) -> list[bytes] | None:
        """Wait for some bytes, and return the messages that are complete; `None` at the end."""
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
