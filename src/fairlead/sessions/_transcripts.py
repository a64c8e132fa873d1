"""What a subagent has used, from its transcript: the file in which the client keeps what was said. Nothing else tells.

A transcript is one JSON object a line. It grows while the subagent works, and can become large; so it is read on from
where the last reading ended, a bounded part at a time, and by whole lines only. The client writes a message of the
model in several lines, one for each of its parts, all with the message's id and figures: a message counts once, as the
last of its lines has it. A fork begins with a copy of the message that made it, which is its maker's.

Whatever path an event names, only a regular file of this user's in the client's own folder of transcripts is read.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

from fairlead.events import decode_json
from fairlead.sessions._limits import LONGEST_ID, clean
from fairlead.sessions._usage import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_AT_ONCE = 8 * 1024 * 1024
"""Bytes of one reading, of all files together. The rest is for the next."""
LONGEST_LINE = 1024 * 1024
"""Bytes; what is longer is a picture, or a file that was written whole. It is passed over."""

_MOST_READINGS = 500
_MOST_MESSAGES = 32
"""Messages of a file whose figures may still change."""
_MOST_TOKENS = 10**12
_FIGURES = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_NONE = (0, 0, 0, 0)
_FORK = "fork-context-ref"
"""The type of the line that stands before what a fork has of its maker; a user's line ends it."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def transcripts_folder() -> str:
    """Give the folder in which the client keeps transcripts, of all projects."""
    own = os.environ.get("CLAUDE_CONFIG_DIR")
    return f"{own or os.path.expanduser('~/.claude')}/projects"


class Transcripts:
    """Transcripts of subagents, each read up to some place. For one thread at a time."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder or transcripts_folder()
        self._readings: dict[str, _Reading] = {}
        self.behind: frozenset[str] = frozenset()
        """Of the files of the last reading, those of which something is left for the next."""

    def read(self, files: Mapping[str, str]) -> dict[str, Usage]:
        """Read on in files, each under a name of the caller's; give the figures of those that have some.

        What is missing, foreign or no transcript is left out. Raises nothing.
        """
        found: dict[str, Usage] = {}
        behind: set[str] = set()
        left = MOST_AT_ONCE
        for name, path in files.items():
            reading = self._readings.pop(path, None) or _Reading()
            left -= self._read_on(reading, path, left)
            self._readings[path] = reading
            if usage := reading.usage():
                found[name] = usage
            if reading.is_behind:
                behind.add(name)
        self.behind = frozenset(behind)
        while len(self._readings) > _MOST_READINGS:
            del self._readings[next(iter(self._readings))]
        return found

    def _read_on(self, reading: _Reading, path: str, most: int) -> int:
        try:
            descriptor = self._open(path)
        except (OSError, ValueError):  # a path can hold what no path can
            return 0
        try:
            return reading.read_on(descriptor, most)
        except OSError:
            return 0
        finally:
            os.close(descriptor)

    def _open(self, path: str) -> int:
        real, folder = os.path.realpath(path), os.path.realpath(self._folder)
        if not os.path.isabs(path) or not real.startswith(f"{folder}/"):
            raise ValueError("outside of the client's folder")
        return os.open(real, _FLAGS)


class _Reading:
    """How far a file was read, and what was found in it."""

    def __init__(self) -> None:
        self._begin(None)

    def _begin(self, file: tuple[int, int] | None) -> None:
        self._file = file
        self._offset = 0
        self._in_long_line = False
        self._is_copied = False
        self._messages: dict[str, tuple[int, ...]] = {}
        self._sums = list(_NONE)
        self._last: tuple[int, ...] = _NONE
        self._model = ""
        self.is_behind = False

    def usage(self) -> Usage | None:
        """Give what was found; `None` if no message was."""
        if not any(self._last):
            return None
        return Usage(
            model=self._model or None,
            tokens=sum(self._sums),
            output_tokens=self._sums[1],
            cached_tokens=self._sums[2],
            context_tokens=sum(self._last),
        )

    def read_on(self, descriptor: int, most: int) -> int:
        """Read so many bytes at most; tell how many it were."""
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
            return 0
        file = (status.st_dev, status.st_ino)
        if file != self._file or status.st_size < self._offset:  # it was made anew, or cut
            self._begin(file)
        done, size = 0, 1
        while size and done < most and self._offset < status.st_size:
            size = self._take(os.pread(descriptor, LONGEST_LINE, self._offset))
            self._offset += size
            done += size
        self.is_behind = size > 0 and self._offset < status.st_size
        return done

    def _take(self, chunk: bytes) -> int:
        """Take in the whole lines of a chunk; tell how many bytes are done with."""
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._in_long_line = self._in_long_line or len(chunk) == LONGEST_LINE
            return len(chunk) if self._in_long_line else 0
        begin = chunk.index(b"\n") + 1 if self._in_long_line else 0
        self._in_long_line = False
        for line in chunk[begin:end].split(b"\n"):
            if b'"usage"' in line or self._is_copied or _FORK.encode() in line:
                self._take_line(line)
        return end

    def _take_line(self, line: bytes) -> None:
        try:
            told = decode_json(line)
        except (ValueError, RecursionError):
            return
        kind = told.get("type") if isinstance(told, dict) else None
        if kind in (_FORK, "user"):
            self._is_copied = kind == _FORK
        elif kind == "assistant" and not self._is_copied:
            self._take_message(_part(told, "message"))

    def _take_message(self, message: dict[str, Any]) -> None:
        name, model, usage = message.get("id"), message.get("model"), _part(message, "usage")
        figures = tuple(_figure(usage.get(figure)) for figure in _FIGURES)
        if not isinstance(name, str) or not any(figures):  # an error that the client words as a message has none
            return
        name = clean(name, LONGEST_ID)
        counted = self._messages.pop(name, _NONE)
        self._messages[name] = figures
        if len(self._messages) > _MOST_MESSAGES:
            del self._messages[next(iter(self._messages))]
        self._sums = [total + new - old for total, new, old in zip(self._sums, figures, counted, strict=True)]
        self._last = figures
        self._model = clean(model) if isinstance(model, str) else ""


def _part(of: dict[str, Any], name: str) -> dict[str, Any]:
    part = of.get(name)
    return part if isinstance(part, dict) else {}


def _figure(value: object) -> int:
    return value if type(value) is int and 0 <= value < _MOST_TOKENS else 0
