"""A record whose write was acknowledged survives `kill -9`, right after the write or in the middle of the next."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from journal.records import event, python, read

from fairlead.journal import EventRecord, Journal, read_spool, remove_spooled, spool_record

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 15

WRITER = """
import os, sys, threading
from fairlead.journal import EventRecord, Journal, record_payload
journal = Journal(sys.argv[1], segment_bytes=200_000)
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
    chance = random.Random(1)
    acknowledged: list[str] = []
    for number in range(ROUNDS):
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
    assert len(found) - len(acknowledged) <= ROUNDS * 4  # one per thread, written and not yet acknowledged


def test_an_event_in_both_journal_and_spool_is_recorded_once(tmp_path: Path) -> None:
    """The daemon wrote it and was killed before it could answer; the launcher decided it again and spooled it."""
    journal, spool = Journal(str(tmp_path / "journal")), str(tmp_path / "spool")
    for number in (1, 2):
        journal.append(event(number))
    for number in (2, 3):
        spool_record(spool, event(number, route="cold"))

    for _ in range(2):  # the second time, like a daemon that was killed before it could remove them
        known = set(journal.recent_keys(100))
        for name, record in read_spool(spool):
            if name.removesuffix(".json") not in known:
                journal.append(record)
    for name, _ in read_spool(spool):
        remove_spooled(spool, name)

    assert [(r.id, r.route) for r in read(tmp_path / "journal") if isinstance(r, EventRecord)] == [
        (event(1).id, "daemon"),
        (event(2).id, "daemon"),
        (event(3).id, "cold"),
    ]
    assert list(read_spool(spool)) == []
