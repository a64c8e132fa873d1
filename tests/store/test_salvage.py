"""A damaged mail database: what can be read is in the new one, and who misses something is told."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import pytest

from fairlead.mail import FAIRLEAD, USER, Draft, MessageService
from fairlead.store import MailStore
from fairlead.store import _files as files

if TYPE_CHECKING:
    from pathlib import Path

PAGE = 4096
COUNT = 300
FLIPS = 8
"""How many bytes are changed in one round, one at a time."""
ROUNDS = int(os.environ.get("FAIRLEAD_FLIPS", "1"))
"""More of them: FAIRLEAD_FLIPS=100."""


class Sent(NamedTuple):
    """What a database held before it was damaged."""

    file: Path
    messages: dict[int, str]


class Left(NamedTuple):
    """What is left of it."""

    warnings: tuple[str, ...]
    messages: dict[int, str]
    delivered: set[int]
    """Messages whose delivery is known, too."""
    told: dict[str, set[int]]
    """Agent → messages that it was told to be lost."""

    @property
    def complete(self) -> set[int]:
        return self.messages.keys() & self.delivered


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Sent:
    file = tmp_path_factory.mktemp("sent") / "mail.db"
    with closing(MailStore.open(f"sqlite:///{file}")) as store:
        service = MessageService(store)
        amber, blue = service.ensure_agent("s1"), service.ensure_agent("s2")
        bodies = [f"message {number} " * (number % 60) for number in range(COUNT)]
        service.send_many([(amber, Draft(to=(blue.name,), subject="about", body=body)) for body in bodies])
        service.show(blue, "Stop", "e1", limit=50)
    with closing(sqlite3.connect(file)) as connection:
        return Sent(file, dict(connection.execute("SELECT id, body FROM mail_messages")))


def opened(file: Path) -> Left:
    """Open a database, and read all that it has."""
    with closing(MailStore.open(f"sqlite:///{file}")) as store:
        service = MessageService(store)
        told: dict[str, set[int]] = {}
        for agent in service.agents():
            for _, notice in service.inbox(agent, limit=500):
                if notice.sender == FAIRLEAD.name:
                    told[agent.session] = set(map(int, re.findall(r"^- (\d+), from", notice.body, re.MULTILINE)))
        found = {one.id: one for one in store.search("", 0, limit=10_000, before=0) if one.sender != FAIRLEAD.name}
        delivered = {number for number in found if store.deliveries(number)}
        assert {one.id for one in service.search(USER, "message 7 ")} <= set(found)
        service.send(USER, Draft(to=(service.ensure_agent("s3").name,), subject="it goes on"))
        return Left(store.warnings, {number: one.body for number, one in found.items()}, delivered, told)


def damaged(sent: Sent, folder: Path, offset: int, data: bytes) -> Path:
    file = folder / "mail.db"
    for old in folder.glob("mail.db*"):
        old.unlink()
    shutil.copy(sent.file, file)
    with file.open("r+b") as open_file:
        open_file.seek(offset)
        open_file.write(data)
    return file


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_one_byte_anywhere_loses_little_and_what_is_lost_is_told(sent: Sent, tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)  # noqa: S311 - the same places every time
    size = sent.file.stat().st_size
    untold = 0
    for _ in range(FLIPS):
        offset = choose.randrange(size)
        with sent.file.open("rb") as file:
            file.seek(offset)
            byte = file.read(1)[0]
        left = opened(damaged(sent, tmp_path, offset, bytes([byte ^ choose.randrange(1, 256)])))

        missing = sent.messages.keys() - left.complete
        assert len(left.complete) >= COUNT * 0.6, offset
        assert not missing or left.warnings, offset
        told = set().union(*left.told.values()) if left.told else set()
        untold += len(missing - told)
    assert untold <= FLIPS, "a message is told unless both its parts were on damaged pages"


def test_a_damaged_index_loses_nothing(sent: Sent, tmp_path: Path) -> None:
    with closing(sqlite3.connect(sent.file)) as connection:
        roots = connection.execute(
            "SELECT name, rootpage FROM sqlite_master WHERE type = 'index' AND name LIKE 'mail_letters_%' AND sql != ''"
        ).fetchall()
    assert len(roots) == 5
    for name, page in roots:
        left = opened(damaged(sent, tmp_path, (page - 1) * PAGE, bytes(PAGE)))

        assert len(left.warnings) == 1, name
        assert (left.messages, left.complete) == (sent.messages, set(sent.messages)), name
        assert left.told == {}


@pytest.mark.parametrize("table", ["mail_messages", "mail_letters"])
def test_sender_and_recipient_are_told_what_is_lost(sent: Sent, tmp_path: Path, table: str) -> None:
    with closing(sqlite3.connect(sent.file)) as connection:
        [(root,)] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchall()
    data = sent.file.read_bytes()
    first_child = int.from_bytes(data[(root - 1) * PAGE + 8 :][:4], "big")  # the last page of the table
    left = opened(damaged(sent, tmp_path, (first_child - 1) * PAGE, bytes(PAGE)))

    [warning] = left.warnings
    assert re.search(r"; it was set aside as .*mail\.db\.damaged-.*, and a new one was created, with \d+ rows", warning)
    missing = sent.messages.keys() - left.complete
    assert 0 < len(missing) < COUNT
    if table == "mail_messages":
        assert left.told["s1"] == left.told["s2"] == set(sorted(missing)[:50])
    else:
        assert left.messages == sent.messages
        assert left.told == {"s1": set(sorted(missing)[:50])}, "what became of them is not known"


def test_they_are_told_once(sent: Sent, tmp_path: Path) -> None:
    file = damaged(sent, tmp_path, sent.file.stat().st_size // 2, bytes(2 * PAGE))
    first, second = opened(file), opened(file)

    assert (len(first.warnings), len(second.warnings)) == (1, 0)
    assert first.told == second.told
    assert first.complete == second.complete - (second.messages.keys() - first.messages.keys())


def test_the_header_is_replaced_if_it_is_damaged(sent: Sent, tmp_path: Path) -> None:
    left = opened(damaged(sent, tmp_path, 0, b"x" * 60))

    assert left.messages == sent.messages


def test_killed_after_it_was_set_aside_the_new_one_takes_its_place(sent: Sent, tmp_path: Path) -> None:
    file = tmp_path / "mail.db"
    shutil.copy(sent.file, files.salvaged_file(file))

    assert opened(file).messages == sent.messages


def test_a_full_disk_leaves_the_damaged_database_where_it_is(sent: Sent, tmp_path: Path) -> None:
    file = damaged(sent, tmp_path, sent.file.stat().st_size // 2, bytes(PAGE))
    before = file.read_bytes()
    blocked = files.unfinished_file(file)
    blocked.mkdir()

    with pytest.raises(Exception, match="the store cannot be created or written there"):
        MailStore.open(f"sqlite:///{file}")

    assert file.read_bytes() == before
    blocked.rmdir()
    assert len(opened(file).complete) > COUNT * 0.6
