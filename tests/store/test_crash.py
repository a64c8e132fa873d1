"""Killed at any moment, the store continues at the exact position: each record of the journal is stored once."""

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
from store.checks import problems
from store.records import at, many

from fairlead.store import Store

TESTS = str(Path(__file__).parents[1])
RECORDS = 2_500

WRITER = """
import sys
from fairlead.store import Store
from store.records import at, commands, event
store = Store.open(sys.argv[1])
total, batch = int(sys.argv[2]), int(sys.argv[3])
position = store.position()
start = position.offset if position else 0
print("ready", flush=True)
while start < total:
    end = min(start + batch, total)
    records = [event(number) if number % 4 else commands(number) for number in range(start, end)]
    store.add_records(records, at(end))
    print(end, flush=True)
    if sys.argv[4] == "prune":
        store.prune(older_than=0, max_bytes=10**9)
    start = end
store.close()
"""


OPENER = """
import sys
from itertools import count
from fairlead.store import Store
print("ready", flush=True)
for number in count():
    Store.open(f"sqlite:///{sys.argv[1]}/{number}.db").close()
"""


def test_killed_while_it_is_created_it_is_created_again_and_not_reported_as_damaged(tmp_path: Path) -> None:
    rng = random.Random(3)
    for number in range(8):
        folder = tmp_path / str(number)
        with subprocess.Popen([sys.executable, "-c", OPENER, folder], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            sleep(rng.random() / 10)  # to kill it at a random moment
            process.kill()
        for file in sorted(folder.glob("*.db")):
            with closing(Store.open(f"sqlite:///{file}")) as store:
                assert store.warnings == ()


def test_remains_of_an_interrupted_creation_are_removed(tmp_path: Path) -> None:
    (tmp_path / "fairlead.db.new").write_bytes(b"half a page")
    (tmp_path / "fairlead.db.new-wal").write_bytes(b"and its log")
    with closing(Store.open(f"sqlite:///{tmp_path}/fairlead.db")) as store:
        assert store.warnings == ()
    assert not list(tmp_path.glob("*.new*"))


@pytest.mark.parametrize("task", ["write", "prune"])
def test_killed_repeatedly_it_has_every_record_once(tmp_path: Path, task: str) -> None:
    rng = random.Random(task)
    kills = 0
    for number in range(20):
        kills += killed_until_done(f"sqlite:///{tmp_path}/{number}.db", task, rng)
        if kills > 1:  # a process that ends before the signal is not killed
            return
    pytest.fail("no run was killed twice")


def killed_until_done(url: str, task: str, rng: random.Random) -> int:
    """Store all records by one process after another, and return how many were killed."""
    kills = 0
    for _ in range(100):
        process = start(url, rng.choice([20, 100, 250]), task)
        assert process.stdout is not None
        acknowledged = 0
        for line in iter(process.stdout.readline, ""):
            acknowledged = 0 if line == "ready\n" else int(line)
            if rng.random() < 0.25:
                process.send_signal(signal.SIGKILL)
                break
        process.stdout.close()
        kills += process.wait() == -signal.SIGKILL
        with closing(Store.open(url)) as store:
            assert store.warnings == ()
            position = store.position()
            reached = position.offset if position else 0
            assert reached >= acknowledged
            assert store.counts().events == sum(1 for number in range(reached) if number % 4)
        if reached == RECORDS:
            break
    with closing(Store.open(url)) as store:
        assert store.position() == at(RECORDS)
        assert problems(store) == []
    return kills


def start(url: str, batch: int, task: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, url, str(RECORDS), str(batch), task],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": TESTS},
    )


def test_sync_writes_to_the_log_and_syncs_it(tmp_path: Path) -> None:
    """A transaction that changes nothing would not be synced, and neither would one without the setting."""
    log = tmp_path / "fairlead.db-wal"
    with closing(Store.open(f"sqlite:///{tmp_path}/fairlead.db")) as store:
        store.add_records(many(10), at(10))
        before = log.read_bytes()
        assert store.sync() == at(10)
        assert log.read_bytes() != before
        with store._backend.engine.connect() as connection:
            with store._backend.durable(connection):
                assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2
                connection.rollback()
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 1


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace shows the syncs")
def test_only_sync_waits_for_the_disk(tmp_path: Path) -> None:
    code = (
        "import os, sys; from fairlead.store import Store; from store.records import at, event\n"
        "store = Store.open(sys.argv[1]); store.add_records([event(1)], at(1))\n"
        "os.write(2, b'adds'); store.add_records([event(2)], at(2))\n"
        "os.write(2, b'syncs'); store.sync()\n"
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
        pytest.skip("ptrace is not allowed here")
    _, rest = trace.read_text().split('"adds"')
    adds, rest = rest.split('"syncs"')
    syncs, _ = rest.split('"ends"')
    assert "sync" not in adds
    assert "sync" in syncs


def test_killed_while_it_is_created_it_is_created_by_the_next_process(tmp_path: Path) -> None:
    """The tables are created in one transaction. After a kill the next process finds a database without tables."""
    code = (
        "import os, signal, sys\n"
        "from fairlead.store import Store, _revisions\n"
        "class Killed(_revisions.CreateIndex):\n"
        "    def __init__(self, index):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "_revisions.CreateIndex = Killed\n"
        "Store.open(sys.argv[1])\n"
    )
    url = f"sqlite:///{tmp_path}/fairlead.db"
    done = subprocess.run([sys.executable, "-c", code, url], check=False)
    assert done.returncode == -signal.SIGKILL
    with closing(Store.open(url)) as store:
        assert store.warnings == ()
        assert store.counts().events == 0
