"""Kills a process over and over while many of its threads send, and tells what became of each message.

`tests/mail/test_killing.py` does so for some rounds, and `bench/` for two hundred.
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

from fairlead.mail import Draft, MessageService, Sent
from fairlead.store import MailStore

if TYPE_CHECKING:
    from fairlead.mail import Agent

SENDERS = 4
"""Threads; the last one sends in batches."""
AT_ONCE = 10
MOST_BEFORE_A_KILL = 120
"""Lines that a process may print before it is killed."""
TESTS = str(Path(__file__).parents[1])


@dataclass
class Outcome:
    """What became of the messages."""

    kills: int = 0
    accepted: dict[str, int] = field(default_factory=dict)
    """By subject the id that `send` gave back."""
    shown: list[int] = field(default_factory=list)
    """The ids that `show` gave back, in order."""
    wrong: list[str] = field(default_factory=list)
    """What must not be: lost, doubled, half done, or out of order."""


def kill_rounds(folder: Path, rounds: int, sends: int, seed: int = 0) -> Outcome:
    """Let a process send, kill it after so many lines, begin another that goes on; at last let one send the rest.

    What was sent, but not told because of the kill, is sent again under the same key.
    """
    outcome, chance = Outcome(), Random(seed)  # noqa: S311 - no secret
    each = -(-sends // SENDERS)
    for _ in range(rounds):
        outcome.kills += _run(folder, outcome, each, chance.randint(1, MOST_BEFORE_A_KILL))
        _judge(folder, outcome)
    _run(folder, outcome, each, None)
    _judge(folder, outcome)
    if len(outcome.accepted) != each * SENDERS:
        outcome.wrong.append(f"{len(outcome.accepted)} of {each * SENDERS} were accepted")
    with closing(MailStore.open(_url(folder))) as box:
        outcome.wrong += box.check().problems
    return outcome


def _run(folder: Path, outcome: Outcome, each: int, lines: int | None) -> bool:
    """Run a process until it has told so many lines; say whether it was killed."""
    begun = [sum(f"{sender}:{number}" in outcome.accepted for number in range(each)) for sender in range(SENDERS)]
    code = "import sys; from mail.killing import send_all; send_all(*sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, _url(folder), str(each), *map(str, begun)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": TESTS},
    )
    assert process.stdout is not None
    for count, line in enumerate(process.stdout):
        if count == lines:
            process.send_signal(signal.SIGKILL)
        what, _, rest = line.rstrip("\n").partition(" ")
        if not line.endswith("\n"):
            break
        if what == "shown":
            outcome.shown.append(int(rest))
        else:
            outcome.accepted[what] = int(rest)
    process.stdout.close()
    return process.wait() == -signal.SIGKILL


def _judge(folder: Path, outcome: Outcome) -> None:
    """Open the file as it was left, and hold it against what the process told."""
    with closing(MailStore.open(_url(folder))) as box:
        loaded = box.load()
        queued = sum(waiting.queued for waiting in loaded.waiting.values())
        outcome.wrong += box.warnings
    with closing(sqlite3.connect(folder / "mail.db")) as disk:
        messages: list[tuple[int, str]] = disk.execute("SELECT id, subject FROM mail_messages ORDER BY id").fetchall()
        letters: dict[int, int] = dict(disk.execute("SELECT message, count(*) FROM mail_letters GROUP BY message"))
        marked = {row[0] for row in disk.execute("SELECT message FROM mail_letters WHERE stage = 'shown'")}
        waits = disk.execute("SELECT count(*) FROM mail_letters WHERE stage = 'queued'").fetchone()[0]
    ids, kept, wrong = dict(messages), {subject: number for number, subject in messages}, outcome.wrong
    wrong += [f"lost: {subject}" for subject, number in outcome.accepted.items() if kept.get(subject) != number]
    wrong += [f"doubled: {subject}" for number, subject in ids.items() if kept[subject] != number]
    wrong += [f"half: {number}" for number in {*ids, *letters} if number not in ids or letters.get(number) != 2]
    wrong += [f"out of order: {sender}" for sender in range(SENDERS) if not _in_order(kept, sender)]
    wrong += [f"shown and not marked: {number}" for number in outcome.shown if number not in marked]
    if sorted(set(outcome.shown)) != outcome.shown:
        wrong.append("shown twice, or out of order")
    if queued != waits:
        wrong.append(f"{waits} are queued, and {queued} are counted")


def _in_order(kept: dict[str, int], sender: int) -> bool:
    numbers = [int(subject.partition(":")[2]) for subject in kept if subject.startswith(f"{sender}:")]
    return numbers == list(range(len(numbers)))


def _url(folder: Path) -> str:
    return f"sqlite:///{folder}/mail.db"


# -- in the process that is killed ---------------------------------------------------------------------


def send_all(url: str, each: str, *begun: str) -> None:
    """Send from many threads what is left of each, and show what comes, all at once; tell what was done by lines."""
    office = MessageService(MailStore.open(url))
    sender, shown, other = (office.agent_for(name) for name in ("sender", "shown", "other"))
    to = (shown.name, other.name)
    over = threading.Event()
    showing = threading.Thread(target=_show, args=(office, shown, over))
    showing.start()
    threads = [
        threading.Thread(target=_send, args=(office, sender, to, number, range(int(first), int(each))))
        for number, first in enumerate(begun)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    over.set()
    showing.join()


def _send(office: MessageService, sender: Agent, to: tuple[str, ...], number: int, left: range) -> None:
    """Send one by one; the last thread sends some at a time."""
    size = AT_ONCE if number == SENDERS - 1 else 1
    for start in range(left.start, left.stop, size):
        subjects = [f"{number}:{one}" for one in left[start - left.start : start - left.start + size]]
        drafts = [Draft(to=to, subject=subject, body="x" * 300, key=subject) for subject in subjects]
        sent = [office.send(sender, draft) for draft in drafts] if size == 1 else _sent_at_once(office, sender, drafts)
        for one in sent:
            _tell(f"{one.message.subject} {one.message.id}")


def _sent_at_once(office: MessageService, sender: Agent, drafts: list[Draft]) -> list[Sent]:
    outcome = office.send_many([(sender, draft) for draft in drafts])
    return [one for one in outcome if isinstance(one, Sent)]


def _show(office: MessageService, agent: Agent, over: threading.Event) -> None:
    while True:
        is_over = over.wait(0.001)
        found = office.show(agent, "Stop", f"e{os.getpid()}", most=5)
        for message in found:
            _tell(f"shown {message.id}")
        if is_over and not found:
            return


def _tell(line: str) -> None:
    os.write(1, f"{line}\n".encode())
