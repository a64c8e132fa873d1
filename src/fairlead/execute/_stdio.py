"""The process that the client started: its stdin, its stdout, its signals."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fairlead.errors import BLOCKED, FAILED, PayloadError, UsageError
from fairlead.events import MAX_PAYLOAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.events import Event
    from fairlead.process import CancellationToken


def read_stdin(kind: str) -> bytes:
    """Read the payload, and one byte more than it may have."""
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(f"{kind} reads its payload from stdin, e.g. fairlead {kind} < payload.json")
    try:
        return sys.stdin.buffer.read(MAX_PAYLOAD + 1)
    except OSError as error:
        raise PayloadError(f"payload: cannot read stdin: {error}") from None


@contextmanager
def cancelled_by_signals(token: CancellationToken) -> Iterator[None]:
    """Cancel the token on SIGTERM, SIGINT and SIGHUP: commands run in process groups of their own."""
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


def write_answer(stdout: int, text: bytes, exit_code: int, event: Event) -> int:
    """Print the whole answer and return the exit code. An answer that cannot be printed must not read as consent."""
    try:
        while text:
            text = text[os.write(stdout, text) :]
    except OSError as error:
        print(f"fairlead: cannot write the answer: {error}", file=sys.stderr)  # noqa: T201 - the hook's stderr
        return BLOCKED if event.can_block else FAILED
    return exit_code
