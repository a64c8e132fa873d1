"""The journal keeps complete lines in order, after any crash, and can be read on from any position."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest
from journal.records import commands, event, numbers, python, read

from fairlead.journal import (
    DaemonRecord,
    EventRecord,
    Journal,
    JournalError,
    JournalReader,
    Position,
    Record,
    Recovery,
    record_payload,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state/journal"


@pytest.fixture
def journal(folder: Path) -> Journal:
    return Journal(str(folder))


def fill(journal: Journal, count: int, start: int = 0) -> list[Position]:
    return [journal.append(event(number)) for number in range(start, start + count)]


def test_records_are_read_in_the_order_of_writing(journal: Journal, folder: Path) -> None:
    payload, _ = record_payload(b'{"tool_name": "Bash"}')
    records: list[Record] = [
        DaemonRecord(at=1.0, what="started", pid=7),
        event(1, payload=payload),
        commands(1, verdict="blocked"),
    ]

    positions = [journal.append(record) for record in records]

    assert list(journal.read()) == list(zip(positions, records, strict=True))
    assert read(folder) == records


def test_only_this_user_can_read_it(journal: Journal, folder: Path) -> None:
    journal.append(event(1))

    modes = [path.stat().st_mode & 0o777 for path in (folder.parent, folder, folder / "00000001.jsonl")]

    assert modes == [0o700, 0o700, 0o600]


def test_reading_resumes_after_any_position(journal: Journal) -> None:
    positions = fill(journal, 5)

    for number, position in enumerate(positions):
        assert numbers(journal.read(position)) == list(range(number + 1, 5))


def test_a_missing_journal_is_empty(journal: Journal) -> None:
    assert (list(journal.read()), journal.tail(3), journal.recent_keys(3), journal.recover()) == ([], [], [], None)
    assert journal.end() == Position(0, 0)


def test_several_threads_append_complete_lines(journal: Journal, folder: Path) -> None:
    threads = [threading.Thread(target=fill, args=(journal, 200, 1000 * number)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(read(folder)) == 1600
    assert len(set(journal.recent_keys(5000))) == 1600


def test_two_processes_append_complete_lines_although_only_one_should(folder: Path) -> None:
    writers = [python(WRITER, folder, 500, 10**9) for _ in range(2)]
    for writer in writers:
        writer.communicate()

    assert len(read(folder)) == 1000


def test_an_empty_line_does_not_count_as_broken(journal: Journal, folder: Path) -> None:
    """A second writer ends a line that it saw incomplete; the first writer has ended it by then."""
    fill(journal, 2)
    with (folder / "00000001.jsonl").open("ab") as file:
        file.write(b"\n")
    fill(journal, 1)

    assert len(read(folder)) == 3


# -- after a crash ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("incomplete", [b'{"kind":"event"', b"{" * 300_000, b"\0" * 10])
def test_an_incomplete_line_is_cut_off_and_reported(journal: Journal, folder: Path, incomplete: bytes) -> None:
    fill(journal, 3)
    journal.close()
    file = folder / "00000001.jsonl"
    complete = file.read_bytes()
    file.write_bytes(complete + incomplete)

    after = Journal(str(folder))

    assert after.recover() == Recovery(str(file), len(incomplete))
    assert (file.read_bytes(), after.recover()) == (complete, None)


def test_a_file_that_is_one_incomplete_line_becomes_empty(journal: Journal, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "00000001.jsonl").write_bytes(b"x" * 700_000)

    assert journal.recover() == Recovery(str(folder / "00000001.jsonl"), 700_000)
    fill(journal, 2)
    assert numbers(journal.read()) == [0, 1]


def test_an_incomplete_line_spoils_no_other_even_without_recovery(journal: Journal, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "00000001.jsonl").write_bytes(b'{"kind"')

    fill(journal, 2)

    assert numbers(journal.read()) == [0, 1]
    assert journal.broken_lines == 1


def test_broken_lines_are_skipped_and_counted(journal: Journal, folder: Path) -> None:
    fill(journal, 2)
    with (folder / "00000001.jsonl").open("ab") as file:
        file.write(b'nonsense\n\n\xff\xfe\n{"kind":"other"}\n' + b"[" * 5000 + b"\n")
    fill(journal, 2, start=2)

    assert numbers(journal.read()) == [0, 1, 2, 3]
    assert journal.broken_lines == 4  # the empty line does not count
    assert numbers(journal.tail(3)) == [1, 2, 3]


def test_a_line_without_a_newline_is_not_read_yet(journal: Journal, folder: Path) -> None:
    fill(journal, 1)
    with (folder / "00000001.jsonl").open("ab") as file:
        file.write(b'{"kind":"daemon","at":1.0,"what":"started"}')
        file.flush()

        assert (numbers(journal.read()), numbers(journal.tail(9)), journal.broken_lines) == ([0], [0], 0)
        file.write(b"\n")
    assert len(list(journal.read())) == 2


FULL = """
import resource, sys
from fairlead.journal import EventRecord, Journal, JournalError
journal = Journal(sys.argv[1])
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
for round in range(3):
    limit = 5000 + 3333 * round
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        for number in range(1000):
            journal.append(EventRecord(id=f"{round * 1000 + number:016x}", at=1.0, event="Stop", reason="x" * 100))
            print("wrote", round * 1000 + number)
    except JournalError as error:
        print("error", error)
"""


def test_a_full_disk_leaves_no_incomplete_line(folder: Path) -> None:
    """Twice a write is short, then nothing can be written; when there is room again, writing continues."""
    out, _ = python(FULL, folder).communicate()

    lines = [line.split(" ", 1) for line in out.splitlines()]
    written = [int(text) for word, text in lines if word == "wrote"]
    errors = [text for word, text in lines if word == "error"]
    assert [int(record.id, 16) for record in read(folder) if isinstance(record, EventRecord)] == written
    assert len({number // 1000 for number in written}) == 3
    assert len(errors) == 3
    for error in errors:
        assert error.startswith(f"{folder}/00000001.jsonl: cannot be written: ")
        assert error.endswith("; nothing was recorded")
    assert any("bytes were written; is the disk full?" in error for error in errors)


def test_a_folder_that_cannot_be_created_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(JournalError) as caught:
        Journal(str(tmp_path / "file/journal")).append(event(1))

    assert str(caught.value) == f"{tmp_path}/file/journal: cannot be written: Not a directory; nothing was recorded"


def test_a_removed_journal_is_created_again(journal: Journal, folder: Path) -> None:
    position = fill(journal, 5)[-1]
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()

    fill(journal, 1, start=7)

    assert numbers(journal.read(position)) == [7]


# -- segments ------------------------------------------------------------------------------------------


def test_a_full_segment_is_followed_by_the_next(folder: Path) -> None:
    journal = Journal(str(folder), segment_bytes=1000)
    positions = fill(journal, 50)

    assert len(journal.segments()) > 3
    assert all(file.stat().st_size <= 1000 for file in folder.iterdir())
    assert numbers(journal.read()) == list(range(50))
    assert positions == sorted(positions)
    assert numbers(journal.read(positions[30])) == list(range(31, 50))
    assert journal.end() == positions[-1]


def test_a_later_writer_continues_in_the_newest_segment(folder: Path) -> None:
    for number in range(20):
        Journal(str(folder), segment_bytes=300).append(event(number))

    assert numbers(JournalReader(str(folder)).read()) == list(range(20))
    assert len(list(folder.iterdir())) > 3


def test_a_record_larger_than_a_segment_gets_its_own(folder: Path) -> None:
    journal = Journal(str(folder), segment_bytes=10)
    fill(journal, 3)

    assert journal.segments() == [1, 2, 3]
    assert numbers(journal.read()) == [0, 1, 2]


def test_old_segments_are_pruned_once_the_store_has_read_them(folder: Path) -> None:
    journal = Journal(str(folder), segment_bytes=10)
    positions = fill(journal, 6)
    for number in journal.segments():
        os.utime(journal.segment_path(number), (number, number))

    assert journal.prune(older_than=0, max_bytes=10**9, keep_from=positions[-1]) == []
    assert journal.prune(older_than=3, max_bytes=10**9, keep_from=positions[-1]) == [
        journal.segment_path(1),
        journal.segment_path(2),
    ]
    assert journal.prune(older_than=99, max_bytes=0, keep_from=positions[3]) == [journal.segment_path(3)]
    size = (folder / "00000004.jsonl").stat().st_size
    assert journal.prune(older_than=0, max_bytes=2 * size, keep_from=positions[-1]) == [journal.segment_path(4)]
    assert journal.prune(older_than=99, max_bytes=0, keep_from=Position(99, 0)) == [journal.segment_path(5)]
    assert numbers(journal.read(positions[1])) == [5]


def test_other_files_in_the_folder_are_ignored(journal: Journal, folder: Path) -> None:
    fill(journal, 1)
    for name in ("notes.txt", "1.jsonl", "0000000a.jsonl", "00000000.jsonl"):
        (folder / name).write_text("not ours\n")

    assert (journal.segments(), numbers(journal.read()), journal.broken_lines) == ([1], [0], 0)


# -- reading from the end --------------------------------------------------------------------------------


@pytest.mark.parametrize("segment", [10, 700, 10**9])
def test_the_last_records_are_found_from_the_end(folder: Path, segment: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.journal._reader.BLOCK_SIZE", 100)  # so that lines span blocks
    journal = Journal(str(folder), segment_bytes=segment)
    positions = fill(journal, 30)

    for count in (0, 1, 7, 30, 99):
        assert numbers(journal.tail(count)) == list(range(30))[max(0, 30 - count) :]
    assert [position for position, _ in journal.read_backwards()] == positions[::-1]
    assert list(journal.read_backwards()) == list(journal.read())[::-1]


def test_the_keys_of_the_last_records_are_returned(journal: Journal) -> None:
    for record in (event(1), commands(1), DaemonRecord(at=1.0, what="stopped"), event(2)):
        journal.append(record)

    one, two = event(1).id, event(2).id
    assert journal.recent_keys(10) == [one, f"{one}.done", two]
    assert journal.recent_keys(2) == [f"{one}.done", two]
    assert journal.recent_keys(0) == []


def test_a_follower_waits_for_a_journal_and_ends_when_wait_returns_false(journal: Journal, folder: Path) -> None:
    waits = iter([2, 0, 1])
    written = 0

    def wait() -> bool:
        nonlocal written
        count = next(waits, None)
        written += len(fill(journal, count or 0, start=written))
        return count is not None

    assert numbers(JournalReader(str(folder)).follow(wait)) == [0, 1, 2]


WRITER = """
import sys
from fairlead.journal import EventRecord, Journal
journal = Journal(sys.argv[1], segment_bytes=int(sys.argv[3]))
for number in range(int(sys.argv[2])):
    journal.append(EventRecord(id=f"{number:016x}", at=1.0, event="Stop", reason="x" * (number % 300)))
"""


def test_a_follower_in_another_process_misses_nothing_while_segments_change(folder: Path) -> None:
    writer = python(WRITER, folder, 3000, 2000)
    seen: list[int] = []

    def wait() -> bool:
        os.sched_yield()
        assert writer.poll() in (None, 0)
        return len(seen) < 3000

    for found in JournalReader(str(folder)).follow(wait):
        seen += numbers([found])
    writer.communicate()

    assert seen == list(range(3000))
    assert len(list(folder.iterdir())) > 100


def test_a_follower_continues_after_its_segment_was_pruned_or_everything_removed(folder: Path) -> None:
    journal = Journal(str(folder), segment_bytes=10)
    fill(journal, 3)

    def prune() -> None:
        fill(journal, 2, start=3)
        journal.prune(older_than=0, max_bytes=0, keep_from=Position(99, 0))

    def remove() -> None:
        for file in folder.iterdir():
            file.unlink()
        fill(journal, 1, start=9)

    steps = iter([prune, remove])

    def wait() -> bool:
        step = next(steps, None)
        if step:
            step()
        return step is not None

    assert numbers(journal.follow(wait)) == [0, 1, 2, 4, 9]
