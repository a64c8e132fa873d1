"""The messages between a worker and its owner. Each is its length in four bytes, then msgpack.

The owner first sends a `LoadRequest`. The reply to it is JSON, because an interpreter without msgspec must be able to
reply, too. After that, the owner only passes sockets to the worker, one for each event that it sends at the same time.
An `EventRequest` is sent on such a socket, and answered on it. Before the reply, the worker may send numbers. Each is
the number of seconds that the owner should wait from now on, because the next hook has another limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.events import HookOutput

if TYPE_CHECKING:
    from socket import socket

EVENT_LIMIT = 30.0
"""The maximum number of seconds that all hooks of an event may take together, whatever their own limits."""

_LENGTH = 4
_READ_SIZE = 1024 * 1024


class LoadRequest(msgspec.Struct, frozen=True, array_like=True):
    """The request to load hook files."""

    files: tuple[str, ...]
    """The paths of the hook files."""
    digests: dict[str, str]
    """The SHA-256 of each file and each module of the project that may be loaded, by its path."""


class LoadReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reply to a `LoadRequest`."""

    problem: str = ""
    """Why the files cannot be loaded; "" if they were."""
    file: str = ""
    """The file that is the cause of `problem`; "" if it is not known."""
    limits: dict[str, float] = {}
    """By event name: the seconds that all hooks for the event may take together. `*` is for events without a type."""
    observed: tuple[str, ...] = ()
    """The names of the events with hooks of the phase `observe`. These hooks are called for blocked events, too."""

    def limit_of(self, event: str, *, observe_only: bool) -> float | None:
        """Return the seconds that the hooks for an event may take; `None` if there are none.

        With `observe_only`, return `None` unless there are hooks that observe.
        """
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
    """The tool's input if other hooks have rewritten it; `None` to use that of the payload."""
    observe_only: bool = False
    """Whether to call only hooks that observe, because the event is blocked already."""


class EventReply(msgspec.Struct, frozen=True, array_like=True):
    """The reply to an `EventRequest`."""

    output: HookOutput = HookOutput()
    decided_by: str = ""
    """The name of the hook with the strictest answer; "" if none has blocked, asked or granted."""
    log: tuple[str, ...] = ()
    """Messages about failures that do not block the event."""
    is_stuck: bool = False
    """Whether a hook has not returned within its limit, and still runs."""
    memory: int = 0
    """Bytes of memory that the worker uses."""
    failed: str = ""
    """The name of the first hook whose failure is in `log`; "" if there is none."""
    failure: str = ""
    """How that hook failed; "" if `failed` is ""."""


def send(connection: socket, data: bytes) -> None:
    """Send one message. Raise `OSError` if the connection is closed."""
    connection.sendall(len(data).to_bytes(_LENGTH, "big") + data)


def receive(connection: socket) -> bytes:
    """Return the next message.

    Raise `EOFError` if the connection is closed, `TimeoutError` after the socket's timeout.
    """
    return _read(connection, int.from_bytes(_read(connection, _LENGTH), "big"))


def _read(connection: socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(min(size - len(data), _READ_SIZE))
        if not more:
            raise EOFError("the other side has closed the connection")
        data = data + more if data else more
    return data
