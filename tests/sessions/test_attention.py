"""When the person is told: once for each question, whatever else happens meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sessions.playing import Play

from fairlead.sessions import Asked, AttentionLog, AttentionNeeded, AttentionSettings, decide, restore, snapshot
from fairlead.sessions._attention import LOOK_AGAIN, LOOK_AWAY
from fairlead.sessions._panes import shows

if TYPE_CHECKING:
    from collections.abc import Callable

GRACE = 2.0


class Person:
    """Looks at a client that is played, and keeps what they are told: whose question, and which."""

    def __init__(self) -> None:
        self.play = Play()
        self.book = AttentionLog()
        self.told: list[tuple[str, str]] = []
        self.manners = AttentionSettings(GRACE)
        self.is_in_front = False

    def look(self) -> None:
        now = self.play.now
        self.book.see_all(self.play.registry.by_id.values(), now)
        for session, asked in self.book.due(now):
            after = decide(asked, now, self.manners, lambda: self.is_in_front)
            if self.book.take(session, asked, after):
                self.told.append((session.id.removeprefix("abc123").removeprefix("/"), after.reason))

    def wait(self, seconds: float) -> None:
        for _ in range(int(seconds * 4)):
            self.play.now += 0.25
            self.look()

    def begin_anew(self) -> None:
        """Another daemon takes over from what is on the disk."""
        kept = msgspec.json.decode(msgspec.json.encode(self.book.told()), type=dict[str, Asked])
        self.play.registry = restore(snapshot(self.play.registry))
        self.book = AttentionLog(kept)

    def ask(self, tool: str = "Bash", call: str = "t1", **fields: Any) -> None:
        self.play.pre(tool, call, **fields)
        self.play("PermissionRequest", tool_name=tool, after=0.01, **fields)
        self.look()


@pytest.fixture
def person() -> Person:
    return Person()


def test_a_question_is_told_after_the_grace(person: Person) -> None:
    person.ask()
    person.wait(GRACE - 0.5)
    assert person.told == []

    person.wait(1)
    assert person.told == [("", "Permission for Bash")]


def test_with_no_grace_it_is_told_at_once(person: Person) -> None:
    person.manners = AttentionSettings(0)
    person.ask()
    assert person.told == [("", "Permission for Bash")]


def test_what_is_answered_at_once_is_not_told(person: Person) -> None:
    person.ask()
    person.wait(GRACE - 0.5)
    person.play.post()
    person.wait(60)
    assert person.told == []


def again(person: Person) -> None:
    person.play("Notification", notification_type="permission_prompt", after=6)


def ask_twice(person: Person) -> None:
    person.play("PermissionRequest", tool_name="Bash", after=0.5)


def other_life(person: Person) -> None:
    person.begin_anew()


def other_call(person: Person) -> None:
    person.play.pre("Read", "t9", after=0.5)


@pytest.mark.parametrize("repeat", [again, ask_twice, other_life, other_call])
def test_the_same_question_is_told_once(person: Person, repeat: Callable[[Person], None]) -> None:
    person.ask()
    person.wait(5)
    repeat(person)
    person.wait(600)
    assert person.told == [("", "Permission for Bash")]


@pytest.mark.parametrize("between", [0.0, 6.0])
def test_a_question_about_no_call_that_we_know_is_not_told_again_by_the_clients_note(
    person: Person, between: float
) -> None:
    """The note gives it another, poorer reason."""
    person.play("PermissionRequest", tool_name="Bash")
    person.wait(between)
    again(person)
    assert person.play.state == AttentionNeeded("Permission")
    person.begin_anew()
    person.wait(600)
    assert len(person.told) == 1


def test_a_note_that_comes_before_the_question_is_the_same_question(person: Person) -> None:
    person.play("UserPromptSubmit")
    again(person)
    person.wait(5)
    person.play("PermissionRequest", tool_name="Bash")
    person.wait(60)
    assert person.told == [("", "Permission")]


def test_another_question_is_told_anew_after_the_session_worked_again(person: Person) -> None:
    person.ask(call="t1")
    person.wait(5)
    person.play.post(call="t1")
    person.ask(call="t2")
    person.wait(5)
    assert person.told == [("", "Permission for Bash"), ("", "Permission for Bash")]


def test_so_it_is_if_nobody_saw_it_work(person: Person) -> None:
    """There was no daemon, or all of it came at once."""
    person.ask(call="t1")
    person.wait(5)
    person.play.post(call="t1", after=0.0)
    person.play.pre(call="t2", after=0.0)
    person.play("PermissionRequest", tool_name="Bash", after=0.001)
    person.begin_anew()
    person.wait(5)
    assert len(person.told) == 2


def test_another_reason_is_told_even_if_the_session_did_not_work_between(person: Person) -> None:
    """Of two parallel calls both are asked about, one after the other."""
    person.ask("Bash", "t1")
    person.play.pre("Edit", "t2", after=0.1)
    person.play("PermissionRequest", tool_name="Edit", after=0.1)
    person.wait(5)
    person.play.post("Bash", "t1")
    person.wait(5)
    assert person.told == [("", "Permission for Bash"), ("", "Permission for Edit")]


def test_an_error_of_the_models_service_is_told(person: Person) -> None:
    person.play("UserPromptSubmit")
    person.play("StopFailure", error="overloaded")
    person.wait(5)
    person.play("Notification", notification_type="idle_prompt", after=60)
    person.wait(60)
    assert person.told == [("", "API error: overloaded")]


def test_a_subagents_question_is_told_once_although_the_client_shows_it_in_the_main_session(person: Person) -> None:
    person.play("SubagentStart", agent_id="a1", agent_type="Explore")
    person.ask(agent_id="a1", agent_type="Explore")
    person.wait(5)
    again(person)
    person.wait(60)
    assert person.told == [("a1", "Permission for Bash")]


def test_two_subagents_are_two_questions(person: Person) -> None:
    for name in ("a1", "a2"):
        person.play("SubagentStart", agent_id=name, agent_type="Explore")
        person.ask(call=name, agent_id=name, agent_type="Explore")
    person.wait(60)
    assert person.told == [("a1", "Permission for Bash"), ("a2", "Permission for Bash")]


def test_in_quiet_hours_nothing_is_told_and_afterwards_what_still_waits_is(person: Person) -> None:
    person.manners = AttentionSettings(GRACE, can_be_told=False)
    person.ask()
    person.wait(600)
    assert (person.told, person.book.held(person.play.now), person.book.untold) == ([], 1, 1)

    person.manners = AttentionSettings(GRACE)
    person.begin_anew()
    person.wait(LOOK_AGAIN + 1)
    assert person.told == [("", "Permission for Bash")]


def test_what_passed_in_quiet_hours_is_never_told(person: Person) -> None:
    person.manners = AttentionSettings(GRACE, can_be_told=False)
    person.ask()
    person.wait(60)
    person.play.post()
    person.manners = AttentionSettings(GRACE)
    person.wait(60)
    assert (person.told, person.book.waiting) == ([], 0)


def test_who_looks_at_it_is_not_told_until_they_look_away(person: Person) -> None:
    person.is_in_front = True
    person.ask()
    person.wait(600)
    assert person.told == []

    person.is_in_front = False
    person.wait(LOOK_AWAY + 1)
    assert person.told == [("", "Permission for Bash")]


def test_unless_they_want_to_be(person: Person) -> None:
    person.is_in_front, person.manners = True, AttentionSettings(GRACE, when_in_front=True)
    person.ask()
    person.wait(5)
    assert len(person.told) == 1


def test_a_session_that_ends_needs_nobody(person: Person) -> None:
    person.ask()
    person.play("SessionEnd", reason="other")
    person.wait(60)
    assert (person.told, person.book.told(), person.book.waiting) == ([], {}, 0)


def test_a_session_that_is_forgotten_is_forgotten_here_too(person: Person) -> None:
    person.ask()
    person.wait(5)
    person.play.registry.drop("abc123")
    person.look()
    assert person.book.told() == {}


def test_a_decision_about_what_has_changed_meanwhile_is_dropped(person: Person) -> None:
    person.manners = AttentionSettings(0)
    person.play.pre()
    person.play("PermissionRequest", tool_name="Bash")
    person.book.see_all(person.play.registry.by_id.values(), person.play.now)
    [(session, asked)] = person.book.due(person.play.now)
    after = decide(asked, person.play.now, person.manners, lambda: False)
    person.play.post()
    person.book.see_all(person.play.registry.by_id.values(), person.play.now)
    assert after.is_told
    assert not person.book.take(session, asked, after)


def test_a_clock_that_was_set_back_does_not_hold_it_up(person: Person) -> None:
    person.play.pre()
    person.play("PermissionRequest", tool_name="Bash")
    person.book.see_all(person.play.registry.by_id.values(), person.play.now)
    person.play.now -= 3600
    person.wait(GRACE + 1)
    assert len(person.told) == 1


# -- whatever happens ----------------------------------------------------------------------------------

STEPS = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from([0.25, 1.0, 3.0, 10.0, 100.0])),
    st.tuples(st.just("ask"), st.sampled_from(["Bash", "Edit"])),
    st.tuples(st.just("ask unseen"), st.sampled_from(["Bash", "Edit"])),
    st.tuples(st.sampled_from(["work", "note", "repeat", "restart", "quiet", "loud", "front", "away"]), st.none()),
)
LONG = LOOK_AWAY + GRACE + LOOK_AGAIN
"""Seconds after which whatever held it up must be over."""


class Story(Person):
    """Plays steps, and keeps beside them what must come of them."""

    def __init__(self) -> None:
        super().__init__()
        self.spell = 0
        self.noted: list[tuple[int, str]] = []
        """What was told: in which spell, and for which reason."""
        self.lasting: set[tuple[int, str]] = set()
        """What must have been told: it lasted, and the person could be told."""
        self._now: tuple[int, str] | None = None
        self._for = 0.0
        self._calls = 0

    def look(self) -> None:
        before = len(self.told)
        super().look()
        assert len(self.told) == before or (self.manners.can_be_told and not self.is_in_front)
        self.noted += [(self.spell, reason) for _, reason in self.told[before:]]

    def wait(self, seconds: float) -> None:
        for _ in range(int(seconds * 4)):
            super().wait(0.25)
            state, is_open = self.play.state, self.manners.can_be_told and not self.is_in_front
            now = (self.spell, state.reason) if is_open and isinstance(state, AttentionNeeded) else None
            self._now, self._for = now, self._for + 0.25 if now == self._now else 0.0
            if now is not None and self._for > LONG:
                self.lasting.add(now)

    def step(self, name: str, value: Any) -> None:
        if name == "wait":
            return self.wait(value)
        if name in {"quiet", "loud"}:
            self.manners = AttentionSettings(GRACE, can_be_told=name == "loud")
        elif name in {"front", "away"}:
            self.is_in_front = name == "front"
        elif name == "restart":
            self.begin_anew()
        else:
            self._happen(name, value)
        return None

    def _happen(self, name: str, tool: str) -> None:
        self._calls += 1
        if name == "ask":
            self.play.pre(tool, f"t{self._calls}", after=0.1)
            self._noted_work()
            self.play("PermissionRequest", tool_name=tool, after=0.1)
        elif name == "ask unseen":
            self.play("PermissionRequest", tool_name=tool, after=0.1)
        elif name == "repeat":
            self.play("Notification", notification_type="permission_prompt", after=6)
        elif name == "note":
            self.play("Notification", notification_type="auth_success", after=0.1)
        else:
            self.play("UserPromptSubmit", after=0.1)
        self._noted_work()

    def _noted_work(self) -> None:
        if not isinstance(self.play.state, AttentionNeeded):
            self.spell += 1


@given(st.lists(STEPS, max_size=25))
@example([("ask", "Bash"), ("wait", 3.0), ("repeat", None), ("restart", None), ("wait", 10.0)])
@example([("ask unseen", "Bash"), ("repeat", None), ("wait", 100.0), ("ask unseen", "Edit"), ("wait", 100.0)])
def test_every_question_that_lasts_is_told_and_none_is_told_twice(steps: list[tuple[str, Any]]) -> None:
    story = Story()
    story.play("UserPromptSubmit")
    for name, value in steps:
        story.step(name, value)

    assert len(story.noted) == len(set(story.noted))
    for spell, reason in story.lasting:
        told = [said for number, said in story.noted if number == spell]
        assert reason in told or (told and "Permission" in {reason, *told})  # the note's poorer words for a question


# -- in front ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "is_shown"),
    [
        ("%1 1000 1 attached,focused,UTF-8", True),
        ("%1 10 1 attached,focused", True),
        ("%1 1000 1 attached,UTF-8", False),
        ("%1 1000 0 attached,focused,UTF-8", True),
        ("%1 10 0 attached,focused,UTF-8", False),
        ("%1 1000 on attached", False),
        ("%1 1000  ", True),
        ("%1 10  ", False),
        ("%1  1 ", False),
        ("%11 1000 1 attached,focused", False),
        ("%2 1000 1 attached,focused", False),
        ("", False),
        ("no server running", False),
    ],
)
def test_a_terminal_shows_a_pane_to_who_has_it_in_focus_or_else_typed_there_lately(
    line: str, *, is_shown: bool
) -> None:
    assert shows(line, "%1", 1030.0) is is_shown
