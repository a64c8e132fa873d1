"""The messages between a worker and its owner: a length of four bytes, then msgpack.

The owner first sends a `LoadRequest`. Its reply is JSON, because an interpreter without msgspec has to reply, too. Each
later message of the owner passes a socket to the worker. An event is sent on one of these sockets, and the reply comes
back on the same; there are as many sockets as concurrent events. Before the reply the worker may send numbers: if the
next hook may take more or less time than the owner would wait, the seconds that the owner is to wait from now on.
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
_READ_SIZE = 1024 * 1024


class LoadRequest(msgspec.Struct, frozen=True, array_like=True):
    """The files to load."""

    files: tuple[str, ...]
    digests: dict[str, str]
    """SHA-256 of each file and of each module of the project that may be loaded, by its path."""


class LoadReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reply to a `LoadRequest`."""

    problem: str = ""
    """The reason why the files cannot be used."""
    file: str = ""
    """The file that is the reason."""
    limits: dict[str, float] = {}
    """Event → the seconds that all of its hooks may take together. `*` is for events without a type."""
    observed: tuple[str, ...] = ()
    """The events with hooks that observe. These are called for blocked events, too."""

    def limit_of(self, event: str, *, observe_only: bool) -> float | None:
        """Return the seconds that the hooks of an event may take; `None` if it has none."""
        name = event if event in self.limits else "*"
        return None if observe_only and name not in self.observed else self.limits.get(name)


class EventRequest(msgspec.Struct, frozen=True, array_like=True):
    """The request to call the hooks for an event."""

    event: str
    client: str
    payload: bytes
    cwd: str | None = None
    env: dict[str, str] = {}
    tool_input: dict[str, Any] | None = None
    """Replaces the payload's input if other hooks have rewritten it."""
    observe_only: bool = False
    """Whether to call only hooks that observe, because the event is blocked already."""


class EventReply(msgspec.Struct, frozen=True, array_like=True):
    """The reply to an `EventRequest`."""

    output: HookOutput = HookOutput()
    decided_by: str = ""
    """The hook that has blocked, asked or granted with the strictest answer."""
    log: tuple[str, ...] = ()
    """Failures that do not block the event."""
    is_stuck: bool = False
    """Whether a hook has not returned within its limit, and still runs."""
    memory: int = 0
    """Bytes of memory that the worker uses."""
    failed: str = ""
    """The first hook of `log`."""
    failure: str = ""
    """How it failed."""


def send(connection: socket, data: bytes) -> None:
    """Send one message."""
    connection.sendall(len(data).to_bytes(_LENGTH, "big") + data)


def receive(connection: socket) -> bytes:
    """Return the next message. Raises `EOFError` if the other side has closed, `TimeoutError` if it is slow."""
    return _read(connection, int.from_bytes(_read(connection, _LENGTH), "big"))


def _read(connection: socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(min(size - len(data), _READ_SIZE))
        if not more:
            raise EOFError("the other side has closed the connection")
        data = data + more if data else more
    return data
