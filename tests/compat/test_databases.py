"""Databases of version 0.1.0 are opened, read and written."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from compat.stage import LAUNCHER, SAMPLES, living, recent, until

if TYPE_CHECKING:
    from pathlib import Path

    from compat.stage import Home

FOX = "11111111-1111-4111-8111-111111111111"
OWL = "22222222-2222-4222-8222-222222222222"


def restored(name: str, folder: Path) -> Path:
    """Make the database of a dump."""
    file, dump = folder / f"{name}.db", (SAMPLES / f"databases/{name}.sql").read_bytes()
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.executescript((recent(dump) if name == "mail" else dump).decode())
    file.chmod(0o600)
    return file


def rows(file: Path, table: str, columns: str = "*") -> set[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        return set(connection.execute(f"SELECT {columns} FROM {table}"))


def columns_of(file: Path, table: str) -> str:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        return ", ".join(f'"{row[1]}"' for row in connection.execute(f"PRAGMA table_info({table})"))


def is_sound(home: Home) -> bool:
    """Return whether the databases are intact, and none was set aside."""
    for file in home.state.glob("*.db"):
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return not list(home.state.glob("*.damaged-*")) and not list(home.state.glob("*.suspect"))


@pytest.mark.parametrize("name", ["fairlead", "mail"])
def test_the_dumps_restore_what_was_written(name: str, tmp_path: Path) -> None:
    """A dump keeps the revision, the journal mode and the vacuum mode of a database."""
    file = restored(name, tmp_path)
    with closing(sqlite3.connect(file)) as connection:
        settings = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "auto_vacuum")
        }
    assert settings == {"journal_mode": "wal", "auto_vacuum": 2}
    assert rows(file, "fairlead_revision") == {("0002",)}


# -- events ----------------------------------------------------------------------------------------------


def test_stored_events_are_read_and_new_ones_added(home: Home) -> None:
    """The events of a session are read from an old database, none is stored twice, and a new one is added."""
    shutil.copytree(SAMPLES / "journal", home.state / "journal")
    before = restored("fairlead", home.state)
    kept = {table: rows(before, table) for table in ("events", "dones", "turns")}
    with living() as pid, home.daemon():
        listed = home.ask(f"/v1/sessions/{FOX}/events?limit=1000")["events"]
        payload = {"session_id": FOX, "cwd": str(home.project()), "hook_event_name": "UserPromptSubmit", "prompt": "hi"}
        home.run([str(LAUNCHER), "UserPromptSubmit"], json.dumps(payload).encode(), env={"CLAUDE_PID": str(pid)})
        until(lambda: len(home.ask(f"/v1/sessions/{FOX}/events?limit=1000")["events"]) > len(listed), "it is stored")
        status = home.ask("/v1/status")
    of_fox = {row for row in kept["events"] if FOX in row}
    assert len(listed) == len(of_fox)
    assert {(event["event"], event["at"]) for event in listed} == {(row[2], row[1]) for row in of_fox}
    assert (status["troubles"], status["store_failures"]) == (0, 0)
    for table, known in kept.items():
        assert known <= rows(before, table)
    assert len(rows(before, "events")) == len(kept["events"]) + 1
    assert is_sound(home)


def test_an_old_journal_gives_the_same_rows(home: Home, tmp_path: Path) -> None:
    """Without a database, an old journal is stored as the rows that the old version stored."""
    shutil.copytree(SAMPLES / "journal", home.state / "journal")
    before, after = restored("fairlead", tmp_path), home.state / "fairlead.db"
    with home.daemon():
        until(lambda: home.ask("/v1/status")["stored"] >= len(rows(before, "events")), "the journal is stored")
    for table in ("events", "dones", "turns"):
        columns = columns_of(before, table)
        assert rows(before, table, columns) <= rows(after, table, columns)
    assert len(rows(before, "events")) == len(rows(after, "events"))


# -- mail ------------------------------------------------------------------------------------------------


@pytest.fixture
def mailed(home: Home) -> Home:
    restored("mail", home.state)
    return home


def test_the_old_mail_is_there(mailed: Home) -> None:
    """Agents, topics, messages, delivery stages, saved texts and requests without an answer are read from old mail."""
    with mailed.daemon(mail=True):
        agents = mailed.fairlead("agents", "--all", "--json").json["agents"]
        inbox = mailed.fairlead("inbox", "--all", "--session-id", OWL, "--json").json
        status = mailed.fairlead("status", "--session-id", OWL, "--json").json
        whole = mailed.fairlead("read", "1", "--session-id", FOX, "--json").json
        topics = mailed.fairlead("topics", "--session-id", FOX, "--json").json
        bounced = mailed.fairlead("read", "9", "--session-id", FOX, "--json").json
        saved = mailed.fairlead("identity", "restore", "--session-id", OWL).out
        troubles = mailed.ask("/v1/status")["troubles"]
    names = {agent["name"] for agent in agents}
    assert {"amber-fox", "jade-owl", "amber-fox/coder-1", "amber-fox/explore-1", "grey-crow"} <= names
    stages = {message["subject"]: message["stage"] for message in inbox["messages"]}
    assert stages == {
        "Please review the notes": "answered",
        "The build is red": "shown",
        "It is green again": "shown",
        "One more thing": "shown",
        "Not shown yet": "queued",
    }
    assert "The build is red" in json.dumps(status), "a request without an answer"
    assert whole["message"]["body"] == "They are in notes/today.md."
    assert "build" in json.dumps(topics)
    assert [(row["stage"], row["why"]) for row in bounced["letters"]] == [("bounced", "the agent had ended")]
    assert "I review the notes." in saved
    assert troubles == 0
    assert is_sound(mailed)


def test_old_mail_goes_on(mailed: Home) -> None:
    """Old requests are answered, former names and idempotency keys still work, and queued messages are shown."""
    formers = rows(mailed.state / "mail.db", "mail_formers", "text, agent")
    former = next(text for text, agent in formers if agent == 11)
    keyed = ("--key", "green-1", "--session-id", FOX, "--json")
    payload = {"session_id": OWL, "cwd": str(mailed.project()), "hook_event_name": "UserPromptSubmit", "prompt": "hi"}
    with living() as pid, mailed.daemon(mail=True):
        again = mailed.fairlead("send", "#build", "--subject", "It is green again", *keyed).json
        fresh = mailed.fairlead("send", former, "--subject", "hello", "--json").json
        mailed.fairlead("reply", "3", "It is green again.", "--session-id", OWL)
        ledger = mailed.fairlead("read", "3", "--session-id", FOX, "--json").json["letters"]
        env = {"CLAUDE_PID": str(pid)}
        shown = mailed.run([str(LAUNCHER), "UserPromptSubmit"], json.dumps(payload).encode(), env=env).json
    assert (again["id"], again["new"]) == (6, False)
    assert [one["name"] for one in fresh["recipients"]] == ["jade-owl"]
    assert fresh["id"] == 11, "numbers go on"
    assert [row["stage"] for row in ledger] == ["answered"]
    assert "Not shown yet" in shown["hookSpecificOutput"]["additionalContext"]
    assert is_sound(mailed)
