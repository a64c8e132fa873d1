"""The mail store: how fast messages are stored durably, and how fast they are found.

The baseline is bare `sqlite3` that writes the same rows with the same syncs: the cost of any such store.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from threading import Thread
from time import perf_counter
from typing import TYPE_CHECKING

from bench._data import ROOT
from bench._harness import Timing
from bench._table import Row, Target
from fairlead.mail import Draft, MessageService, SendResult
from fairlead.store import MailStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench._harness import Effort
    from fairlead.mail import Agent

BATCH = 100
THREADS = 20
FEW, MANY = 1_000, 1_000_000
QUICK_MANY = 20_000
KILLS, SENDS = 200, 10_000
QUICK_KILLS, QUICK_SENDS = 2, 400
_KILL_BATCH_SIZE = 20
"""Kills in one folder, and between two reports of progress."""
_ROUNDS = 5
_BODY = "What was found, in a few lines.\n" * 10
_BARE = "bare sqlite3, same rows and syncs"


def rows(effort: Effort) -> list[Row]:
    return [*_sending(effort), *_finding(effort), _killing(effort)]


# -- sending -------------------------------------------------------------------------------------------


def _sending(effort: Effort) -> list[Row]:
    rounds = 2 if effort.is_quick else _ROUNDS
    rates: dict[str, list[float]] = {}
    with _folder() as folder, _open_mail(folder) as mail, closing(_bare(folder)) as bare:
        variants: dict[str, Callable[[], int]] = {
            "batches": lambda: mail.send_batches(2 if effort.is_quick else 20),
            "bare batches": lambda: _write(bare, 2 if effort.is_quick else 20, BATCH),
            "singly": lambda: mail.send_singly(20 if effort.is_quick else 300),
            "bare singly": lambda: _write(bare, 20 if effort.is_quick else 300, 1),
            "threads": lambda: mail.send_from_threads(5 if effort.is_quick else 30),
        }
        for number in range(rounds):
            effort.tick(f"round {number + 1} of {rounds}")
            for name, send in variants.items():
                start = perf_counter()
                sent = send()
                rates.setdefault(name, []).append(sent / (perf_counter() - start))
    of = {name: Timing(max(samples), median(samples)) for name, samples in rates.items()}
    return [
        _rate(f"sent in batches of {BATCH}, durable", of["batches"], _BARE, of["bare batches"], 2000),
        _rate("sent one by one, durable", of["singly"], _BARE, of["bare singly"], 200),
        _rate(f"sent by {THREADS} threads at once, durable", of["threads"], "one by one", of["singly"], None),
    ]


def _rate(what: str, ours: Timing, baseline: str, theirs: Timing, floor: float | None) -> Row:
    target = None if floor is None else Target("time", floor, is_floor=True)
    return Row("mail store", what, "/s", ours, baseline, theirs, target=target)


@dataclass(frozen=True)
class _Mail:
    """A message service with two agents."""

    service: MessageService
    sender: Agent
    recipient: Agent
    numbers: count[int]

    def draft(self) -> Draft:
        number = next(self.numbers)
        return Draft(to=(self.recipient.name,), subject=f"message {number}", body=_BODY, key=f"k{number}")

    def send_singly(self, number: int) -> int:
        for _ in range(number):
            self.service.send(self.sender, self.draft())
        return number

    def send_batches(self, number: int) -> int:
        for _ in range(number):
            sent = self.service.send_many([(self.sender, self.draft()) for _ in range(BATCH)])
            assert all(isinstance(one, SendResult) for one in sent)
        return number * BATCH

    def send_from_threads(self, each: int) -> int:
        threads = [Thread(target=self.send_singly, args=(each,)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return THREADS * each


@contextmanager
def _open_mail(folder: Path) -> Iterator[_Mail]:
    with closing(MailStore.open(f"sqlite:///{folder}/mail.db")) as store:
        service = MessageService(store)
        sender, recipient = (service.ensure_agent(name, project="/p") for name in ("a", "b"))
        yield _Mail(service, sender, recipient, count())


def _bare(folder: Path) -> sqlite3.Connection:
    """Create a database with the same tables and indexes."""
    disk = sqlite3.connect(folder / "bare.db", isolation_level=None)
    with closing(sqlite3.connect(folder / "mail.db")) as ours:
        every = dict(ours.execute("SELECT name, sql FROM sqlite_master WHERE name LIKE 'mail%' AND sql > ''"))
    indexes = tuple(f"{name}_" for name, sql in every.items() if sql.startswith("CREATE VIRTUAL TABLE"))
    statements = [sql for name, sql in every.items() if not name.startswith(indexes)]  # SQLite creates those itself
    for setting in ("journal_mode = WAL", "synchronous = FULL"):
        disk.execute(f"PRAGMA {setting}")
    for statement in statements:
        disk.execute(statement)
    return disk


def _write(disk: sqlite3.Connection, number: int, size: int) -> int:
    last = disk.execute("SELECT coalesce(max(id), 0) FROM mail_messages").fetchone()[0]
    for start in range(last + 1, last + 1 + number * size, size):
        ids = range(start, start + size)
        disk.execute("BEGIN IMMEDIATE")
        disk.executemany(_MESSAGE, [(one, f"message {one}", f"k{one}", _BODY) for one in ids])
        disk.executemany(_DELIVERY, [(one, 11) for one in ids])
        disk.execute("COMMIT")
    return number * size


_MESSAGE = """INSERT INTO mail_messages (id, at, sender, addressed, subject, priority, intent, thread, reply_to,
    deadline, project, "key", body) VALUES (?1, 1.0, 10, '["b"]', ?2, 'normal', 'inform', ?1, 0, 0, '/p', ?3, ?4)"""
_DELIVERY = """INSERT INTO mail_letters (message, recipient, sender, stage, urgent, owed, told, queued, shown, event,
    event_id, read, answered, bounced, why) VALUES (?, ?, 10, 'queued', 0, 0, 0, 1.0, 0, '', NULL, 0, 0, 0, '')"""


# -- finding -------------------------------------------------------------------------------------------


def _finding(effort: Effort) -> list[Row]:
    """Time an inbox, and the check for new mail, among few messages and among many."""
    many = QUICK_MANY if effort.is_quick else MANY
    with _folder() as folder:
        effort.tick(f"writing {many} messages")
        for name, agents, messages in (("few", 10, FEW), ("many", max(20, many // 1000), many)):
            (folder / name).mkdir()
            _fill(folder / name, agents, messages)
        with _open_mail(folder / "few") as few, _open_mail(folder / "many") as large:
            for mail in (few, large):
                assert len(mail.service.inbox(mail.recipient, limit=20)) == 20
            calls = {
                "few": effort.looped(lambda: few.service.inbox(few.recipient, limit=20)),
                "many": effort.looped(lambda: large.service.inbox(large.recipient, limit=20)),
                "few waiting": effort.looped(lambda: few.service.queued_count(few.recipient)),
                "many waiting": effort.looped(lambda: large.service.queued_count(large.recipient)),
            }
            times = effort.compare(calls)
    same, flat = f"the same among {FEW}", Target("ratio", 1.5)
    inbox, waiting = f"an inbox of 20 among {many} messages", f"check for new mail among {many} messages"
    return [
        Row("mail store", inbox, "µs", times["many"], same, times["few"], target=flat),
        Row("mail store", waiting, "µs", times["many waiting"], same, times["few waiting"], target=flat),
    ]


def _fill(folder: Path, agents: int, messages: int) -> None:
    """Write messages directly into the database: sending them would take minutes."""
    with _open_mail(folder) as mail:
        for number in range(agents - 2):
            mail.service.ensure_agent(f"s{number}", project="/p")
    with closing(sqlite3.connect(folder / "mail.db")) as disk, disk:
        disk.executemany(_MESSAGE, ((one, f"message {one}", f"k{one}", _BODY) for one in range(1, messages + 1)))
        disk.executemany(_DELIVERY, ((one, 10 + one % agents) for one in range(1, messages + 1)))


# -- killing -------------------------------------------------------------------------------------------


def _killing(effort: Effort) -> Row:
    """Kill a process while it sends, and count wrong messages. The tests do the same for a few rounds."""
    kills, sends = (QUICK_KILLS, QUICK_SENDS) if effort.is_quick else (KILLS, SENDS)
    what = f"{kills} kills in {sends} sends: messages lost, duplicated or incomplete"
    sys.path.append(str(ROOT / "tests"))
    try:
        from mail.killing import kill_rounds
    except ImportError as error:
        return Row("mail store", what, "", None, "", target=Target("time", 0), absent=f"not measured: {error}")
    errors = 0
    for done in range(0, kills, _KILL_BATCH_SIZE):
        effort.tick(f"kill {done} of {kills}")
        rounds = min(_KILL_BATCH_SIZE, kills - done)
        with _folder() as folder:
            errors += len(kill_rounds(folder, rounds, sends * rounds // kills, seed=done).wrong)
    return Row("mail store", what, "", Timing(errors, errors), "", target=Target("time", 0))


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
