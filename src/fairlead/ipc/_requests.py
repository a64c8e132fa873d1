"""The other end of the daemon: ask it something over its socket. Standard library only, and no more than needed."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

from fairlead.errors import FairleadError
from fairlead.ipc._exchange import exchange
from fairlead.paths import socket_file

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE = 5.0


class DaemonUnavailable(FairleadError):
    """There is no daemon that answers."""


class DaemonNotResponding(DaemonUnavailable):
    """There is one, but it does not answer, or not as it should."""


class ConnectionLost(DaemonNotResponding):
    """There was one, which went away before it had answered."""


class RequestRefused(DaemonNotResponding):
    """There is one, and it refuses. `status` is HTTP's, `text` what it said."""

    def __init__(self, status: int, text: str) -> None:
        """Say what it said."""
        super().__init__(f"the daemon answers {status}: {text}")
        self.status = status
        self.text = text


def request(method: str, path: str, body: object = None, *, timeout: float = _PATIENCE, at: str | None = None) -> Any:
    """Ask the daemon at the socket `at` (the user's own by default) and give its JSON, or its text.

    Raises `DaemonUnavailable` if there is none, if it does not answer in time, or if it refuses.
    """
    place = socket_file() if at is None else at
    sent = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        answer = exchange(place, method, path, sent, timeout=timeout)
    except FileNotFoundError:
        raise DaemonUnavailable(
            f"no daemon is running (no socket at {place}); begin one: fairlead daemon start"
        ) from None
    except ConnectionRefusedError:
        raise DaemonUnavailable(f"the daemon at {place} is gone; begin another: fairlead daemon start") from None
    except TimeoutError:
        raise DaemonNotResponding(f"the daemon does not answer within {timeout:g} s{_whose(place)}") from None
    except (OSError, ValueError) as error:
        raise ConnectionLost(f"the daemon at {place} cannot be asked: {error}") from None
    if answer.status >= 300:  # noqa: PLR2004 - HTTP's own line
        raise RequestRefused(answer.status, answer.body.decode(errors="replace").strip())
    is_json = answer.headers.get("content-type") == "application/json"
    return json.loads(answer.body) if is_json else answer.body.decode()


def stream_events(path: str, *, timeout: float, at: str | None = None) -> Iterator[tuple[str, Any]]:
    """Read a stream of the daemon's: the kind of each event, and its JSON. A sign of life is the kind "".

    Ends when the daemon goes. Raises `DaemonUnavailable` if there is none, or nothing comes for `timeout` seconds.
    """
    from http.client import HTTPException

    from fairlead.ipc._stream import Connection

    place = socket_file() if at is None else at
    with closing(Connection(place, timeout)) as connection:
        try:
            connection.request("GET", path)
            answer, kind, data = connection.getresponse(), "", ""
            while line := answer.readline():
                word, _, rest = line.decode().rstrip("\n").partition(": ")
                kind, data = (rest, data) if word == "event" else (kind, rest) if word == "data" else (kind, data)
                if line == b"\n":
                    yield kind, json.loads(data) if data else None
                    kind, data = "", ""
        except (FileNotFoundError, ConnectionRefusedError):
            raise DaemonUnavailable(
                f"no daemon is running (no socket at {place}); begin one: fairlead daemon start"
            ) from None
        except (OSError, HTTPException) as error:
            raise DaemonNotResponding(f"the daemon at {place} cannot be asked: {error}") from None


def daemon_pid(folder: str) -> int | None:
    """Give the pid of the daemon that lives, whether it answers or not; 0 if it is not told, `None` if none lives.

    `folder` is its runtime folder. The lock ends with the process, however that ends.
    """
    try:
        descriptor = os.open(f"{folder}/daemon.lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        text = os.pread(descriptor, 20, 0).strip()
        return int(text) if text.isdigit() else 0
    else:
        return None
    finally:
        os.close(descriptor)


def _whose(place: str) -> str:
    pid = daemon_pid(place.rpartition("/")[0])
    return f" (pid {pid}); if it hangs, end it: kill -9 {pid}" if pid else ""
