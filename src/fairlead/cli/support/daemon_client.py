"""Asks the daemon, and starts one if there is none. Mail requests are made on behalf of an agent."""

from __future__ import annotations

import json
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead import __version__
from fairlead.cli.support.invocation import current, print_lines
from fairlead.clients import session_in
from fairlead.daemon import NO_DAEMON_VARIABLE, start_daemon
from fairlead.errors import FairleadError
from fairlead.ipc import ConnectionLost, DaemonNotResponding, DaemonUnavailable, RequestRefused, daemon_pid, request
from fairlead.paths import runtime_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fairlead.cli.support.caller import CallerOptions

    Document = dict[str, Any]
    """The JSON object of the daemon's response."""

LIST_EXIT_CODES = ((0, "shown, even if there is nothing"), (1, "failed; stderr says why"))
"""The exit codes of a command that lists something."""

_TIMEOUT = 5.0
_MAIL_TIMEOUT = 30.0
_START_TIMEOUT = 10.0
_POLL_INTERVAL = 0.02
_UNQUOTED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Request(NamedTuple):
    """A mail request to the daemon."""

    method: str
    path: str
    """The path below `/v1/mail/`."""
    fields: Mapping[str, object] = {}
    """The query of a GET, and otherwise the body."""


class MailRefused(FairleadError):
    """The daemon refused a mail request. `kind` is the name of its error."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class _DaemonTooOld(FairleadError):
    """The daemon does not support the request, because it is older than this command."""

    def __init__(self, version: str) -> None:
        super().__init__(
            f"the daemon has version {version}, which does not know this request, and this command has {__version__}; "
            "stop it with fairlead daemon stop, and the next command starts another"
        )
        self.version = version


def ask_mail(request: Request, caller: CallerOptions, *, timeout: float = _MAIL_TIMEOUT) -> Any:
    """Ask the daemon on behalf of the caller, and return the JSON of its response. Start a daemon if there is none.

    The request is sent again if the daemon ends before it has answered, so messages have an idempotency key. An older
    daemon that does not know the request is replaced. Raise `MailRefused` if the daemon refuses, and another
    `FairleadError` if none answers within `timeout` seconds.
    """
    fields = {key: _as_text(value) for key, value in {**_claims(caller), **request.fields}.items()}
    path = f"/v1/mail/{request.path}"
    body: object = None
    if request.method == "GET":
        path += f"?{to_query(fields)}"
    else:
        body = fields
    try:
        return _request(request.method, path, body, timeout)
    except _DaemonTooOld as error:
        _stop_older_daemon(error)
    return _request(request.method, path, body, timeout)


def to_query(fields: Mapping[str, object]) -> str:
    """Return the fields as the query of a URL. Does not use `urllib.parse`, whose import takes 3 of 60 ms."""
    return "&".join(f"{key}={''.join(map(_quote, str(value).encode()))}" for key, value in fields.items())


def _quote(byte: int) -> str:
    return chr(byte) if chr(byte) in _UNQUOTED else f"%{byte:02X}"


def print_document(document: Document, caller: CallerOptions, lines: Iterable[str]) -> int:
    """Print the document as JSON if the caller wants JSON, else `lines`. Return the exit code, which is 0."""
    print_lines([json.dumps(document)] if caller.as_json else lines)
    return 0


def _claims(caller: CallerOptions) -> dict[str, str]:
    variable = session_in(current().environ)
    claims = {"as": caller.name, "session": caller.session, "variable": variable, "cwd": _cwd()}
    return {key: value for key, value in claims.items() if value}


def _as_text(value: object) -> object:
    """Return a value for JSON, in which bytes of the command line that are not valid text are replaced."""
    if isinstance(value, str):
        return value.encode(errors="surrogateescape").decode(errors="replace")
    return [_as_text(item) for item in value] if isinstance(value, list) else value


def _cwd() -> str:
    try:
        return current().cwd()
    except OSError:
        return ""


def _request(method: str, path: str, body: object, timeout: float) -> Any:
    try:
        return request_daemon(method, path, body, timeout=timeout)
    except RequestRefused as error:
        _raise_refusal(error)
        raise


def _raise_refusal(error: RequestRefused) -> None:
    """Raise the mail error of the daemon's response, or `_DaemonTooOld` if the daemon does not know the request.

    Return if the response is neither.
    """
    try:
        fields = json.loads(error.text)
        raise MailRefused(fields["kind"], fields["error"]) from None
    except (ValueError, KeyError, TypeError):
        pass
    if error.is_not_found:
        raise _DaemonTooOld(current().request("GET", "/v1/status")["version"]) from None


def _stop_older_daemon(error: _DaemonTooOld) -> None:
    """Stop a daemon that is older than this command, and wait until it is gone. Raise `error` if it is not older."""
    from fairlead.daemon import is_newer

    if not is_newer(__version__, error.version):
        raise error
    pid = current().request("POST", "/v1/stop")["pid"]
    deadline = monotonic() + _MAIL_TIMEOUT
    while daemon_pid(runtime_folder()) == pid:
        if monotonic() > deadline:
            raise FairleadError(
                f"the daemon (pid {pid}) did not stop within {_MAIL_TIMEOUT:g} s; end it with kill {pid}"
            )
        sleep(_POLL_INTERVAL)


def user_mail() -> str:
    """Return how much mail waits for the user, in a few words; "" if there is none, or no daemon answers."""
    from fairlead.cli.support.mail_text import user_mail_text

    try:
        counts = current().request("GET", "/v1/mail/user")
        return user_mail_text(int(counts["unread"]), int(counts["owes"]))
    except (FairleadError, ValueError, KeyError, TypeError):
        return ""


def read_body(source: str) -> str:
    """Read the text of a message from the file `source`, or from stdin if `source` is a dash.

    Raise `FairleadError` if it cannot be read, is too long or is not UTF-8, or if an agent names a file.
    """
    from fairlead.mail import MAX_BODY_BYTES

    if source != "-" and session_in(current().environ):
        # The client lets agents run this command, and would not see which file it reads.
        raise FairleadError(f"an agent passes the text of a file on stdin: fairlead send NAME - < {source}")
    try:
        content = _read(source, MAX_BODY_BYTES + 1)
    except OSError as error:
        raise FairleadError(f"{source}: the text cannot be read: {error.strerror}") from None
    if len(content) > MAX_BODY_BYTES:
        raise FairleadError(
            f"{source}: more than the {MAX_BODY_BYTES} bytes of a message; send the file's path instead"
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise FairleadError(f"{source}: not UTF-8 at byte {error.start}; a message contains only text") from None


def _read(source: str, limit: int) -> bytes:
    if source == "-":
        return current().read_stdin(limit)
    with open(current().absolute(source), "rb") as file:
        return file.read(limit)


def request_daemon(method: str, path: str, body: object = None, *, timeout: float = _TIMEOUT) -> Any:
    """Ask the daemon, and return the JSON or text of its response. Start a daemon if there is none.

    If a daemon ends before it has answered, the request is sent to a new one. If `FAIRLEAD_NO_DAEMON` is set, none is
    started. Raise `RequestRefused` if the daemon refuses, and another `FairleadError` if none answers.
    """
    try:
        return current().request(method, path, body, timeout=timeout)
    except DaemonUnavailable as error:
        is_unresponsive = isinstance(error, DaemonNotResponding) and not isinstance(error, ConnectionLost)
        if is_unresponsive or current().environ.get(NO_DAEMON_VARIABLE):
            raise
    ensure_daemon()
    return current().request(method, path, body, timeout=timeout)


def start_failure(error: OSError) -> FairleadError:
    """Return the error for a daemon that cannot be started, with advice if a folder is the reason."""
    advice = ""
    if isinstance(error, FileExistsError | NotADirectoryError):
        advice = "; it must be a folder: remove what is there, or set FAIRLEAD_HOME"
    elif isinstance(error, PermissionError):
        advice = "; make it writable, or set FAIRLEAD_HOME to a folder that is"
    return FairleadError(f"the daemon cannot be started: {error.filename}: {error.strerror}{advice}")


def ensure_daemon(*, wait: bool = True) -> None:
    """Start a daemon if none answers. With `wait`, return once it answers.

    Raise `FairleadError` if it cannot be started, or does not answer in time.
    """
    if daemon_answers():
        return
    try:
        start_daemon("--on-demand")
    except OSError as error:
        raise start_failure(error) from None
    deadline = monotonic() + _START_TIMEOUT
    while wait and not daemon_answers():
        if monotonic() > deadline:
            raise FairleadError(f"the daemon did not answer within {_START_TIMEOUT:g} s; see: fairlead doctor")
        sleep(_POLL_INTERVAL)


def daemon_answers() -> bool:
    """Return whether a daemon answers a request for its status."""
    try:
        request("GET", "/v1/status")
    except DaemonUnavailable:
        return False
    return True
