"""Opening a store: new, damaged, too new, foreign, unwritable, full, and by many processes at once."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from store.checks import problems
from store.records import at, event, many

from fairlead.store import (
    Store,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreTooNew,
    StoreUnwritable,
    StoreURLError,
    _files,
    _sqlite,
    default_url,
)

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = str(Path(__file__).parents[1])
PAGE = 4096
NOISE = random.Random(1).randbytes(4 * PAGE)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "fairlead.db"


def url(file: Path) -> str:
    return f"sqlite:///{file}"


def fill(file: Path, count: int = 500) -> None:
    with closing(Store.open(url(file))) as store:
        store.add_records(many(count), at(count))


def set_aside(file: Path) -> list[Path]:
    """Return the databases that were set aside, without their logs."""
    paths = sorted(file.parent.glob("fairlead.db.damaged-*"))
    return [path for path in paths if not path.name.endswith(("-wal", "-shm"))]


def test_the_default_is_in_the_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path / "home"))
    assert default_url() == f"sqlite:///{tmp_path}/home/fairlead.db"
    Store.open().close()
    assert (tmp_path / "home/fairlead.db").is_file()


def test_only_this_user_can_read_it(tmp_path: Path) -> None:
    """Payloads contain what users type. The folder is created too, and the logs get the database's mode."""
    file = tmp_path / "a/b/fairlead.db"
    with closing(Store.open(url(file))) as store:
        store.add_records([event(1)], at(1))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()}
    assert modes == dict.fromkeys(("fairlead.db", "fairlead.db-shm", "fairlead.db-wal", "fairlead.db.lock"), 0o600)
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_current_database_is_opened_without_alembic(file: Path) -> None:
    fill(file)
    code = (
        "import sys; from fairlead.store import Store; Store.open(sys.argv[1]).close(); print('alembic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, url(file)], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# -- damaged -------------------------------------------------------------------------------------------


def with_random_bytes(file: Path) -> None:
    file.write_bytes(NOISE)


def with_text(file: Path) -> None:
    file.write_text("hello\n")


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def truncated(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def truncated_within_a_page(file: Path) -> None:
    os.truncate(file, 1000)


def zeroed_in_the_middle(file: Path) -> None:
    overwrite(file, file.stat().st_size // PAGE // 2, bytes(4 * PAGE))


def noise_in_the_middle(file: Path) -> None:
    overwrite(file, file.stat().st_size // PAGE // 2, NOISE)


def schema_destroyed(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[:100] + b"\xff" * (PAGE - 100) + data[PAGE:])


def overwrite(file: Path, page: int, data: bytes) -> None:
    with file.open("r+b") as open_file:
        open_file.seek(page * PAGE)
        open_file.write(data)


@pytest.mark.parametrize(
    "damage",
    [
        with_random_bytes,
        with_text,
        emptied,
        truncated,
        truncated_within_a_page,
        zeroed_in_the_middle,
        noise_in_the_middle,
        schema_destroyed,
    ],
)
def test_a_damaged_database_is_set_aside_and_a_new_one_is_created(file: Path, damage: Callable[[Path], None]) -> None:
    fill(file)
    damage(file)
    broken = file.read_bytes()
    with closing(Store.open(url(file))) as store:
        [aside] = set_aside(file)
        [warning] = store.warnings
        assert warning.startswith(f"{file} is damaged (")
        assert f"it was set aside as {aside}, and a new one was created, with " in warning
        assert aside.read_bytes() == broken
        assert store.position() is None, "all of the journal is read again"
        assert store.add_records([event(10_000)], at(1)) == 1
    with closing(Store.open(url(file))) as store:
        assert store.warnings == ()
        assert store.position() == at(1)
    assert not _files.suspect_marker(file).exists()


@pytest.mark.parametrize("damage", [with_random_bytes, emptied, with_text])
def test_the_log_of_a_damaged_database_is_set_aside_with_it(
    file: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """It is neither replayed into the new database nor deleted: its data may be recovered."""
    copy = killed_with_a_log(file, tmp_path)
    log = copy.with_name("fairlead.db-wal").read_bytes()
    damage(copy)
    with closing(Store.open(url(copy))) as store:
        assert len(store.warnings) == 1
        assert store.counts().events == 0
    [aside] = set_aside(copy)
    assert aside.with_name(f"{aside.name}-wal").read_bytes() == log


def test_databases_set_aside_in_the_same_second_have_different_names(file: Path) -> None:
    for number in (1, 2, 3):
        file.write_text(f"broken {number}")
        Store.open(url(file)).close()
    assert sorted(path.read_text() for path in set_aside(file)) == ["broken 1", "broken 2", "broken 3"]


def test_a_truncated_log_is_not_damage(file: Path, tmp_path: Path) -> None:
    """It holds complete transactions up to that point, each with its position."""
    copy = killed_with_a_log(file, tmp_path)
    wal = copy.with_name("fairlead.db-wal")
    os.truncate(wal, wal.stat().st_size - 100)
    with closing(Store.open(url(copy))) as again:
        assert again.warnings == ()
        assert again.counts().events == 504
        assert again.position() == at(503)


def killed_with_a_log(file: Path, tmp_path: Path) -> Path:
    """Return a database as a killed process leaves it: five events are in its log, the earlier ones in the file."""
    fill(file)
    copy = tmp_path / "copy/fairlead.db"
    copy.parent.mkdir()
    with closing(Store.open(url(file))) as store:
        for number in range(500, 505):
            store.add_records([event(number)], at(number))
        for suffix in ("", "-wal"):
            copy.with_name(copy.name + suffix).write_bytes(file.with_name(file.name + suffix).read_bytes())
    return copy


def test_a_database_that_breaks_while_open_is_checked_when_it_is_opened_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even one too large to be checked normally; otherwise it would break again and again."""
    monkeypatch.setattr(_sqlite, "MAX_CHECKED_BYTES", 0)
    monkeypatch.setattr(_sqlite, "MAX_FULLY_CHECKED_BYTES", 0)
    fill(file, 3000)
    zeroed_in_the_middle(file)
    with closing(Store.open(url(file))) as store:
        assert store.warnings == ()
        with pytest.raises(StoreDamaged, match=r"fairlead\.db is damaged \(database disk image is malformed\)"):
            store.events(limit=10_000)
    assert _files.suspect_marker(file).exists()
    with closing(Store.open(url(file))) as store:
        assert len(store.warnings) == 1
    assert not _files.suspect_marker(file).exists()


# -- refused -------------------------------------------------------------------------------------------


def test_a_database_of_a_newer_version_is_refused_and_left_unchanged(file: Path) -> None:
    fill(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE fairlead_revision SET version_num = '9999'")
        connection.execute("PRAGMA journal_mode = DELETE")
    before = file.read_bytes()
    with pytest.raises(StoreTooNew) as refused:
        Store.open(url(file))
    assert str(refused.value) == (
        f"{file} was written by a newer Fairlead (it has revision 9999, this version knows 0006); "
        "upgrade Fairlead, or move the file away to start a new one"
    )
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (500,)
    assert len(file.read_bytes()) == len(before)
    assert set_aside(file) == []


def test_a_database_of_another_program_is_refused(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE events (x)")
        connection.execute("CREATE TABLE alembic_version (version_num)")
    with pytest.raises(StoreForeign, match=r"is a database of another program \(it has a table 'alembic_version'"):
        Store.open(url(file))


def test_a_folder_in_its_place_is_refused(file: Path) -> None:
    file.mkdir()
    with pytest.raises(StoreUnwritable) as refused:
        Store.open(url(file))
    assert str(refused.value) == f"{file} is not a file; move it away, or use another path for the store"


def test_a_folder_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnwritable) as refused:
        Store.open(f"sqlite:///{tmp_path}/file/fairlead.db")
    assert str(refused.value) == (
        f"{tmp_path}/file/fairlead.db: the store cannot be created or written there: its folder is a file; "
        "make its folder writable, or set FAIRLEAD_HOME to a folder that is"
    )


def test_a_log_that_cannot_be_created_is_refused(file: Path) -> None:
    """This is not damage: nothing is set aside."""
    fill(file)
    file.with_name("fairlead.db-wal").mkdir()
    with pytest.raises(StoreError, match=r"fairlead\.db"):
        Store.open(url(file))
    assert set_aside(file) == []


def test_an_invalid_url_is_refused_without_showing_its_password() -> None:
    wrong_urls = (
        "",
        "fairlead.db",
        "sqlite://",
        "sqlite:///:memory:",
        "mysql://u:secret@h/d",
        "postgresql://u:secret@h/d",
        "x://",
    )
    for wrong in wrong_urls:
        with pytest.raises(StoreURLError, match=r"sqlite:///PATH") as refused:
            Store.open(wrong)
        assert "secret" not in str(refused.value)


def test_a_prepare_lock_that_is_held_too_long_is_an_error(file: Path) -> None:
    refused = pytest.raises(StoreBusy, match="another process has been preparing it")
    with _files.prepare_lock(file), refused, _files.prepare_lock(file, timeout=0.05):
        pytest.fail("locked twice")


def test_a_write_lock_held_too_long_is_an_error_and_the_write_can_be_repeated(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sqlite, "_LOCK_TIMEOUT", 0.05)
    with closing(Store.open(url(file))) as store, closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="another process has locked the store; try again"):
            store.add_records([event(1)], at(1))
        other.execute("ROLLBACK")
        assert store.add_records([event(1)], at(1)) == 1


# -- full disk -----------------------------------------------------------------------------------------

FILL = """
import resource, sys
from fairlead.store import Store, StoreFull
from store.records import at, event
store = Store.open(sys.argv[1])
store.add_records([event(0)], at(0))
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
try:
    for number in range(1, 1000):
        store.add_records([event(number, payload=b'"' + b"x" * 5000 + b'"')], at(number))
except StoreFull as full:
    print(full)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert store.position() == at(number - 1), store.position()
assert store.counts().events == number
assert store.add_records([event(number)], at(number)) == 1
store.close()
"""


def test_a_full_disk_loses_nothing_and_writing_continues_when_there_is_space(file: Path) -> None:
    done = run(FILL, url(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{file}: the disk ")


def test_opening_on_a_full_disk_is_an_error(file: Path) -> None:
    code = (
        "import resource, sys; from fairlead.store import Store, StoreFull\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "try: Store.open(sys.argv[1])\n"
        "except StoreFull as full: print(full)"
    )
    done = run(code, url(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{file}: the disk ")
    assert set_aside(file) == []


def test_a_database_that_cannot_grow_is_full(file: Path) -> None:
    with closing(Store.open(url(file))) as store:
        with store._backend.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 30")
        with pytest.raises(StoreFull, match="the disk is full; free some space"):
            store.add_records(many(2000), at(1))
        assert store.position() is None


# -- concurrency ----------------------------------------------------------------------------------------

OPEN = """
import sys
from fairlead.store import Store
from store.records import at, many
print("ready", flush=True)
sys.stdin.readline()
store = Store.open(sys.argv[1])
store.add_records(many(50, first=int(sys.argv[2])), at(1))
print(len(store.warnings))
store.close()
"""


@pytest.mark.parametrize("damaged", [False, True])
def test_many_processes_can_open_it_at_once(file: Path, *, damaged: bool) -> None:
    """One of them creates it or sets it aside; the others find it prepared."""
    if damaged:
        file.write_text("broken")
    started = [start(OPEN, url(file), str(number * 50)) for number in range(6)]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    ended = [process.communicate() for process in started]
    assert [error for _, error in ended] == [""] * 6
    assert sum(int(out) for out, _ in ended) == (1 if damaged else 0)
    with closing(Store.open(url(file))) as store:
        assert store.counts().events == 300
        assert problems(store) == []


def start(code: str, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": TESTS},
    )


def run(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": TESTS}
    return subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=False, env=environment
    )
