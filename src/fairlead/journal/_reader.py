"""Reads the journal: forwards from a position, backwards from its end, and as it grows.

Takes no lock and writes nothing, so that any process can read while the daemon appends. A line counts once its end is
there; segments are read in the order of their numbers, and a later one exists only when all before it are complete.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from fairlead.journal._lines import decode
from fairlead.paths import state_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairlead.journal._records import Record

BLOCK = 256 * 1024
"""Bytes that are read at once."""

_SUFFIX = ".jsonl"
_DIGITS = 8


class Position(msgspec.Struct, frozen=True, order=True):
    """A place between two records. What is read after it has not been read before it."""

    segment: int
    offset: int


class _Named(msgspec.Struct, tag_field="kind", tag="event"):
    id: str


class _NamedDone(msgspec.Struct, tag_field="kind", tag="done"):
    id: str


_name = msgspec.json.Decoder(_Named | _NamedDone).decode


def journal_folder() -> str:
    """Give the folder of this user's journal."""
    return f"{state_folder()}/journal"


class Reader:
    """A journal, for those who only look."""

    def __init__(self, folder: str) -> None:
        """Look into that folder; it need not exist yet."""
        self.folder = folder
        self.broken = 0
        """Lines that were skipped so far, because they are no records."""

    def read(self, after: Position | None = None) -> Iterator[tuple[Position, Record]]:
        """Give what was recorded after a position, up to the end as it is now, each with the position behind it.

        If the journal is shorter than that (its folder was removed, or the machine lost power), all that is left is
        given, and so perhaps again: whoever takes it must know records by their ids.
        """
        for position, line in self._lines(after):
            record = self._record(line)
            if record is not None:
                yield position, record

    def follow(self, wait: Callable[[], bool], after: Position | None = None) -> Iterator[tuple[Position, Record]]:
        """Like `read`, but at the end call `wait` and look again. Ends when that gives `False`."""
        while True:
            for position, line in self._lines(after):
                after = position
                record = self._record(line)
                if record is not None:
                    yield position, record
            if not wait():
                return

    def backwards(self) -> Iterator[tuple[Position, Record]]:
        """Give what was recorded, the newest first, each with the position behind it."""
        for position, line in self._lines_backwards():
            record = self._record(line)
            if record is not None:
                yield position, record

    def tail(self, count: int) -> list[tuple[Position, Record]]:
        """Give the last records, the newest last."""
        newest = [found for found, _ in zip(self.backwards(), range(count), strict=False)] if count > 0 else []
        return newest[::-1]

    def ids(self, newest: int) -> list[str]:
        """Give the names (see `name_of`) of the last so many records that have one, the newest last.

        A record that was put into the spool by one who did not know that it is here already has the same name.
        """
        names: list[str] = []
        for _, line in self._lines_backwards():
            if len(names) >= newest:
                break
            with suppress(ValueError, RecursionError):
                named = _name(line)
                names.append(named.id if isinstance(named, _Named) else f"{named.id}.done")
        return names[::-1]

    def end(self) -> Position:
        """Give the position behind the last whole line."""
        return next((position for position, _ in self._lines_backwards()), Position(0, 0))

    def segments(self) -> list[int]:
        """Give the numbers of the segments, the oldest first."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return sorted(number for number in map(_number, names) if number)

    def path(self, number: int) -> str:
        """Give the file of a segment."""
        return f"{self.folder}/{number:0{_DIGITS}}{_SUFFIX}"

    # -- lines -----------------------------------------------------------------------------------------

    def _record(self, line: bytes) -> Record | None:
        try:
            return decode(line)
        except (ValueError, RecursionError):
            self.broken += bool(line)  # an empty one ends a line that was begun, or seemed to be
            return None

    def _lines(self, after: Position | None) -> Iterator[tuple[Position, bytes]]:
        numbers = self.segments()  # before any of them is read: all but the last are complete
        if after is None or (numbers and after.segment > numbers[-1]):
            after = Position(0, 0)
        for number in numbers:
            if number >= after.segment:
                yield from self._segment(number, after.offset if number == after.segment else 0)

    def _segment(self, number: int, offset: int) -> Iterator[tuple[Position, bytes]]:
        try:
            file = open(self.path(number), "rb", buffering=0)  # noqa: SIM115 - likewise; closed below
        except FileNotFoundError:  # swept since it was listed
            return
        with file:
            if offset > os.fstat(file.fileno()).st_size:
                offset = 0
            file.seek(offset)
            rest = b""
            while block := file.read(BLOCK):
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    offset += len(line) + 1
                    yield Position(number, offset), line

    def _lines_backwards(self) -> Iterator[tuple[Position, bytes]]:
        for number in reversed(self.segments()):
            yield from self._segment_backwards(number)

    def _segment_backwards(self, number: int) -> Iterator[tuple[Position, bytes]]:
        try:
            file = open(self.path(number), "rb", buffering=0)  # noqa: SIM115 - likewise
        except FileNotFoundError:
            return
        with file:
            yield from _backwards(file.fileno(), number)


def _backwards(file: int, number: int) -> Iterator[tuple[Position, bytes]]:
    start = os.fstat(file).st_size
    rest = b""  # of a line whose beginning has not been read yet
    end = 0  # behind that line; 0 until the end of one was seen
    while start:
        size = min(BLOCK, start)
        start -= size
        block = os.pread(file, size, start)
        if len(block) < size:  # cut off meanwhile
            return
        lines = (block + rest).split(b"\n")
        if not end:
            begun = lines.pop()  # a line without its end is none yet
            if not lines:
                continue
            end = start + size - len(begun)
        for line in reversed(lines[1:]):
            yield Position(number, end), line
            end -= len(line) + 1
        rest = lines[0]
    if end:
        yield Position(number, end), rest


def _number(name: str) -> int:
    digits = name.removesuffix(_SUFFIX)
    return int(digits) if name.endswith(_SUFFIX) and len(digits) == _DIGITS and digits.isdecimal() else 0
