"""What a worker and its owner send each other: a length of four bytes, then msgpack.

The first exchange is the request to load files, answered in JSON, because an interpreter without msgspec has to answer
it too. After that each message of the owner hands over a socket, on which events are asked one after the other: as many
sockets as there are events at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.events import HookOutput

if TYPE_CHECKING:
    from socket import socket

EVENT_LIMIT = 30.0
"""Seconds that all hooks of an event have together, whatever their own limits."""

_LENGTH = 4
_READ_SIZE = 65536


class LoadRequest(msgspec.Struct, frozen=True, array_like=True):
    """The files to load."""

    files: tuple[str, ...]
    digests: dict[str, str]
    """SHA-256 of each file and of each module of the project that may be loaded, by its path."""


class Loaded(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was loaded."""

    problem: str = ""
    """Why the files cannot be used."""
    limits: dict[str, float] = {}
    """Event → the seconds that all of its hooks may take together. Of events without a type: `*`."""
    observed: tuple[str, ...] = ()
    """The events with hooks that observe: they see what others have blocked, too."""

    def limit_of(self, event: str, *, observe_only: bool) -> float | None:
        """Return the seconds that the hooks of an event may take; `None` if it has none."""
        name = event if event in self.limits else "*"
        return None if observe_only and name not in self.observed else self.limits.get(name)


class Ask(msgspec.Struct, frozen=True, array_like=True):
    """An event for the hooks."""

    event: str
    client: str
    payload: bytes
    cwd: str | None = None
    env: dict[str, str] = {}
    tool_input: dict[str, Any] | None = None
    """In place of the payload's, if other hooks have rewritten it."""
    observe_only: bool = False
    """The event is blocked already: only the hooks that observe are called."""


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What the hooks made of an event."""

    output: HookOutput = HookOutput()
    decided_by: str = ""
    """The hook whose answer counts, if one has blocked, asked or granted."""
    log: tuple[str, ...] = ()
    """Failures that block nothing."""
    is_stuck: bool = False
    """A hook has not returned within its limit, and still runs."""
    memory: int = 0
    """Bytes of memory that the worker holds."""


def send(connection: socket, data: bytes) -> None:
    """Send one message."""
    connection.sendall(len(data).to_bytes(_LENGTH, "big") + data)


def receive(connection: socket) -> bytes:
    """Return the next message. Raises `EOFError` if the other side has closed, `TimeoutError` as the socket does."""
    data = connection.recv(_READ_SIZE)
    while data and (len(data) < _LENGTH or len(data) < _LENGTH + int.from_bytes(data[:_LENGTH], "big")):
        more = connection.recv(_READ_SIZE)
        if not more:
            break
        data += more
    if len(data) < _LENGTH or len(data) < _LENGTH + int.from_bytes(data[:_LENGTH], "big"):
        raise EOFError("the other side has closed the connection")
    return data[_LENGTH:]
