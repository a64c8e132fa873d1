"""A damaged database of a host in a team: nothing is sent twice, and no number is used again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from fairlead.mail import Draft, MailUnreachable, MessageService
from fairlead.mail.remote import AgentInfo, AgentsAndTopics, encode
from fairlead.store import MailStore

if TYPE_CHECKING:
    from pathlib import Path

TABLES = ("team_pending", "team_outbox", "team_links", "team_hosts", "team_origins", "team_threads")


def fill(file: Path) -> None:
    """Write a message that was acknowledged, one that is in a packet, and one that is pending."""
    with closing(MailStore.open(f"sqlite:///{file}")) as store:
        service = MessageService(store)
        service.team.set_local_host("a", "laptop")
        service.team.update_host("b", "server", "member", encode(AgentsAndTopics((AgentInfo(10, "amber"),))))
        sender = service.ensure_agent("s1")
        for subject in ("acknowledged", "in a packet", "pending"):
            service.send(sender, Draft(to=("amber@server",), subject=subject))
            if subject != "pending":
                service.team.build_packets()
            if subject == "acknowledged":
                service.team.acknowledge({"b": 1})


def rows(file: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(file)) as connection:
        return {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}


def damage(file: Path, name: str) -> None:
    """Overwrite the first page of a table or index."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with file.open("r+b") as open_file:
        open_file.seek((page - 1) * size)
        open_file.write(bytes(size))


def test_what_was_sent_is_not_sent_again_and_no_number_is_used_again(tmp_path: Path) -> None:
    file = tmp_path / "mail.db"
    fill(file)
    before = rows(file)
    damage(file, "mail_letters_by_stage")
    with closing(MailStore.open(f"sqlite:///{file}")) as store:
        assert len(store.warnings) == 1
        assert rows(file) == before
        service = MessageService(store)
        service.team.set_local_host("a", "laptop")
        assert service.send(service.ensure_agent("s1"), Draft(to=("amber@server",), subject="new")).message.id > 1000
        assert service.team.build_packets() == 2
        assert [one.seq for one in service.team.outgoing("b")] == [2, 3, 4]


def test_nothing_is_sent_if_the_numbers_are_lost_until_the_host_has_left_the_team(tmp_path: Path) -> None:
    file = tmp_path / "mail.db"
    fill(file)
    damage(file, "team_links")
    with closing(MailStore.open(f"sqlite:///{file}")) as store:
        service = MessageService(store)
        service.team.set_local_host("a", "laptop")
        with pytest.raises(MailUnreachable, match="leave the team, and join it again"):
            service.team.build_packets()
        assert service.team.leave("left") == 3
        service.team.set_local_host("c", "laptop")
        assert service.team.build_packets() == 0
