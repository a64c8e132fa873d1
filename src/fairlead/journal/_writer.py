"""Appends records to the journal, each record or batch of records by one write.

An appended record survives the end of the process, even by a signal. It is not synced to the disk, so a power failure
may lose the latest records. Only one process may write: the daemon, which is alone because it holds the daemon's lock.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from contextlib import suppress
from time import time

import msgspec

from fairlead.durations import DAY
from fairlead.journal._errors import JournalError
from fairlead.journal._lines import MAX_LINE_BYTES, decode, encode
from fairlead.journal._reader import BLOCK_SIZE, JournalReader, Position
from fairlead.paths import make_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.journal._records import Record

SEGMENT_BYTES = 16 * 1024 * 1024
"""The maximum size of a segment in bytes. A record that would exceed it starts the next segment."""


SEGMENT_AGE = DAY
"""Seconds after which the next segment is started, even if there is room.

Old records are deleted by whole segments, so a segment must not contain the records of many days.
"""


class Recovery(msgspec.Struct, frozen=True):
    """The result of cutting off an incomplete last line, which a killed writer had left."""

    file: str
    """The path of the segment."""
    size: int
    """The number of bytes that were cut off."""


class Journal(JournalReader):
    """Read and write access to a journal. Several threads may append at the same time."""

    def __init__(self, folder: str, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        """Use the journal in a folder. Nothing is opened or created before the first record is appended."""
        super().__init__(folder)
        self._segment_bytes = segment_bytes
        self._lock = allocate_lock()
        self._file = -1
        self._current = 0
        self._began = 0.0
        """The Unix time of the first record in the current segment."""
        self._ends_incomplete = False
        """Whether the file ends in an incomplete line that could not be cut off."""

    def append(self, record: Record, *, brief: bool = False) -> Position:
        """Append a record, and return the position after it. Raise `JournalError` if nothing could be written.

        With `brief`, only the identifying fields of its payload are kept.
        """
        return self._append(encode(record, brief=brief))

    def append_all(self, records: Iterable[Record], *, brief: bool = False) -> Position:
        """Append several records by one write, all or none of them, and return the position after them.

        `brief` and errors are those of `append`.
        """
        return self._append(b"".join(encode(record, brief=brief) for record in records))

    def _append(self, lines: bytes) -> Position:
        with self._lock:
            try:
                end = self._open_segment_for(len(lines))
                if self._ends_incomplete:
                    self._write(b"\n")
                    self._ends_incomplete = False
                    end += 1
                self._write(lines)
                return Position(self._current, end + len(lines))
            except OSError as error:
                path = self.segment_path(self._current) if self._current else self.folder
                raise JournalError(f"{path}: cannot be written: {error.strerror}; nothing was recorded") from error

    def recover(self) -> Recovery | None:
        """Cut off an incomplete last line, and return what was done; `None` if the last line is complete.

        Raise `JournalError` if the segment cannot be repaired. Call this only while no other process can write.
        """
        numbers = self.segments()
        if not numbers:
            return None
        path = self.segment_path(numbers[-1])
        try:
            size = _truncate_incomplete_line(path)
        except OSError as error:
            raise JournalError(f"{path}: cannot be repaired: {error.strerror}") from error
        return Recovery(path, size) if size else None

    def prune(self, *, older_than: float, max_bytes: int, keep_from: Position) -> list[str]:
        """Delete the oldest segments, and return their paths.

        Segments last written before `older_than` (Unix time) are deleted, and more until at most `max_bytes` are left.
        The newest segment is kept, and so is every segment from that of `keep_from` on, because the store has not read
        it yet.
        """
        segments = [(number, os.stat(self.segment_path(number))) for number in self.segments()]
        total = sum(stat.st_size for _, stat in segments)
        removed: list[str] = []
        for number, stat in segments[:-1]:
            if number >= keep_from.segment or (stat.st_mtime >= older_than and total <= max_bytes):
                break
            with suppress(FileNotFoundError):
                os.unlink(self.segment_path(number))
            total -= stat.st_size
            removed.append(self.segment_path(number))
        return removed

    def close(self) -> None:
        """Close the file. A later record opens it again."""
        with self._lock:
            self._close()

    # -- the file --------------------------------------------------------------------------------------

    def _open_segment_for(self, size: int) -> int:
        """Open a segment that has room for `size` more bytes, a new one if necessary, and return its size."""
        if self._file >= 0:
            stat = os.fstat(self._file)
            if stat.st_nlink and stat.st_size + size <= self._segment_bytes and not self._is_old():
                return stat.st_size
            number = self._current + 1 if stat.st_nlink else 0  # the file or the whole folder was removed
            self._close()
        else:
            number = 0
        make_private(self.folder)
        number = max(number, *self.segments(), 1)
        self._open(number)
        end = os.fstat(self._file).st_size
        if end and (end + size > self._segment_bytes or self._is_old()):
            self._close()
            self._open(number + 1)
            end = os.fstat(self._file).st_size
        return end

    def _open(self, number: int) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(self.segment_path(number), flags, 0o600)
        self._current = number
        size = os.fstat(self._file).st_size
        self._ends_incomplete = size > 0 and os.pread(self._file, 1, size - 1) != b"\n"
        self._began = _time_of_first(os.pread(self._file, MAX_LINE_BYTES, 0)) if size else time()

    def _is_old(self) -> bool:
        return time() - self._began > SEGMENT_AGE

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, data: bytes) -> None:
        """Write all of the data. If that fails, remove what was written, and raise `OSError`."""
        written = os.write(self._file, data)
        if written == len(data):
            return
        end = os.lseek(self._file, 0, os.SEEK_CUR)
        self._ends_incomplete = True
        if os.fstat(self._file).st_size == end:  # no other process has appended since, as none should
            with suppress(OSError):
                os.ftruncate(self._file, end - written)
                self._ends_incomplete = False
        raise OSError(0, f"only {written} of {len(data)} bytes were written; is the disk full?")


def _time_of_first(start: bytes) -> float:
    """Return the time of the first record of a segment, which begins with `start`; now if it cannot be decoded."""
    try:
        return min(decode(start.partition(b"\n")[0]).at, time())
    except (ValueError, RecursionError):
        return time()


def _truncate_incomplete_line(path: str) -> int:
    """Remove the bytes of a file after its last newline, and return their number."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        size = os.fstat(file).st_size
        complete = _end_of_last_line(file, size)
        if complete < size:
            os.ftruncate(file, complete)
        return size - complete
    finally:
        os.close(file)


def _end_of_last_line(file: int, size: int) -> int:
    """Return the offset after the last newline of an open file of `size` bytes; 0 if it has none."""
    while size:
        start = max(0, size - BLOCK_SIZE)
        newline = os.pread(file, size - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        size = start
    return 0
