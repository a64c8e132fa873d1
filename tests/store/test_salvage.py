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
from fairlead.store._salvage import SALVAGED_MARK
from fairlead.store.mail._writes import MAY_REPEAT

if TYPE_CHECKING:
    from pathlib import Path

PAGE = 4096
INTERIOR = 2
"""First byte of a page of an index that has children."""
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
    """Agent → messages that it was told of."""
    requeued: set[int]
    """Messages whose delivery was lost, and that are delivered again."""

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
        requeued = {number for number in found if any(one.why == MAY_REPEAT for _, one in store.deliveries(number))}
        assert {one.id for one in service.search(USER, "message 7 ")} <= set(found)
        service.send(USER, Draft(to=(service.ensure_agent("s3").name,), subject="it goes on"))
        return Left(store.warnings, {number: one.body for number, one in found.items()}, delivered, told, requeued)


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
    choose = random.Random(seed)
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


def indexes(sent: Sent) -> dict[str, int]:
    """Return the root page of each index of the mail."""
    with closing(sqlite3.connect(sent.file)) as connection:
        rows = connection.execute(
            "SELECT name, rootpage FROM sqlite_master WHERE type = 'index' AND name LIKE '%mail_%'"
        )
        return dict(rows.fetchall())


def test_a_damaged_index_loses_nothing(sent: Sent, tmp_path: Path) -> None:
    assert len(indexes(sent)) == 12
    for name, page in indexes(sent).items():
        left = opened(damaged(sent, tmp_path, (page - 1) * PAGE, bytes(PAGE)))

        assert len(left.warnings) == 1, name
        assert (left.messages, left.complete) == (sent.messages, set(sent.messages)), name
        assert (left.told, left.requeued) == ({}, set())


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_bad_byte_in_an_index_loses_nothing(sent: Sent, tmp_path: Path, seed: int) -> None:
    choose, data = random.Random(seed), sent.file.read_bytes()
    for _ in range(FLIPS):
        page = choose.choice(list(indexes(sent).values()))
        while data[(page - 1) * PAGE] == INTERIOR:
            page = int.from_bytes(data[(page - 1) * PAGE + 8 :][:4], "big")  # its last child
        offset = (page - 1) * PAGE + choose.randrange(PAGE)
        left = opened(damaged(sent, tmp_path, offset, bytes([data[offset] ^ choose.randrange(1, 256)])))

        assert (left.messages, left.complete) == (sent.messages, set(sent.messages)), offset
        assert (left.told, left.requeued) == ({}, set())


def without_last_page(sent: Sent, folder: Path, table: str) -> Left:
    """Damage the last page of a table."""
    with closing(sqlite3.connect(sent.file)) as connection:
        [(root,)] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchall()
    last = int.from_bytes(sent.file.read_bytes()[(root - 1) * PAGE + 8 :][:4], "big")
    left = opened(damaged(sent, folder, (last - 1) * PAGE, bytes(PAGE)))
    [warning] = left.warnings
    assert re.search(r"; it was set aside as .*mail\.db\.damaged-.*, and a new one was created, with \d+ rows", warning)
    return left


def test_sender_and_recipient_are_told_which_messages_are_lost(sent: Sent, tmp_path: Path) -> None:
    left = without_last_page(sent, tmp_path, "mail_messages")

    missing = sent.messages.keys() - left.complete
    assert 0 < len(missing) < COUNT
    assert left.told["s1"] == left.told["s2"] == set(sorted(missing)[:50])


def test_a_message_whose_delivery_is_lost_is_shown_again_and_both_are_told(sent: Sent, tmp_path: Path) -> None:
    left = without_last_page(sent, tmp_path, "mail_letters")

    assert (left.messages, left.complete) == (sent.messages, set(sent.messages))
    assert 0 < len(left.requeued) < COUNT
    assert left.told == {"s1": set(sorted(left.requeued)[:50]), "s2": set(sorted(left.requeued)[:50])}
    with closing(MailStore.open(f"sqlite:///{tmp_path}/mail.db")) as store:
        service = MessageService(store)
        shown = service.show(service.ensure_agent("s2"), "Stop", "e2", limit=COUNT + 9)
    assert {message.id for message in shown if message.may_repeat} == left.requeued


def test_what_is_known_of_a_lost_delivery_is_kept(tmp_path: Path) -> None:
    """Of three recipients one has answered, one keeps its delivery; of a message to a topic nobody knows for whom."""
    file = tmp_path / "mail.db"
    with closing(MailStore.open(f"sqlite:///{file}")) as store:
        service = MessageService(store)
        amber, *others = (service.ensure_agent(f"s{number}") for number in range(4))
        names = tuple(agent.name for agent in others)
        asked = service.send(amber, Draft(to=names, subject="who?", intent="request")).message.id
        service.send(others[0], Draft(to=(amber.name,), subject="me", reply_to=asked))
        service.subscribe(others[0], "build")
        topic = service.send(amber, Draft(to=("#build",), subject="done")).message.id
    with closing(sqlite3.connect(file)) as connection:
        kept = (asked, others[1].id)
        connection.execute(
            "DELETE FROM mail_letters WHERE sender = ? AND (message, recipient) != (?, ?)", (amber.id, *kept)
        )
        connection.execute("INSERT INTO mail_marks VALUES (?, 1)", (SALVAGED_MARK,))
        connection.commit()

    with closing(MailStore.open(f"sqlite:///{file}")) as store:
        stages = {one.recipient: (one.stage, one.why) for _, one in store.deliveries(asked)}
        service = MessageService(store)
        notices = {
            agent.session: notice.body.splitlines()[1:]
            for agent in (amber, *others)
            for _, notice in service.inbox(agent, limit=9)
            if notice.sender == FAIRLEAD.name
        }
    state = "whether it was shown is not known; it is shown again."
    assert stages == dict(zip(names, [("answered", ""), ("queued", ""), ("queued", MAY_REPEAT)], strict=True))
    assert notices == {
        "s0": [
            f"- {asked}, from you to {names[2]}: {state}",
            f"- {topic}, from you: it is kept, but whether it was shown is not known; `fairlead read {topic}`.",
        ],
        "s3": [f"- {asked}, from {amber.name} to you: {state}"],
    }


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
