"""`python -m fairlead.daemon.store`: fills the store from the journal, for the daemon at the socket on stdin.

The process exits when the daemon requests it, closes the connection or ends. Each record is stored once, even if a
process is killed, because a batch and its position in the journal are stored in one transaction.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from time import monotonic

import msgspec

from fairlead.daemon.store._messages import (
    CopyEvents,
    CountEventsToCopy,
    ErrorReport,
    FindHistory,
    FindSession,
    Finish,
    HasEvent,
    MessageReader,
    Progress,
    Query,
    Request,
    Retain,
    SessionEvents,
    StoreAnswer,
    decode_request,
    send,
)
from fairlead.daemon.store._writer import StoreWriter
from fairlead.journal import Journal, Position, journal_folder

_NICENESS = 10
"""The niceness of this process, which gives the daemon priority.

On a single processor, the time that remains is enough to store the records as fast as they come.
"""
_INTERVAL = 0.25
"""Seconds between two checks of the journal when all of it is stored."""
_MAX_WAIT = 2.0
"""Seconds after which a request is answered even if the store lacks records from before it."""


class _Pending(msgspec.Struct, frozen=True):
    """A request that waits until the journal is stored up to a position."""

    request: Query
    target: Position
    deadline: float
    """The time of `monotonic()` at which the request is answered anyway."""


class StoreServer:
    """Writes batches of records to the store, and answers requests in between. Belongs to one thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._messages = MessageReader(connection)
        self._journal = Journal(journal_folder())
        self._writer = StoreWriter(self._journal, lambda message: send(connection, ErrorReport(message)))
        self._pending: list[_Pending] = []
        self._sent_progress = Progress(-1, 0, Position(0, 0))

    def run(self) -> None:
        """Run until the daemon requests the end.

        If the daemon is gone, end the process, or raise `OSError` if a message cannot be sent to it.
        """
        has_more = True
        while self._receive(0.0 if has_more or self._pending else _INTERVAL):
            has_more = self._writer.write_batch()
            self._send_progress()
            self._answer(is_done=not has_more)
        self._writer.close()
        self._send_progress()

    def _receive(self, seconds: float) -> bool:
        """Wait up to `seconds` for requests, and handle them. Return `False` if the daemon requests the end.

        If the daemon is gone, end the process.
        """
        if not select.select([self._connection], [], [], seconds)[0]:
            return True
        messages = self._messages.receive()
        if messages is None:
            os._exit(0)  # the daemon was killed; the next daemon's process stores the rest
        requests = [decode_request(message) for message in messages]
        for request in requests:
            self._handle(request)
        return Finish() not in requests

    def _handle(self, request: Request) -> None:
        if isinstance(request, Finish):
            return
        if isinstance(request, Retain):
            self._writer.retain(request.seconds)
            return
        seconds = float("inf") if isinstance(request, HasEvent) else _MAX_WAIT
        self._pending.append(_Pending(request, self._journal.end(), monotonic() + seconds))

    def _answer(self, *, is_done: bool) -> None:
        """Answer the requests that need not wait any longer.

        `is_done` answers all of them: the journal is stored in full, or the store cannot be written.
        """
        waiting = []
        for pending in self._pending:
            if is_done or self._writer.position >= pending.target or monotonic() > pending.deadline:
                send(self._connection, self._answer_to(pending.request))
            else:
                waiting.append(pending)
        self._pending = waiting

    def _answer_to(self, request: Query) -> StoreAnswer:
        value: object
        if isinstance(request, HasEvent):
            value = self._writer.has_event(request.event_id)
        elif isinstance(request, SessionEvents):
            value = self._writer.events(request.session, request.limit)
        elif isinstance(request, FindHistory):
            value = self._writer.find_history(request.query)
        elif isinstance(request, FindSession):
            value = self._writer.history_of(request.session, request.limit, request.before)
        elif isinstance(request, CopyEvents):
            value = self._writer.events_to_copy(request.after, blocked_only=request.blocked_only, limit=request.limit)
        elif isinstance(request, CountEventsToCopy):
            value = self._writer.count_events_to_copy(
                request.after, blocked_only=request.blocked_only, keep_bytes=request.keep_bytes
            )
        else:
            value = self._writer.summarize(request.since)
        return StoreAnswer(request.number, msgspec.Raw(msgspec.json.encode(value)))

    def _send_progress(self) -> None:
        progress = Progress(self._writer.stored, self._writer.failures, self._writer.position)
        if progress != self._sent_progress:
            self._sent_progress = progress
            send(self._connection, progress)


def main() -> int:
    """Fill the store and answer the daemon's requests, over the socket on stdin. Return the exit code, which is 0.

    This ends when the daemon requests it, or is gone.
    """
    for number in (signal.SIGINT, signal.SIGHUP):  # sent to the whole process group; the daemon decides when to end
        signal.signal(number, signal.SIG_IGN)
    os.nice(_NICENESS)
    os.umask(0o077)
    try:
        StoreServer(socket.socket(fileno=0)).run()
    except (BrokenPipeError, ConnectionResetError):
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
