"""Random histories of three hosts that crash, and of a hub that loses: nothing lost, doubled or out of order.

When all is quiet, the ledgers of both sides of every delivery are equal.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from mail.harness import Clock
from mail.team_harness import Hub, TeamHost

from fairlead.mail import STAGES, Draft, MessageService
from fairlead.mail.remote import ReceiveResult
from fairlead.mail.remote._receiving import Receiver
from fairlead.store import MailStore

if TYPE_CHECKING:
    from fairlead.mail import Delivery, Message, Stage
    from fairlead.mail.remote import IncomingPacket

NAMES = ("laptop", "server", "third")
HOST = st.integers(0, len(NAMES) - 1)
PICK = st.integers(0, 1000)
DRAFTS = st.tuples(HOST, st.sets(HOST, min_size=1, max_size=3), st.booleans(), st.none() | PICK)
"""Sender, recipients, whether it is a request, which message it replies to."""
ALL: tuple[Stage, ...] = STAGES


@dataclass
class Sent:
    """A message in the model; its subject is its identity on all hosts."""

    host: int
    number: int
    recipients: tuple[int, ...]
    """Hosts: each has one agent."""


@dataclass
class Showing:
    """What an agent was shown at an event."""

    event: str
    subjects: list[str] = field(default_factory=list)


class TeamMachine(RuleBasedStateMachine):
    """One agent on each host. What each was shown at events whose reply arrived is compared at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        clock = Clock()
        for name in NAMES:
            Path(self.folder.name, name).mkdir()
            shutil.copy(empty_database(), Path(self.folder.name, name, "mail.db"))
        self.hub = Hub(*(TeamHost(Path(self.folder.name, name), name, clock) for name in NAMES))
        self.hosts = list(self.hub.hosts.values())
        self.agents = [host.agents(f"s-{host.name}")[0] for host in self.hosts]
        self.hub.publish_snapshots()
        self.sent: dict[str, Sent] = {}
        self.shown: list[list[str]] = [[] for _ in NAMES]
        self.last_showing: list[Showing | None] = [None for _ in NAMES]
        self.ended: set[int] = set()
        self.is_cut_off: set[int] = set()
        self.numbers = 0

    def teardown(self) -> None:
        try:
            self.is_cut_off.clear()
            self.check()
        finally:
            self.hub.close()
            self.folder.cleanup()

    # -- what agents do ----------------------------------------------------------------------------------

    @initialize(drafts=st.lists(DRAFTS, min_size=5, max_size=12))
    def send_initial_mail(self, drafts: list[tuple[int, set[int], bool, int | None]]) -> None:
        for draft in drafts:
            self.send(draft)
        for host in self.hosts:
            self.hub.push(host)

    @rule(draft=DRAFTS)
    def send(self, draft: tuple[int, set[int], bool, int | None]) -> None:
        sender, to, is_request, reply_to = draft
        to = to - {sender}
        mine = self.visible_to(sender)
        if not to or (reply_to is not None and not mine):
            return
        self.numbers += 1
        subject = f"m{self.numbers}"
        new = Draft(
            to=tuple(f"{self.agents[one].name}@{NAMES[one]}" for one in sorted(to)),
            subject=subject,
            intent="request" if is_request else "inform",
            reply_to=mine[reply_to % len(mine)].id if reply_to is not None else 0,
        )
        result = self.hosts[sender].service.send(self.agents[sender], new)
        self.sent[subject] = Sent(sender, result.message.id, tuple(sorted(to)))

    @rule(host=HOST, limit=st.integers(1, 4))
    def show(self, host: int, limit: int) -> None:
        self.numbers += 1
        event = f"e{self.numbers}"
        messages = self.hosts[host].service.show(self.agents[host], "Stop", event, limit=limit)
        subjects = [one.subject for one in messages if one.subject in self.sent]
        self.shown[host] += subjects
        self.last_showing[host] = Showing(event, subjects)

    @rule(host=HOST)
    def undo_the_last_showing(self, host: int) -> None:
        last, self.last_showing[host] = self.last_showing[host], None
        if last is None:
            return
        self.hosts[host].service.requeue(last.event)
        waiting = {message.subject for _, message in self.inbox(host, ("queued", "bounced"))}
        self.shown[host] = [one for one in self.shown[host] if one not in last.subjects or one not in waiting]

    @rule(host=HOST)
    def end_and_come_back(self, host: int) -> None:
        if host in self.ended:
            self.ended.discard(host)
            self.hosts[host].service.revive(self.agents[host])
        else:
            self.ended.add(host)
            self.hosts[host].service.end(self.agents[host], "closed")

    # -- the carrier -------------------------------------------------------------------------------------

    @rule(host=HOST)
    def cut_off_or_connect(self, host: int) -> None:
        self.is_cut_off ^= {host}

    @rule(host=HOST)
    def exchange(self, host: int) -> None:
        if host not in self.is_cut_off:
            self.receive_all(host)

    @rule(host=HOST)
    def push_and_crash_before_the_answer(self, host: int) -> None:
        if host not in self.is_cut_off:
            self.hub.push(self.hosts[host])
        self.hosts[host].crash()

    @rule(host=HOST)
    def apply_and_crash_before_the_acknowledgement(self, host: int) -> None:
        if host not in self.is_cut_off:
            self.hosts[host].team.receive(self.hub.pull(self.hosts[host]))
        self.hosts[host].crash()

    @rule(host=HOST, pick=PICK)
    def deliver_late_and_twice(self, host: int, pick: int) -> None:
        packets = self.hub.pull(self.hosts[host])
        if packets and host not in self.is_cut_off:
            chosen = packets[pick % len(packets)]
            self.hosts[host].team.receive([chosen, chosen])

    @rule(pick=PICK)
    def lose_a_packet(self, pick: int) -> None:
        if self.hub.packets:
            del self.hub.packets[sorted(self.hub.packets)[pick % len(self.hub.packets)]]

    # -- what must be true -------------------------------------------------------------------------------

    def check(self) -> None:
        for host in sorted(self.ended):
            self.end_and_come_back(host)
        for _ in range(2):
            self.hub.settle()
            for host in range(len(NAMES)):
                self.show(host, 10_000)
        self.hub.settle()
        for host in range(len(NAMES)):
            self.everything_arrived_once_and_in_order(host)
        self.the_ledgers_are_equal()

    def everything_arrived_once_and_in_order(self, host: int) -> None:
        expected = [subject for subject, one in self.sent.items() if host in one.recipients]
        taken = [message.subject for _, message in self.inbox(host, ("shown", "read", "answered"))]
        assert sorted(taken) == sorted(expected), "stored once"
        assert len(self.shown[host]) == len(set(self.shown[host])), "shown once"
        never = set(expected) - set(self.shown[host])
        answered = {message.subject for _, message in self.inbox(host, ("answered",))}
        assert never <= answered, "shown, or answered before"
        for sender in range(len(NAMES)):
            number = {one: self.sent[one].number for one in expected if self.sent[one].host == sender}
            stored = [one for one in reversed(taken) if one in number]
            assert stored == sorted(stored, key=lambda one: number[one]), "in the order of the sender"

    def the_ledgers_are_equal(self) -> None:
        for subject, sent in self.sent.items():
            ledger = self.hosts[sent.host].ledger(sent.number)
            assert len(ledger) == len(sent.recipients)
            for host in sent.recipients:
                here = ledger[f"{self.agents[host].name}@{NAMES[host]}"]
                there = next(one for one, message in self.inbox(host) if message.subject == subject)
                same = ("stage", "shown", "event", "read", "answered", "bounced", "why")
                assert [getattr(here, name) for name in same] == [getattr(there, name) for name in same], subject
                assert here.in_transit_since == 0.0
        for asking, agent in zip(self.hosts, self.agents, strict=True):
            owed = {(message.subject, one.recipient) for one, message in asking.service.unanswered_from(agent)}
            owes = {
                (message.subject, f"{other.name}@{name}")
                for there, other, name in zip(self.hosts, self.agents, NAMES, strict=True)
                for _, message in there.service.unanswered_by(other)
                if message.sender == f"{agent.name}@{asking.name}"
            }
            assert owed == owes

    # -- helpers -----------------------------------------------------------------------------------------

    def receive_all(self, host: int) -> None:
        self.hub.exchange(self.hosts[host])

    def inbox(self, host: int, stages: tuple[Stage, ...] = ALL) -> list[tuple[Delivery, Message]]:
        rows = self.hosts[host].storage.inbox(self.agents[host].id, stages, limit=10_000, before=0)
        return [row for row in rows if row[1].subject in self.sent]

    def visible_to(self, host: int) -> list[Message]:
        received = [message for _, message in self.inbox(host, ("shown", "answered"))]
        own = [one.number for one in self.sent.values() if one.host == host]
        stored = [self.hosts[host].storage.get_message(number) for number in own]
        return sorted([*received, *(one[0] for one in stored if one)], key=lambda message: message.id)


@cache
def empty_database() -> Path:
    """Return a new database, made once: making one takes most of the time of a short history."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    store = MailStore.open(f"sqlite:///{folder}/mail.db")
    MessageService(store)
    store.close()
    return folder / "mail.db"


TeamMachine.TestCase.settings = settings(
    max_examples=15,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestTeam = pytest.mark.timeout(300)(TeamMachine.TestCase)


# -- the two dangerous windows, many times, and the control that shows that the test can fail ------------


def play_crashes(folder: Path, rounds: int) -> tuple[int, int]:
    """Crash in both dangerous windows in each round. Return how many messages were sent, and how many are stored."""
    clock = Clock()
    hub = Hub(*(TeamHost(folder / name, name, clock) for name in NAMES[:2]))
    try:
        laptop, server = hub.hosts.values()
        (sender,), (recipient,) = laptop.agents("s1"), server.agents("s2")
        hub.publish_snapshots()
        for number in range(rounds):
            laptop.send(sender, f"{recipient.name}@server", subject=str(number))
            hub.push(laptop)
            laptop.crash()  # pushed, not marked
            hub.push(laptop)
            server.team.receive(hub.pull(server))
            server.crash()  # applied, not deleted
            server.team.receive(hub.pull(server))
            hub.acknowledge(server)
            hub.read_progress(laptop)
        stored = server.storage.inbox(recipient.id, ("queued",), limit=1000, before=0)
        return rounds, len(stored)
    finally:
        hub.close()


def test_a_crash_in_either_dangerous_window_doubles_nothing(tmp_path: Path) -> None:
    assert play_crashes(tmp_path, 15) == (15, 15)


def test_the_control_without_the_key_of_origin_and_number_doubles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same crashes: so the test above can fail."""

    def everything_is_new(_self: Receiver, _state: object, _packet: IncomingPacket) -> ReceiveResult:
        return ReceiveResult.APPLIED

    monkeypatch.setattr(Receiver, "_check_order", everything_is_new)
    monkeypatch.setattr(Receiver, "_find_origin", lambda *_: 0)
    for name in NAMES[:2]:
        (tmp_path / name).mkdir()
        shutil.copy(empty_database(), tmp_path / name)
        drop_the_unique_key(tmp_path / name / "mail.db")
    assert play_crashes(tmp_path, 15) == (15, 30)


def drop_the_unique_key(file: Path) -> None:
    import sqlite3

    with sqlite3.connect(file) as connection:
        connection.execute("DROP INDEX team_origins_by_number")
    connection.close()
