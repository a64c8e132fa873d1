"""The search in mail: the index finds what reading every message finds, in old databases and new ones."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine
from store.test_revisions import create_at

from fairlead.mail import USER, Draft, MessageService
from fairlead.store import MailStore
from fairlead.store.mail import _search as search

if TYPE_CHECKING:
    from pathlib import Path

    from fairlead.mail import Agent

TEXTS = (
    "the needle in a haystack",
    "NEEDLE, once more",
    "100% of an_under score",
    'a "quoted" text AND others OR NOT near(*)',
    "über die Brücke, ÜBER",
    "日本語のメッセージ",
    "tabs\tand\nlines",
    "nothing of that kind",
)
ASKED = (
    "needle",
    "NeEdLe",
    "100%",
    "an_under",
    'a "quoted',
    "AND",
    "near(",
    "*",
    "Brücke",
    "メッセ",
    "\tand\n",
    "x",
    "",
)


@pytest.fixture
def mail(tmp_path: Path) -> MailStore:
    return MailStore.open(f"sqlite:///{tmp_path}/mail.db")


def fill(store: MailStore, texts: tuple[str, ...] = TEXTS) -> tuple[MessageService, Agent]:
    service = MessageService(store)
    agent = service.ensure_agent("s1")
    for text in texts:
        service.send(USER, Draft(to=(agent.name,), subject="about", body=text))
    return service, agent


def ids(store: MailStore, text: str, reader: int = 0, *, is_indexed: bool) -> list[int]:
    with store._reading() as connection:
        rows = search.find(connection, text, reader, limit=50, before=2**62, is_indexed=is_indexed)
        return [row.id for row in rows]


@pytest.mark.parametrize("few", [0, 10_000])
def test_the_index_finds_what_reading_every_message_finds(
    mail: MailStore, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_FEW_MESSAGES", few)
    with closing(mail):
        _, agent = fill(mail)
        assert mail._is_indexed
        for text in ASKED:
            assert ids(mail, text, is_indexed=True) == ids(mail, text, is_indexed=False)
            assert ids(mail, text, agent.id, is_indexed=True) == ids(mail, text, is_indexed=False)
        assert ids(mail, "needle", is_indexed=True) == [2, 1]
        assert ids(mail, "needle", reader=99, is_indexed=True) == []


def test_the_index_is_asked(mail: MailStore) -> None:
    """A text of three letters and more is looked up; a shorter one has no part in it."""
    with closing(mail), mail._reading() as connection:
        plan = connection.exec_driver_sql(
            "EXPLAIN QUERY PLAN SELECT id FROM mail_search JOIN mail_messages ON id = mail_search.rowid "
            "WHERE mail_search MATCH ? ORDER BY mail_search.rowid DESC LIMIT 5",
            (search.trigram_query("needle"),),
        ).all()

    assert search.trigram_query("needle") == '"nee" AND "eed" AND "edl" AND "dle"'
    assert search.trigram_query('a"b') == '"a""b"'
    assert search.trigram_query("ab") == ""
    assert [step[3].split()[0] for step in plan] == ["SCAN", "SEARCH"]
    assert not any("TEMP B-TREE" in step[3] for step in plan), "the matches come in order"


def test_a_deleted_message_is_found_no_more(mail: MailStore) -> None:
    with closing(mail):
        service, agent = fill(mail)
        service.show(agent, "Stop", "e1")
        mail.prune_messages(2**40, after=None, limit=1)

        assert ids(mail, "needle", is_indexed=True) == [2]
        with mail._writing() as connection:
            connection.exec_driver_sql("INSERT INTO mail_search (mail_search) VALUES ('integrity-check')")


def test_the_messages_of_an_earlier_version_are_found_while_they_are_added(tmp_path: Path) -> None:
    create_at("0002", tmp_path / "mail.db")
    engine = create_engine(f"sqlite:///{tmp_path}/mail.db")
    with engine.begin() as connection:
        for number in range(2, 12):
            connection.exec_driver_sql(
                "INSERT INTO mail_messages (id, at, sender, addressed, subject, priority, intent, thread, reply_to, "
                "deadline, project, body) VALUES (?, 1, 1, '[]', 'old', 'normal', 'inform', 1, 0, 0, '', ?)",
                (number, f"needle {number}"),
            )
    engine.dispose()
    with closing(MailStore.open(f"sqlite:///{tmp_path}/mail.db")) as store:
        service = MessageService(store)
        sent = service.send(USER, Draft(to=("amber-fox",), subject="a new needle")).message.id
        expected = [sent, *range(11, 1, -1)]
        assert ids(store, "needle", is_indexed=True) == expected

        steps = 0
        while store.index_messages(3):
            steps += 1
            assert ids(store, "needle", is_indexed=True) == expected
            if steps == 2:
                store.prune_messages(2.0, after=None, limit=4)  # 1 waits for its agent; 2 to 4 are not indexed yet
                expected = [number for number in expected if number not in {2, 3, 4}]
                assert ids(store, "needle", is_indexed=True) == expected

        assert steps == 2
        assert ids(store, "needle", is_indexed=True) == expected
        with store._writing() as connection:
            assert search.last_unindexed(connection) == 0
            connection.exec_driver_sql("INSERT INTO mail_search (mail_search) VALUES ('integrity-check')")
