"""What a subagent of Claude Code has used, from its transcript. Nothing else tells.

A transcript is one JSON object a line. It grows while the subagent works, and can become large, so each reading goes on
where the last one ended, takes a bounded part, and whole lines only. The client writes a message of the model in
several lines, one for each of its parts, all with the message's id and figures: a message counts once, by its last
line. A fork starts with a copy of the message that made it, which counts for its maker.

Only a regular file of this user in the client's own folder of transcripts is read, whatever path an event names.
"""

from __future__ import annotations

import os
import stat

from fairlead.clients._reports import Usage
from fairlead.clients._text import MAX_ID, clean
from fairlead.clients.claude._environment import own_folder
from fairlead.events import decode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

BATCH_SIZE = 8 * 1024 * 1024
"""Bytes of one reading, of all files together. The rest is left for the next."""
MAX_LINE_LENGTH = 1024 * 1024
"""Bytes. A longer line is a picture, or a file that was written whole; it is skipped."""

_MAX_READINGS = 500
_MAX_MESSAGES = 32
"""Messages of a file whose figures may still change."""
_MAX_TOKENS = 10**12
_FIGURES = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_ZEROS = (0, 0, 0, 0)
_FORK = "fork-context-ref"
"""The type of the line before what a fork has copied from its maker; a line of the user ends the copy."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def transcripts_folder() -> str:
    """Return the folder in which the client keeps the transcripts of all projects."""
    return f"{own_folder()}/projects"


def subagent_transcript(transcript: str, agent_id: str) -> str:
    """Return where the client writes the transcript of a subagent, by that of its session."""
    return f"{transcript.removesuffix('.jsonl')}/subagents/agent-{agent_id}.jsonl" if transcript else ""


def open_transcript(path: str, folder: str | None = None) -> int:
    """Open a transcript to read. Raises `ValueError` for a file outside the folder, `OSError` if it cannot be read."""
    real, inside = os.path.realpath(path), os.path.realpath(folder or transcripts_folder())
    if not os.path.isabs(path) or not real.startswith(f"{inside}/"):
        raise ValueError("outside the client's folder")
    return os.open(real, _FLAGS)


class Transcripts:
    """Transcripts of subagents, each read up to an offset. For one thread at a time."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder or transcripts_folder()
        self._readings: dict[str, _Reading] = {}
        self.behind: frozenset[str] = frozenset()
        """Of the files of the last reading, those of which a part is left for the next."""

    def read(self, files: Mapping[str, str]) -> dict[str, Usage]:
        """Read on in files; return the usage of those that have some, by the caller's names.

        What is missing, outside the folder or not a transcript is left out. Raises nothing.
        """
        usages: dict[str, Usage] = {}
        behind: set[str] = set()
        left = BATCH_SIZE
        for name, path in files.items():
            reading = self._readings.pop(path, None) or _Reading()
            left -= self._read_on(reading, path, left)
            self._readings[path] = reading
            if usage := reading.usage():
                usages[name] = usage
            if reading.is_behind:
                behind.add(name)
        self.behind = frozenset(behind)
        while len(self._readings) > _MAX_READINGS:
            del self._readings[next(iter(self._readings))]
        return usages

    def _read_on(self, reading: _Reading, path: str, limit: int) -> int:
        try:
            descriptor = self._open(path)
        except (OSError, ValueError):  # an event can name what is no path
            return 0
        try:
            return reading.read_on(descriptor, limit)
        except OSError:
            return 0
        finally:
            os.close(descriptor)

    def _open(self, path: str) -> int:
        return open_transcript(path, self._folder)


class _Reading:
    """How far a file was read, and the figures so far."""

    def __init__(self) -> None:
        self._start(None)

    def _start(self, file: tuple[int, int] | None) -> None:
        self._file = file
        self._offset = 0
        self._in_long_line = False
        self._is_copied = False
        self._messages: dict[str, tuple[int, ...]] = {}
        self._sums = list(_ZEROS)
        self._last: tuple[int, ...] = _ZEROS
        self._model = ""
        self.is_behind = False

    def usage(self) -> Usage | None:
        """Return the figures so far; `None` if there was no message."""
        if not any(self._last):
            return None
        return Usage(
            model=self._model or None,
            tokens=sum(self._sums),
            output_tokens=self._sums[1],
            cached_tokens=self._sums[2],
            context_tokens=sum(self._last),
        )

    def read_on(self, descriptor: int, limit: int) -> int:
        """Read at most `limit` bytes; return how many were read."""
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
            return 0
        file = (status.st_dev, status.st_ino)
        if file != self._file or status.st_size < self._offset:  # it was replaced, or cut
            self._start(file)
        done, size = 0, 1
        while size and done < limit and self._offset < status.st_size:
            size = self._take(os.pread(descriptor, MAX_LINE_LENGTH, self._offset))
            self._offset += size
            done += size
        self.is_behind = size > 0 and self._offset < status.st_size
        return done

    def _take(self, chunk: bytes) -> int:
        """Take in the whole lines of a chunk; return how many bytes are done with."""
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._in_long_line = self._in_long_line or len(chunk) == MAX_LINE_LENGTH
            return len(chunk) if self._in_long_line else 0
        start = chunk.index(b"\n") + 1 if self._in_long_line else 0
        self._in_long_line = False
        for line in chunk[start:end].split(b"\n"):
            if b'"usage"' in line or self._is_copied or _FORK.encode() in line:
                self._take_line(line)
        return end

    def _take_line(self, line: bytes) -> None:
        try:
            document = decode_json(line)
        except (ValueError, RecursionError):
            return
        kind = document.get("type") if isinstance(document, dict) else None
        if kind in (_FORK, "user"):
            self._is_copied = kind == _FORK
        elif kind == "assistant" and not self._is_copied:
            self._take_message(_object(document, "message"))

    def _take_message(self, message: dict[str, Any]) -> None:
        name, model, usage = message.get("id"), message.get("model"), _object(message, "usage")
        figures = tuple(_figure(usage.get(figure)) for figure in _FIGURES)
        if not isinstance(name, str) or not any(figures):  # an error that the client writes as a message has none
            return
        name = clean(name, MAX_ID)
        counted = self._messages.pop(name, _ZEROS)
        self._messages[name] = figures
        if len(self._messages) > _MAX_MESSAGES:
            del self._messages[next(iter(self._messages))]
        self._sums = [total + new - old for total, new, old in zip(self._sums, figures, counted, strict=True)]
        self._last = figures
        self._model = clean(model) if isinstance(model, str) else ""


def _object(document: dict[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _figure(value: object) -> int:
    return value if type(value) is int and 0 <= value < _MAX_TOKENS else 0
