"""The mail store in its file: who may open it, the errors if it cannot be opened, and a full disk."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from store.mail_contract import AMBER, BLUE, outgoing, shown

from fairlead.mail import MailBusy, MailError, MailFull, MailUnreachable
from fairlead.store import MailStore, default_mail_url
from fairlead.store.mail import _queries as queries

TESTS = str(Path(__file__).parents[1])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mail.db"


def url(file: Path) -> str:
    return f"sqlite:///{file}"


def fill(file: Path, count: int = 500) -> None:
    with closing(MailStore.open(url(file))) as store:
        store.save_agents([AMBER, BLUE])
        store.send([outgoing(number, BLUE, body="x" * 200) for number in range(1, count + 1)])


def run(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": TESTS},
    )


def test_the_default_is_a_separate_file_in_the_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path / "home"))
    assert default_mail_url() == f"sqlite:///{tmp_path}/home/mail.db"
    MailStore.open().close()
    assert (tmp_path / "home/mail.db").is_file()


def test_only_this_user_can_read_it(file: Path) -> None:
    with closing(MailStore.open(url(file))):
        modes = {stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()}
    assert modes == {0o600}


def test_another_process_is_refused_until_the_owner_has_ended(file: Path) -> None:
    code = (
        "import sys; from fairlead.store import MailStore; from fairlead.mail import MailBusy\n"
        "try: MailStore.open(sys.argv[1]); print('opened')\n"
        "except MailBusy as busy: print(busy)"
    )
    with closing(MailStore.open(url(file))):
        assert run(code, url(file)).stdout == (
            f"{file}: another process is using it, perhaps a second daemon; stop that one first\n"
        )
    assert run(code, url(file)).stdout == "opened\n", "and it ended without closing it"
    MailStore.open(url(file)).close()


def test_a_failed_open_releases_the_lock(file: Path) -> None:
    file.mkdir()
    for _ in range(2):
        with pytest.raises(MailUnreachable, match="is not a file; move it away"):
            MailStore.open(url(file))
    file.rmdir()
    MailStore.open(url(file)).close()


def test_a_damaged_database_is_set_aside_and_a_new_one_is_created(file: Path) -> None:
    fill(file)
    file.write_bytes(b"broken" * 1000)
    with closing(MailStore.open(url(file))) as store:
        [warning] = store.warnings
        assert "mail.db is damaged (" in warning
        assert store.load().last_message == 0


def test_a_database_of_a_newer_version_is_refused(file: Path) -> None:
    fill(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE fairlead_revision SET version_num = '9999'")
    with pytest.raises(MailUnreachable, match=r"was written by a newer Fairlead \(it has revision 9999"):
        MailStore.open(url(file))


def test_an_invalid_url_is_refused_without_showing_its_password() -> None:
    for wrong in ("", "mail.db", "sqlite://", "postgresql://u:secret@h/d"):
        with pytest.raises(MailUnreachable, match=r"sqlite:///PATH") as refused:
            MailStore.open(wrong)
        assert "secret" not in str(refused.value)


def test_a_write_lock_held_too_long_is_an_error_and_the_write_can_be_repeated(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.store._sqlite._LOCK_TIMEOUT", 0.05)
    with closing(MailStore.open(url(file))) as store, closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(MailBusy, match="another process has locked the store; try again"):
            store.save_agents([AMBER])
        other.execute("ROLLBACK")
        store.save_agents([AMBER])


def test_every_database_error_is_a_mail_error(file: Path) -> None:
    fill(file)
    with closing(MailStore.open(url(file))) as store:
        with closing(sqlite3.connect(file)) as other, other:
            other.execute("DROP TABLE mail_letters")
        for call in (
            lambda: store.deliveries(1),
            lambda: shown(store, BLUE),
            lambda: store.send([outgoing(9999, BLUE)]),
        ):
            with pytest.raises(MailError, match="no such table: mail_letters"):
                call()


# -- full disk -----------------------------------------------------------------------------------------

FILL = """
import resource, sys
from fairlead.mail import Draft, MailFull, MessageService, USER
from fairlead.store import MailStore
store = MailStore.open(sys.argv[1])
service = MessageService(store)
amber, blue = service.ensure_agent("s1"), service.ensure_agent("s2")
asked = service.send(amber, Draft(to=(blue.name,), subject="asked", intent="request")).message
notified = []
service.add_mail_listener(lambda agent: notified.append(agent.name))
resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, resource.RLIM_INFINITY))

def refused(call):
    try:
        call()
    except MailFull as full:
        return str(full)
    raise AssertionError("there was space")

def draft(number):
    return Draft(to=(blue.name,), subject=str(number), body="x" * 20_000, key=f"k{number}")

sent = 1
try:
    while True:
        service.send(amber, draft(sent))
        sent += 1
except MailFull as full:
    print(full)
before = service.queued_count(blue), store.load(), store.deliveries(asked.id), len(notified)
assert before[0] == sent == before[1].last_message, (before[0], sent)
big = Draft(to=(blue.name, "User"), subject="big", body="y" * 1_000_000, key="big")
refused(lambda: service.send(amber, big))
other = Draft(to=("User",), subject="x", body="z" * 900_000)
assert [type(one) for one in service.send_many([(amber, big), (blue, other)])] == [MailFull] * 2
assert (service.queued_count(blue), store.load(), store.deliveries(asked.id), len(notified)) == before
assert service.queued_count(USER) == 0

resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
again = service.send(amber, draft(sent))
assert (again.is_new, again.message.id) == (True, sent + 1)
assert not service.send(amber, draft(sent)).is_new
assert not service.send(amber, draft(1)).is_new
assert service.send(amber, big).is_new
ids = []
while found := service.show(blue, "Stop", f"e{len(ids)}"):
    ids += [message.id for message in found]
assert ids == list(range(1, sent + 3)), ids
with store._backend.engine.connect() as connection:
    assert connection.exec_driver_sql("PRAGMA integrity_check").scalars().all() == ["ok"]
store.close()
"""


def test_on_a_full_disk_the_sender_gets_an_error_and_nothing_is_incomplete(file: Path) -> None:
    done = run(FILL, url(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (f"{file}: the disk is full, so nothing was sent or marked; free some space and try again\n")


def test_a_database_that_cannot_grow_is_full(file: Path) -> None:
    with closing(MailStore.open(url(file))) as store:
        store.save_agents([AMBER, BLUE])
        with store._backend.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 60")
        with pytest.raises(MailFull):
            store.send([outgoing(number, BLUE, body="x" * 1000) for number in range(1, 2000)])
        assert store.load().last_message == 0


# -- syncs and indexes ----------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace shows the syncs")
def test_sending_syncs_the_disk_once_for_a_batch(tmp_path: Path, file: Path) -> None:
    fill(file, 1)
    code = (
        "import os, sys; from fairlead.store import MailStore; from store.mail_contract import *\n"
        "store = MailStore.open(sys.argv[1]); store.save_last_seen([(10, 5.0)]); shown(store, BLUE)\n"
        "os.write(2, b'sends'); store.send([outgoing(n, BLUE) for n in range(10, 60)])\n"
        "os.write(2, b'shows'); shown(store, BLUE)\n"
        "os.write(2, b'ends')\n"
    )
    trace = tmp_path / "trace"
    done = run_traced(code, trace, url(file))
    if "ptrace" in done.stderr:
        pytest.skip("ptrace is not allowed here")
    _, rest = trace.read_text().split('"sends"')
    sends, rest = rest.split('"shows"')
    shows, _ = rest.split('"ends"')
    assert sends.count("sync(") == 1
    assert "sync(" not in shows


def run_traced(code: str, trace: Path, *args: str) -> subprocess.CompletedProcess[str]:
    tracer = ["strace", "-f", "-o", str(trace), "-e", "trace=fsync,fdatasync,write"]
    return subprocess.run(
        [*tracer, sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": TESTS},
    )


INDEXES = {
    "FIRST_QUEUED": "mail_letters_by_stage",
    "QUEUED_MESSAGE": "PRIMARY KEY (message=? AND recipient=?)",
    "FIRST_URGENT": "mail_letters_urgent",
    "BY_KEY": "mail_messages_by_key",
    "BY_KEYS": "mail_messages_by_key",
    "UNANSWERED_BY": "mail_letters_owed_by",
    "UNANSWERED_FROM": "mail_letters_owed_to",
    "UNANSWERED_AMONG": "PRIMARY KEY (message=?)",
    "SHOWN_AT_EVENT": "mail_letters_at_event",
    "BOUNCED_COUNTS": "mail_letters_by_stage",
    "COUNTS_BY_STAGE": "mail_letters_by_stage",
    "URGENT_COUNTS": "mail_letters_urgent",
    "OWES_COUNTS": "mail_letters_owed_by",
    "OWED_COUNTS": "mail_letters_owed_to",
    "OWING_REPLY": "mail_letters_owed_",
    "DEADLINES": "mail_letters_owed_",
    "QUEUED_BEFORE_IN_THREAD": "mail_messages_by_thread",
    "DELIVERIES": "PRIMARY KEY (message=?)",
}
"""Query → the index that it uses: its time does not depend on the number of messages."""


def test_frequent_queries_use_their_index(file: Path) -> None:
    with closing(MailStore.open(url(file))) as store, store._backend.engine.connect() as connection:
        indexed = [(name, getattr(queries, name), index) for name, index in INDEXES.items()]
        indexed += [("INBOX", query, "mail_letters_by_stage") for query in queries.INBOX.values()]
        indexed += [("COUNTS", queries.COUNTS, f"mail_letters_{index}") for index in ("by_stage", "owed_by", "owed_to")]
        for name, query, index in indexed:
            text = str(query.compile(connection))
            text = re.sub(r"\(__\[POSTCOMPILE_\w+\]\)", "(?, ?)", text)
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", tuple(None for _ in range(text.count("?"))))
            steps = [row[3] for row in plan]
            assert any(index in step for step in steps), (name, steps)
            scans = [step for step in steps if step.startswith("SCAN") and "INDEX" not in step]
            assert scans in ([], ["SCAN CONSTANT ROW"]), (name, steps)
