"""The process that a command runs for: its streams, terminal, folder and variables, and how it asks the daemon.

A command runs in a process of its own, or in the daemon for a launcher. So it uses `current()` where a program would
use `print`, `os.environ`, `os.getcwd` and `sys.stdin`: in the daemon those belong to somebody else.
"""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar
from errno import EBADF
from time import monotonic, time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from fairlead.cli.commands import Entry

_TIMEOUT = 5.0
_DEFAULT_COLUMNS = 80
_NANOSECONDS = 1e9


class Invocation:
    """A command in a process of its own."""

    is_served = False
    """Whether the daemon runs the command for a launcher."""

    def __init__(self, launch_id: str = "") -> None:
        """Take the id that the launcher gave the command when it started, if it did."""
        self.launch_id = launch_id

    def begin(self, entry: Entry) -> None:
        """Note which command is about to run."""

    def needs_process(self, why: str) -> None:
        """Note that the command can only go on in a process of its own."""

    def check_work(self, amount: int) -> None:
        """Note how much work the command does, in records or files that it reads."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The variables."""
        return os.environ

    @property
    def stdout(self) -> TextIO:
        """The stream; it also has a `buffer` for bytes."""
        return sys.stdout

    @property
    def stderr(self) -> TextIO:
        """The stream."""
        return sys.stderr

    @property
    def started_at(self) -> float:
        """When the command was started, on the monotonic clock; a launcher may have waited before."""
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
        """Return whether a person reads stdout."""
        return sys.stdout.isatty()

    def stdin_is_terminal(self) -> bool:
        """Return whether there is no file or pipe on stdin."""
        return sys.stdin is None or sys.stdin.isatty()

    def columns(self, default: int = _DEFAULT_COLUMNS) -> int:
        """Return the width of the terminal; the default if stdout is none."""
        from shutil import get_terminal_size

        return get_terminal_size((default, 24)).columns

    def read_stdin(self, limit: int) -> bytes:
        """Return at most so many bytes of stdin. Raises `OSError` if it is closed."""
        if sys.stdin is None:
            raise OSError(EBADF, os.strerror(EBADF))
        return sys.stdin.buffer.read(limit)

    def request(self, method: str, path: str, body: object = None, *, timeout: float = _TIMEOUT) -> Any:
        """Ask the daemon, as `ipc.request` does."""
        from fairlead.ipc import request

        return request(method, path, body, timeout=timeout)

    def begin_printing(self, mail_id: str) -> None:
        """Note that mail is about to be printed."""
        from fairlead.ipc import begin_printing

        begin_printing(mail_id)

    def give_receipt(self, mail_id: str) -> None:
        """Note that mail was printed."""
        from fairlead.ipc import give_receipt

        give_receipt(mail_id)

    def message_key(self) -> str:
        """Return the idempotency key of a message: the same again if a second process takes over the command."""
        return f"launch-{self.launch_id}" if self.launch_id else os.urandom(16).hex()


_current: ContextVar[Invocation] = ContextVar("invocation", default=Invocation())  # noqa: B039 - it is never changed


def current() -> Invocation:
    """Return the process that the command runs for."""
    return _current.get()


class running_for:  # noqa: N801 - reads as a statement
    """Makes an invocation the current one for a while."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation

    def __enter__(self) -> None:
        self._token = _current.set(self._invocation)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)
