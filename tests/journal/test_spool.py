"""The spool: what met no daemon waits in order, in whole files, and not without end."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from journal.making import done, happened, numbers, python

from fairlead.journal import CommandsRecord, EventRecord, JournalError, SpoolFull, pending, put, remove, take

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "state/spool"


def test_what_is_put_is_taken_the_oldest_first_and_an_end_after_its_event(spool: Path) -> None:
    records: list[EventRecord | CommandsRecord] = [
        happened(1),
        done(1, verdict="blocked"),
        happened(2),
        done(3),
        happened(255),
    ]
    for record in (records[3], records[1], records[4], records[2], records[0]):
        put(str(spool), record)

    assert [record for _, record in take(str(spool))] == records
    assert pending(str(spool)) == 5
    for name, _ in take(str(spool)):
        remove(str(spool), name)
        remove(str(spool), name)
    assert (pending(str(spool)), list(spool.iterdir())) == (0, [])


def test_only_this_user_can_look_into_it(spool: Path) -> None:
    put(str(spool), happened(1))

    paths = (spool.parent, spool, spool / f"{happened(1).id}.json")

    assert [path.stat().st_mode & 0o777 for path in paths] == [0o700, 0o700, 0o600]


def test_no_spool_is_an_empty_one(spool: Path) -> None:
    assert (list(take(str(spool))), pending(str(spool))) == ([], 0)


def test_the_same_event_is_there_once(spool: Path) -> None:
    put(str(spool), happened(1))
    put(str(spool), happened(1, verdict="blocked"))

    assert [record.verdict for _, record in take(str(spool))] == ["blocked"]


@pytest.mark.parametrize("name", ["", "../1", "a/b", ".hidden", "1.done", "a" * 101, "ä", "a\n", "a\0"])
def test_an_id_that_could_be_another_file_is_refused(spool: Path, name: str) -> None:
    with pytest.raises(JournalError, match="is no id of an event; nothing was recorded"):
        put(str(spool), happened(1, id=name))
    assert not spool.exists()


PUTTER = """
import sys
from fairlead.journal import EventRecord, put, record_payload
sys.stdin.readline()
payload, _ = record_payload(b'{"a": "' + b"x" * 3000 + b'"}')
for number in range(50):
    put(sys.argv[1], EventRecord(id=f"{number * 8 + int(sys.argv[2]):016x}", at=1.0, event="Stop", payload=payload))
"""


def test_eight_processes_put_at_once_and_nothing_is_lost_or_half(spool: Path) -> None:
    """And one takes meanwhile, as the daemon would."""
    putters = [python(PUTTER, spool, number) for number in range(8)]
    for putter in putters:
        assert putter.stdin
        putter.stdin.write("go\n")
        putter.stdin.close()
    taken: list[int] = []
    while None in [putter.poll() for putter in putters] or pending(str(spool)):
        for found in take(str(spool)):
            taken += numbers([found])
            remove(str(spool), found[0])

    for putter in putters:
        assert putter.stdout
        putter.stdout.close()
    assert [putter.wait() for putter in putters] == [0] * 8
    assert sorted(taken) == list(range(400))
    assert list(spool.iterdir()) == []


# -- bounds --------------------------------------------------------------------------------------------


def test_beyond_10_000_files_nothing_is_kept_and_the_caller_learns_what_to_do(spool: Path) -> None:
    put(str(spool), happened(0))
    for number in range(1, 10_000):
        os.link(spool / f"{happened(0).id}.json", spool / f"{happened(number).id}.json")

    with pytest.raises(SpoolFull) as caught:
        put(str(spool), happened(10_000))

    assert str(caught.value) == (
        f"{spool}: 10000 events wait for the daemon, and no more are kept; nothing was recorded; "
        "start it with `fairlead daemon start`"
    )
    assert len(list(spool.iterdir())) == 10_000
    remove(str(spool), f"{happened(1).id}.json")
    put(str(spool), happened(10_000))


def test_beyond_64_mib_nothing_is_kept(spool: Path) -> None:
    put(str(spool), happened(0))
    with (spool / f"{happened(0).id}.json").open("r+b") as file:
        file.truncate(30_000)
    for number in range(1, 3000):
        os.link(spool / f"{happened(0).id}.json", spool / f"{happened(number).id}.json")

    with pytest.raises(SpoolFull):
        put(str(spool), happened(3000))

    for number in range(1000, 3000):
        remove(str(spool), f"{happened(number).id}.json")
    put(str(spool), happened(3000))


FULL = """
import resource, sys
from fairlead.journal import EventRecord, JournalError, put
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    put(sys.argv[1], EventRecord(id="1", at=1.0, event="Stop", reason="x" * 500))
except JournalError as error:
    print(error)
"""


@pytest.mark.parametrize("room", [0, 100])
def test_a_full_disk_leaves_nothing_behind(spool: Path, room: int) -> None:
    out, _ = python(FULL, spool, room).communicate()

    assert out.startswith(f"{spool}: cannot be written: ")
    assert out.endswith("; nothing was recorded\n")
    assert list(spool.iterdir()) == []


# -- what is no record ---------------------------------------------------------------------------------


def test_broken_files_are_set_aside_and_hold_up_no_other(spool: Path) -> None:
    put(str(spool), happened(5))
    broken = {"1.json": b"", "2.json": b"{", "3.json": b"\xff", "4.json": b'{"kind":"daemon","at":1.0,"what":"x"}'}
    for name, data in broken.items():
        (spool / name).write_bytes(data)
    (spool / "6.json").write_bytes((spool / f"{happened(5).id}.json").read_bytes())
    (spool / "7.json").symlink_to(spool / "1.json")
    (spool / "8.json").mkdir()
    os.mkfifo(spool / "9.json")

    assert numbers(take(str(spool))) == [5]
    assert sorted(path.name for path in (spool / "broken").iterdir()) == [f"{n}.json" for n in (1, 2, 3, 4, 6, 7, 8, 9)]
    assert numbers(take(str(spool))) == [5]
    assert pending(str(spool)) == 1


def test_of_broken_files_the_newest_hundred_are_kept(spool: Path) -> None:
    spool.mkdir(parents=True)
    for number in range(130):
        (spool / f"{number:04}.json").touch()

    assert list(take(str(spool))) == []
    assert sorted(path.name for path in (spool / "broken").iterdir()) == [f"{n:04}.json" for n in range(30, 130)]


def test_what_was_begun_and_not_finished_goes_after_a_minute(spool: Path) -> None:
    put(str(spool), happened(1))
    begun = spool / ".2.json.77.tmp"
    begun.write_bytes(b"{")
    os.utime(begun, (1000, 1000))

    for now, is_there in ((1059, True), (1061, False)):
        assert numbers(take(str(spool), now=now)) == [1]
        assert begun.exists() == is_there


# -- the cold road -------------------------------------------------------------------------------------

LOADED = """
import sys
import msgspec, fairlead.events, fairlead.paths
before = set(sys.modules)
from fairlead.journal import EventRecord, put, record_payload
put(sys.argv[1], EventRecord(id="1", at=1.0, event="Stop", payload=record_payload(b"{}")[0]))
print(*sorted(set(sys.modules) - before))
"""


def test_putting_loads_nothing_heavy(spool: Path) -> None:
    done = subprocess.run([sys.executable, "-I", "-c", LOADED, spool], capture_output=True, text=True, check=True)

    own = {"", "._errors", "._folder", "._lines", "._payload", "._records", "._spool"}
    assert set(done.stdout.split()) <= {f"fairlead.journal{name}" for name in own} | {"contextlib", "errno"}
    assert pending(str(spool)) == 1
