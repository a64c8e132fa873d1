"""The commands of the mail and the daemon: none yet, none wanted, killed, older, newer, with a broken or a full box."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingUnixStreamServer
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from daemon.callers import client, program
from daemon.daemon_home import FAIRLEAD, scratch_home, until

from fairlead.mail import USER, Draft, MessageService
from fairlead.store import MailStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome, Done


@pytest.fixture
def home() -> Iterator[DaemonHome]:
    """A home without a daemon, in which one is begun on demand."""
    with scratch_home() as made:
        yield made


def test_a_command_begins_a_daemon(home: DaemonHome) -> None:
    with program(home) as script:
        assert script.fairlead("send", "User", "The first.").stdout == "sent as #1 to User (the person)\n"
    assert home.status() is not None


def test_where_none_is_wanted_it_says_so(home: DaemonHome) -> None:
    with program(home) as script:
        done = script.fairlead("inbox", FAIRLEAD_NO_DAEMON="1")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("fairlead: no daemon is running")
    assert home.daemons() == []


def test_many_commands_at_once_begin_one_and_send_each_message_once(home: DaemonHome) -> None:
    words = [str(FAIRLEAD), "send", "User", "--json"]
    running = [
        subprocess.Popen([*words, str(i)], env=home.environment(), stdout=subprocess.PIPE, start_new_session=True)
        for i in range(6)
    ]
    documents = [json.loads(each.communicate(timeout=60)[0]) for each in running]
    assert sorted(document["id"] for document in documents) == [1, 2, 3, 4, 5, 6]
    with program(home) as script:
        status = script.mail("inbox", "--search", "")
    assert status["you"] == "Script"
    until(lambda: len(home.daemons()) == 1, "those that were begun in vain have gone")


def test_a_daemon_that_was_killed_is_replaced_and_has_kept_everything(home: DaemonHome) -> None:
    with program(home) as script:
        script.mail("send", "User", "before")
        pid = home.status()["pid"]  # type: ignore[index] # it answers
        os.kill(pid, signal.SIGKILL)
        assert script.mail("send", "User", "after")["id"] == 2
        found = script.mail("inbox", "--search", "e")["messages"]
    assert [row["preview"] for row in found] == ["after", "before"]


def test_who_waits_goes_on_with_the_next_daemon(home: DaemonHome) -> None:
    with client(home) as fox:
        fox.mail("heartbeat", "--session-start", "--session-id", "bot")
        name = fox.mail("identity", "--session-id", "bot")["agent"]["name"]
        command = [str(FAIRLEAD), "poll", "--wait", "2m", "--session-id", "bot"]
        waiting = subprocess.Popen(command, env=home.environment(), stdout=subprocess.PIPE, start_new_session=True)
        until(lambda: (home.status() or {"idle": 1})["idle"] == 0.0, "it waits")
        os.kill(home.status()["pid"], signal.SIGKILL)  # type: ignore[index] # it answers
        until(lambda: (home.status() or {"idle": 1})["idle"] == 0.0, "it waits with another")
        fox.mail("send", name, "at last")
        out, _ = waiting.communicate(timeout=60)
    assert b'- From: Script - "at last"' in out


def test_who_is_interrupted_while_waiting_has_seen_nothing(home: DaemonHome) -> None:
    with client(home) as fox:
        fox.mail("heartbeat", "--session-start", "--session-id", "bot")
        name = fox.mail("identity", "--session-id", "bot")["agent"]["name"]
        command = [str(FAIRLEAD), "poll", "--wait", "2m", "--session-id", "bot"]
        waiting = subprocess.Popen(command, env=home.environment(), stderr=subprocess.PIPE, start_new_session=True)
        until(lambda: (home.status() or {"idle": 1})["idle"] == 0.0, "it waits")
        waiting.send_signal(signal.SIGINT)
        _, told = waiting.communicate(timeout=60)
        fox.mail("send", name, "still there")
        assert [row["subject"] or row["body"] for row in fox.mail("poll", "--session-id", "bot")["messages"]] == [
            "still there"
        ]
    assert waiting.returncode == 130
    assert told == b"fairlead: interrupted\n"


# -- other versions ------------------------------------------------------------------------------------


@contextmanager
def other_daemon(home: DaemonHome, version: str) -> Iterator[list[str]]:
    """A daemon of another version, which has no mail, and goes when it is asked to. Gives what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            asked.append(f"{self.command} {self.path.partition('?')[0]}")
            known = self.path in {"/v1/status", "/v1/stop"}
            body = json.dumps({"pid": os.getpid(), "version": version}).encode() if known else b"Not Found"
            self.send_response(200 if known else 404)
            self.send_header("content-type", "application/json" if known else "text/plain")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.path == "/v1/stop":
                home.socket.unlink()
            self.wfile.write(body)

        do_GET = do_POST = _answer  # noqa: N815 - as they are called

        def log_message(self, *_: object) -> None:
            pass

    home.socket.parent.mkdir(mode=0o700)
    with ThreadingUnixStreamServer(str(home.socket), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield asked
        server.shutdown()
        thread.join()


def inbox(home: DaemonHome) -> Done:
    with program(home) as script:
        return script.fairlead("inbox")


def test_an_older_daemon_is_sent_away(home: DaemonHome) -> None:
    with other_daemon(home, "0.0.1") as asked:
        done = inbox(home)
    assert (done.exit_code, done.stdout) == (0, "no unread messages\n"), done
    assert asked == ["GET /v1/mail/inbox", "GET /v1/status", "POST /v1/stop"]


def test_a_newer_daemon_stays_and_the_person_is_told(home: DaemonHome) -> None:
    with other_daemon(home, "999.0.0") as asked:
        done = inbox(home)
    assert done.exit_code == 1
    assert "the daemon has version 999.0.0, which does not know this request, and this command has " in done.stderr
    assert "POST /v1/stop" not in asked


# -- a box that is broken, and one that is full --------------------------------------------------------


def test_a_box_of_another_program_is_left_alone_and_the_person_is_told(home: DaemonHome) -> None:
    with sqlite3.connect(home.state / "mail.db") as database:
        database.execute("create table recipes (name text)")
    database.close()
    done = inbox(home)
    assert done.exit_code == 1
    assert done.stderr.startswith("fairlead: the mail cannot be reached: ")
    assert "is a database of another program" in done.stderr


def test_ten_thousand_unread_messages_come_page_by_page(home: DaemonHome) -> None:
    store = MailStore.open(f"sqlite:///{home.state}/mail.db")
    office = MessageService(store)
    bot = office.ensure_agent("bot", project=str(home.project))
    for start in range(0, 10_000, 1000):
        drafts = [(USER, Draft(to=(bot.name,), subject=f"number {start + i}")) for i in range(1000)]
        office.send_many(drafts)
    store.close()
    with program(home) as script:
        begun = monotonic()
        page = script.mail("inbox", "--session-id", "bot", "--limit", "200")
        assert (page["unread"], len(page["messages"]), page["messages"][0]["subject"]) == (10_000, 200, "number 9999")
        following = script.mail("inbox", "--session-id", "bot", "--limit", "200", "--before", str(page["more"]))
        assert following["messages"][0]["subject"] == "number 9799"
        lines = script.fairlead("inbox", "--session-id", "bot").stdout.splitlines()
        assert (len(lines), lines[-1]) == (21, "there are more; the next page: --before 9981")
        shown = script.mail("poll", "--session-id", "bot")
        assert shown["left"] == 10_000 - len(shown["messages"])
        assert shown["messages"][0]["subject"] == "number 0"
        assert len(shown["text"]) < 10_000
        assert script.mail("status", "--session-id", "bot")["agent"]["unread"] == 10_000
        assert monotonic() - begun < 60
