"""The process that a command runs for: its streams, terminal, folder and variables, and how it asks the daemon.

A command runs in a process of its own, or in the daemon for a launcher. So it uses `current()`, and not `print`,
`os.environ`, `os.getcwd` or `sys.stdin`: in the daemon, these belong to the daemon.
"""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar
from errno import EBADF
from time import monotonic, time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TextIO

    from fairlead.cli.commands import CommandEntry

_TIMEOUT = 5.0
_DEFAULT_COLUMNS = 80
_NANOSECONDS = 1e9


class Invocation:
    """A command in a process of its own. The subclass `ServedInvocation` is for a command in the daemon."""

    is_served = False
    """Whether the daemon runs the command for a launcher."""

    def __init__(self, launch_id: str = "") -> None:
        """Take the id that the launcher gave the command; "" if no launcher started it."""
        self.launch_id = launch_id

    def begin(self, entry: CommandEntry) -> None:
        """Allow a command to run. In the daemon, raise `CommandDeclined` if it needs a process of its own."""

    def require_own_process(self, why: str) -> None:
        """Allow what needs a process. In the daemon, raise `CommandDeclined` with the reason `why`."""

    def check_records_read(self, amount: int) -> None:
        """Allow a command that has read `amount` records or files to continue.

        In the daemon, raise `CommandDeclined` if they are so many that the command would slow down events.
        """

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment variables."""
        return os.environ

    @property
    def stdout(self) -> TextIO:
        """The stream for output. It also has a `buffer` for bytes."""
        return sys.stdout

    @property
    def stderr(self) -> TextIO:
        """The stream for errors."""
        return sys.stderr

    @property
    def started_at(self) -> float:
        """When the command was started, on the monotonic clock. A launcher may have started it before this process."""
        try:
            age = time() - int(self.launch_id.partition("-")[0], 16) / _NANOSECONDS
        except ValueError:
            age = 0.0
        return monotonic() - max(0.0, age)

    def cwd(self) -> str:
        """Return the working folder. Raises `OSError` if it was deleted."""
        return os.getcwd()

    def absolute(self, path: str) -> str:
        """Return the absolute form of a path that may be relative to the working folder."""
        return path if os.path.isabs(path) else os.path.normpath(os.path.join(self.cwd(), path))

    def stdout_is_terminal(self) -> bool:
        """Return whether stdout is a terminal, and not closed."""
        return sys.stdout is not None and sys.stdout.isatty()

    def stdin_is_terminal(self) -> bool:
        """Return whether stdin is a terminal or closed, and thus neither a file nor a pipe."""
        return sys.stdin is None or sys.stdin.isatty()

    def columns(self, default: int = _DEFAULT_COLUMNS) -> int:
        """Return `COLUMNS` if it is set, else the width of the terminal; `default` if stdout is not a terminal."""
        from shutil import get_terminal_size

        return get_terminal_size((default, 24)).columns

    def read_stdin(self, limit: int) -> bytes:
        """Return at most `limit` bytes of stdin. Raises `OSError` if it is closed."""
        if sys.stdin is None:
            raise OSError(EBADF, os.strerror(EBADF))
        return sys.stdin.buffer.read(limit)

    def request(self, method: str, path: str, body: object = None, *, timeout: float = _TIMEOUT) -> Any:
        """Ask the daemon and return its response, as `ipc.request` does, with the same errors."""
        from fairlead.ipc import request

        return request(method, path, body, timeout=timeout)

    def begin_printing(self, mail_id: str) -> None:
        """Record in the receipt that mail is about to be printed. `mail_id` is the name of the receipt."""
        from fairlead.ipc import begin_printing

        begin_printing(mail_id)

    def give_receipt(self, mail_id: str) -> None:
        """Record, by removing the receipt `mail_id`, that mail was printed."""
        from fairlead.ipc import give_receipt

        give_receipt(mail_id)

    def message_key(self) -> str:
        """Return an idempotency key for a message. If a second process takes over the command, it gets the same key."""
        return f"launch-{self.launch_id}" if self.launch_id else os.urandom(16).hex()


_current: ContextVar[Invocation] = ContextVar("invocation", default=Invocation())  # noqa: B039 - it is never changed


def current() -> Invocation:
    """Return the invocation of the running command; by default, one for this process."""
    return _current.get()


class running_for:  # noqa: N801 - reads as a statement
    """Context manager that makes an invocation the current one."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation

    def __enter__(self) -> None:
        self._token = _current.set(self._invocation)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)


class Screen(NamedTuple):
    """The terminal that text is printed to. The default is no terminal: nothing is cut or coloured."""

    columns: int | None = None
    """The width in cells; `None` if it is not a terminal."""
    has_colour: bool = False

    def paint(self, style: str, text: str) -> str:
        """Return the text in a style of the terminal, such as `1;31`, if it has colours."""
        return f"\x1b[{style}m{text}\x1b[0m" if self.has_colour else text


def stdout_screen() -> Screen:
    """Return what is known of stdout. It has colours only at a terminal, and never with NO_COLOR or TERM=dumb."""
    invocation = current()
    if not invocation.stdout_is_terminal():
        return Screen()
    environ = invocation.environ
    has_colour = not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    return Screen(invocation.columns(), has_colour)


def print_lines(lines: Iterable[str]) -> None:
    """Print each line to stdout of the invocation."""
    stdout = current().stdout
    for line in lines:
        print(line, file=stdout)


def print_line(line: object, *, end: str = "\n") -> None:
    """Print one line to stdout of the invocation."""
    print(line, end=end, file=current().stdout)


def print_error(line: object) -> None:
    """Print one line to stderr of the invocation."""
    print(line, file=current().stderr)
