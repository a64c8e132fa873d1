"""The messages between the daemon and the process of the store, over a socket.

A message is its length in four bytes, and JSON. A request has a number, which its answer repeats.
"""

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
    """The process of the store is not running, or does not answer."""


class SessionEvents(msgspec.Struct, frozen=True, tag=True):
    """Requests the last `limit` events of a session, including those that are in the journal but not stored yet."""

    number: int
    session: str
    limit: int


class SessionEvent(msgspec.Struct, frozen=True):
    """An event, and the results of its commands. `commands` is `None` if it had none, or they are not known yet.

    It has the fields of `StoredEvent`, which the daemon does not import because it would import the store.
    """

    event: EventRecord
    commands: CommandsRecord | None = None


class HasEvent(msgspec.Struct, frozen=True, tag=True):
    """Asks whether an event is stored.

    It is answered when all that is in the journal now is stored, however long it takes.
    """

    number: int
    event_id: str


class FindHistory(msgspec.Struct, frozen=True, tag=True):
    """Requests a page of the history. The answer is a `HistoryPage`."""

    number: int
    query: HistoryQuery


class FindSession(msgspec.Struct, frozen=True, tag=True):
    """Requests the history of the session whose id starts with `session`, with its last `limit` events.

    The answer is a list of `SessionHistory`: see `StoreProcess.history_of`.
    """

    number: int
    session: str
    limit: int
    before: str
    """The `next` of the previous page; "" for the first page."""


class Summarize(msgspec.Struct, frozen=True, tag=True):
    """Requests a summary of what happened since a Unix time. The answer is an `AbsenceSummary`."""

    number: int
    since: float


class CopyEvents(msgspec.Struct, frozen=True, tag=True):
    """Requests the next events to copy to the team's relay after a position. The answer is a `CopyBatch`."""

    number: int
    after: Position
    blocked_only: bool
    limit: int


class CountEventsToCopy(msgspec.Struct, frozen=True, tag=True):
    """Requests the number of events to copy after a position, up to `keep_bytes` before the end of the journal.

    The answer is an `EventsToCopyCount`.
    """

    number: int
    after: Position
    blocked_only: bool
    keep_bytes: int = 0


class Retain(msgspec.Struct, frozen=True, tag=True):
    """Sets for how many seconds events are kept in the store and the journal. It is not answered."""

    seconds: float


class Finish(msgspec.Struct, frozen=True, tag=True):
    """Asks the process to exit, after it has stored further records of the journal for at most a second."""


Query: TypeAlias = SessionEvents | HasEvent | FindHistory | FindSession | Summarize | CopyEvents | CountEventsToCopy
"""A request with an answer."""
Request: TypeAlias = Query | Retain | Finish


class StoreAnswer(msgspec.Struct, frozen=True, tag=True):
    """The answer to the request with a number, as JSON."""

    number: int
    value: msgspec.Raw


class Progress(msgspec.Struct, frozen=True, tag=True):
    """The progress of the process, sent when it has changed."""

    stored: int
    """How many records were new to the store since the process started."""
    failures: int
    """How many attempts to write in a row have failed."""
    position: Position
    """The position up to which the journal is stored."""


class ErrorReport(msgspec.Struct, frozen=True, tag=True):
    """An error to be reported to the user."""

    message: str


Reply: TypeAlias = StoreAnswer | Progress | ErrorReport

_encode = msgspec.json.Encoder().encode
decode_request = msgspec.json.Decoder(Request).decode
decode_reply = msgspec.json.Decoder(Reply).decode


def send(connection: socket.socket, message: Request | Reply) -> None:
    """Send a message. Raise `OSError` if the connection is closed."""
    body = _encode(message)
    connection.sendall(_LENGTH.pack(len(body)) + body)


class MessageReader:
    """Receives messages from a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = bytearray()

    def receive(self) -> list[bytes] | None:
        """Wait for bytes, and return the messages that are complete now; `None` at the end of the connection."""
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
