"""The process that the client called: its stdin, its stdout, its signals."""

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
    from fairlead.hooks import CancellationToken


def read_stdin(kind: str) -> bytes:
    """Read the payload, and a byte more than it may have."""
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(f"{kind} reads its payload from stdin, e.g. fairlead {kind} < payload.json")
    try:
        return sys.stdin.buffer.read(MAX_PAYLOAD + 1)
    except OSError as error:
        raise PayloadError(f"payload: cannot read stdin: {error}") from None


@contextmanager
def cancelled_by_signals(token: CancellationToken) -> Iterator[None]:
    """When the client tells us to go, take the commands along: they are in process groups of their own."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: token.cancel()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def answers_alone_on_stdout() -> Iterator[int]:
    """Send whatever hooks print to stderr: text before its JSON makes the client ignore a denial."""
    try:
        stdout = os.dup(1)
    except OSError:
        raise UsageError("stdout is closed, and that is where the answer goes") from None
    os.dup2(2, 1)
    try:
        yield stdout
    finally:
        if sys.stdout is not None:  # Python found it closed at the start
            sys.stdout.flush()
        os.dup2(stdout, 1)
        os.close(stdout)


def printed(stdout: int, text: bytes, exit_code: int, event: Event) -> int:
    """Print the whole answer. One that cannot be printed must not read as consent."""
    try:
        while text:
            text = text[os.write(stdout, text) :]
    except OSError as error:
        print(f"fairlead: cannot write the answer: {error}", file=sys.stderr)  # noqa: T201 - this is where it goes
        return BLOCKED if event.can_block else FAILED
    return exit_code
