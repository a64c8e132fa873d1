"""Runs one script to its end and keeps of its output what will be shown, however much it prints."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from fairlead.errors import HookTimeout
from fairlead.process._cancellation import CancellationToken
from fairlead.process._run import run_process

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


MAX_LINES = 10_000
"""Lines kept of a stream where the file sets no number of its own: half of them the first, half the last."""
MAX_LINE = 8 * 1024
"""Bytes kept of one line."""
MAX_HALF = 512 * 1024
"""Bytes kept of the first lines, and as many of the last."""


class ScriptResult(msgspec.Struct, frozen=True):
    """How a script ended, and what is kept of what it said."""

    exit_code: int | None
    """`None` if it had to be killed because time was up."""
    stdout: str
    stderr: str


def run_script(  # noqa: PLR0913 - what a process needs
    argv: Sequence[str],
    stdin: bytes,
    *,
    cwd: str | None,
    env: Mapping[str, str],
    deadline: float,
    cancellation: CancellationToken | None = None,
    max_lines: int | None = None,
) -> ScriptResult:
    """Run until the script ends, or kill it and all of its group when the deadline (`time.monotonic()`) passes.

    Raises `CommandFailed` if it cannot be started, and `HookCancelled` if nobody waits any more.
    """
    stdout, stderr = BoundedOutput(max_lines or MAX_LINES), BoundedOutput(max_lines or MAX_LINES)
    exit_code: int | None = None
    with suppress(HookTimeout):
        exit_code = run_process(
            argv,
            stdin,
            cwd=cwd,
            env=env,
            deadline=deadline,
            cancellation=cancellation or CancellationToken(),
            take=(stdout.add, stderr.add),
        ).exit_code
    return ScriptResult(exit_code, stdout.text, stderr.text)


class BoundedOutput:
    """The first and the last lines of a stream, in bounded memory."""

    def __init__(self, max_lines: int) -> None:
        """Keep so many lines, the odd one among the first."""
        self._first: list[bytes] = []
        self._last: deque[bytes] = deque()
        self._most_first = max_lines - max_lines // 2
        self._most_last = max_lines // 2
        self._first_size = self._last_size = 0
        self._omitted = 0
        self._open = b""  # the line that has not ended yet
        self._clipped = False

    def add(self, data: bytes) -> None:
        """Take what came."""
        *ended, rest = (self._skipped(data) if len(self._first) == self._most_first else data).split(b"\n")
        for line in ended:
            self._extend(line)
            self._keep(self._open)
            self._open, self._clipped = b"", False
        self._extend(rest)

    @property
    def text(self) -> str:
        """What is kept, without line ends at its end, and how many lines are not."""
        if self._open:
            self._keep(self._open)
            self._open = b""
        lines = [_decoded(line) for line in self._first]
        if self._omitted:
            lines.append(f"... ({self._omitted} lines omitted)")
        lines += [_decoded(line) for line in self._last]
        return "\n".join(lines).rstrip("\n")

    def _skipped(self, data: bytes) -> bytes:
        """Leave out unseen the lines that cannot be among the last: a gigabyte of short ones would take minutes."""
        gone, *tail = data.rsplit(b"\n", self._most_last + 1)
        if len(tail) <= self._most_last:
            return data
        self._omitted += len(self._last) + gone.count(b"\n") + 1
        self._last.clear()
        self._last_size = 0
        self._open, self._clipped = b"", False
        return b"\n".join(tail)

    def _extend(self, piece: bytes) -> None:
        if self._clipped:
            return
        self._open += piece[: MAX_LINE + 1]
        if len(self._open) > MAX_LINE:
            self._open = self._open[:MAX_LINE] + " … (rest of the line omitted)".encode()
            self._clipped = True

    def _keep(self, line: bytes) -> None:
        fits = len(self._first) < self._most_first and self._first_size + len(line) <= MAX_HALF
        if fits and not self._last and not self._omitted:
            self._first.append(line)
            self._first_size += len(line)
            return
        self._last.append(line)
        self._last_size += len(line)
        while len(self._last) > self._most_last or self._last_size > MAX_HALF:
            self._last_size -= len(self._last.popleft())
            self._omitted += 1


def _decoded(line: bytes) -> str:
    return line.decode(errors="replace").removesuffix("\r")
