"""Kills a process repeatedly while its threads send, and checks what became of each message.

`tests/mail/test_killing.py` runs a few rounds, and `bench/` two hundred.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from store.checks import problems

from fairlead.mail import Draft, MessageService, SendResult
from fairlead.store import MailStore

if TYPE_CHECKING:
    from fairlead.mail import Agent

SENDERS = 4
"""Threads; the last one sends in batches."""
BATCH_SIZE = 10
MAX_LINES_BEFORE_KILL = 120
"""Lines that a process prints before it is killed, at most."""
TESTS = str(Path(__file__).parents[1])


@dataclass
class Outcome:
    """What was sent, shown and found wrong."""

    kills: int = 0
    accepted: dict[str, int] = field(default_factory=dict)
    """The id that `send` returned, by subject."""
    shown: list[int] = field(default_factory=list)
    """The ids that `show` returned, in order."""
    wrong: list[str] = field(default_factory=list)
    """Messages that are lost, duplicated, incomplete or out of order."""


def kill_rounds(folder: Path, rounds: int, sends: int, seed: int = 0) -> Outcome:
    """Start a process that sends, kill it after some lines, and repeat; the last process sends the rest.

    What was sent but not reported because of the kill is sent again with the same key.
    """
    outcome, random = Outcome(), Random(seed)
    each = -(-sends // SENDERS)
    for _ in range(rounds):
        outcome.kills += _run(folder, outcome, each, random.randint(1, MAX_LINES_BEFORE_KILL))
        _check(folder, outcome)
    _run(folder, outcome, each, None)
    _check(folder, outcome)
    if len(outcome.accepted) != each * SENDERS:
        outcome.wrong.append(f"{len(outcome.accepted)} of {each * SENDERS} were accepted")
    with closing(MailStore.open(_url(folder))) as store:
        outcome.wrong += problems(store)
    return outcome


def _run(folder: Path, outcome: Outcome, each: int, lines: int | None) -> bool:
    """Run a process until it has printed that many lines, and return whether it was killed."""
    sent = [sum(f"{sender}:{number}" in outcome.accepted for number in range(each)) for sender in range(SENDERS)]
    code = "import sys; from mail.killing import send_all; send_all(*sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, _url(folder), str(each), *map(str, sent)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": TESTS},
    )
    assert process.stdout is not None
    for count, line in enumerate(process.stdout):
        if count == lines:
            process.send_signal(signal.SIGKILL)
        subject, _, number = line.rstrip("\n").partition(" ")
        if not line.endswith("\n"):
            break
        if subject == "shown":
            outcome.shown.append(int(number))
        else:
            outcome.accepted[subject] = int(number)
    process.stdout.close()
    return process.wait() == -signal.SIGKILL


def _check(folder: Path, outcome: Outcome) -> None:
    """Open the file as it was left, and compare it with what the process printed."""
    with closing(MailStore.open(_url(folder))) as store:
        counted = sum(size.queued for size in store.load().queue_sizes.values())
        outcome.wrong += store.warnings
    with closing(sqlite3.connect(folder / "mail.db")) as disk:
        messages: list[tuple[int, str]] = disk.execute("SELECT id, subject FROM mail_messages ORDER BY id").fetchall()
        deliveries: dict[int, int] = dict(disk.execute("SELECT message, count(*) FROM mail_letters GROUP BY message"))
        marked = {row[0] for row in disk.execute("SELECT message FROM mail_letters WHERE stage = 'shown'")}
        queued = disk.execute("SELECT count(*) FROM mail_letters WHERE stage = 'queued'").fetchone()[0]
    ids, stored, wrong = dict(messages), {subject: number for number, subject in messages}, outcome.wrong
    wrong += [f"lost: {subject}" for subject, number in outcome.accepted.items() if stored.get(subject) != number]
    wrong += [f"duplicated: {subject}" for number, subject in ids.items() if stored[subject] != number]
    wrong += [
        f"incomplete: {number}" for number in {*ids, *deliveries} if number not in ids or deliveries.get(number) != 2
    ]
    wrong += [f"out of order: {sender}" for sender in range(SENDERS) if not _in_order(stored, sender)]
    wrong += [f"shown and not marked: {number}" for number in outcome.shown if number not in marked]
    if sorted(set(outcome.shown)) != outcome.shown:
        wrong.append("shown twice, or out of order")
    if counted != queued:
        wrong.append(f"{queued} are queued, and {counted} are counted")


def _in_order(stored: dict[str, int], sender: int) -> bool:
    numbers = [int(subject.partition(":")[2]) for subject in stored if subject.startswith(f"{sender}:")]
    return numbers == list(range(len(numbers)))


def _url(folder: Path) -> str:
    return f"sqlite:///{folder}/mail.db"


# -- in the process that is killed ----------------------------------------------------------------------


def send_all(url: str, each: str, *sent: str) -> None:
    """Send what is left of each thread's messages while another thread shows them; print each result."""
    service = MessageService(MailStore.open(url))
    sender, recipient, other = (service.ensure_agent(name) for name in ("sender", "shown", "other"))
    to = (recipient.name, other.name)
    over = threading.Event()
    viewer = threading.Thread(target=_show, args=(service, recipient, over))
    viewer.start()
    threads = [
        threading.Thread(target=_send, args=(service, sender, to, number, range(int(first), int(each))))
        for number, first in enumerate(sent)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    over.set()
    viewer.join()


def _send(service: MessageService, sender: Agent, to: tuple[str, ...], number: int, left: range) -> None:
    """Send one by one; the last thread sends in batches."""
    size = BATCH_SIZE if number == SENDERS - 1 else 1
    for start in range(left.start, left.stop, size):
        subjects = [f"{number}:{one}" for one in left[start - left.start : start - left.start + size]]
        drafts = [Draft(to=to, subject=subject, body="x" * 300, key=subject) for subject in subjects]
        results = [service.send(sender, drafts[0])] if size == 1 else _send_batch(service, sender, drafts)
        for result in results:
            _print(f"{result.message.subject} {result.message.id}")


def _send_batch(service: MessageService, sender: Agent, drafts: list[Draft]) -> list[SendResult]:
    results = service.send_many([(sender, draft) for draft in drafts])
    return [one for one in results if isinstance(one, SendResult)]


def _show(service: MessageService, agent: Agent, over: threading.Event) -> None:
    while True:
        is_over = over.wait(0.001)
        messages = service.show(agent, "Stop", f"e{os.getpid()}", limit=5)
        for message in messages:
            _print(f"shown {message.id}")
        if is_over and not messages:
            return


def _print(line: str) -> None:
    os.write(1, f"{line}\n".encode())
