"""Random histories of a service that crashes: each delivery is shown once, in order, and the ledger is correct."""

from __future__ import annotations

import atexit
import shutil
import sqlite3
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from mail.harness import MailHarness

from fairlead.mail import USER, Draft, MessageService, NotYours

SESSIONS = (("s1", ""), ("s1", "a1"), ("s2", ""))
AGENTS = st.integers(0, len(SESSIONS))
"""By number; the last one is the user."""
LIMIT = st.integers(1, 4)
PICK = st.integers(0, 1000)
HUMAN = len(SESSIONS)
DRAFTS = st.tuples(
    AGENTS,
    st.sets(AGENTS, min_size=1, max_size=2),
    st.sampled_from(["inform", "request", "request", "due"]),
    st.booleans(),
    st.one_of(st.none(), PICK),
    st.sampled_from(["", "", "", "k1", "k2"]),
)
"""Sender, recipients, kind, whether it is urgent, which message it replies to, key."""


@dataclass
class ModelMessage:
    """A message in the model."""

    sender: int
    recipients: tuple[int, ...]
    thread: int
    is_urgent: bool
    is_request: bool
    deadline: float = 0.0
    about: tuple[int, int, str] | None = None
    """For a notice: the request, the agent that did not answer it, and the reason."""


@dataclass
class ModelDelivery:
    """A delivery in the model."""

    stage: str = "queued"
    unanswered: bool = False
    event: str = ""
    notified: set[str] = field(default_factory=set)
    shows: int = 0
    """How often the agent has seen it at an event whose reply arrived."""


class MailMachine(RuleBasedStateMachine):
    """Performs what agents and events do, and keeps the expected state in a few dicts."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        shutil.copy(empty_database(), self.folder.name)
        self.mail = MailHarness(Path(self.folder.name))
        self.disk = sqlite3.connect(f"{self.folder.name}/mail.db")
        self.disk.row_factory = sqlite3.Row
        self.agents = [self.service.ensure_agent(session, agent_id=agent_id) for session, agent_id in SESSIONS]
        self.agents.append(USER)
        self.ended: set[int] = set()
        self.messages: dict[int, ModelMessage] = {}
        self.deliveries: dict[tuple[int, int], ModelDelivery] = {}
        self.events = 0
        self.names = 0
        self.keys: dict[tuple[int, str], int] = {}

    def teardown(self) -> None:
        try:
            self.check_that_everything_was_shown_once()
        finally:
            self.disk.close()
            self.mail.storage.close()
            self.folder.cleanup()

    def check_that_everything_was_shown_once(self) -> None:
        """Revive all agents; each has then seen every message once, or read or answered it before."""
        for number in sorted(self.ended):
            self.revive(number)
        for number in range(len(self.agents)):
            self.show(number, urgent_only=False, limit=10_000)
        for key, row in self.deliveries.items():
            was_shown = row.stage == "shown" or bool(row.event)
            assert row.shows == int(was_shown), (key, row)
            assert row.stage != "queued"
        for number, agent in enumerate(self.agents):
            unanswered = [message.id for _, message in self.service.unanswered_by(agent)]
            assert unanswered == [message for message, one in self.unanswered() if one == number]
        self.the_stored_ledger_is_correct()

    @property
    def service(self) -> MessageService:
        return self.mail.service

    # -- what agents do ----------------------------------------------------------------------------------

    @initialize(drafts=st.lists(DRAFTS, min_size=4, max_size=12))
    def send_initial_mail(self, drafts: list[tuple[Any, ...]]) -> None:
        for draft in drafts:
            self.send(draft)

    @rule(draft=DRAFTS)
    def send(self, draft: tuple[int, set[int], str, bool, int | None, str]) -> None:
        sender, to, kind, urgent, reply_to, key = draft
        to = to - {sender}
        mine = [number for number in self.messages if self.concerns(number, sender)]
        if not to or (reply_to is not None and not mine):
            return
        replied = mine[reply_to % len(mine)] if reply_to is not None else 0
        deadline = self.mail.clock.at + 20 if kind == "due" else 0.0
        new = Draft(
            to=tuple(self.name(number) for number in sorted(to)),
            subject="hello",
            priority="urgent" if urgent else "normal",
            intent="inform" if kind == "inform" else "request",
            reply_to=replied,
            deadline=deadline,
            key=key,
        )
        sent = self.service.send(self.agents[sender], new)
        if key and (sender, key) in self.keys:
            assert (sent.is_new, sent.message.id) == (False, self.keys[sender, key])
            return
        assert sent.is_new
        assert sent.message.id == len(self.messages) + 1
        if key:
            self.keys[sender, key] = sent.message.id
        self.put(
            ModelMessage(
                sender=sender,
                recipients=tuple(sorted(to)),
                thread=self.messages[replied].thread if replied else sent.message.id,
                is_urgent=urgent,
                is_request=kind != "inform",
                deadline=deadline,
            )
        )
        if replied:
            self.answer(sender, replied, to)

    @precondition(lambda self: self.messages)
    @rule(pick=PICK, urgent=st.booleans())
    def follow_up(self, pick: int, urgent: bool) -> None:
        """The sender of a message writes again to the same agents, in the same thread."""
        number = 1 + pick % len(self.messages)
        message = self.messages[number]
        if message.sender >= 0:
            mine = [one for one in self.messages if self.concerns(one, message.sender)]
            self.send((message.sender, set(message.recipients), "request", urgent, mine.index(number), ""))

    @precondition(lambda self: self.messages)
    @rule(agent=AGENTS, pick=PICK)
    def reply(self, agent: int, pick: int) -> None:
        replied = 1 + pick % len(self.messages)
        asked = self.messages[replied]
        got = set(asked.recipients) - {agent}
        to = got if asked.sender == agent else {asked.sender}
        if not to or to == {-1}:
            return
        try:
            sent = self.service.reply(self.agents[agent], replied, "yes")
        except NotYours:
            assert not self.concerns(replied, agent)
            return
        assert self.concerns(replied, agent)
        message = ModelMessage(agent, tuple(sorted(to)), asked.thread, is_urgent=False, is_request=False)
        assert sent.message.id == len(self.messages) + 1
        self.put(message)
        self.answer(agent, replied, to)

    @precondition(lambda self: self.messages)
    @rule(agent=AGENTS, pick=PICK)
    def read(self, agent: int, pick: int) -> None:
        number = 1 + pick % len(self.messages)
        row = self.deliveries.get((number, agent))
        try:
            self.service.read(self.agents[agent], number)
        except NotYours:
            assert not self.concerns(number, agent)
            return
        assert self.concerns(number, agent)
        if row and row.stage in {"queued", "shown", "bounced"}:
            row.stage = "read"

    # -- what events do ----------------------------------------------------------------------------------

    @rule(agent=AGENTS, urgent_only=st.booleans(), limit=LIMIT)
    def show(self, agent: int, urgent_only: bool, limit: int) -> None:
        self.events += 1
        event = f"e{self.events}"
        shown = [
            one.id for one in self.service.show(self.agents[agent], "Stop", event, urgent_only=urgent_only, limit=limit)
        ]
        assert shown == self.first(agent, limit, urgent_only=urgent_only)
        for number in shown:
            row = self.deliveries[number, agent]
            row.stage, row.event, row.shows = "shown", event, row.shows + 1

    @precondition(lambda self: self.events)
    @rule(pick=PICK)
    def lose_a_reply(self, pick: int) -> None:
        event = f"e{1 + pick % self.events}"
        requeued = 0
        for (_, agent), row in self.deliveries.items():
            if row.event == event and row.stage == "shown":
                row.stage = "bounced" if agent in self.ended else "queued"
                row.event, row.shows = "", row.shows - 1
                requeued += row.stage == "queued"
        assert self.service.requeue(event) == requeued

    @rule(agent=st.integers(0, len(SESSIONS) - 1))
    def end(self, agent: int) -> None:
        ending = ({0, 1} if agent == 0 else {agent}) - self.ended
        expected = [(number, one, "ended") for number, one in self.unanswered() if one in ending]
        self.ended |= ending
        self.service.end(self.agents[agent], "logout")
        self.take_notices(expected)
        for (_, one), row in self.deliveries.items():
            if one in ending and row.stage == "queued":
                row.stage = "bounced"

    @rule(agent=st.integers(0, len(SESSIONS) - 1))
    def revive(self, agent: int) -> None:
        assert self.service.revive(self.agents[agent]).ended == 0.0
        self.ended.discard(agent)
        for (_, one), row in self.deliveries.items():
            if one == agent and row.stage == "bounced":
                row.stage = "queued"

    @rule(agent=st.integers(0, len(SESSIONS) - 1))
    def idle(self, agent: int) -> None:
        expected = [
            (number, one, "idle")
            for number, one in self.unanswered()
            if one == agent and self.deliveries[number, one].stage in {"shown", "read"}
        ]
        self.service.notify_idle(self.agents[agent])
        self.take_notices(expected)

    @rule(later=st.sampled_from([-1000.0, 0.0, 15.0, 100.0]))
    def move_the_clock(self, later: float) -> None:
        self.mail.clock.at += later
        now = self.mail.clock.at
        late = {number for number, message in self.messages.items() if 0 < message.deadline <= now}
        expected = [(*key, "late") for key, row in self.deliveries.items() if row.unanswered and key[0] in late]
        fresh = [one for one in expected if "late" not in self.deliveries[one[:2]].notified]
        assert self.service.process_deadlines(now) == len(fresh)
        self.take_notices(expected)

    # -- restarts ---------------------------------------------------------------------------------------

    @rule(orderly=st.booleans(), renamed=st.sampled_from([0, 2]))
    def restart(self, orderly: bool, renamed: int) -> None:
        """Rename an agent, and restart in an orderly way or by a crash."""
        self.names += 1
        self.service.rename(self.agents[renamed], f"name-{self.names}")
        before = self.service.agents(include_ended=True)
        self.mail.restart() if orderly else self.mail.crash()
        assert self.service.agents(include_ended=True) == before

    # -- invariants -------------------------------------------------------------------------------------

    @invariant()
    def the_stored_ledger_is_correct(self) -> None:
        """Compare the rows in the file with the model."""
        numbers = {agent.id: number for number, agent in enumerate(self.agents)}
        rows = self.disk.execute("SELECT * FROM mail_letters").fetchall()
        assert {(row["message"], numbers[row["recipient"]]) for row in rows} == set(self.deliveries)
        for row in rows:
            delivery = self.deliveries[row["message"], numbers[row["recipient"]]]
            assert (row["stage"], bool(row["owed"])) == (delivery.stage, delivery.unanswered)
            assert bool(row["shown"]) == (row["event"] == "Stop") == bool(delivery.event)
            assert (row["event_id"] or "") == delivery.event
            assert bool(row["bounced"]) == bool(row["why"])
            assert row["stage"] not in {"bounced", "read", "answered"} or row[row["stage"]]

    @invariant()
    def the_queue_sizes_are_correct(self) -> None:
        for number, agent in enumerate(self.agents):
            queued = self.queue(number)
            assert self.service.queued_count(agent) == len(queued)
            urgent = [one for one in queued if self.messages[one].is_urgent]
            assert self.service.queued_count(agent, urgent_only=True) == len(urgent)

    # -- the model ---------------------------------------------------------------------------------------

    def name(self, agent: int) -> str:
        return self.service.current(self.agents[agent]).name

    def put(self, message: ModelMessage) -> None:
        number = len(self.messages) + 1
        self.messages[number] = message
        for agent in message.recipients:
            stage = "bounced" if agent in self.ended else "queued"
            self.deliveries[number, agent] = ModelDelivery(stage=stage, unanswered=message.is_request)

    def answer(self, agent: int, replied: int, to: set[int]) -> None:
        thread = self.messages[replied].thread
        for (number, one), row in self.deliveries.items():
            asked = self.messages[number]
            is_answered = one == agent and number <= replied and asked.sender in to and asked.thread == thread
            if is_answered and row.stage != "answered" and (row.unanswered or number == replied):
                row.stage, row.unanswered = "answered", False

    def concerns(self, number: int, agent: int) -> bool:
        return agent in (HUMAN, self.messages[number].sender) or (number, agent) in self.deliveries

    def queue(self, agent: int) -> list[int]:
        return sorted(
            number for (number, one), row in self.deliveries.items() if one == agent and row.stage == "queued"
        )

    def first(self, agent: int, limit: int, *, urgent_only: bool) -> list[int]:
        """Return what must be shown next: with `urgent_only`, urgent ones and what precedes them in their threads."""
        queue = self.queue(agent)
        if not urgent_only:
            return queue[:limit]
        urgent = [number for number in queue if self.messages[number].is_urgent][:limit]
        last = {self.messages[number].thread: number for number in urgent}
        return [number for number in queue if number <= last.get(self.messages[number].thread, 0)][:limit]

    def unanswered(self) -> list[tuple[int, int]]:
        return sorted(key for key, row in self.deliveries.items() if row.unanswered and row.stage != "bounced")

    def take_notices(self, expected: list[tuple[int, int, str]]) -> None:
        """Check that exactly the expected new notices were sent, and add them to the model."""
        fresh = [one for one in expected if one[2] not in self.deliveries[one[:2]].notified]
        found: list[Any] = []
        for _ in fresh:
            number = len(self.messages) + 1
            message = self.service.read(USER, number)[0]
            assert message.sender == "Fairlead"
            why = {"ended": "ended without", "idle": "went idle", "late": "has not answered in time"}
            [about] = [
                (asked, agent, reason)
                for asked, agent, reason in fresh
                if asked == message.reply_to and message.subject.startswith(f"{self.name(agent)} {why[reason]}")
            ]
            found.append(about)
            asked = self.messages[about[0]]
            self.deliveries[about[:2]].notified.add(about[2])
            self.put(
                ModelMessage(
                    -1, (asked.sender,), asked.thread, is_urgent=asked.is_urgent, is_request=False, about=about
                )
            )
            if asked.sender == HUMAN:
                self.deliveries[number, HUMAN].stage = "read"
        assert sorted(found) == sorted(fresh), "each of them once"
        assert self.mail.storage.get_message(len(self.messages) + 1) is None, "and no other"


@cache
def empty_database() -> Path:
    """Return an empty database to copy: creating one takes longer than a run with it."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    MailHarness(folder).storage.close()
    return folder / "mail.db"


MailMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=50, deadline=None)
TestMail = pytest.mark.timeout(300)(MailMachine.TestCase)
