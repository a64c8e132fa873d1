"""A receipt outlives the daemon: a printed message is shown once, one that was not printed is shown again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import LAUNCHER, until
from daemon.talk import connect, request
from daemon.test_mail_acks import answer

from fairlead.daemon.mail._receipts import Receipts
from fairlead.journal import Caller, EventRecord, spool_record

if TYPE_CHECKING:
    from pathlib import Path

    from daemon.clients import Client
    from daemon.daemon_home import DaemonHome

REPEAT = "may be a repeat"


def receipts(home: DaemonHome) -> list[Path]:
    return sorted((home.state / "run/receipts").glob("*"))


def show_to_killed_launcher(home: DaemonHome, agent: Client) -> Path:
    """Have mail sent to a launcher that is killed just after the daemon. Returns the receipt's file."""
    payload = home.payload(session_id=agent.session, hook_event_name="UserPromptSubmit", prompt="hi")
    daemon = home.ask("GET", "/v1/status")["pid"]
    with subprocess.Popen(["sleep", "infinity"]) as launcher, closing(connect(home.socket)) as connection:
        event_id = f"0000000000000001-{launcher.pid:x}"
        headers = {"fairlead_acks": "2", "fairlead_pid": str(agent.process.pid), "fairlead_id": event_id}
        connection.sendall(request("POST", "/v1/events/UserPromptSubmit", payload, **headers))
        told, body = answer(connection)
        assert told["fairlead-ack"] == event_id
        assert b"hello" in body
        os.kill(daemon, signal.SIGKILL)
        until(lambda: home.status() is None, "it is dead")
        launcher.kill()  # not before: the daemon would take the mail back
    [file] = receipts(home)
    return file


@pytest.mark.parametrize("printed", ["no", "perhaps", "yes"])
def test_the_next_daemon_knows_what_was_printed(home: DaemonHome, printed: str) -> None:
    from daemon.clients import client

    first = home.start()
    until(home.has_mail, "there is mail")
    with client(home, "11111111-1111-4111-8111-111111111111") as owl:
        owl.hook("SessionStart", source="startup")
        home.ask("POST", "/v1/mail/send", body={"to": [owl.name], "subject": "hello"})
        file = show_to_killed_launcher(home, owl)
        first.wait(30)
        if printed == "perhaps":
            file.rename(f"{file}.printing")
        elif printed == "yes":
            file.unlink()
        with home.daemon():
            until(home.has_mail, "there is mail")
            shown = owl.hook("UserPromptSubmit", prompt="hi").stdout

        assert ("hello" in shown) is (printed != "yes")
        assert (REPEAT in shown) is (printed == "perhaps")
        assert receipts(home) == []


def test_a_launcher_gives_a_receipt_for_what_it_printed(posted: DaemonHome, fox: Client, owl: Client) -> None:
    sent = fox.send(owl.name, "hello")
    assert "hello" in owl.hook("UserPromptSubmit", prompt="hi").stdout
    assert receipts(posted) == []
    assert fox.ledger(sent)[0][1] == "shown"


def test_what_a_waiting_stop_was_shown_is_not_undone_by_its_event_in_the_spool(
    posted: DaemonHome, fox: Client, owl: Client
) -> None:
    """A Stop that was decided without a daemon is in the spool when its wait is answered by the daemon it started."""
    event_id, sent = "0000000000000002-1", fox.send(owl.name, "hello")
    payload = posted.payload(session_id=owl.session, hook_event_name="Stop")
    asked = {"event": "Stop", "id": event_id, "cwd": str(posted.project), "acks": True, "receipts": True}
    document = {"ask": asked, "payload": json.loads(payload)}
    with closing(connect(posted.socket)) as connection:
        connection.sendall(request("POST", "/v1/waits", json.dumps(document).encode()))
        told, body = answer(connection)
    assert b"hello" in body
    (posted.state / "run/receipts" / told["fairlead-ack"]).unlink()  # as whoever has printed it does

    record = EventRecord(
        id=event_id, at=1.0, event="Stop", session=owl.session, cwd=str(posted.project), route="cold", caller=Caller()
    )
    spool_record(str(posted.state / "spool"), record)
    until(lambda: not posted.spooled(), "the daemon has taken it")

    assert owl.hook("UserPromptSubmit", prompt="hi").stdout == ""
    assert fox.ledger(sent)[0][1] == "shown"


ASKS = """
import os
from fairlead.ipc import RequestRefused, request
try:
    print(request("POST", "/v1/mail/poll", {"id": "poll-1", "receipt": True}), flush=True)
except RequestRefused as error:
    print(error, flush=True)
os.kill(os.getpid(), 9)
"""
"""A poll that has its answer, and is killed before it gives a receipt."""


def test_a_poll_that_is_killed_before_it_prints_has_shown_nothing(posted: DaemonHome, fox: Client, owl: Client) -> None:
    sent = fox.send(owl.name, "hello")
    assert "hello" in owl.start([sys.executable, "-c", ASKS], b"").end().stdout

    until(lambda: fox.ledger(sent)[0][1] == "queued", "it is queued again")
    shown = owl.fairlead("poll").stdout
    assert "hello" in shown
    assert REPEAT not in shown
    assert receipts(posted) == []


def test_a_launcher_that_is_killed_while_it_prints_may_have_shown_it(
    posted: DaemonHome, fox: Client, owl: Client
) -> None:
    """Its stdout is a pipe that nobody reads: it has begun to print, and does not come to the receipt."""
    fox.send(owl.name, "hello")
    fill = "import os; os.set_blocking(1, False)\ntry:\n while os.write(1, b'x' * 4096): pass\nexcept OSError: pass"
    payload = posted.payload(session_id=owl.session, hook_event_name="UserPromptSubmit", prompt="hi")
    with subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as pipe:
        assert pipe.stdin is not None
        subprocess.run([sys.executable, "-c", fill], stdout=pipe.stdin, check=True)
        hook = subprocess.Popen(
            [LAUNCHER, "UserPromptSubmit"],
            stdin=subprocess.PIPE,
            stdout=pipe.stdin,
            cwd=posted.project,
            env=posted.environment(CLAUDE_PID=str(owl.process.pid)),
        )
        assert hook.stdin is not None
        hook.stdin.write(payload)
        hook.stdin.close()
        until(lambda: [file.suffix for file in receipts(posted)] == [".printing"], "it prints")
        hook.kill()
        hook.wait(30)
        pipe.kill()

    until(lambda: receipts(posted) == [], "the daemon has noticed")
    assert REPEAT in owl.hook("UserPromptSubmit", prompt="hi").stdout


def test_mail_whose_receipt_cannot_be_kept_stays_queued(posted: DaemonHome, fox: Client, owl: Client) -> None:
    folder = posted.state / "run/receipts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("no folder")
    sent = fox.send(owl.name, "hello")
    assert owl.hook("UserPromptSubmit", prompt="hi").stdout == ""
    refused = owl.start([sys.executable, "-c", ASKS], b"").end().stdout
    assert "the mail is not shown, because no receipt can be kept: Not a directory" in refused
    assert fox.ledger(sent)[0][1] == "queued"

    folder.unlink()
    assert "hello" in owl.hook("UserPromptSubmit", prompt="hi").stdout


def test_a_receipt_that_is_closed_as_soon_as_it_is_written_does_not_count_as_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread finds the file of a reader that is dead already, and closes it before the mail is marked."""
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path))
    receipts, write = Receipts(), Receipts._write

    def write_and_close(self: Receipts, showing: str, pid: int) -> None:
        write(self, showing, pid)
        assert self.abandoned() == [showing]
        self.close(showing)

    monkeypatch.setattr(Receipts, "_write", write_and_close)
    with subprocess.Popen(["true"]) as reader:
        pass
    receipts.open("1-a", reader.pid)
    assert receipts.state("1-a") == "unknown", "so the mail is queued again if its reply is not delivered"
