"""Reads the token usage of Claude Code's subagents from their transcripts, the only source for it.

A transcript has one JSON object per line. It grows while the subagent works, and can become large. So each `read`
continues where the previous one ended, and reads a limited number of whole lines. The client writes a message of the
model as several lines, one for each part, all with the id and usage of the message: a message counts once, by its last
line. The transcript of a fork starts with a copy of the message that created it, which counts only for its parent.

Only a regular file of this user in the client's own folder of transcripts is read, whatever path an event names.
"""

from __future__ import annotations

import os
import stat

from fairlead.clients._reports import Usage
from fairlead.clients.claude._environment import current_config_folder
from fairlead.clients.claude._fields import MAX_ID, MAX_TEXT, object_of, text_of
from fairlead.events import decode_json
from fairlead.text import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

BATCH_SIZE = 8 * 1024 * 1024
"""Bytes of all files together that one `read` takes. The next one continues there."""
MAX_LINE_LENGTH = 1024 * 1024
"""The longest line that is read, in bytes. A longer one, such as a picture or the content of a file, is skipped."""

_MAX_STATES = 500
_MAX_MESSAGES = 32
"""How many of the latest messages of a file are remembered, because their usage may still change."""
_MAX_TOKENS = 10**12
_FIGURES = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_ZEROS = (0, 0, 0, 0)
_FORK = "fork-context-ref"
"""The type of the line before the messages that a fork has copied from its parent. A line of the user ends the copy."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def transcripts_folder() -> str:
    """Return the client's folder of transcripts, for all projects."""
    return f"{current_config_folder()}/projects"


def subagent_transcript(transcript: str, agent_id: str) -> str:
    """Return the path of a subagent's transcript; "" if `transcript`, the path of its session's, is empty."""
    return f"{transcript.removesuffix('.jsonl')}/subagents/agent-{agent_id}.jsonl" if transcript else ""


def open_transcript(path: str, folder: str | None = None) -> int:
    """Open a transcript for reading, and return its file descriptor. Raise `OSError` if that fails.

    Raise `ValueError` for a file outside of `folder`, by default the client's folder of transcripts.
    """
    real, inside = os.path.realpath(path), os.path.realpath(folder or transcripts_folder())
    if not os.path.isabs(path) or not real.startswith(f"{inside}/"):
        raise ValueError("outside the client's folder")
    return os.open(real, _FLAGS)


class Transcripts:
    """Reads transcripts of subagents, each from the end of the previous `read`. For one thread at a time."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder or transcripts_folder()
        self._states: dict[str, _TranscriptState] = {}
        self.unfinished: frozenset[str] = frozenset()
        """The names of the files that the last `read` has not read to their end."""

    def read(self, files: Mapping[str, str]) -> dict[str, Usage]:
        """Read files, given as name → path. Return the usage of each file that has any, by name.

        Missing files, files outside the folder and files that are not transcripts are left out. Never raises.
        """
        usages: dict[str, Usage] = {}
        unfinished: set[str] = set()
        left = BATCH_SIZE
        for name, path in files.items():
            state = self._states.pop(path, None) or _TranscriptState()
            left -= self._read_on(state, path, left)
            self._states[path] = state
            if usage := state.usage():
                usages[name] = usage
            if state.is_unfinished:
                unfinished.add(name)
        self.unfinished = frozenset(unfinished)
        while len(self._states) > _MAX_STATES:
            del self._states[next(iter(self._states))]
        return usages

    def _read_on(self, state: _TranscriptState, path: str, limit: int) -> int:
        try:
            descriptor = self._open(path)
        except (OSError, ValueError):  # an event may contain an invalid path
            return 0
        try:
            return state.read_on(descriptor, limit)
        except OSError:
            return 0
        finally:
            os.close(descriptor)

    def _open(self, path: str) -> int:
        return open_transcript(path, self._folder)


class _TranscriptState:
    """The offset up to which a file was read, and its usage so far."""

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
        self.is_unfinished = False

    def usage(self) -> Usage | None:
        """Return the usage of the messages read so far; `None` if none of them had any."""
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
        """Continue to read until `limit` bytes or the end are reached. Return the number of bytes that were read."""
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
            return 0
        file = (status.st_dev, status.st_ino)
        if file != self._file or status.st_size < self._offset:  # replaced or truncated
            self._start(file)
        done, size = 0, 1
        while size and done < limit and self._offset < status.st_size:
            size = self._process(os.pread(descriptor, MAX_LINE_LENGTH, self._offset))
            self._offset += size
            done += size
        self.is_unfinished = size > 0 and self._offset < status.st_size
        return done

    def _process(self, chunk: bytes) -> int:
        """Process the complete lines of a chunk. Return how many bytes were processed."""
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._in_long_line = self._in_long_line or len(chunk) == MAX_LINE_LENGTH
            return len(chunk) if self._in_long_line else 0
        start = chunk.index(b"\n") + 1 if self._in_long_line else 0
        self._in_long_line = False
        for line in chunk[start:end].split(b"\n"):
            if b'"usage"' in line or self._is_copied or _FORK.encode() in line:
                self._process_line(line)
        return end

    def _process_line(self, line: bytes) -> None:
        try:
            document = decode_json(line)
        except (ValueError, RecursionError):
            return
        kind = document.get("type") if isinstance(document, dict) else None
        if kind in (_FORK, "user"):
            self._is_copied = kind == _FORK
        elif kind == "assistant" and not self._is_copied:
            self._process_message(object_of(document, "message"))

    def _process_message(self, message: dict[str, Any]) -> None:
        name, usage = message.get("id"), object_of(message, "usage")
        figures = tuple(_figure(usage.get(figure)) for figure in _FIGURES)
        if not isinstance(name, str) or not any(figures):  # the client writes errors as messages without usage
            return
        name = cut(name, MAX_ID)
        counted = self._messages.pop(name, _ZEROS)
        self._messages[name] = figures
        if len(self._messages) > _MAX_MESSAGES:
            del self._messages[next(iter(self._messages))]
        self._sums = [total + new - old for total, new, old in zip(self._sums, figures, counted, strict=True)]
        self._last = figures
        self._model = cut(text_of(message, "model"), MAX_TEXT)


def _figure(value: object) -> int:
    return value if type(value) is int and 0 <= value < _MAX_TOKENS else 0
