"""Requests to the daemon over its socket, in blocking calls."""

from __future__ import annotations

import socket
from contextlib import suppress
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

from fairlead.ipc._errors import RequestRefused, daemon_error
from fairlead.ipc._http import OK, EventStreamParser, Response, ResponseParser, encode_request
from fairlead.paths import socket_file

if TYPE_CHECKING:
    from collections.abc import Iterator

_TIMEOUT = 5.0
_READ_SIZE = 1 << 16


def exchange(method: str, path: str, body: bytes = b"", *, timeout: float, at: str | None = None) -> Response:
    """Return the response to one request, whatever its status. Raises `DaemonUnavailable` if there is no response.

    `timeout` is the limit for each wait, in seconds. `at` is the path of the socket, by default that of this user's
    daemon.
    """
    socket_path, parser = at or socket_file(), ResponseParser()
    try:
        content = b"".join(_receive(socket_path, encode_request(method, path, body), timeout, parser))
    except (OSError, ValueError) as error:
        raise daemon_error(error, socket_path, timeout) from None
    return Response(parser.status, parser.headers, content)


def request(method: str, path: str, body: object = None, *, timeout: float = _TIMEOUT, at: str | None = None) -> Any:
    """Return the body of a successful response, decoded if it is JSON, else as text.

    `body` is sent as it is if it is bytes, else as JSON. `timeout` and `at` have the same meaning as in `exchange`.
    Raises `DaemonUnavailable` if there is no daemon, if it does not answer in time, or if it refuses.
    """
    import json

    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    response = exchange(method, path, content, timeout=timeout, at=at)
    if response.status not in OK:
        raise RequestRefused(response.status, response.body)
    is_json = response.headers.get("content-type") == "application/json"
    return json.loads(response.body) if is_json else response.body.decode()


def stream_events(
    path: str, *, timeout: float, deadline: float = inf, at: str | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield the kind and the decoded JSON of each event of a stream. A heartbeat is yielded as `("", None)`.

    Returns when the daemon closes the connection. Raises `DaemonUnavailable` if there is no daemon, if it refuses, if
    it sends nothing for `timeout` seconds, and at the `deadline`, a time of `monotonic()`, also while events arrive.
    `at` is the path of the socket, by default that of this user's daemon.
    """
    import json

    socket_path, parser, events = at or socket_file(), ResponseParser(), EventStreamParser()
    parser.is_endless = True
    try:
        pieces = _receive(socket_path, encode_request("GET", path), timeout, parser, deadline)
        for piece in pieces:
            if parser.status and parser.status not in OK:
                raise RequestRefused(parser.status, piece + b"".join(pieces))
            for event in events.feed(piece):
                yield event.kind, json.loads(event.data) if event.data else None
    except (OSError, ValueError) as error:
        raise daemon_error(error, socket_path, timeout) from None


def _receive(
    socket_path: str, sent: bytes, timeout: float, parser: ResponseParser, deadline: float = inf
) -> Iterator[bytes]:
    """Send a request, and yield the body of the response in pieces as they arrive, some of them empty.

    Raises `TimeoutError` after `timeout` seconds without data, and at the deadline.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        connection.connect(socket_path)
        with suppress(BrokenPipeError):  # the daemon may refuse, and answer, before it has read the whole body
            connection.sendall(sent)
        while not parser.is_complete:
            data = b""
            if deadline != inf:
                left = deadline - monotonic()
                if left <= 0:
                    raise TimeoutError
                connection.settimeout(min(timeout, left))
            with suppress(ConnectionResetError):  # the end of the connection
                data = connection.recv(_READ_SIZE)
            yield parser.feed(data)
