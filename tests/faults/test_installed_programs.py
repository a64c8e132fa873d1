"""What other tests show inside of Fairlead, once more from outside: by the installed programs and the socket alone."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shutil
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from select import select
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import FAIRLEAD, LAUNCHER, scratch_home, until
from faults.faults import mounted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome, Done

PAGE = 4096
MESSAGES = 60


# -- mail and a damaged database -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def mail() -> Iterator[Path]:
    """A state folder in which one agent has many messages of another."""
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as made:
        with made.daemon():
            for session in ("s1", "s2"):
                payload = made.payload(session_id=session, hook_event_name="SessionStart", source="startup")
                made.hook("SessionStart", payload)
            until(made.has_mail, "the mail is open")
            listed = made.ask("GET", "/v1/mail/agents?all=true")["agents"]
            agents = {agent["session"]: agent["name"] for agent in listed}
            for number in range(MESSAGES):
                body = {"to": [agents["s2"]], "subject": f"<{number}>", "body": "words " * 150, "session": "s1"}
                made.ask("POST", "/v1/mail/send", body=body)
        shutil.rmtree(made.state / "run")
        yield made.state


@pytest.fixture
def mailed(home: DaemonHome, mail: Path) -> DaemonHome:
    """A home that has these messages."""
    shutil.copytree(mail, home.state, dirs_exist_ok=True)
    return home


def overwrite(database: Path, page: int) -> None:
    """Damage a page as a disk does, without a word to anybody."""
    with database.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\x55" * PAGE)


def pages(database: Path, kind: str) -> dict[str, int]:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return dict(connection.execute("SELECT name, rootpage FROM sqlite_master WHERE type = ?", (kind,)).fetchall())


def subjects(home: DaemonHome) -> set[str]:
    """Return which messages the mail has, once a daemon has opened it."""
    with home.daemon():
        until(home.has_mail, "the mail is open")
        with closing(sqlite3.connect(home.state / "mail.db")) as connection:
            return {subject for (subject,) in connection.execute("SELECT subject FROM mail_messages")}


def test_a_damaged_index_of_the_mail_loses_no_message(mailed: DaemonHome) -> None:
    database = mailed.state / "mail.db"
    overwrite(database, pages(database, "index")["mail_messages_by_thread"])

    assert {f"<{number}>" for number in range(MESSAGES)} <= subjects(mailed)


def test_who_misses_a_message_of_a_damaged_database_is_told_by_mail(mailed: DaemonHome) -> None:
    database = mailed.state / "mail.db"
    last = database.stat().st_size // PAGE  # where the newest messages lie
    for page in range(last - 4, last + 1):
        overwrite(database, page)

    left = subjects(mailed)
    kept = {f"<{number}>" for number in range(MESSAGES)} & left
    assert MESSAGES / 2 < len(kept) < MESSAGES
    assert "Messages were lost with a damaged database" in left


def test_on_a_full_disk_doctor_advises_nothing_that_throws_data_away(home: DaemonHome, mail: Path) -> None:
    fill = f"cp -r {mail}/. {home.state}/ && cat /dev/zero > {home.state}/zeros 2>/dev/null"
    start = mounted(home, "size=4m", fill)
    done = home.run([*start.within, str(FAIRLEAD), "doctor", "--scope", "local"], b"")

    assert "cannot be read: " in done.stdout, "the databases need space"
    assert "new one" not in done.stdout
    assert done.stdout.count("free some disk space first") == 2


# -- mail and a daemon that dies -----------------------------------------------------------------------


def is_printing(launcher: subprocess.Popen[bytes]) -> bool:
    """Return whether it waits in a `write` to stdout."""
    words = Path(f"/proc/{launcher.pid}/syscall").read_text().split()
    return words[1:2] == ["0x1"]


@pytest.mark.skipif(not Path("/proc/self/syscall").exists(), reason="nobody can see when it prints")
@pytest.mark.parametrize("killed", [False, True], ids=["printed", "killed"])
def test_mail_is_shown_again_only_if_it_was_not_printed_when_its_daemon_dies(
    mailed: DaemonHome, *, killed: bool
) -> None:
    """The moment between answer and receipt is made long by a pipe that is full."""
    prompt = mailed.payload(session_id="s2", hook_event_name="UserPromptSubmit", prompt="go on")
    reading, writing = os.pipe()
    filled = os.write(writing, b"x" * fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ))
    with mailed.daemon() as daemon:
        until(mailed.has_mail, "the mail is open")
        command = [str(LAUNCHER), "UserPromptSubmit"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=writing, env=mailed.environment()) as launcher:
            os.close(writing)
            assert launcher.stdin is not None
            launcher.stdin.write(prompt)
            launcher.stdin.close()
            until(lambda: is_printing(launcher), "it prints")
            daemon.kill()
            daemon.wait()
            if killed:
                launcher.kill()
                launcher.wait()
            with os.fdopen(reading, "rb") as pipe:
                printed = pipe.read()[filled:].decode()
    with mailed.daemon():
        until(mailed.has_mail, "the mail is open")
        later = mailed.hook("UserPromptSubmit", prompt).stdout

    assert ("<0>" in printed) is not killed
    assert ("<0>" in later) is killed
    assert ("may be a repeat" in later) is killed


# -- what is recorded ----------------------------------------------------------------------------------


def test_an_agent_cannot_read_what_is_recorded(mailed: DaemonHome) -> None:
    for name in ("journal/00000001.jsonl", "mail.db", "fairlead.db"):
        assert (mailed.state / name).exists()
        call = mailed.payload(tool_name="Bash", tool_input={"command": f"cat {mailed.state}/{name}"})
        done = mailed.hook("PreToolUse", call)

        assert done.exit_code == 2
        assert "keeps the journal and the mail of all sessions from agents" in done.stderr


# -- a daemon that hangs -------------------------------------------------------------------------------


def test_a_person_whose_command_meets_a_daemon_that_hangs_gets_a_word(home: DaemonHome) -> None:
    reading, terminal = pty.openpty()
    with home.daemon() as daemon:
        daemon.send_signal(signal.SIGSTOP)
        command = subprocess.Popen([FAIRLEAD, "agents"], stdout=terminal, stderr=terminal, env=home.environment())
        os.close(terminal)
        word = os.read(reading, 1000) if select([reading], [], [], 10.0)[0] else b""
        command.kill()
        command.wait()
        os.close(reading)

    assert word == b"fairlead: the daemon has not answered for a second; if it hangs, see fairlead doctor\r\n"


# -- hooks of the client's plugins ---------------------------------------------------------------------


def with_hook(home: DaemonHome, event: str, hook: dict[str, str], **fields: object) -> Done:
    """Decide an event with a command hook, as a plugin declares it."""
    rules = home.project / "hooks.json"
    rules.write_text(json.dumps({"hooks": {event: [{"hooks": [{"type": "command", **hook}]}]}}))
    return home.hook(event, home.payload(hook_event_name=event, **fields), "--rules", str(rules))


@pytest.mark.parametrize(("command", "code"), [("git push", 2), ("ls", 0)])
def test_the_condition_of_a_hook_is_honoured(home: DaemonHome, command: str, code: int) -> None:
    hook = {"command": "echo no >&2; exit 2", "if": "Bash(git push*)"}
    done = with_hook(home, "PreToolUse", hook, tool_name="Bash", tool_input={"command": command})

    assert done.exit_code == code, done.stderr


def test_a_denial_with_a_message_alone_is_told_by_that_message(home: DaemonHome) -> None:
    answer = {
        "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"},
        "systemMessage": "Why.",
    }
    hook = {"command": f"echo '{json.dumps(answer)}'"}
    done = with_hook(home, "PreToolUse", hook, tool_name="Bash", tool_input={"command": "ls"})

    assert (done.exit_code, done.stderr) == (2, "Why.\n")


def test_a_hook_that_fails_where_nothing_can_be_blocked_claims_no_denial(home: DaemonHome) -> None:
    done = with_hook(home, "SessionStart", {"command": "echo {"}, source="startup")

    message = "hook 'session-start-0' failed: its output is not valid JSON: Input data was truncated"
    assert (done.exit_code, done.answer) == (0, {"systemMessage": message})
