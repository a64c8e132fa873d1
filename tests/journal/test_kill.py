"""Whoever was told that a record is written finds it, though the writer was killed right after, or in the middle."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from journal.making import happened, python, read

from fairlead.journal import EventRecord, Journal, put, remove, take

if TYPE_CHECKING:
    from pathlib import Path

WRITER = """
import os, sys, threading
from fairlead.journal import EventRecord, Journal, record_payload
journal = Journal(sys.argv[1], segment=200_000)
journal.recover()
payload, _ = record_payload(b'{"text": "' + b"x" * 3000 + b'"}')
def work(thread):
    for number in range(1_000_000):
        name = f"{sys.argv[2]}-{thread}-{number}"
        journal.append(EventRecord(id=name, at=1.0, event="PreToolUse", payload=payload))
        os.write(1, f"{name}\\n".encode())
for thread in range(4):
    threading.Thread(target=work, args=(thread,)).start()
"""


def test_no_record_that_was_acknowledged_is_lost_by_kill_9(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    chance = random.Random(1)  # noqa: S311 - no secret
    acknowledged: list[str] = []
    for number in range(30):
        writer = python(WRITER, folder, number)
        assert writer.stdout
        acknowledged += [writer.stdout.readline().strip() for _ in range(chance.randrange(1, 200))]
        writer.kill()
        acknowledged += writer.stdout.read().splitlines()
        writer.communicate()

    Journal(str(folder)).recover()
    found = [record.id for record in read(folder) if isinstance(record, EventRecord)]
    assert len(found) == len(set(found))
    assert set(acknowledged) <= set(found)
    assert len(found) - len(acknowledged) <= 30 * 4  # one a thread, written and not yet told


def test_an_event_that_is_in_the_journal_and_in_the_spool_is_taken_once(tmp_path: Path) -> None:
    """The daemon wrote it and was killed before it could answer; the launcher decided it again, and put it down."""
    journal, spool = Journal(str(tmp_path / "journal")), str(tmp_path / "spool")
    for number in (1, 2):
        journal.append(happened(number))
    for number in (2, 3):
        put(spool, happened(number, road="cold"))

    for _ in range(2):  # the second time, as one who was killed before it could remove them
        known = set(journal.ids(100))
        for name, record in take(spool):
            if name.removesuffix(".json") not in known:
                journal.append(record)
    for name, _ in take(spool):
        remove(spool, name)

    assert [(r.id, r.road) for r in read(tmp_path / "journal") if isinstance(r, EventRecord)] == [
        (happened(1).id, "daemon"),
        (happened(2).id, "daemon"),
        (happened(3).id, "cold"),
    ]
    assert list(take(spool)) == []
