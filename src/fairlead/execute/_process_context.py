"""Context managers for a process that runs hooks and commands: they handle its signals and reserve its stdout."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager

from fairlead.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.process import CancellationToken


@contextmanager
def cancelled_by_signals(token: CancellationToken) -> Iterator[None]:
    """Cancel the token on SIGTERM, SIGINT and SIGHUP. Commands have their own process groups and do not get them.

    Also reset SIGCHLD to its default. If the client ignores it, this process inherits that, and would not get the exit
    codes of its commands.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: token.cancel()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def reserved_stdout() -> Iterator[int]:
    """Redirect the output of hooks to stderr, and yield a descriptor of the real stdout.

    Text before the JSON would hide a denial. Raises `UsageError` if stdout is closed.
    """
    try:
        stdout = os.dup(1)
    except OSError:
        raise UsageError("stdout is closed, and that is where the answer goes") from None
    os.dup2(2, 1)
    try:
        yield stdout
    finally:
        if sys.stdout is not None:  # `None` if it was closed when Python started
            sys.stdout.flush()
        os.dup2(stdout, 1)
        os.close(stdout)
