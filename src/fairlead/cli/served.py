"""Runs a command in the daemon for a launcher: the same functions as in a separate process, with other streams."""

from __future__ import annotations

import json
from io import BytesIO, TextIOWrapper
from typing import TYPE_CHECKING, Any

from fairlead.cli.main import report_failure, run_command
from fairlead.cli.support.invocation import Invocation, running_for
from fairlead.daemon import CommandDeclined, CommandOutput, DaemonRequest, StdinWanted, WaitWanted
from fairlead.errors import FairleadError
from fairlead.ipc import RequestRefused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from fairlead.cli.commands import CommandEntry
    from fairlead.daemon import CommandCall

_COMPLETE_VARIABLE = "_FAIRLEAD_COMPLETE"
_LOCALE_VARIABLES = ("LC_ALL", "LC_CTYPE", "LANG")
_PLAIN_LOCALES = ("", "C", "POSIX")
_MAX_WORK = 5_000
"""How many records or files a command may read in the daemon. More would slow down the events of all sessions."""
_POLL = "/v1/mail/poll"
_OK = range(200, 300)


def run_for_launcher(call: CommandCall) -> CommandOutput:
    """Run the command of a launcher in the current thread, and return its output and exit code.

    Raise `CommandDeclined` if it needs a process of its own, `StdinWanted` if the launcher must send stdin first, and
    `WaitWanted` if it has to wait for mail.
    """
    invocation = ServedInvocation(call)
    words = list(call.request.words)
    with running_for(invocation):
        try:
            code = run_command(words)
        except FairleadError as error:
            code = report_failure(error, words)
    return invocation.result(code)


class ServedInvocation(Invocation):
    """A command in the daemon. Its streams, terminal, folder and variables come from the launcher's request.

    The constructor raises `CommandDeclined` if the command completes a command line, or if its output is not UTF-8.
    """

    is_served = True

    def __init__(self, call: CommandCall) -> None:
        self._call = call
        self._request = call.request
        super().__init__(call.request.hook.id)
        self._out, self._err = _stream(), _stream()
        self._mail_id = ""
        if _COMPLETE_VARIABLE in self.environ or not _is_utf8(self.environ):
            raise CommandDeclined("it completes a command line, or its output is not UTF-8")

    def begin(self, entry: CommandEntry) -> None:
        """Raise `CommandDeclined` if the command cannot run in the daemon."""
        if not entry.is_served:
            raise CommandDeclined(f"{entry.name} needs a process of its own")

    def require_own_process(self, why: str) -> None:
        """Raise `CommandDeclined`. `why` says what needs a process."""
        raise CommandDeclined(why)

    def check_records_read(self, amount: int) -> None:
        """Raise `CommandDeclined` if `amount`, how many records or files the command has read, is above `_MAX_WORK`."""
        if amount > _MAX_WORK:
            raise CommandDeclined("it reads too much")

    @property
    def environ(self) -> Mapping[str, str]:
        """The variables that the launcher passes on."""
        return self._request.hook.env

    @property
    def stdout(self) -> TextIO:
        """The stream for text that the launcher will print to its stdout."""
        return self._out

    @property
    def stderr(self) -> TextIO:
        """The stream for text that the launcher will print to its stderr."""
        return self._err

    @property
    def started_at(self) -> float:
        """When the launcher sent its first request, on the monotonic clock."""
        return self._call.started_at

    def cwd(self) -> str:
        """Return the launcher's working folder."""
        return self._request.hook.cwd

    def stdout_is_terminal(self) -> bool:
        """Return whether the launcher's stdout is a terminal."""
        return self._request.terminals.stdout

    def stdin_is_terminal(self) -> bool:
        """Return whether the launcher's stdin is a terminal."""
        return self._request.terminals.stdin

    def columns(self, default: int = 80) -> int:
        """Return the width as `shutil.get_terminal_size` does in the launcher's process; `default` if it is unknown."""
        configured = self.environ.get("COLUMNS", "")
        try:
            columns = int(configured)
        except ValueError:
            columns = 0
        return columns if columns > 0 else self._request.terminals.columns or default

    def read_stdin(self, limit: int) -> bytes:
        """Return at most `limit` bytes of the launcher's stdin.

        Raise `StdinWanted` if the launcher has not sent it yet, and `CommandDeclined` if it is a terminal.
        """
        if self._request.terminals.stdin:
            raise CommandDeclined("stdin is a terminal")
        if self._request.stdin is None:
            raise StdinWanted
        return self._request.stdin[:limit]

    def request(self, method: str, path: str, body: object = None, *, timeout: float = 5.0) -> Any:
        """Ask this daemon directly, not over its socket, and return the JSON or the text of the response.

        Raise `RequestRefused` if the daemon refuses, and `DaemonNotResponding` after `timeout` seconds. Raise
        `WaitWanted` for a poll that waits: the command is run again once there is a response. The id of mail in a
        response is kept for `result`.
        """
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = DaemonRequest(method, path, content)
        response = self._call.answers.pop(path, None)
        if response is None:
            if path == _POLL and isinstance(body, dict) and body.get("wait", 0.0) > 0:
                raise WaitWanted(request, body["wait"], body["id"])
            response = self._call.ask(request, timeout)
        if response.status not in _OK:
            raise RequestRefused(response.status, response.body)
        is_json = response.headers.get("content-type") == "application/json"
        document: Any = json.loads(response.body) if is_json else response.body.decode()
        if path == _POLL and document.get("messages"):
            self._mail_id = document["id"]
        return document

    def begin_printing(self, mail_id: str) -> None:
        """Do nothing: the launcher prints."""

    def give_receipt(self, mail_id: str) -> None:
        """Do nothing: the launcher gives the receipt."""

    def result(self, exit_code: int) -> CommandOutput:
        """Return the exit code, all that was printed, and the id of the mail in the output; "" if there is no mail."""
        return CommandOutput(exit_code, _content(self._out), _content(self._err), self._mail_id)


def _stream() -> TextIOWrapper:
    """Return a stream like Python's stdout, with the error handler that `main` sets."""
    return TextIOWrapper(BytesIO(), encoding="utf-8", errors="backslashreplace", newline="\n", write_through=True)


def _content(stream: TextIOWrapper) -> bytes:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, BytesIO)  # as `_stream` made it
    return buffer.getvalue()


def _is_utf8(environ: Mapping[str, str]) -> bool:
    """Return whether Python writes UTF-8 in this locale. `False`, to be safe, if a variable overrides the locale."""
    if environ.get("PYTHONIOENCODING") or environ.get("PYTHONUTF8"):
        return False
    locale = next((environ[name] for name in _LOCALE_VARIABLES if environ.get(name)), "")
    return locale in _PLAIN_LOCALES or locale.partition("@")[0].lower().replace("-", "").endswith(".utf8")
