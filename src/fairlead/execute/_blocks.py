"""What a process has to itself while it runs hooks and commands: its signals, and its stdout."""

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
    """Cancel the token on SIGTERM, SIGINT and SIGHUP: commands run in process groups of their own.

    A client that ignores SIGCHLD passes that on, and the exit codes of our commands would be lost: that ends here.
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
    """Redirect what hooks print to stderr, and yield the real stdout: text before its JSON hides a denial."""
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
