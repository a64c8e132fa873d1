"""Appends to the journal: one write for each record, before the event is answered.

What was appended outlives the process, however that ends; it is not forced onto the disk, so the last second before a
loss of power may be gone. There is one writer, the daemon, which holds a lock of its own.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from fairlead.journal._errors import JournalError
from fairlead.journal._folder import make_folder
from fairlead.journal._lines import encode
from fairlead.journal._reader import BLOCK, Position, Reader

if TYPE_CHECKING:
    from fairlead.journal._records import Record

SEGMENT = 16 * 1024 * 1024
"""Bytes of a segment; the record that would go beyond them begins the next."""


class Recovered(msgspec.Struct, frozen=True):
    """What a writer left behind that was killed in the middle of a line."""

    file: str
    size: int
    """Bytes of the begun line, which were cut off."""


class Journal(Reader):
    """A journal, for the one who writes it. Can be used by several threads."""

    def __init__(self, folder: str, *, segment: int = SEGMENT) -> None:
        """Write into that folder. Nothing is opened or made before the first record."""
        super().__init__(folder)
        self._segment_size = segment
        self._lock = allocate_lock()
        self._file = -1
        self._current = 0
        self._is_begun = False
        """The file ends in a begun line that could not be cut off."""

    def append(self, record: Record) -> Position:
        """Write a record and give the position behind it. Raises `JournalError`, and then nothing is written."""
        line = encode(record)
        with self._lock:
            try:
                end = self._prepare(len(line))
                if self._is_begun:
                    self._write(b"\n")
                    self._is_begun = False
                    end += 1
                self._write(line)
                return Position(self._current, end + len(line))
            except OSError as error:
                where = self.path(self._current) if self._current else self.folder
                raise JournalError(f"{where}: cannot be written: {error.strerror}; nothing was recorded") from error

    def recover(self) -> Recovered | None:
        """Cut off a line that was begun and never ended, and say so. To be called before anyone else can write."""
        numbers = self.segments()
        if not numbers:
            return None
        path = self.path(numbers[-1])
        try:
            cut = _cut_begun(path)
        except OSError as error:
            raise JournalError(f"{path}: cannot be mended: {error.strerror}") from error
        return Recovered(path, cut) if cut else None

    def sweep(self, *, older_than: float, at_most_bytes: int, keep_from: Position) -> list[str]:
        """Remove the oldest segments, and give their files.

        Those go that were last written before `older_than` (Unix time), and as many more as the rest needs to have at
        most so many bytes. What the store has not taken (from `keep_from` on) stays, and so does the newest segment.
        """
        found = [(number, os.stat(self.path(number))) for number in self.segments()]
        left = sum(stat.st_size for _, stat in found)
        removed: list[str] = []
        for number, stat in found[:-1]:
            if number >= keep_from.segment or (stat.st_mtime >= older_than and left <= at_most_bytes):
                break
            with suppress(FileNotFoundError):
                os.unlink(self.path(number))
            left -= stat.st_size
            removed.append(self.path(number))
        return removed

    def close(self) -> None:
        """Close the file; a later record opens it again."""
        with self._lock:
            self._close()

    # -- the file --------------------------------------------------------------------------------------

    def _prepare(self, size: int) -> int:
        """Have a segment open that takes so many bytes more, and say where it ends."""
        if self._file >= 0:
            stat = os.fstat(self._file)
            if stat.st_nlink and stat.st_size + size <= self._segment_size:
                return stat.st_size
            number = self._current + 1 if stat.st_nlink else 0  # somebody removed the file, or all of the folder
            self._close()
        else:
            number = 0
        make_folder(self.folder)
        number = max(number, *self.segments(), 1)
        self._open(number)
        end = os.fstat(self._file).st_size
        if end and end + size > self._segment_size:
            self._close()
            self._open(number + 1)
            end = os.fstat(self._file).st_size
        return end

    def _open(self, number: int) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(self.path(number), flags, 0o600)
        self._current = number
        size = os.fstat(self._file).st_size
        self._is_begun = size > 0 and os.pread(self._file, 1, size - 1) != b"\n"

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, data: bytes) -> None:
        """Write all of it at once, or leave the file as it was."""
        written = os.write(self._file, data)
        if written == len(data):
            return
        end = os.lseek(self._file, 0, os.SEEK_CUR)
        self._is_begun = True
        if os.fstat(self._file).st_size == end:  # and nobody has appended since, as nobody should
            with suppress(OSError):
                os.ftruncate(self._file, end - written)
                self._is_begun = False
        raise OSError(0, f"only {written} of {len(data)} bytes fitted; is the disk full?")


def _cut_begun(path: str) -> int:
    """Cut off what follows the last whole line, and give its size."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        size = os.fstat(file).st_size
        whole = _end_of_lines(file, size)
        if whole < size:
            os.ftruncate(file, whole)
        return size - whole
    finally:
        os.close(file)


def _end_of_lines(file: int, size: int) -> int:
    """Find where the last whole line ends."""
    while size:
        start = max(0, size - BLOCK)
        newline = os.pread(file, size - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        size = start
    return 0
