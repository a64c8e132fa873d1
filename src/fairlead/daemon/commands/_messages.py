"""The requests of launchers to run a command, and the results. Knows no socket and no thread."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from fairlead.daemon.events._messages import HookRequest, read_request
from fairlead.events import DEFAULT_CLIENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.ipc import Response

PREFIX = b"POST /v1/commands/"
_REQUEST_LINE = re.compile(rb"POST /v1/commands/([A-Za-z0-9_-]+) HTTP/1\.1")
_TERMINALS = re.compile(rb"([01])([01])([01]),([0-9]{1,5})")
_MAX_HEAD = 256 * 1024
_MAX_BODY = 8 * 1024 * 1024
"""The maximum size of the words and stdin, in bytes. Larger commands run in a separate process."""
_MAX_WORDS = 10_000


class CommandDeclined(Exception):
    """The command must run in a separate process."""


class StdinWanted(Exception):
    """The command reads stdin, which the launcher has not sent yet."""


class WaitWanted(Exception):
    """The command made a request that takes a while. It is run again once the response has arrived."""

    def __init__(self, asked: DaemonRequest, seconds: float, undo_id: str) -> None:
        super().__init__(f"{asked.path} may take {seconds:g} s")
        self.asked = asked
        self.seconds = seconds
        self.undo_id = undo_id
        """The id under which mail in the response can be undone."""


class DaemonRequest(NamedTuple):
    """A request to one of the daemon's own routes."""

    method: str
    path: str
    """The path with the query."""
    body: bytes = b""


class Terminals(NamedTuple):
    """Which of the caller's streams are terminals, and how wide stdout is."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    columns: int = 0
    """0 if unknown."""


class CommandRequest(msgspec.Struct, frozen=True):
    """A command line, and the data about the caller's process that the command needs."""

    words: tuple[str, ...]
    hook: HookRequest
    """The caller as in requests of events: its id, folder, variables and version."""
    terminals: Terminals = Terminals()
    stdin: bytes | None = None
    """`None` if it was not sent."""


class CommandCall(NamedTuple):
    """A request, and the function by which its command makes requests to the daemon."""

    request: CommandRequest
    ask: Callable[[DaemonRequest, float], Response]
    """Makes a request, and blocks for at most the given seconds."""
    answers: dict[str, Response]
    """By path: responses for which the command has already waited."""
    started_at: float
    """The start time by the monotonic clock."""


class CommandResult(NamedTuple):
    """The output of a command, and its exit code."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    mail_id: str = ""
    """The id of mail in the output. The mail counts as shown only if the launcher gives a receipt."""


def parse_command_request(data: bytes) -> CommandRequest | None:
    """Parse a request; `None` if it is incomplete. Raises `ValueError` if it is not a request of a launcher."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        if len(data) > _MAX_HEAD:
            raise ValueError("the headers are too long")
        return None
    line, *rest = data[:end].split(b"\r\n")
    match = _REQUEST_LINE.fullmatch(line)
    headers = [(name, value) for name, _, value in (header.partition(b": ") for header in rest)]
    fields = dict(headers)
    size, count = int(fields.get(b"content-length", b"")), int(fields.get(b"fairlead-words", b""))
    if match is None or not 0 <= size <= _MAX_BODY or not 0 <= count <= _MAX_WORDS:
        raise ValueError("no request of a launcher")
    body = data[end + 4 :]
    if len(body) < size:
        return None
    *words, stdin = body.split(b"\0", count)
    if len(words) != count or len(body) > size:
        raise ValueError("the words do not match their number")
    return CommandRequest(
        words=tuple(word.decode(errors="surrogateescape") for word in words),
        hook=read_request(match[1].decode(), DEFAULT_CLIENT, headers),
        terminals=_terminals(fields.get(b"fairlead-terminals", b"")),
        stdin=stdin if fields.get(b"fairlead-stdin") == b"1" else None,
    )


def _terminals(value: bytes) -> Terminals:
    match = _TERMINALS.fullmatch(value)
    if match is None:
        return Terminals()
    return Terminals(match[1] == b"1", match[2] == b"1", match[3] == b"1", int(match[4]))
