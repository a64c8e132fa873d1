"""Lets an agent stay that was let stop: asks the daemon for a wait, and becomes the launcher, which waits for it.

Here and not in the launcher, since the policy's commands have run in this process; and the launcher and not we, since a
process that only waits should cost next to nothing.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import msgspec

from fairlead.execute._stdio import printed
from fairlead.paths import socket_file

if TYPE_CHECKING:
    from fairlead.events import Event
    from fairlead.ipc import Response
    from fairlead.journal import Caller

_PATIENCE = 10.0
"""Seconds for an answer of a daemon that may be opening its mail."""
_SLACK = 5.0
_WAITS = 303
_PASSED_ON = ("FAIRLEAD_STAY", "HOME")


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """An event at the end of a turn, after it was decided."""

    event: Event
    payload: bytes
    id: str
    client: str
    caller: Caller | None = None
    said: bytes = b""
    """What is to be printed whatever comes."""
    wakes: bool = False
    """The client does not wait for this hook: its end wakes the session."""


def stay(stopped: Stopped) -> int | None:
    """Wait until mail comes, or time is up, and answer the client; `None` if there is nobody to ask.

    Gives the exit code. Where the launcher is at hand it takes the place of this process, and nothing is given.
    """
    heard = _ask_to_wait(stopped)
    if heard is not None and heard.status == _WAITS:
        heard = _wait(stopped, heard)
    if heard is None or heard.status != 200:  # noqa: PLR2004 - HTTP's own
        return None
    size = int(heard.headers.get("fairlead-stdout", "0"))
    print(heard.body[size:].decode(errors="replace"), end="", file=sys.stderr)  # noqa: T201 - where it goes
    return printed(1, heard.body[:size], int(heard.headers.get("fairlead-exit", "0")), stopped.event)


def take_up_again(stopped: Stopped) -> None:
    """Have another process look for a daemon, or begin one, and ask it. If it cannot be started, this one goes on."""
    _as_stdin(stopped.payload)
    words = ["--waited", "--launched", stopped.id, "--client", stopped.client]
    _become(sys.executable, "-E", "-P", "-m", "fairlead", stopped.event.event_name, *words)


def asked(method: str, path: str, body: bytes = b"", *, timeout: float) -> Response | None:
    """Ask the daemon something over its socket; `None` if it does not answer as it should."""
    from fairlead.ipc import exchange

    try:
        return exchange(socket_file(), method, path, body, timeout=timeout)
    except (OSError, ValueError):
        return None


def _ask_to_wait(stopped: Stopped) -> Response | None:
    from fairlead.clients import client_or_default

    names = (*client_or_default(stopped.client).variables.while_waiting, *_PASSED_ON)
    ask = {
        "event": stopped.event.event_name,
        "client": stopped.client,
        "id": stopped.id,
        "cwd": os.getcwd(),
        "env": {name: os.environ[name] for name in names if name in os.environ},
        **({"caller": stopped.caller} if stopped.caller else {}),
    }
    said = stopped.said.decode(errors="replace")
    document = {"ask": ask, "payload": msgspec.Raw(stopped.payload), "said": said, "wakes": stopped.wakes}
    body = msgspec.json.encode(document)
    return asked("POST", "/v1/waits", body, timeout=_PATIENCE)


def _wait(stopped: Stopped, heard: Response) -> Response | None:
    token, milliseconds = heard.headers.get("location", "").rpartition("/")[2], heard.headers.get("fairlead-wait", "0")
    launcher = os.path.join(os.path.dirname(sys.executable), "fairlead-hook")
    if os.access(launcher, os.X_OK):
        _as_stdin(stopped.payload)
        words = [stopped.event.event_name, *(["--wake"] if stopped.wakes else []), "--id", stopped.id]
        _become(launcher, "--wait", token, milliseconds, *words, "--client", stopped.client, "--python", sys.executable)
    return asked("GET", f"/v1/waits/{token}", timeout=int(milliseconds) / 1000 + _SLACK)


def _as_stdin(payload: bytes) -> None:
    """Put the payload back: if the wait breaks off, the event is to be taken up again."""
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(payload)
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        os.dup2(file.fileno(), 0)


def _become(program: str, *words: str) -> None:
    """Run a program in place of this process. If that fails, this process goes on."""
    import signal
    from contextlib import suppress

    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and so would who comes after it
        signal.signal(number, signal.SIG_DFL)
    with suppress(OSError):
        os.execv(program, [program, *words])  # noqa: S606 - the launcher, beside this Python
