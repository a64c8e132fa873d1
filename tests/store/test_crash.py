"""Killed at any moment, the store goes on at the exact place: what the journal gives is stored once, all of it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from time import sleep

import pytest
from store.records import at, many

from fairlead.store import Store

TESTS = str(Path(__file__).parents[1])
RECORDS = 2_500

TAKE = """
import sys
from fairlead.store import Store
from store.records import at, done, event
store = Store.open(sys.argv[1])
total, batch = int(sys.argv[2]), int(sys.argv[3])
place = store.position()
start = place.offset if place else 0
print("ready", flush=True)
while start < total:
    end = min(start + batch, total)
    records = [event(number) if number % 4 else done(number) for number in range(start, end)]
    store.take(records, at(end))
    print(end, flush=True)
    if sys.argv[4] == "sweep":
        store.retain(older_than=0, at_most_bytes=10**9)
    start = end
store.close()
"""


MAKE = """
import sys
from itertools import count
from fairlead.store import Store
print("ready", flush=True)
for number in count():
    Store.open(f"sqlite:///{sys.argv[1]}/{number}.db").close()
"""


def test_killed_while_it_is_made_it_is_begun_anew_and_not_taken_for_damaged(tmp_path: Path) -> None:
    chance = random.Random(3)  # noqa: S311 - the same every time
    for number in range(8):
        folder = tmp_path / str(number)
        with subprocess.Popen([sys.executable, "-c", MAKE, folder], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            sleep(chance.random() / 10)  # not for something to happen, but to be anywhere in between
            process.kill()
        for file in sorted(folder.glob("*.db")):
            with closing(Store.open(f"sqlite:///{file}")) as store:
                assert store.warnings == ()


def test_what_is_left_of_one_that_was_never_made_is_swept_away(tmp_path: Path) -> None:
    (tmp_path / "fairlead.db.new").write_bytes(b"half a page")
    (tmp_path / "fairlead.db.new-wal").write_bytes(b"and its log")
    with closing(Store.open(f"sqlite:///{tmp_path}/fairlead.db")) as store:
        assert store.warnings == ()
    assert not list(tmp_path.glob("*.new*"))


@pytest.mark.parametrize("task", ["take", "sweep"])
def test_killed_again_and_again_it_has_every_record_once(tmp_path: Path, task: str) -> None:
    chance = random.Random(task)  # noqa: S311 - the same every time
    kills = 0
    for number in range(20):
        kills += killed_until_done(f"sqlite:///{tmp_path}/{number}.db", task, chance)
        if kills > 1:  # one that was faster than the signal is not killed
            return
    pytest.fail("nobody was killed twice")


def killed_until_done(url: str, task: str, chance: random.Random) -> int:
    """Have all records stored by one process after the other, and count the kills."""
    kills = 0
    for _ in range(100):
        process = start(url, chance.choice([20, 100, 250]), task)
        assert process.stdout is not None
        told = 0
        for line in iter(process.stdout.readline, ""):
            told = 0 if line == "ready\n" else int(line)
            if chance.random() < 0.25:
                process.send_signal(signal.SIGKILL)
                break
        process.stdout.close()
        kills += process.wait() == -signal.SIGKILL
        with closing(Store.open(url)) as store:
            assert store.warnings == ()
            place = store.position()
            reached = place.offset if place else 0
            assert reached >= told, "what was taken is kept"
            assert store.counts().events == sum(1 for number in range(reached) if number % 4)
        if reached == RECORDS:
            break
    with closing(Store.open(url)) as store:
        assert store.position() == at(RECORDS)
        assert store.check().problems == ()
    return kills


def start(url: str, batch: int, task: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", TAKE, url, str(RECORDS), str(batch), task],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": TESTS},
    )


def test_to_settle_writes_to_the_log_and_syncs_it(tmp_path: Path) -> None:
    """A transaction that changes nothing would not be synced, nor would one without the setting."""
    log = tmp_path / "fairlead.db-wal"
    with closing(Store.open(f"sqlite:///{tmp_path}/fairlead.db")) as store:
        store.take(many(10), at(10))
        before = log.read_bytes()
        assert store.settle() == at(10)
        assert log.read_bytes() != before
        with store._backend.engine.connect() as connection:
            with store._backend.settling(connection):
                assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2
                connection.rollback()
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 1


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace shows what reaches the disk")
def test_only_settling_waits_for_the_disk(tmp_path: Path) -> None:
    code = (
        "import os, sys; from fairlead.store import Store; from store.records import at, event\n"
        "store = Store.open(sys.argv[1]); store.take([event(1)], at(1))\n"
        "os.write(2, b'takes'); store.take([event(2)], at(2))\n"
        "os.write(2, b'settles'); store.settle()\n"
        "os.write(2, b'ends')\n"
    )
    trace = tmp_path / "trace"
    tracer = ["strace", "-f", "-o", str(trace), "-e", "trace=fsync,fdatasync,write"]
    done = subprocess.run(
        [*tracer, sys.executable, "-c", code, f"sqlite:///{tmp_path}/fairlead.db"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": TESTS},
    )
    if "ptrace" in done.stderr:
        pytest.skip("no process may be traced here")
    _, rest = trace.read_text().split('"takes"')
    takes, rest = rest.split('"settles"')
    settles, _ = rest.split('"ends"')
    assert "sync" not in takes
    assert "sync" in settles


def test_killed_while_it_is_made_it_is_made_by_the_next(tmp_path: Path) -> None:
    """The tables are made in one transaction. Killed in it, the next one finds a database without any."""
    code = (
        "import os, signal, sys\n"
        "from fairlead.store import Store, _revisions\n"
        "steps = _revisions.scripts()\n"
        "from alembic import op\n"
        "index = op.create_index\n"
        "def killed(*args):\n"
        "    index(*args)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "op.create_index = killed\n"
        "Store.open(sys.argv[1])\n"
    )
    url = f"sqlite:///{tmp_path}/fairlead.db"
    done = subprocess.run([sys.executable, "-c", code, url], check=False)
    assert done.returncode == -signal.SIGKILL
    with closing(Store.open(url)) as store:
        assert store.warnings == ()
        assert store.counts().events == 0
