"""Asks the daemon about mail, for all its commands: who asks, what went wrong, and a daemon if there is none."""

from __future__ import annotations

import json
import os
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fairlead import __version__
from fairlead.cli.beginning import begin
from fairlead.cli.options import read
from fairlead.daemon import NO_DAEMON_VARIABLE
from fairlead.errors import FairleadError
from fairlead.ipc import ConnectionLost, DaemonNotResponding, DaemonUnavailable, RequestRefused, daemon_pid, request
from fairlead.paths import runtime_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from fairlead.cli.options import Given

WHO = """\
  --as NAME           speak for one of your own subagents; at a terminal, for anybody
  --session-id ID     the session, where the process does not tell: in a container, or for a program of your own
  --json              everything, for a program
"""
"""Options that every command of the mail has, for its help."""

NOTHING = 3
"""The exit code for: there is nothing, or the time was up."""

_PATIENCE = 30.0
_TURN = 0.02
_NOT_FOUND = 404
_VARIABLES = ("CLAUDE_CODE_SESSION_ID", "CLAUDE_SESSION_ID")
_WHO_VALUES = ("--as", "--session-id")


class MailRefused(FairleadError):
    """The mail said no. `kind` is the name of its error."""

    def __init__(self, kind: str, text: str) -> None:
        """Say why."""
        super().__init__(text)
        self.kind = kind


class _Outdated(FairleadError):
    """The daemon knows no such mail."""

    def __init__(self, version: str) -> None:
        super().__init__(
            f"the daemon has version {version} and knows nothing of this, and this command has {__version__}; "
            "end it with fairlead daemon stop, and the next command begins another"
        )
        self.version = version


def read_mail_options(
    command: str, args: Sequence[str], *, flags: Collection[str] = (), values: Collection[str] = ()
) -> Given:
    """Read a command line of the mail's."""
    return read(command, args, flags=("--json", *flags), values=(*_WHO_VALUES, *values))


def ask_mail(
    method: str, path: str, given: Given, asked: Mapping[str, object] | None = None, *, timeout: float = _PATIENCE
) -> Any:
    """Ask the daemon's mail, for whoever runs this command, and give its JSON. Begins a daemon if there is none.

    What is asked may arrive twice, if a daemon ends before it has answered: who sends gives a key.
    """
    told = {key: _text(value) for key, value in {**_claim(given), **(asked or {})}.items()}
    where = f"/v1/mail/{path}"
    body: object = None
    if method == "GET":
        where += f"?{urlencode(told)}"
    else:
        body = told
    try:
        return _ask(method, where, body, timeout)
    except DaemonUnavailable as error:
        if (isinstance(error, DaemonNotResponding) and not isinstance(error, ConnectionLost)) or os.environ.get(
            NO_DAEMON_VARIABLE
        ):
            raise
    except _Outdated as error:
        _send_away(error)
    begin()
    return _ask(method, where, body, timeout)


def print_json(document: object) -> int:
    """Print a document for a program."""
    print(json.dumps(document))
    return 0


def _claim(given: Given) -> dict[str, str]:
    variable = next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), "")
    found = {"as": given.value("--as"), "session": given.value("--session-id"), "variable": variable, "cwd": _cwd()}
    return {key: value for key, value in found.items() if value}


def _text(value: object) -> object:
    """Give text that JSON can hold: a command line may have bytes that are none."""
    if isinstance(value, str):
        return value.encode(errors="surrogateescape").decode(errors="replace")
    return [_text(item) for item in value] if isinstance(value, list) else value


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def _ask(method: str, where: str, body: object, timeout: float) -> Any:
    try:
        return request(method, where, body, timeout=timeout)
    except RequestRefused as error:
        _explain(error)
        raise


def _explain(error: RequestRefused) -> None:
    """Raise what the mail said; or see that the daemon is of a version that has no mail."""
    try:
        told = json.loads(error.text)
        raise MailRefused(told["kind"], told["error"]) from None
    except (ValueError, KeyError, TypeError):
        pass
    if error.status == _NOT_FOUND:
        raise _Outdated(request("GET", "/v1/status")["version"]) from None


def _send_away(error: _Outdated) -> None:
    """Let a daemon go that is older than this command, as an event would, and wait until it has."""
    from fairlead.daemon import is_newer

    if not is_newer(__version__, error.version):
        raise error
    pid = request("POST", "/v1/stop")["pid"]
    deadline = monotonic() + _PATIENCE
    while daemon_pid(runtime_folder()) == pid:
        if monotonic() > deadline:
            raise FairleadError(f"the daemon (pid {pid}) has not gone within {_PATIENCE:g} s; end it with kill {pid}")
        sleep(_TURN)


def read_text(source: str) -> str:
    """Read a body from a file, or from stdin if the name is a dash."""
    from fairlead.mail import MAX_BODY_BYTES

    try:
        with open(0 if source == "-" else source, "rb", closefd=source != "-") as file:
            content = file.read(MAX_BODY_BYTES + 1)
    except OSError as error:
        raise FairleadError(f"{source}: the text cannot be read: {error.strerror}") from None
    if len(content) > MAX_BODY_BYTES:
        raise FairleadError(
            f"{source}: more than the {MAX_BODY_BYTES} bytes that a message holds; send the file's path"
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise FairleadError(f"{source}: not UTF-8 at byte {error.start}; a message holds text alone") from None
