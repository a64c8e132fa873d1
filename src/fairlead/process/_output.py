"""Captures the output of a process, in bounded memory."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from fairlead.errors import CommandFailed

MAX_STDOUT = 1024 * 1024
MAX_STDERR = 64 * 1024

DEFAULT_OUTPUT_LINES = 10_000
"""Lines that are kept of each stream of a command for which the policy sets no `maxOutputLines`."""
MAX_LINE_LENGTH = 8 * 1024
"""The maximum number of bytes kept of a line."""
MAX_HALF_SIZE = 512 * 1024
"""The maximum number of bytes kept of the first lines, and also of the last lines."""


class Capture(Protocol):
    """Receives the output of a stream piece by piece."""

    def add(self, data: bytes) -> None:
        """Add the next piece."""

    def getvalue(self) -> bytes:
        """Return the captured output."""


class WholeOutput:
    """Keeps the complete stream. `add` raises `CommandFailed` if it is larger than `limit` bytes."""

    def __init__(self, limit: int = MAX_STDOUT) -> None:
        self._limit = limit
        self._data = b""

    def add(self, data: bytes) -> None:
        """Add the next piece. Raises `CommandFailed` beyond the limit."""
        self._data += data
        if len(self._data) > self._limit:
            raise CommandFailed(f"the command printed more than {self._limit} bytes")

    def getvalue(self) -> bytes:
        """Return the stream."""
        return self._data


class TruncatedOutput:
    """Keeps the first bytes of a stream, up to a limit."""

    def __init__(self, limit: int = MAX_STDERR) -> None:
        self._limit = limit
        self._data = b""

    def add(self, data: bytes) -> None:
        """Add the next piece."""
        self._data += data[: self._limit - len(self._data)]

    def getvalue(self) -> bytes:
        """Return the first bytes of the stream."""
        return self._data


class FirstAndLastLines:
    """Keeps the first and the last lines of a stream."""

    def __init__(self, max_lines: int) -> None:
        """Keep at most `max_lines` lines, half of them from the start. If the number is odd, that half is larger."""
        self._first: list[bytes] = []
        self._last: deque[bytes] = deque()
        self._max_first = max_lines - max_lines // 2
        self._max_last = max_lines // 2
        self._first_size = self._last_size = 0
        self._omitted = 0
        self._line = b""  # the line that has not ended yet
        self._is_clipped = False

    def add(self, data: bytes) -> None:
        """Add the next piece."""
        *ended, rest = (self._skip_lines(data) if len(self._first) == self._max_first else data).split(b"\n")
        for part in ended:
            self._extend_line(part)
            self._keep(self._line)
            self._line, self._is_clipped = b"", False
        self._extend_line(rest)

    def skip(self, lines: int) -> None:
        """Count `lines` lines that the sender left out here, and drop the last lines that were kept so far."""
        if lines:
            self._omitted += len(self._last) + lines
            self._last.clear()
            self._last_size = 0
            self._line, self._is_clipped = b"", False

    def getvalue(self) -> bytes:
        """Return the kept lines, and between them a line with the number of omitted lines. Ends without a newline."""
        if self._line:
            self._keep(self._line)
            self._line = b""
        omitted = [f"... ({self._omitted} lines omitted)".encode()] if self._omitted else []
        lines = [line.removesuffix(b"\r") for line in (*self._first, *omitted, *self._last)]
        return b"\n".join(lines).rstrip(b"\n")

    def _skip_lines(self, data: bytes) -> bytes:
        """Return the end of `data` with the lines that may be among the last ones; count the lines before as omitted.

        Adding each line of a gigabyte of short lines would take minutes.
        """
        skipped, *tail = data.rsplit(b"\n", self._max_last + 1)
        if len(tail) <= self._max_last:
            return data
        self._omitted += len(self._last) + skipped.count(b"\n") + 1
        self._last.clear()
        self._last_size = 0
        self._line, self._is_clipped = b"", False
        return b"\n".join(tail)

    def _extend_line(self, part: bytes) -> None:
        if self._is_clipped:
            return
        self._line += part[: MAX_LINE_LENGTH + 1]
        if len(self._line) > MAX_LINE_LENGTH:
            self._line = self._line[:MAX_LINE_LENGTH] + " … (rest of the line omitted)".encode()
            self._is_clipped = True

    def _keep(self, line: bytes) -> None:
        fits = len(self._first) < self._max_first and self._first_size + len(line) <= MAX_HALF_SIZE
        if fits and not self._last and not self._omitted:
            self._first.append(line)
            self._first_size += len(line)
            return
        self._last.append(line)
        self._last_size += len(line)
        while len(self._last) > self._max_last or self._last_size > MAX_HALF_SIZE:
            self._last_size -= len(self._last.popleft())
            self._omitted += 1
