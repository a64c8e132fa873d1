"""Recorded requests, answers and plans of version 0.1.0 are read by this daemon, this launcher and this Python."""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import closing, contextmanager
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from compat.stage import FAIRLEAD, LAUNCHER, PATIENCE, SAMPLES, living, new_home, of_process, placed, read_answer, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat.stage import Answer, Done, Home

SESSION = "22222222-2222-4222-8222-222222222222"
"""Of all recorded requests but those about a tool and a status line."""
LOCKED = 'preToolUse: {uneditableFiles: ["*.lock"]}\n'
ACT = "from fairlead.act import main; main()"
"""The code that a launcher of that version runs in Python."""
ENV = {"CLAUDE_CODE_ENTRYPOINT": "cli", "FAIRLEAD_STAY": "always"}


def request(name: str, home: Home, pid: int = 1) -> bytes:
    """Return a recorded request of an old launcher, as if sent from this home by the client with that pid."""
    return of_process(placed((SAMPLES / f"wire/requests/{name}.http").read_bytes(), home), pid)


def body_of(raw: bytes) -> bytes:
    return raw.partition(b"\r\n\r\n")[2]


def answer(name: str, home: Home) -> bytes:
    """Return the bytes of a recorded answer of an old daemon."""
    return placed((SAMPLES / f"wire/answers/{name}.http").read_bytes(), home)


def recorded(name: str, home: Home) -> Answer:
    """Return a recorded answer of an old daemon, parsed."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(answer(name, home))
        return read_answer(ours)


# -- an old launcher's requests --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def known() -> Iterator[tuple[Home, int]]:
    """A home whose daemon knows the recorded session, and the pid of its client."""
    with new_home() as home, living() as pid, home.daemon(mail=True):
        home.project(policy=LOCKED)
        assert home.talk(request("session-start", home, pid)).status == 200
        yield home, pid


def name_of(home: Home) -> str:
    rows = home.ask("/v1/mail/agents?all=true")["agents"]
    return next(str(row["name"]) for row in rows if row["session"] == SESSION)


def send(home: Home, subject: str) -> int:
    return int(home.fairlead("send", name_of(home), "--subject", subject, "--json").json["id"])


def stage_of(home: Home, message: int) -> str:
    return str(home.fairlead("read", str(message), "--json").json["letters"][0]["stage"])


def renamed(data: bytes, number: int) -> bytes:
    """Return the request under another id: the daemon takes an event only once."""
    head, name, rest = data.partition(b"fairlead-id: ")
    return head + name + b"%02x" % number + rest[2:]


def test_an_event_is_answered_as_it_was(known: tuple[Home, int]) -> None:
    """A denial has the status, the headers and the body of that version's daemon."""
    home, pid = known
    assert home.talk(request("event", home, pid)) == recorded("blocked", home)


@pytest.mark.parametrize("printed", [True, False])
def test_mail_in_an_answer_waits_for_the_receipt(known: tuple[Home, int], *, printed: bool) -> None:
    """For a launcher that sends receipts (`fairlead-acks`), mail counts as shown once it wrote a byte."""
    home, pid = known
    message = send(home, "hello")
    with closing(home.connect()) as connection:
        connection.sendall(renamed(request("prompt", home, pid), 1 + printed))
        got = read_answer(connection)
        assert (got.status, got.headers["fairlead-ack"]) == (200, "1")
        assert b"hello" in got.body
        if printed:
            connection.sendall(b"\n")
    until(lambda: stage_of(home, message) == ("shown" if printed else "queued"), "the stage is right")
    if not printed:
        assert b"hello" in home.talk(renamed(request("prompt", home, pid), 3)).body


@pytest.mark.parametrize("name", ["stop", "waits", "wake"])
def test_a_wait_is_answered_by_mail(known: tuple[Home, int], name: str) -> None:
    """A stop, a stop whose commands were run by old Python, and a wake are answered by 303, then by the message."""
    home, pid = known
    asked = request(name, home, pid)
    asked = asked.replace(b"FAIRLEAD_STAY=always", b"FAIRLEAD_STAY=wake") if name == "wake" else asked
    waiting = home.talk(renamed(asked, 4) if name != "waits" else asked)
    assert waiting.status == 303
    assert int(waiting.headers["fairlead-wait"]) > 0
    assert waiting.headers["location"].startswith("/v1/waits/")

    with closing(home.connect()) as connection:
        token = waiting.headers["location"].rpartition("/")[2].encode()
        connection.sendall(request("wait", home, pid).replace(b"TOKEN-of-the-wait_01", token))
        until(lambda: home.waiting == 1, "it waits")
        message = send(home, f"mail for {name}")
        mail = read_answer(connection)
        connection.sendall(b"\n")
    assert (mail.status, mail.headers["fairlead-ack"]) == (200, "1")
    assert mail.headers["fairlead-exit"] == ("2" if name == "wake" else "0")
    assert f"mail for {name}".encode() in mail.body
    until(lambda: stage_of(home, message) == "shown", "the message is shown")


def test_an_unknown_wait_is_refused(known: tuple[Home, int]) -> None:
    """A token of another daemon is answered by 404, on which that launcher turns to Python."""
    home, pid = known
    assert home.talk(request("wait", home, pid)).status == 404


def test_a_status_line_is_answered_as_it_was(known: tuple[Home, int]) -> None:
    """The line of the recorded figures is that of the previous version's daemon."""
    home, pid = known
    assert home.talk(request("status-line", home, pid)) == recorded("status-line", home)


def test_a_daemon_of_another_home_declines(known: tuple[Home, int]) -> None:
    """A launcher of another home is declined (421), since another policy applies there."""
    home, pid = known
    raw = request("event", home, pid).replace(b"FAIRLEAD_HOME=", b"FAIRLEAD_HOME=/elsewhere")
    assert home.talk(raw).status == 421


# -- an old daemon's plans -------------------------------------------------------------------------------


def act(home: Home, plan: str, event: str, payload: str, **more: str) -> Done:
    """Carry out a plan of an old daemon in this Python, as that version's launcher does."""
    home.project()
    descriptor = os.memfd_create("plan") if hasattr(os, "memfd_create") else _file(home)
    try:
        os.write(descriptor, body_of(answer(plan, home)))
        words = [event, "--client", "claude", "--id", "18e88d7700000000-1", "--plan-fd", str(descriptor)]
        command = [sys.executable, "-E", "-P", "-c", ACT, *words]
        return home.run(command, body_of(request(payload, home)), home.project(), pass_fds=[descriptor], env=more)
    finally:
        os.close(descriptor)


def _file(home: Home) -> int:
    return os.open(home.folder / "plan", os.O_RDWR | os.O_CREAT, 0o600)


def test_a_plan_is_carried_out_with_its_variables(home: Home) -> None:
    """The commands of an old plan get its variables, run in its folder, and their end is spooled."""
    done = act(home, "plan", "Stop", "stop")
    folder = home.project()
    transcript = f"{home.folder}/.claude/projects/-home-user-project/{SESSION}.jsonl"
    known = {"SESSION_ID": SESSION, "TRANSCRIPT_PATH": transcript, "HOOK_EVENT": "Stop", "CWD": str(folder)}
    *variables, where = (folder / "ran").read_text().splitlines()
    assert (done.code, done.out) == (0, "")
    assert done.err == f"Processing Stop hook: session_id={SESSION}\n"
    assert {f"{brand}_{name}={value}" for brand in ("FAIRLEAD", "CONCLAUDE") for name, value in known.items()} <= set(
        variables
    )
    assert f"FAIRLEAD_CONFIG_DIR={folder}" in variables
    assert where == str(folder)
    assert [(end["kind"], end["id"]) for end in home.spooled()] == [("done", "18e88d7700000000-1")]
    assert (home.state / "spool/18e88d7700000000-1.done.json").exists()

    (folder / "red").touch()
    assert act(home, "plan", "Stop", "stop").json == {"decision": "block", "reason": "The tests are red."}


def test_a_plan_with_all_options_is_understood(home: Home) -> None:
    """Timeouts, cut output, `when`, shells, parallel steps, `infinite` and notifications are read from an old plan."""
    (home.project() / "red.py").touch()
    broken = act(home, "plan-rich", "Stop", "stop").json
    assert broken["decision"] == "block"
    assert broken["reason"].startswith("It is broken.")
    assert "1\n" in broken["reason"]
    assert "5\n" not in broken["reason"], "two lines of nine are shown"


def test_a_subagents_plan_is_carried_out(home: Home) -> None:
    """Commands for a type of subagents get the type as a variable, and the payload on stdin."""
    assert act(home, "plan-subagent", "SubagentStop", "subagent-stop").code == 0
    assert (home.project() / "ran").read_text() == "coder\n"
    assert (home.project() / "payload").read_bytes() == body_of(request("subagent-stop", home))


def test_a_plan_for_a_worktree_prints_its_path(home: Home) -> None:
    """The last line of the command is printed as an absolute path."""
    done = act(home, "plan-worktree", "WorktreeCreate", "worktree-create")
    assert (done.code, done.out) == (0, f"{home.project()}/trees/foo\n")


# -- an old daemon, and a new launcher, Python or command line -------------------------------------------


class OldDaemon:
    """Plays recorded answers of the previous version's daemon, one for each request."""

    def __init__(self, home: Home, *names: str) -> None:
        self._home = home
        self._left = [answer(name, home) for name in names]
        self.requests: list[bytes] = []
        self.receipts: list[bytes] = []

    @contextmanager
    def running(self) -> Iterator[OldDaemon]:
        self._home.socket_file.parent.mkdir(mode=0o700, exist_ok=True)
        self._home.socket_file.with_name("daemon.lock").write_text(f"{os.getpid()}\n")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self._home.socket_file))
            listener.listen()
            thread = Thread(target=self._serve, args=[listener])
            thread.start()
            try:
                yield self
            finally:
                listener.shutdown(socket.SHUT_RDWR)  # nobody else connects
                thread.join(PATIENCE)
        self._home.socket_file.unlink()

    def _serve(self, listener: socket.socket) -> None:
        while self._left:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(PATIENCE)
                request = _whole(connection)
                if request.startswith(b"POST /v1/commands/"):
                    connection.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\nNot Found")
                    continue
                sent = self._left.pop(0)
                self.requests.append(request)
                connection.sendall(sent)
                if b"fairlead-ack" not in sent:
                    connection.shutdown(socket.SHUT_WR)
                self.receipts.append(b"".join(iter(partial(connection.recv, 100), b"")))


def _whole(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(1 << 16)
    head, empty, body = data.partition(b"\r\n\r\n")
    size = int((head.partition(b"content-length: ")[2].split() or [b"0"])[0])
    while len(body) < size:
        body += connection.recv(1 << 16)
    return head + empty + body


def hook(home: Home, event: str, payload: str, *words: str) -> Done:
    """Run the launcher of the tree under test."""
    return home.run([str(LAUNCHER), event, *words], body_of(request(payload, home)), home.project(), env=ENV)


@pytest.mark.parametrize(
    ("name", "event", "payload"),
    [
        ("pass", "PreToolUse", "event"),
        ("blocked", "PreToolUse", "event"),
        ("status-line", "StatusLine", "status-line"),
    ],
)
def test_the_new_launcher_prints_an_old_daemons_answers(home: Home, name: str, event: str, payload: str) -> None:
    """This launcher prints an empty answer, a denial and a status line of an old daemon."""
    with OldDaemon(home, name).running():
        done = hook(home, event, payload)
    expected = recorded(name, home)
    size = int(expected.headers["fairlead-stdout"])
    out, err = expected.body[:size].decode(), expected.body[size:].decode()
    assert done == (int(expected.headers["fairlead-exit"]), out, err)


def test_the_new_launcher_waits_at_an_old_daemon(home: Home) -> None:
    """This launcher follows the 303 of an old daemon, and sends the receipt for the answer that shows mail."""
    with OldDaemon(home, "wait", "waited").running() as daemon:
        done = hook(home, "Stop", "stop")
    assert done.json["reason"].startswith("You have 1 unread message:")
    place = recorded("wait", home).headers["location"]
    assert daemon.requests[1].startswith(f"GET {place} HTTP/1.1\r\n".encode())
    assert daemon.receipts == [b"", b"\n"]


def test_the_new_launcher_carries_out_an_old_daemons_plan(home: Home) -> None:
    """This Python carries out a plan with mail, and sends the receipt to the old daemon."""
    with OldDaemon(home, "plan-mail").running() as daemon:
        done = hook(home, "UserPromptSubmit", "prompt")
    assert "hello again" in done.json["hookSpecificOutput"]["additionalContext"]
    assert (home.project() / "ran").read_text() == "hello\n"
    assert daemon.receipts == [b"\n"]


def test_new_python_asks_an_old_daemon_for_a_wait(home: Home) -> None:
    """After the commands of a plan, this Python requests the wait in the format that an old daemon reads."""
    with OldDaemon(home, "plan-stays", "wait", "waited").running() as daemon:
        done = hook(home, "Stop", "stop")
    assert done.json["reason"].startswith("You have 1 unread message:")
    asked, before = (json.loads(body_of(raw)) for raw in (daemon.requests[1], request("waits", home)))
    assert daemon.requests[1].startswith(b"POST /v1/waits HTTP/1.1\r\n")
    assert {**asked, "ask": None} == {**before, "ask": None}
    for key in ("event", "client", "cwd"):
        assert asked["ask"][key] == before["ask"][key]
    assert asked["ask"]["env"]["FAIRLEAD_STAY"] == "always"


@pytest.mark.parametrize("name", ["newer", "another-home", "unknown-wait"])
def test_the_new_launcher_turns_to_python_where_an_old_daemon_declines(home: Home, name: str) -> None:
    """Where an old daemon declines, this Python decides, and spools the event."""
    (home.project() / ".fairlead.yaml").write_text(LOCKED, encoding="utf-8")
    with OldDaemon(home, name).running():
        done = hook(home, "PreToolUse", "event")
    assert done.code == 2
    assert done.json["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert [record["road"] for record in home.spooled()] == ["cold"]


@pytest.mark.parametrize(
    ("name", "words", "expected"),
    [
        ("status", "daemon status", "0.1.0"),
        ("sessions", "sessions --all", "22222222"),
        ("agents", "agents --all", "jade-owl"),
    ],
)
def test_commands_understand_an_old_daemons_json(home: Home, name: str, words: str, expected: str) -> None:
    """`fairlead daemon status`, `sessions` and `agents` read the JSON of an old daemon."""
    with OldDaemon(home, name).running():
        done = home.run([str(FAIRLEAD), *words.split()])
    assert (done.code, done.err) == (0, "")
    assert expected in done.out


def test_an_old_daemon_can_be_stopped(home: Home) -> None:
    """`fairlead daemon stop` uses the path that an old daemon knows."""
    with OldDaemon(home, "stop").running() as daemon:
        done = home.run([str(FAIRLEAD), "daemon", "stop"])
    assert done.code == 0, done
    assert daemon.requests[0].startswith(b"POST /v1/stop HTTP/1.1\r\n")
