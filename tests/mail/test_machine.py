"""Random lives of an office that crashes: each letter is shown once, in order, and the ledger tells the truth."""

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
from mail.offices import Desk

from fairlead.mail import USER, Draft, MessageService, NotYours

PLACES = (("s1", ""), ("s1", "a1"), ("s2", ""))
AGENTS = st.integers(0, len(PLACES))
"""By number; the last one is the person."""
MOST = st.integers(1, 4)
PICK = st.integers(0, 1000)
PERSON = len(PLACES)
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
class Told:
    """A message, as a simple model has it."""

    sender: int
    recipients: tuple[int, ...]
    thread: int
    is_urgent: bool
    is_request: bool
    deadline: float = 0.0
    about: tuple[int, int, str] | None = None
    """Of a notice: the request, who did not answer it, and why it is told."""


@dataclass
class Row:
    """A letter, as the model has it."""

    stage: str = "queued"
    owed: bool = False
    event: str = ""
    told: set[str] = field(default_factory=set)
    shows: int = 0
    """So often the agent has seen it by an event whose answer arrived."""


class Life(RuleBasedStateMachine):
    """Does what agents and events do, and keeps in a few dicts what must be true by then."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        shutil.copy(empty_box(), self.folder.name)
        self.desk = Desk(Path(self.folder.name))
        self.disk = sqlite3.connect(f"{self.folder.name}/mail.db")
        self.disk.row_factory = sqlite3.Row
        self.agents = [self.office.agent_for(session, agent_id=agent_id) for session, agent_id in PLACES]
        self.agents.append(USER)
        self.ended: set[int] = set()
        self.messages: dict[int, Told] = {}
        self.letters: dict[tuple[int, int], Row] = {}
        self.events = 0
        self.names = 0
        self.keys: dict[tuple[int, str], int] = {}

    def teardown(self) -> None:
        try:
            self.in_the_end_everybody_has_seen_everything_once()
        finally:
            self.disk.close()
            self.desk.box.close()
            self.folder.cleanup()

    def in_the_end_everybody_has_seen_everything_once(self) -> None:
        """Or had read or answered it before. For that, everybody comes back."""
        for number in sorted(self.ended):
            self.revive(number)
        for number in range(len(self.agents)):
            self.show(number, urgent_only=False, most=10_000)
        for place, row in self.letters.items():
            was_shown = row.stage == "shown" or bool(row.event)
            assert row.shows == int(was_shown), (place, row)
            assert row.stage != "queued"
        for number, agent in enumerate(self.agents):
            owed = [message.id for _, message in self.office.owed_by(agent)]
            assert owed == [message for message, one in self.owed() if one == number]
        self.every_ledger_tells_the_truth()

    @property
    def office(self) -> MessageService:
        return self.desk.office

    # -- what agents do ----------------------------------------------------------------------------------

    @initialize(drafts=st.lists(DRAFTS, min_size=4, max_size=12))
    def some_mail_is_there(self, drafts: list[tuple[Any, ...]]) -> None:
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
        deadline = self.desk.clock.at + 20 if kind == "due" else 0.0
        wanted = Draft(
            to=tuple(self.name(number) for number in sorted(to)),
            subject="hello",
            priority="urgent" if urgent else "normal",
            intent="inform" if kind == "inform" else "request",
            reply_to=replied,
            deadline=deadline,
            key=key,
        )
        sent = self.office.send(self.agents[sender], wanted)
        if key and (sender, key) in self.keys:
            assert (sent.is_new, sent.message.id) == (False, self.keys[sender, key])
            return
        assert sent.is_new
        assert sent.message.id == len(self.messages) + 1
        if key:
            self.keys[sender, key] = sent.message.id
        self.put(
            Told(
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
    def say_more(self, pick: int, urgent: bool) -> None:  # noqa: FBT001 - drawn
        """The sender of a message writes once more to the same agents, in the same thread."""
        number = 1 + pick % len(self.messages)
        told = self.messages[number]
        if told.sender >= 0:
            mine = [one for one in self.messages if self.concerns(one, told.sender)]
            self.send((told.sender, set(told.recipients), "request", urgent, mine.index(number), ""))

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
            sent = self.office.reply(self.agents[agent], replied, "yes")
        except NotYours:
            assert not self.concerns(replied, agent)
            return
        assert self.concerns(replied, agent)
        told = Told(agent, tuple(sorted(to)), asked.thread, is_urgent=False, is_request=False)
        assert sent.message.id == len(self.messages) + 1
        self.put(told)
        self.answer(agent, replied, to)

    @precondition(lambda self: self.messages)
    @rule(agent=AGENTS, pick=PICK)
    def read(self, agent: int, pick: int) -> None:
        number = 1 + pick % len(self.messages)
        row = self.letters.get((number, agent))
        try:
            self.office.read(self.agents[agent], number)
        except NotYours:
            assert not self.concerns(number, agent)
            return
        assert self.concerns(number, agent)
        if row and row.stage in {"queued", "shown", "bounced"}:
            row.stage = "read"

    # -- what events do ----------------------------------------------------------------------------------

    @rule(agent=AGENTS, urgent_only=st.booleans(), most=MOST)
    def show(self, agent: int, urgent_only: bool, most: int) -> None:  # noqa: FBT001 - drawn
        self.events += 1
        event = f"e{self.events}"
        shown = [
            one.id for one in self.office.show(self.agents[agent], "Stop", event, urgent_only=urgent_only, most=most)
        ]
        assert shown == self.first(agent, most, urgent_only=urgent_only)
        for number in shown:
            row = self.letters[number, agent]
            row.stage, row.event, row.shows = "shown", event, row.shows + 1

    @precondition(lambda self: self.events)
    @rule(pick=PICK)
    def the_answer_of_an_event_never_arrived(self, pick: int) -> None:
        event = f"e{1 + pick % self.events}"
        again = 0
        for (_, agent), row in self.letters.items():
            if row.event == event and row.stage == "shown":
                row.stage = "bounced" if agent in self.ended else "queued"
                row.event, row.shows = "", row.shows - 1
                again += row.stage == "queued"
        assert self.office.unshow(event) == again

    @rule(agent=st.integers(0, len(PLACES) - 1))
    def end(self, agent: int) -> None:
        ending = ({0, 1} if agent == 0 else {agent}) - self.ended
        expected = [(number, one, "ended") for number, one in self.owed() if one in ending]
        self.ended |= ending
        self.office.ended(self.agents[agent], "logout")
        self.take_notices(expected)
        for (_, one), row in self.letters.items():
            if one in ending and row.stage == "queued":
                row.stage = "bounced"

    @rule(agent=st.integers(0, len(PLACES) - 1))
    def revive(self, agent: int) -> None:
        assert self.office.revived(self.agents[agent]).ended == 0.0
        self.ended.discard(agent)
        for (_, one), row in self.letters.items():
            if one == agent and row.stage == "bounced":
                row.stage = "queued"

    @rule(agent=st.integers(0, len(PLACES) - 1))
    def idle(self, agent: int) -> None:
        expected = [
            (number, one, "idle")
            for number, one in self.owed()
            if one == agent and self.letters[number, one].stage in {"shown", "read"}
        ]
        self.office.went_idle(self.agents[agent])
        self.take_notices(expected)

    @rule(later=st.sampled_from([-1000.0, 0.0, 15.0, 100.0]))
    def time_passes_or_the_clock_jumps(self, later: float) -> None:
        self.desk.clock.at += later
        now = self.desk.clock.at
        late = {number for number, told in self.messages.items() if 0 < told.deadline <= now}
        expected = [(*place, "late") for place, row in self.letters.items() if row.owed and place[0] in late]
        fresh = [one for one in expected if "late" not in self.letters[one[:2]].told]
        assert self.office.due(now) == len(fresh)
        self.take_notices(expected)

    # -- what may go wrong -------------------------------------------------------------------------------

    @rule(orderly=st.booleans(), renamed=st.sampled_from([0, 2]))
    def the_daemon_ends_and_begins_anew(self, orderly: bool, renamed: int) -> None:  # noqa: FBT001 - drawn
        """An agent has another name by then."""
        self.names += 1
        self.office.rename(self.agents[renamed], f"name-{self.names}")
        before = self.office.agents(ended=True)
        self.desk.open_again() if orderly else self.desk.crash()
        assert self.office.agents(ended=True) == before

    # -- what is always true -----------------------------------------------------------------------------

    @invariant()
    def every_ledger_tells_the_truth(self) -> None:
        """As it stands in the file, for whoever opens it next."""
        numbers = {agent.id: number for number, agent in enumerate(self.agents)}
        found = self.disk.execute("SELECT * FROM mail_letters").fetchall()
        assert {(row["message"], numbers[row["recipient"]]) for row in found} == set(self.letters)
        for row in found:
            letter = self.letters[row["message"], numbers[row["recipient"]]]
            assert (row["stage"], bool(row["owed"])) == (letter.stage, letter.owed)
            assert bool(row["shown"]) == (row["event"] == "Stop") == bool(letter.event)
            assert (row["event_id"] or "") == letter.event
            assert bool(row["bounced"]) == bool(row["why"])
            assert row["stage"] not in {"bounced", "read", "answered"} or row[row["stage"]]

    @invariant()
    def what_waits_is_counted_without_looking(self) -> None:
        for number, agent in enumerate(self.agents):
            queued = self.queue(number)
            assert self.office.waiting(agent) == len(queued)
            urgent = [one for one in queued if self.messages[one].is_urgent]
            assert self.office.waiting(agent, urgent_only=True) == len(urgent)

    # -- the model ---------------------------------------------------------------------------------------

    def name(self, agent: int) -> str:
        return self.office.current(self.agents[agent]).name

    def put(self, told: Told) -> None:
        number = len(self.messages) + 1
        self.messages[number] = told
        for agent in told.recipients:
            stage = "bounced" if agent in self.ended else "queued"
            self.letters[number, agent] = Row(stage=stage, owed=told.is_request)

    def answer(self, agent: int, replied: int, to: set[int]) -> None:
        thread = self.messages[replied].thread
        for (number, one), row in self.letters.items():
            asked = self.messages[number]
            is_meant = one == agent and number <= replied and asked.sender in to and asked.thread == thread
            if is_meant and row.stage != "answered" and (row.owed or number == replied):
                row.stage, row.owed = "answered", False

    def concerns(self, number: int, agent: int) -> bool:
        return agent in (PERSON, self.messages[number].sender) or (number, agent) in self.letters

    def queue(self, agent: int) -> list[int]:
        return sorted(number for (number, one), row in self.letters.items() if one == agent and row.stage == "queued")

    def first(self, agent: int, most: int, *, urgent_only: bool) -> list[int]:
        """What is to be shown next: of the urgent ones the first, with what is before them in their threads."""
        queue = self.queue(agent)
        if not urgent_only:
            return queue[:most]
        urgent = [number for number in queue if self.messages[number].is_urgent][:most]
        last = {self.messages[number].thread: number for number in urgent}
        return [number for number in queue if number <= last.get(self.messages[number].thread, 0)][:most]

    def owed(self) -> list[tuple[int, int]]:
        return sorted(place for place, row in self.letters.items() if row.owed and row.stage != "bounced")

    def take_notices(self, expected: list[tuple[int, int, str]]) -> None:
        """Take what Fairlead wrote by now into the model: what was to be expected, and was not told before."""
        fresh = [one for one in expected if one[2] not in self.letters[one[:2]].told]
        found: list[Any] = []
        for _ in fresh:
            number = len(self.messages) + 1
            message = self.office.read(USER, number)[0]
            assert message.sender == "Fairlead"
            why = {"ended": "ended without", "idle": "went idle", "late": "has not answered in time"}
            [about] = [
                (asked, agent, reason)
                for asked, agent, reason in fresh
                if asked == message.reply_to and message.subject.startswith(f"{self.name(agent)} {why[reason]}")
            ]
            found.append(about)
            asked = self.messages[about[0]]
            self.letters[about[:2]].told.add(about[2])
            self.put(Told(-1, (asked.sender,), asked.thread, is_urgent=asked.is_urgent, is_request=False, about=about))
            if asked.sender == PERSON:
                self.letters[number, PERSON].stage = "read"
        assert sorted(found) == sorted(fresh), "each of them once"
        assert self.desk.box.message(len(self.messages) + 1) is None, "and no other"


@cache
def empty_box() -> Path:
    """Give a box with nothing in it, to be copied: to make one takes longer than a life in it."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    Desk(folder).box.close()
    return folder / "mail.db"


Life.TestCase.settings = settings(max_examples=50, stateful_step_count=50, deadline=None)
TestLife = pytest.mark.timeout(300)(Life.TestCase)
