"""Mail to the person: counted for status lines, read and answered by commands, and notified once."""

from __future__ import annotations

import json
import signal
import sys
from queue import Empty
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from daemon.callers import client, person
from daemon.daemon_home import until
from notify.receivers import Service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome


@pytest.fixture
def service() -> Iterator[Service]:
    """A channel: a web service on this machine."""
    with Service() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def settings(home: DaemonHome, service: Service, grace: float = 0) -> None:
    """Write the user-wide policy."""
    channel = f"json://127.0.0.1:{service.server_port}"
    (home.state / "config.yaml").write_text(f"attention:\n  channels: [{channel}]\n  grace: {grace}\n")


def next_note(service: Service) -> tuple[str, str]:
    _, said = service.received.get(timeout=60)
    return said["title"], said["message"]


def test_each_message_is_notified_once_also_by_another_daemon(home: DaemonHome, service: Service) -> None:
    settings(home, service)
    daemon = home.start()
    until(home.has_mail, "there is mail")
    with client(home, "s1") as elk:
        name = elk.mail("identity")["agent"]["name"]
        elk.mail("send", "User", "--subject", "Which port?", "--request", "8080?")
        assert next_note(service) == ("Fairlead - you have mail", f"{name} asks: Which port?")
        daemon.send_signal(signal.SIGKILL)
        daemon.wait(30)
        with home.daemon():
            until(home.has_mail, "there is mail")
            elk.mail("send", "User", "The tests\x1b[31m pass.")
            assert next_note(service) == ("Fairlead - you have mail", f"{name} writes: The tests␛[31m pass.")
    with pytest.raises(Empty):
        service.received.get_nowait()


def test_what_was_read_meanwhile_is_not_notified(home: DaemonHome, service: Service) -> None:
    settings(home, service, grace=2)
    with home.daemon():
        until(home.has_mail, "there is mail")
        with client(home, "s1") as elk, person(home) as somebody:
            name = elk.mail("identity")["agent"]["name"]
            number = elk.mail("send", "User", "first")["id"]
            somebody.mail("read", str(number))
            elk.mail("send", "User", "second")
            assert next_note(service) == ("Fairlead - you have mail", f"{name} writes: second")


def test_the_status_line_says_how_much_there_is(posted: DaemonHome) -> None:
    assert posted.fairlead("sessions", "--line").stdout == "\n"
    with client(posted, "s1") as elk:
        elk.mail("send", "User", "--request", "8080?")
        elk.mail("send", "User", "It is done.")

        assert posted.fairlead("sessions", "--line").stdout == "mail: 2 unread, 1 to answer | 1 idle\n"
        assert posted.ask("GET", "/v1/mail/user") == {"unread": 2, "owes": 1, "waiting": 2}
        with person(posted) as somebody:
            somebody.fairlead("read", "1")
        assert posted.ask("GET", "/v1/mail/user") == {"unread": 1, "owes": 1, "waiting": 2}, "read, but not answered"


def test_a_person_reads_and_answers_outside_of_a_session(posted: DaemonHome) -> None:
    with client(posted, "s1") as elk, person(posted) as somebody:
        name = elk.mail("identity")["agent"]["name"]
        elk.mail("send", "User", "--request", "--deadline", "30m", "8080 or 8443?")

        assert "8080 or 8443?" in somebody.fairlead("inbox").stdout
        assert "It asks for an answer: fairlead reply 1" in somebody.fairlead("read", "1").stdout
        assert somebody.fairlead("reply", "1", "8443").stdout == f"sent as #2 to {name} (at its next prompt)\n"

        assert somebody.mail("status")["owes"] == []
        assert [one["body"] for one in elk.mail("poll")["messages"]] == ["8443"]


def test_a_poll_whose_answer_was_lost_is_the_same_poll_when_it_is_repeated(posted: DaemonHome) -> None:
    """The daemon has marked the mail as shown, and the answer never arrived: asked again, it is given again."""
    with client(posted, "s1") as elk, person(posted) as somebody:
        name = elk.mail("identity")["agent"]["name"]
        somebody.mail("send", name, "hello")
        poll = {"session": "s1", "id": "poll-launch-17a-2", "receipt": True, "as": name}
        script = (
            "import json, sys; from fairlead.ipc import request\n"
            "asked = json.loads(sys.argv[1])\n"
            "print(json.dumps([request('POST', '/v1/mail/poll', asked)['messages'] for _ in range(2)]))"
        )

        done = elk.run([sys.executable, "-c", script, json.dumps(poll)])

        assert done.exit_code == 0, done
        assert [[one["body"] for one in answer] for answer in json.loads(done.stdout)] == [["hello"], ["hello"]]


def test_an_agent_passes_files_on_stdin(posted: DaemonHome) -> None:
    (posted.project / "notes.md").write_text("long\n")
    with client(posted, "s1") as elk:
        done = elk.fairlead("send", "User", "--file", "notes.md", CLAUDE_CODE_SESSION_ID="s1")
        assert (done.exit_code, done.stderr) == (
            1,
            "fairlead: an agent passes the text of a file on stdin: fairlead send NAME - < notes.md\n",
        )
        assert elk.fairlead("send", "User", "-", stdin="long\n", CLAUDE_CODE_SESSION_ID="s1").exit_code == 0
