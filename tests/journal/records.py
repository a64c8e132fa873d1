"""Sample records, and processes that write them."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

from fairlead.journal import CommandsRecord, EventRecord, JournalReader, Record

if TYPE_CHECKING:
    from pathlib import Path


def event(number: int, **fields: Any) -> EventRecord:
    return EventRecord(**{"id": f"{number:016x}-{'a' * 8}", "at": float(number), "event": "PreToolUse", **fields})


def commands(number: int, **fields: Any) -> CommandsRecord:
    return CommandsRecord(**{"id": f"{number:016x}-{'a' * 8}", "at": float(number), **fields})


def numbers(records: Any) -> list[int]:
    """The numbers that `event` and `commands` were called with; of pairs, the second is the record."""
    return [int(record.id[:16], 16) for _, record in records]


def read(folder: Path) -> list[Record]:
    """All records of a journal; fails if a line is not a record."""
    reader = JournalReader(str(folder))
    records = [record for _, record in reader.read()]
    assert reader.broken_lines == 0
    return records


def python(program: str, *args: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-I", "-c", program, *map(str, args)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
