"""Mail that a hook was told, and did not live to print, was never seen: it is shown again. What it printed is not."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import closing
from time import sleep
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import LAUNCHER, until
from daemon.reading import Mail
from daemon.talk import connect, request

if TYPE_CHECKING:
    import socket

    from daemon.clients import Client
    from daemon.daemon_home import DaemonHome


def launcher(home: DaemonHome, agent: Client, path: str, payload: bytes = b"", **headers: str) -> socket.socket:
    """A launcher that has asked: as the real one does, but it can be stopped between two steps."""
    method = "POST" if payload else "GET"
    told = {"fairlead_acks": "1", "fairlead_pid": str(agent.process.pid), **headers}
    told["fairlead_id"] = "0000000000000001-1"
    connection = connect(home.socket)
    connection.sendall(request(method, path, payload, **told))
    return connection


def answer(connection: socket.socket) -> tuple[dict[str, str], bytes]:
    """Read an answer, and leave the connection open."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(1 << 16)
    head, _, body = data.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    while len(body) < int(headers["content-length"]):
        body += connection.recv(1 << 16)
    return headers, body


@pytest.mark.parametrize("printed", [True, False])
def test_what_a_hook_did_not_print_is_shown_again(
    posted: DaemonHome, fox: Client, owl: Client, *, printed: bool
) -> None:
    sent = fox.send(owl.name, "hello")
    payload = posted.payload(session_id=owl.session, hook_event_name="UserPromptSubmit", prompt="hi")
    with closing(launcher(posted, owl, "/v1/events/UserPromptSubmit", payload)) as connection:
        headers, body = answer(connection)
        assert headers["fairlead-ack"] == "1"
        assert b"hello" in body
        if printed:
            connection.sendall(b"\n")

    if printed:
        assert owl.hook("UserPromptSubmit", prompt="hi").stdout == ""
        assert fox.ledger(sent)[0][1] == "shown"
    else:
        until(lambda: fox.ledger(sent)[0][1] == "queued", "it is queued again")
        assert "hello" in owl.hook("UserPromptSubmit", prompt="hi").stdout


@pytest.mark.parametrize("printed", [True, False])
def test_so_it_is_with_one_that_waited(posted: DaemonHome, fox: Client, owl: Client, *, printed: bool) -> None:
    posted.policy("mail: {stay: always}\n")
    payload = posted.payload(session_id=owl.session, hook_event_name="Stop")
    with closing(launcher(posted, owl, "/v1/events/Stop", payload)) as connection:
        headers, _ = answer(connection)
    with closing(launcher(posted, owl, headers["location"])) as connection:
        until(lambda: posted.ask("GET", "/v1/status")["waiting"] == 1, "it waits")
        sent = fox.send(owl.name, "hello")
        headers, body = answer(connection)
        assert headers["fairlead-ack"] == "1"
        assert b"hello" in body
        if printed:
            connection.sendall(b"\n")

    posted.policy("mail: {stay: no}\n")
    if printed:
        assert owl.hook("Stop").stdout == ""
    else:
        until(lambda: fox.ledger(sent)[0][1] == "queued", "it is queued again")
        assert "hello" in owl.hook("Stop").stdout


WAITS = "touch begun; until test -e go_on; do sleep 0.01; done"


@pytest.mark.parametrize("killed", [True, False])
def test_so_it_is_where_commands_are_run_first(posted: DaemonHome, fox: Client, owl: Client, *, killed: bool) -> None:
    posted.policy(f"userPromptSubmit: {{commands: [{{run: '{WAITS}'}}]}}\n")
    for name in ("begun", "go_on"):
        (posted.project / name).unlink(missing_ok=True)
    sent = fox.send(owl.name, "hello")
    hook = begin(posted, owl, hook_event_name="UserPromptSubmit", prompt="hi")
    until((posted.project / "begun").exists, "the command runs")
    if killed:
        hook.kill()
        until(lambda: fox.ledger(sent)[0][1] == "queued", "it is queued again")
    (posted.project / "go_on").touch()

    assert (b"hello" in hook.communicate(timeout=30)[0]) is not killed
    assert ("hello" in owl.hook("UserPromptSubmit", prompt="hi").stdout) is killed
    assert fox.ledger(sent)[0][1] == "shown"


def test_who_does_not_say_that_it_can_is_not_waited_for(posted: DaemonHome, fox: Client, owl: Client) -> None:
    sent = fox.send(owl.name, "hello")
    payload = posted.payload(session_id=owl.session, hook_event_name="UserPromptSubmit", prompt="hi")
    with closing(launcher(posted, owl, "/v1/events/UserPromptSubmit", payload, fairlead_acks="0")) as connection:
        headers, body = answer(connection)
        assert "fairlead-ack" not in headers
        assert b"hello" in body
        assert connection.recv(1) == b"", "the daemon has closed it"

    assert owl.hook("UserPromptSubmit", prompt="hi").stdout == ""
    assert fox.ledger(sent)[0][1] == "shown"


def test_an_answer_without_mail_needs_no_receipt(posted: DaemonHome, owl: Client) -> None:
    payload = posted.payload(session_id=owl.session, hook_event_name="UserPromptSubmit", prompt="hi")
    with closing(launcher(posted, owl, "/v1/events/UserPromptSubmit", payload)) as connection:
        headers, _ = answer(connection)
        assert "fairlead-ack" not in headers
        assert connection.recv(1) == b""


SENDS = """
import random, sys, time
from fairlead.ipc import request
for number in range(int(sys.argv[2])):
    request("POST", "/v1/mail/send", {"to": [sys.argv[1]], "subject": f"<fox:{number}>"})
    time.sleep(random.random() / 50)
"""


def test_hooks_that_are_killed_at_any_moment_lose_and_double_nothing(
    posted: DaemonHome, fox: Client, owl: Client
) -> None:
    many, chance = 80, random.Random(1)
    posted.policy("mail: {stay: always, maxTurnsPerThread: 0, maxTurnsPerHour: 0}\n")
    sender = fox.start([sys.executable, "-c", SENDS, owl.name, str(many)], b"")
    mail = Mail({f"fox:{number}" for number in range(many)})
    while mail.lost:
        hook, was_killed = begin(posted, owl, hook_event_name="Stop"), chance.random() < 0.5
        if was_killed:
            sleep(chance.random() / 50)  # not for something to happen, but to be anywhere in between
            hook.kill()
        mail.hear(hook.communicate(timeout=30)[0].decode(errors="replace"), was_killed=was_killed)

    assert sender.end().exit_code == 0
    assert mail.shown.keys() == mail.sent
    assert mail.doubled == []


def begin(home: DaemonHome, agent: Client, **fields: str) -> subprocess.Popen[bytes]:
    env = home.environment(CLAUDE_PID=str(agent.process.pid))
    hook = subprocess.Popen(
        [str(LAUNCHER), fields["hook_event_name"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=home.project,
        env=env,
    )
    assert hook.stdin is not None
    hook.stdin.write(home.payload(session_id=agent.session, **fields))
    hook.stdin.close()
    hook.stdin = None
    return hook
