"""Reads the payload from stdin, and writes the answer to stdout."""

from __future__ import annotations

import os
import sys

from fairlead.errors import BLOCKED, FAILED, PayloadError, UsageError
from fairlead.events import MAX_PAYLOAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.events import Event


def read_stdin(kind: str) -> bytes:
    """Read the payload of the event `kind`, at most one byte more than its limit, which shows that it is too large.

    Raise `UsageError` if stdin is closed or a terminal, `PayloadError` if it cannot be read.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(f"{kind} reads its payload from stdin, e.g. fairlead {kind} < payload.json")
    try:
        return sys.stdin.buffer.read(MAX_PAYLOAD + 1)
    except OSError as error:
        raise PayloadError(f"payload: cannot read stdin: {error}") from None


def write_answer(stdout: int, text: bytes, exit_code: int, event: Event) -> int:
    """Write the complete answer to the file descriptor `stdout`, and return its exit code.

    If that fails, return a code that blocks an event which can be blocked.
    """
    try:
        while text:
            text = text[os.write(stdout, text) :]
    except OSError as error:
        print(f"fairlead: cannot write the answer: {error}", file=sys.stderr)
        return BLOCKED if event.can_block else FAILED
    return exit_code
