"""Copying events to a real relay: exactly once, within its bounds, and only what the setting says.

The journal, the store and the database are real; the store is filled in this process instead of one of its own.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from daemon.daemon_home import until
from team.relay_hosts import Relays, host_id

from fairlead.daemon.store._writer import StoreWriter
from fairlead.daemon.team._roster import Roster
from fairlead.daemon.team._settings import CurrentSettings
from fairlead.daemon.team._state import ConnectionLog
from fairlead.daemon.team.history._copier import EventCopier
from fairlead.journal import CommandsRecord, EventRecord, Journal, set_redaction
from fairlead.team import Anchor, Membership, RelaySource, generate_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from team.postgres_server import PostgresServer

    from fairlead.journal import Position, Verdict
    from fairlead.sessions import CopyBatch, EventsToCopyCount

ONE = host_id("one")
SECRET = "ghp_" + "a1B2" * 9


class FilledStore:
    """The journal and the store, filled on demand."""

    def __init__(self, folder: Path) -> None:
        self.journal = Journal(str(folder / "journal"))
        self._writer = StoreWriter(self.journal, print)
        self.start = time.time() - 3600

    @property
    def position(self) -> Position:
        return self._writer.position

    def events_to_copy(self, after: Position, *, blocked_only: bool, limit: int) -> CopyBatch:
        return self._writer.events_to_copy(after, blocked_only=blocked_only, limit=limit)

    def count_events_to_copy(self, after: Position, *, blocked_only: bool, keep_bytes: int = 0) -> EventsToCopyCount:
        return self._writer.count_events_to_copy(after, blocked_only=blocked_only, keep_bytes=keep_bytes)

    def happen(self, *numbers: int, verdict: Verdict = "none", command: str = "make", session: str = "s") -> None:
        """Record tool calls, and store them."""
        for number in numbers:
            payload = {"session_id": session, "tool_name": "Bash", "tool_input": {"command": f"{command} {number}"}}
            record = EventRecord(
                id=f"e{number:04}",
                at=self.start + number,
                event="PreToolUse",
                session=session,
                tool="Bash",
                cwd="/work",
                verdict=verdict,
                payload=msgspec.Raw(json.dumps(payload).encode()),
            )
            self.journal.append(record)
        self.fill()

    def end(self, number: int, verdict: Verdict) -> None:
        """Record how the commands of an event ended."""
        self.journal.append(
            CommandsRecord(id=f"e{number:04}", at=self.start + 999, verdict=verdict, reason="tests fail")
        )
        self.fill()

    def fill(self) -> None:
        while self._writer.write_batch():
            pass

    def close(self) -> None:
        self._writer.close()
        self.journal.close()


class Errors:
    def report(self, message: str) -> None:
        raise AssertionError(message)


class Host:
    """A host with its copier, whose connection to the relay a test switches."""

    def __init__(self, folder: Path, server: PostgresServer, database: str) -> None:
        self.folder, self._server, self._database = folder, server, database
        key = generate_key()
        own = Membership(
            team="t",
            host=ONE,
            name="one",
            relay=RelaySource(url=server.url(database)),
            private_key=key.secret,
            anchors=(Anchor(host=ONE, name="one", key=key.public),),
        )
        self.roster: Roster | None = Roster(own)
        self.log = ConnectionLog()
        self.log.state = "connected"
        self.store = FilledStore(folder)
        self.told: list[int] = []

    def notify_given_up(self, count: int) -> None:
        self.told.append(count)

    def set(self, events: str, more: str = "") -> None:
        (self.folder / "config.yaml").write_text(f"team: {{events: '{events}'{more}}}\n")

    @contextmanager
    def copying(self, max_backlog: int = 10**9) -> Iterator[EventCopier]:
        settings = CurrentSettings(Errors())  # type: ignore[arg-type]
        copier = EventCopier(self, self.store, settings, Errors(), max_backlog=max_backlog, interval=0.02)  # type: ignore[arg-type]
        copier.start()
        try:
            mode = settings.read().events
            until(lambda: copier.counts.events == mode, "it has the setting")
            yield copier
        finally:
            copier.close()

    def rows(self, what: str = "id, verdict, stage, text") -> list[tuple[Any, ...]]:
        return self._server.execute(f"SELECT {what} FROM fairlead.events ORDER BY id", self._database)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        return self._server.execute(statement, self._database)


@pytest.fixture
def host(
    tmp_path: Path, postgres_server: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Host]:
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path))
    with Relays(postgres_server.url(database)) as relays:
        relays.open("one")
        made = Host(tmp_path, postgres_server, database)
        yield made
        made.store.close()


def caught_up(copier: EventCopier, host: Host, count: int) -> None:
    until(lambda: len(host.rows()) >= count and copier.counts.pending == 0, f"{count} events are copied")


def test_each_event_is_copied_once_whatever_is_repeated(host: Host) -> None:
    host.store.happen(0)  # before it was turned on
    host.set("all")
    with host.copying() as copier:
        until(lambda: copier.counts.at, "it has begun")
        host.store.happen(1, 2, 3)
        caught_up(copier, host, 3)
    with host.copying() as copier:
        host.store.happen(4)
        host.store.end(2, "blocked")
        caught_up(copier, host, 4)
        until(lambda: ("e0002", "blocked", 1, "make 2") in host.rows(), "the end of its commands has come")
        before = host.rows("id, signature")
        host.run("UPDATE fairlead.marks SET segment = 1, position = 0")  # as a relay from an old backup
        host.log.connections += 1
        copied = copier.counts.copied
        until(lambda: copier.counts.copied >= copied + 4, "all of it was copied again")
    assert [row[:2] for row in host.rows()] == [
        ("e0001", "none"),
        ("e0002", "blocked"),
        ("e0003", "none"),
        ("e0004", "none"),
    ]
    assert host.rows("id, signature") == before


def test_what_is_copied_is_what_the_setting_says_without_secrets(host: Host) -> None:
    host.set("blocked")
    set_redaction("full", ())  # this host keeps secrets for itself
    try:
        with host.copying() as copier:
            until(lambda: copier.counts.at, "it has begun")
            host.store.happen(1, command=f"curl --token={SECRET}")
            host.store.happen(2, verdict="blocked", command=f"curl --token={SECRET}")
            host.store.happen(3)
            host.store.end(3, "blocked")
            host.store.happen(4, session="quiet")
            caught_up(copier, host, 2)
            assert [row[0] for row in host.rows()] == ["e0002", "e0003"]
            assert host.rows("text")[0] == ("curl --token=[redacted] 2",)
            assert host.run("SELECT session FROM fairlead.history") == [("s",)]
            assert SECRET not in repr(host.rows("body") + host.run("SELECT body FROM fairlead.history"))
        host.set("off")
        with host.copying() as copier:
            host.store.happen(5, verdict="blocked")
        host.set("all")
        with host.copying() as copier:
            until(lambda: copier.counts.at, "it has begun")
            host.store.happen(6)
            caught_up(copier, host, 3)
    finally:
        set_redaction("redacted", ())
    assert [row[0] for row in host.rows()] == ["e0002", "e0003", "e0006"]


def test_beyond_the_bound_the_oldest_are_given_up_counted_and_told(host: Host) -> None:
    host.set("all")
    with host.copying(max_backlog=20_000) as copier:
        until(lambda: copier.counts.at, "it has begun")
        host.store.happen(1)
        caught_up(copier, host, 1)
        host.log.state = "unreachable"
        host.store.happen(*range(2, 200))
        until(lambda: copier.counts.given_up, "the oldest were given up")
        until(lambda: copier.counts.given_up + copier.counts.pending == 198, "all are accounted for")
        assert host.told[-1] == copier.counts.given_up  # more than once, if it counts while events still happen
        assert len(host.rows()) == 1
    with host.copying(max_backlog=20_000) as copier:  # a daemon that was restarted meanwhile
        given_up = copier.counts.given_up
        until(lambda: given_up + copier.counts.pending == 198, "it still knows")
        host.log.state = "connected"
        host.log.connections += 1
        caught_up(copier, host, 199 - given_up)
    assert [row[0] for row in host.rows()] == ["e0001", *(f"e{number:04}" for number in range(2 + given_up, 200))]


def test_the_relay_really_deletes_what_is_older_than_the_setting(host: Host) -> None:
    host.set("all", ", keepDays: 3650")
    host.store.start -= 40 * 86400
    with host.copying() as copier:
        until(lambda: copier.counts.at, "it has begun")
        host.store.happen(1, 2)
        caught_up(copier, host, 2)
    host.set("all", ", keepDays: 1")
    with host.copying():
        until(lambda: host.rows() == [], "they are deleted")
    assert host.run("SELECT count(*) FROM fairlead.history") == [(0,)]
