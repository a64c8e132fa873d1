"""Waits for mail when an agent may stop: requests a wait from the daemon, then replaces this process by the launcher.

The wait is requested here because the policy's commands have run in this process. The launcher takes over because a
process that only waits should need little memory.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import msgspec

from fairlead.execute._stdio import write_answer

if TYPE_CHECKING:
    from fairlead.events import Event
    from fairlead.ipc import Response
    from fairlead.journal import Caller

_TIMEOUT = 10.0
"""Seconds for the answer of a daemon that may still be opening its mail."""
_EXTRA_TIME = 5.0
_OK = 200
_SEE_OTHER = 303
_PASSED_VARIABLES = ("FAIRLEAD_STAY", "HOME")


class StoppedAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent at the end of its turn, after its event was decided."""

    event: Event
    payload: bytes
    id: str
    client: str
    caller: Caller | None = None
    stdout: bytes = b""
    """Output that must be printed, whatever the result of the wait."""
    wakes: bool = False
    """Whether the client does not wait for this hook, and the end of the hook wakes the session."""


def wait_for_mail(agent: StoppedAgent) -> int | None:
    """Wait until mail arrives or the time is up, and answer the client. Returns the exit code.

    Returns `None` if no daemon answers. If a launcher is installed, it replaces this process, and the function does not
    return.
    """
    response = _request_wait(agent)
    if response is not None and response.status == _SEE_OTHER:
        response = _wait(agent, response)
    if response is None or response.status != _OK:
        return None
    return _print(agent, response)


def _print(agent: StoppedAgent, response: Response) -> int:
    from fairlead.ipc import begin_printing, give_receipt

    size, code = (int(response.headers.get(name, "0")) for name in ("fairlead-stdout", "fairlead-exit"))
    receipt = response.headers.get("fairlead-ack", "")
    begin_printing(receipt)
    print(response.body[size:].decode(errors="replace"), end="", file=sys.stderr)
    written = write_answer(1, response.body[:size], code, agent.event)
    if written == code:
        give_receipt(receipt)
    return written


def resume_wait(agent: StoppedAgent) -> None:
    """Replace this process by one that finds or starts a daemon, and waits again. Returns only if that fails."""
    _restore_stdin(agent.payload)
    args = ["--waited", "--launched", agent.id, "--client", agent.client]
    replace_process(sys.executable, "-E", "-P", "-m", "fairlead", agent.event.event_name, *args)


def try_request(method: str, path: str, body: bytes = b"", *, timeout: float) -> Response | None:
    """Send one request to the daemon. Returns `None` if there is no proper answer."""
    from fairlead.ipc import DaemonUnavailable, exchange

    try:
        return exchange(method, path, body, timeout=timeout)
    except DaemonUnavailable:
        return None


def _request_wait(agent: StoppedAgent) -> Response | None:
    from fairlead.clients import client_or_default

    names = (*client_or_default(agent.client).variables.while_waiting, *_PASSED_VARIABLES)
    request = {
        "event": agent.event.event_name,
        "client": agent.client,
        "id": agent.id,
        "acks": True,
        "receipts": True,
        "cwd": os.getcwd(),
        "env": {name: os.environ[name] for name in names if name in os.environ},
        **({"caller": agent.caller} if agent.caller else {}),
    }
    document = {
        "ask": request,
        "payload": msgspec.Raw(agent.payload),
        "said": agent.stdout.decode(errors="replace"),
        "wakes": agent.wakes,
    }
    return try_request("POST", "/v1/waits", msgspec.json.encode(document), timeout=_TIMEOUT)


def _wait(agent: StoppedAgent, response: Response) -> Response | None:
    token = response.headers.get("location", "").rpartition("/")[2]
    milliseconds = response.headers.get("fairlead-wait", "0")
    launcher = os.path.join(os.path.dirname(sys.executable), "fairlead-hook")
    if os.access(launcher, os.X_OK):
        _restore_stdin(agent.payload)
        words = [agent.event.event_name, *(["--wake"] if agent.wakes else []), "--id", agent.id]
        replace_process(
            launcher, "--wait", token, milliseconds, *words, "--client", agent.client, "--python", sys.executable
        )
    return try_request("GET", f"/v1/waits/{token}", timeout=int(milliseconds) / 1000 + _EXTRA_TIME)


def _restore_stdin(payload: bytes) -> None:
    """Make the payload readable on stdin again, for a process that continues if the wait fails."""
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(payload)
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        os.dup2(file.fileno(), 0)


def replace_process(program: str, *args: str) -> None:
    """Replace this process by a program. Returns only if that fails."""
    import signal
    from contextlib import suppress

    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and the program would inherit that
        signal.signal(number, signal.SIG_DFL)
    with suppress(OSError):
        os.execv(program, [program, *args])  # noqa: S606 - the launcher beside this Python
