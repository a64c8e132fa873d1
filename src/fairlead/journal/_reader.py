"""Reads the journal: forwards from a position, backwards from its end, and while records are appended.

Reading takes no lock and writes nothing, so any process can read while the daemon appends. A line is read only once its
newline is written. Segments are read in the order of their numbers. A segment exists only when all earlier ones are
complete.
"""

from __future__ import annotations

import os
from contextlib import suppress

import msgspec

from fairlead.journal._lines import decode
from fairlead.paths import state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairlead.journal._records import Record

BLOCK_SIZE = 256 * 1024

_SUFFIX = ".jsonl"
_DIGITS = 8


class Position(msgspec.Struct, frozen=True, order=True):
    """A position between two records of the journal."""

    segment: int
    """The number of the segment, a file of the journal. The first one is 1."""
    offset: int
    """Bytes from the start of that segment."""


class _EventKey(msgspec.Struct, tag_field="kind", tag="event"):
    id: str


class _CommandsKey(msgspec.Struct, tag_field="kind", tag="done"):
    id: str


_decode_key = msgspec.json.Decoder(_EventKey | _CommandsKey).decode


def journal_folder() -> str:
    """Return the path of this user's journal, a folder."""
    return f"{state_folder()}/journal"


class JournalReader:
    """Read-only access to a journal. It does not need a daemon."""

    def __init__(self, folder: str) -> None:
        """Use the journal in a folder, which need not exist yet."""
        self.folder = folder
        self.broken_lines = 0
        """The number of lines that were skipped so far, because they are not records."""

    def read(self, after: Position | None = None) -> Iterator[tuple[Position, Record]]:
        """Yield the records after a position, up to the current end, each with the position after it.

        `None` starts at the first record. If the journal ends before that position, because its folder was removed or
        the machine lost power, records are yielded from the start of the journal or of that segment. So a caller may
        get a record twice, and must recognize it by its id.
        """
        for position, line in self._lines(after):
            record = self._decode(line)
            if record is not None:
                yield position, record

    def follow(self, wait: Callable[[], bool], after: Position | None = None) -> Iterator[tuple[Position, Record]]:
        """Yield records like `read`.

        At the end, call `wait`, which waits for more: read on if it returns `True`, else stop.
        """
        while True:
            for position, line in self._lines(after):
                after = position
                record = self._decode(line)
                if record is not None:
                    yield position, record
            if not wait():
                return

    def read_backwards(self) -> Iterator[tuple[Position, Record]]:
        """Yield the records, newest first, each with the position after it."""
        for position, line in self._lines_backwards():
            record = self._decode(line)
            if record is not None:
                yield position, record

    def tail(self, count: int) -> list[tuple[Position, Record]]:
        """Return the last `count` records, newest last, each with the position after it."""
        newest = [item for item, _ in zip(self.read_backwards(), range(count), strict=False)] if count > 0 else []
        return newest[::-1]

    def start_of_tail(self, count: int) -> Position:
        """Return the position before the last `count` lines; `Position(0, 0)` if there are no more lines than that."""
        positions = (position for position, _ in self._lines_backwards())
        return next((position for number, position in enumerate(positions) if number == count), Position(0, 0))

    def size_after(self, position: Position) -> int:
        """Return how many bytes follow a position. Only the sizes of files are read."""
        size = 0
        for number in self.segments():
            if number >= position.segment:
                with suppress(FileNotFoundError):
                    size += os.stat(self.segment_path(number)).st_size
        return max(0, size - position.offset)

    def recent_keys(self, count: int) -> list[str]:
        """Return the keys of the last `count` records that have one (see `record_key`), newest last.

        They show which records of the spool are in the journal already.
        """
        keys: list[str] = []
        for _, line in self._lines_backwards():
            if len(keys) >= count:
                break
            with suppress(ValueError, RecursionError):
                key = _decode_key(line)
                keys.append(key.id if isinstance(key, _EventKey) else f"{key.id}.done")
        return keys[::-1]

    def end(self) -> Position:
        """Return the position after the last complete line; `Position(0, 0)` for an empty journal."""
        return next((position for position, _ in self._lines_backwards()), Position(0, 0))

    def segments(self) -> list[int]:
        """Return the numbers of the segments, oldest first."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return sorted(number for number in map(_segment_number, names) if number)

    def segment_path(self, number: int) -> str:
        """Return the path of the segment with a number."""
        return f"{self.folder}/{number:0{_DIGITS}}{_SUFFIX}"

    # -- lines -----------------------------------------------------------------------------------------

    def _decode(self, line: bytes) -> Record | None:
        try:
            return decode(line)
        except (ValueError, RecursionError):
            self.broken_lines += bool(line)  # an empty line only ends a line that a crash left incomplete
            return None

    def _lines(self, after: Position | None) -> Iterator[tuple[Position, bytes]]:
        numbers = self.segments()  # listed before any is read: all but the last are complete
        if after is None or (numbers and after.segment > numbers[-1]):
            after = Position(0, 0)
        for number in numbers:
            if number >= after.segment:
                yield from self._segment_lines(number, after.offset if number == after.segment else 0)

    def _segment_lines(self, number: int, offset: int) -> Iterator[tuple[Position, bytes]]:
        try:
            file = open(self.segment_path(number), "rb", buffering=0)  # noqa: SIM115 - closed below
        except FileNotFoundError:  # pruned since it was listed
            return
        with file:
            if offset > os.fstat(file.fileno()).st_size:
                offset = 0
            file.seek(offset)
            rest = b""
            while block := file.read(BLOCK_SIZE):
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    offset += len(line) + 1
                    yield Position(number, offset), line

    def _lines_backwards(self) -> Iterator[tuple[Position, bytes]]:
        for number in reversed(self.segments()):
            try:
                file = open(self.segment_path(number), "rb", buffering=0)  # noqa: SIM115 - closed below
            except FileNotFoundError:
                continue
            with file:
                yield from _file_lines_backwards(file.fileno(), number)


def _file_lines_backwards(file: int, number: int) -> Iterator[tuple[Position, bytes]]:
    start = os.fstat(file).st_size
    rest = b""  # the end of a line whose beginning has not been read yet
    end = 0  # the offset after that line; 0 until the first newline was seen
    while start:
        size = min(BLOCK_SIZE, start)
        start -= size
        block = os.pread(file, size, start)
        if len(block) < size:  # truncated meanwhile
            return
        lines = (block + rest).split(b"\n")
        if not end:
            incomplete = lines.pop()  # a line without a newline does not count yet
            if not lines:
                continue
            end = start + size - len(incomplete)
        for line in reversed(lines[1:]):
            yield Position(number, end), line
            end -= len(line) + 1
        rest = lines[0]
    if end:
        yield Position(number, end), rest


def _segment_number(name: str) -> int:
    digits = name.removesuffix(_SUFFIX)
    return int(digits) if name.endswith(_SUFFIX) and len(digits) == _DIGITS and digits.isdecimal() else 0
