"""The spool keeps events that reached no daemon: in order, as complete files, up to a limit."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from journal.records import commands, event, numbers, python

from fairlead.journal import (
    CommandsRecord,
    EventRecord,
    JournalError,
    SpoolFull,
    count_spooled,
    read_spool,
    remove_spooled,
    spool_record,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "state/spool"


def test_records_are_read_oldest_first_and_a_commands_record_after_its_event(spool: Path) -> None:
    records: list[EventRecord | CommandsRecord] = [
        event(1),
        commands(1, verdict="blocked"),
        event(2),
        commands(3),
        event(255),
    ]
    for record in (records[3], records[1], records[4], records[2], records[0]):
        spool_record(str(spool), record)

    assert [record for _, record in read_spool(str(spool))] == records
    assert count_spooled(str(spool)) == 5
    for name, _ in read_spool(str(spool)):
        remove_spooled(str(spool), name)
        remove_spooled(str(spool), name)
    assert (count_spooled(str(spool)), list(spool.iterdir())) == (0, [])


def test_only_this_user_can_read_it(spool: Path) -> None:
    spool_record(str(spool), event(1))

    paths = (spool.parent, spool, spool / f"{event(1).id}.json")

    assert [path.stat().st_mode & 0o777 for path in paths] == [0o700, 0o700, 0o600]


def test_a_missing_spool_is_empty(spool: Path) -> None:
    assert (list(read_spool(str(spool))), count_spooled(str(spool))) == ([], 0)


def test_the_same_event_is_kept_once(spool: Path) -> None:
    spool_record(str(spool), event(1))
    spool_record(str(spool), event(1, verdict="blocked"))

    assert [record.verdict for _, record in read_spool(str(spool))] == ["blocked"]


@pytest.mark.parametrize("name", ["", "../1", "a/b", ".hidden", "1.done", "a" * 101, "ä", "a\n", "a\0"])
def test_an_id_that_could_be_another_file_is_refused(spool: Path, name: str) -> None:
    with pytest.raises(JournalError, match="is not a valid event id; nothing was recorded"):
        spool_record(str(spool), event(1, id=name))
    assert not spool.exists()


WRITER = """
import sys
from fairlead.journal import EventRecord, record_payload, spool_record
sys.stdin.readline()
payload, _ = record_payload(b'{"a": "' + b"x" * 3000 + b'"}')
for number in range(50):
    name = f"{number * 8 + int(sys.argv[2]):016x}"
    spool_record(sys.argv[1], EventRecord(id=name, at=1.0, event="Stop", payload=payload))
"""


def test_eight_processes_write_at_once_and_nothing_is_lost_or_incomplete(spool: Path) -> None:
    """Another process reads meanwhile, as the daemon would."""
    writers = [python(WRITER, spool, number) for number in range(8)]
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("go\n")
        writer.stdin.close()
    taken: list[int] = []
    while None in [writer.poll() for writer in writers] or count_spooled(str(spool)):
        for found in read_spool(str(spool)):
            taken += numbers([found])
            remove_spooled(str(spool), found[0])

    for writer in writers:
        assert writer.stdout
        writer.stdout.close()
    assert [writer.wait() for writer in writers] == [0] * 8
    assert sorted(taken) == list(range(400))
    assert list(spool.iterdir()) == []


# -- bounds --------------------------------------------------------------------------------------------


def test_beyond_10_000_files_the_spool_is_full_and_the_error_says_what_to_do(spool: Path) -> None:
    spool_record(str(spool), event(0))
    for number in range(1, 10_000):
        os.link(spool / f"{event(0).id}.json", spool / f"{event(number).id}.json")

    with pytest.raises(SpoolFull) as caught:
        spool_record(str(spool), event(10_000))

    assert str(caught.value) == (
        f"{spool}: the spool is full (10000 events wait for the daemon); nothing was recorded; "
        "start the daemon with `fairlead daemon start`"
    )
    assert len(list(spool.iterdir())) == 10_000
    remove_spooled(str(spool), f"{event(1).id}.json")
    spool_record(str(spool), event(10_000))


def test_beyond_64_mib_the_spool_is_full(spool: Path) -> None:
    spool_record(str(spool), event(0))
    with (spool / f"{event(0).id}.json").open("r+b") as file:
        file.truncate(30_000)
    for number in range(1, 3000):
        os.link(spool / f"{event(0).id}.json", spool / f"{event(number).id}.json")

    with pytest.raises(SpoolFull):
        spool_record(str(spool), event(3000))

    for number in range(1000, 3000):
        remove_spooled(str(spool), f"{event(number).id}.json")
    spool_record(str(spool), event(3000))


FULL = """
import resource, sys
from fairlead.journal import EventRecord, JournalError, spool_record
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    spool_record(sys.argv[1], EventRecord(id="1", at=1.0, event="Stop", reason="x" * 500))
except JournalError as error:
    print(error)
"""


@pytest.mark.parametrize("room", [0, 100])
def test_a_full_disk_leaves_nothing_behind(spool: Path, room: int) -> None:
    out, _ = python(FULL, spool, room).communicate()

    assert out.startswith(f"{spool}: cannot be written: ")
    assert out.endswith("; nothing was recorded\n")
    assert list(spool.iterdir()) == []


# -- invalid files ---------------------------------------------------------------------------------------


def test_broken_files_are_moved_aside_and_do_not_block_others(spool: Path) -> None:
    spool_record(str(spool), event(5))
    broken = {"1.json": b"", "2.json": b"{", "3.json": b"\xff", "4.json": b'{"kind":"daemon","at":1.0,"what":"x"}'}
    for name, data in broken.items():
        (spool / name).write_bytes(data)
    (spool / "6.json").write_bytes((spool / f"{event(5).id}.json").read_bytes())
    (spool / "7.json").symlink_to(spool / "1.json")
    (spool / "8.json").mkdir()
    os.mkfifo(spool / "9.json")

    assert numbers(read_spool(str(spool))) == [5]
    assert sorted(path.name for path in (spool / "broken").iterdir()) == [f"{n}.json" for n in (1, 2, 3, 4, 6, 7, 8, 9)]
    assert numbers(read_spool(str(spool))) == [5]
    assert count_spooled(str(spool)) == 1


def test_the_newest_hundred_broken_files_are_kept(spool: Path) -> None:
    spool.mkdir(parents=True)
    for number in range(130):
        (spool / f"{number:04}.json").touch()

    assert list(read_spool(str(spool))) == []
    assert sorted(path.name for path in (spool / "broken").iterdir()) == [f"{n:04}.json" for n in range(30, 130)]


def test_an_unfinished_file_is_removed_after_a_minute(spool: Path) -> None:
    spool_record(str(spool), event(1))
    unfinished = spool / ".2.json.77.tmp"
    unfinished.write_bytes(b"{")
    os.utime(unfinished, (1000, 1000))

    for now, is_there in ((1059, True), (1061, False)):
        assert numbers(read_spool(str(spool), now=now)) == [1]
        assert unfinished.exists() == is_there


# -- imports --------------------------------------------------------------------------------------------

LOADED = """
import sys
import msgspec, fairlead.events._parse, fairlead.lazy, fairlead.paths, fairlead.text._unicode
before = set(sys.modules)
from fairlead.journal import EventRecord, record_payload, spool_record
spool_record(sys.argv[1], EventRecord(id="1", at=1.0, event="Stop", payload=record_payload(b"{}")[0]))
print(*sorted(set(sys.modules) - before))
"""


def test_spooling_a_record_imports_nothing_heavy(spool: Path) -> None:
    done = subprocess.run([sys.executable, "-I", "-c", LOADED, spool], capture_output=True, text=True, check=True)

    own = {"", "._errors", "._folder", "._lines", "._event_record", "._records", "._redact", "._spool"}
    assert set(done.stdout.split()) <= {f"fairlead.journal{name}" for name in own} | {"contextlib", "errno"}
    assert count_spooled(str(spool)) == 1
