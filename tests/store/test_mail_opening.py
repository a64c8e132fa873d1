"""The box of the mail in its file: who may open it, what is told when it cannot be, and a disk without room."""

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
from store.mail_contract import AMBER, BLUE, post, shown

from fairlead.mail import MailBusy, MailError, MailFull, MailUnreachable
from fairlead.store import MailStore, default_mail_url
from fairlead.store.mail import _queries as _mail_queries

TESTS = str(Path(__file__).parents[1])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mail.db"


def url(file: Path) -> str:
    return f"sqlite:///{file}"


def filled(file: Path, count: int = 500) -> None:
    with closing(MailStore.open(url(file))) as box:
        box.put_agents([AMBER, BLUE])
        box.post([post(number, BLUE, body="x" * 200) for number in range(1, count + 1)])


def run(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": TESTS},
    )


def test_the_default_is_a_file_of_its_own_in_the_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
            f"{file}: another process owns it, a second daemon perhaps; stop that one first\n"
        )
    assert run(code, url(file)).stdout == "opened\n", "and it ended without closing it"
    MailStore.open(url(file)).close()


def test_one_that_cannot_be_opened_is_no_ones(file: Path) -> None:
    """Whoever fails to open it does not keep it from others."""
    file.mkdir()
    for _ in range(2):
        with pytest.raises(MailUnreachable, match="is not a file; move it away"):
            MailStore.open(url(file))
    file.rmdir()
    MailStore.open(url(file)).close()


def test_a_damaged_one_is_set_aside_and_a_new_one_is_begun(file: Path) -> None:
    filled(file)
    file.write_bytes(b"broken" * 1000)
    with closing(MailStore.open(url(file))) as box:
        [warning] = box.warnings
        assert "mail.db is damaged (" in warning
        assert box.load().last_message == 0


def test_one_of_a_newer_version_is_refused(file: Path) -> None:
    filled(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE fairlead_revision SET version_num = '9999'")
    with pytest.raises(MailUnreachable, match=r"was written by a newer Fairlead \(it is at revision 9999"):
        MailStore.open(url(file))


@pytest.mark.parametrize("wrong", ["", "mail.db", "sqlite://", "postgresql://u:secret@h/d"])
def test_a_url_of_no_store_is_refused_without_its_password(wrong: str) -> None:
    with pytest.raises(MailUnreachable, match=r"sqlite:///PATH") as refused:
        MailStore.open(wrong)
    assert "secret" not in str(refused.value)


def test_who_waits_too_long_to_write_is_told_and_may_try_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.store._sqlite._PATIENCE", 0.05)
    with closing(MailStore.open(url(file))) as box, closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(MailBusy, match="another process holds the store; try again"):
            box.put_agents([AMBER])
        other.execute("ROLLBACK")
        box.put_agents([AMBER])


def test_every_error_of_the_database_is_one_of_the_mail(file: Path) -> None:
    filled(file)
    with closing(MailStore.open(url(file))) as box:
        with closing(sqlite3.connect(file)) as other, other:
            other.execute("DROP TABLE mail_letters")
        for call in (lambda: box.letters(1), lambda: shown(box, BLUE), lambda: box.post([post(9999, BLUE)])):
            with pytest.raises(MailError, match="no such table: mail_letters"):
                call()


# -- no room -------------------------------------------------------------------------------------------

FILL = """
import resource, sys
from fairlead.mail import Draft, MailFull, Office, USER
from fairlead.store import MailStore
box = MailStore.open(sys.argv[1])
office = Office(box)
amber, blue = office.agent_for("s1"), office.agent_for("s2")
asked = office.send(amber, Draft(to=(blue.name,), subject="asked", intent="request")).message
heard = []
office.on_mail(lambda agent: heard.append(agent.name))
resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, resource.RLIM_INFINITY))

def refused(call):
    try:
        call()
    except MailFull as full:
        return str(full)
    raise AssertionError("there was room")

def draft(number):
    return Draft(to=(blue.name,), subject=str(number), body="x" * 20_000, key=f"k{number}")

sent = 1
try:
    while True:
        office.send(amber, draft(sent))
        sent += 1
except MailFull as full:
    print(full)
before = office.waiting(blue), box.load(), box.letters(asked.id), len(heard)
assert before[0] == sent == before[1].last_message, (before[0], sent)
big = Draft(to=(blue.name, "User"), subject="big", body="y" * 1_000_000, key="big")
refused(lambda: office.send(amber, big))
other = Draft(to=("User",), subject="x", body="z" * 900_000)
assert [type(one) for one in office.send_many([(amber, big), (blue, other)])] == [MailFull] * 2
assert (office.waiting(blue), box.load(), box.letters(asked.id), len(heard)) == before
assert office.waiting(USER) == 0

resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
again = office.send(amber, draft(sent))
assert (again.is_new, again.message.id) == (True, sent + 1)
assert not office.send(amber, draft(sent)).is_new
assert not office.send(amber, draft(1)).is_new
assert office.send(amber, big).is_new
ids = []
while found := office.show(blue, "Stop", f"e{len(ids)}"):
    ids += [message.id for message in found]
assert ids == list(range(1, sent + 3)), ids
assert box.check().problems == ()
box.close()
"""


def test_on_a_full_disk_the_sender_is_told_and_nothing_is_half_done(file: Path) -> None:
    done = run(FILL, url(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"{file}: there is no room for the mail, so nothing was sent or marked; make room, and try again\n"
    )


def test_a_database_that_may_not_grow_is_full(file: Path) -> None:
    with closing(MailStore.open(url(file))) as box:
        box.put_agents([AMBER, BLUE])
        with box._backend.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 60")
        with pytest.raises(MailFull):
            box.post([post(number, BLUE, body="x" * 1000) for number in range(1, 2000)])
        assert box.load().last_message == 0


# -- what reaches the disk, and how it is found --------------------------------------------------------


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace shows what reaches the disk")
def test_a_message_waits_for_the_disk_and_a_batch_waits_once(tmp_path: Path, file: Path) -> None:
    filled(file, 1)
    code = (
        "import os, sys; from fairlead.store import MailStore; from store.mail_contract import *\n"
        "box = MailStore.open(sys.argv[1]); box.see([(10, 5.0)]); shown(box, BLUE)\n"
        "os.write(2, b'posts'); box.post([post(n, BLUE) for n in range(10, 60)])\n"
        "os.write(2, b'shows'); shown(box, BLUE)\n"
        "os.write(2, b'ends')\n"
    )
    trace = tmp_path / "trace"
    done = run_traced(code, trace, url(file))
    if "ptrace" in done.stderr:
        pytest.skip("no process may be traced here")
    _, rest = trace.read_text().split('"posts"')
    posts, rest = rest.split('"shows"')
    shows, _ = rest.split('"ends"')
    assert posts.count("sync(") == 1
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


HOT = {
    "FIRST": "mail_letters_by_stage",
    "FIRST_URGENT": "mail_letters_urgent",
    "INBOX": "mail_letters_by_stage",
    "SENT_BEFORE": "mail_messages_by_key",
    "OWED_BY": "mail_letters_owed_by",
    "OWED_TO": "mail_letters_owed_to",
    "OWED_FOR": "PRIMARY KEY (message=?)",
    "SHOWN_AT": "mail_letters_at_event",
    "BOUNCED": "mail_letters_by_stage",
    "COUNTS": "mail_letters_by_stage",
    "URGENTS": "mail_letters_urgent",
    "OWES": "mail_letters_owed_by",
    "IS_OWED": "mail_letters_owed_to",
    "OWING": "mail_letters_owed_",
    "DEADLINES": "mail_letters_owed_",
    "BEFORE_IN_THREAD": "mail_messages_by_thread",
    "LETTERS": "PRIMARY KEY (message=?)",
}
"""Statement → the index that it goes by: how long it takes does not depend on how many messages there are."""


@pytest.mark.parametrize(("name", "index"), HOT.items())
def test_what_is_asked_often_goes_by_its_index(file: Path, name: str, index: str) -> None:
    with closing(MailStore.open(url(file))) as box, box._backend.engine.connect() as connection:
        statement = getattr(_mail_queries, name)
        text = re.sub(r"\(__\[POSTCOMPILE_\w+\]\)", "(?, ?)", str(statement.compile(connection)))
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", tuple(None for _ in range(text.count("?"))))
        steps = [row[3] for row in plan]
    assert any(index in step for step in steps), steps
    assert not [step for step in steps if step.startswith("SCAN") and "INDEX" not in step], steps
