"""The registry's rules: families, processes, order, bounds, and the stream of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions.playing import IDLE, START, THINKING, Play, make

from fairlead.journal import Caller, DaemonRecord, EventRecord
from fairlead.sessions import (
    AttentionNeeded,
    Registry,
    SnapshotError,
    Working,
    rebuild,
    restore,
    snapshot,
)
from fairlead.sessions import _changes as changes_module
from fairlead.sessions import _registry as registry_module

if TYPE_CHECKING:
    from fairlead.events import Event
    from fairlead.journal import Record

# -- families ------------------------------------------------------------------------------------------


def agent_call(play: Play, call: str, about: str, kind: str = "Explore", **fields: str) -> None:
    play.pre("Agent", call, tool_input={"description": about, "subagent_type": kind}, after=0.01, **fields)


def answered(play: Play, call: str, agent: str, about: str, status: str = "completed", **fields: str) -> None:
    response = {"status": status, "agentId": agent}
    play.post("Agent", call, tool_input={"description": about}, tool_response=response, **fields)


def test_parallel_subagents_are_first_guessed_by_order_and_then_put_right() -> None:
    play = Play()
    agent_call(play, "t1", "first")
    agent_call(play, "t2", "second")
    play("SubagentStart", agent_id="b", agent_type="Explore")
    play("SubagentStart", agent_id="a", agent_type="Explore")
    assert [(c.agent_id, c.description) for c in play.registry.children_of("abc123")] == [
        ("b", "first"),
        ("a", "second"),
    ]

    answered(play, "t1", "a", "first")

    told = {c.agent_id: (c.call, c.description) for c in play.registry.children_of("abc123")}
    assert told == {"a": ("t1", "first"), "b": ("t2", "second")}
    assert play.state == Working("Explore")
    answered(play, "t2", "b", "second")
    assert (play.child("b").state, play.state) == (IDLE, THINKING)


def test_a_guess_prefers_the_call_that_asked_for_this_type() -> None:
    play = Play()
    agent_call(play, "t1", "first", "Plan")
    agent_call(play, "t2", "second", "Explore")
    play("SubagentStart", agent_id="a", agent_type="Explore")

    assert play.child("a").description == "second"


def test_nested_subagents_belong_to_the_one_that_made_them() -> None:
    play = Play()
    agent_call(play, "t1", "outer", "Plan")
    play("SubagentStart", agent_id="outer", agent_type="Plan")
    agent_call(play, "t2", "inner", "Explore", agent_id="outer", agent_type="Plan")
    play("SubagentStart", agent_id="inner", agent_type="Explore")

    assert play.child("inner").parent == "abc123/outer"
    assert (play.state, play.child("outer").state) == (Working("Plan"), Working("Explore"))
    play("SubagentStop", agent_id="inner", agent_type="Explore")
    assert (play.state, play.child("outer").state, play.child("inner").state) == (Working("Plan"), THINKING, IDLE)


def test_a_wrong_guess_about_the_parent_is_put_right_by_the_answer() -> None:
    play = Play()
    play("UserPromptSubmit")
    play("SubagentStart", agent_id="outer", agent_type="Plan")
    play("SubagentStart", agent_id="inner", agent_type="Explore")
    assert play.child("inner").parent == "abc123"

    answered(play, "t2", "inner", "look", "async_launched", agent_id="outer", agent_type="Plan")

    assert play.child("inner").parent == "abc123/outer"
    assert (list(play.main.agents), list(play.child("outer").agents)) == (["outer"], ["inner"])
    assert [child.id for child in play.registry.below("abc123")] == ["abc123/outer", "abc123/inner"]


def test_a_child_whose_stop_never_came_is_closed_with_its_parent() -> None:
    play = Play()
    play("SubagentStart", agent_id="outer", agent_type="Plan")
    agent_call(play, "t", "x", agent_id="outer", agent_type="Plan")
    play("SubagentStart", agent_id="inner", agent_type="Explore")
    play("SessionEnd", reason="other")

    ends = {child.agent_id: (child.state, child.end_reason) for child in play.registry.below("abc123")}
    assert ends == {"outer": (IDLE, "parent ended"), "inner": (IDLE, "parent ended")}


def test_a_subagent_that_is_not_on_the_list_of_a_stop_is_over() -> None:
    play = Play()
    play("UserPromptSubmit")
    play("SubagentStart", agent_id="a", agent_type="Explore")
    play("Stop", background_tasks=[])

    assert (play.state, play.child("a").end_reason) == (IDLE, "stop not seen")


def test_a_subagent_that_works_again_is_open_again() -> None:
    play = Play()
    play("UserPromptSubmit")
    play("SubagentStart", agent_id="a", agent_type="Explore")
    play("SubagentStop", agent_id="a", agent_type="Explore")
    play("Stop", background_tasks=[])
    play.pre(agent_id="a", agent_type="Explore")

    assert (play.child("a").ended, play.child("a").state) == (None, Working("Bash"))
    assert play.state == Working("Explore in background")


def test_a_subagent_of_which_only_a_tool_is_heard_is_known() -> None:
    play = Play()
    play.pre(agent_id="a", agent_type="Explore")

    assert (play.child("a").state, play.child("a").agent_type) == (Working("Bash"), "Explore")


def test_a_stop_without_a_start() -> None:
    play = Play()
    play("SubagentStop", agent_id="a", agent_type="Explore")
    play("SubagentStop", agent_id="b", agent_type="")
    play.take(make("SubagentStart", agent_id="a", agent_type="Explore"), START)

    assert [(c.agent_id, c.state, c.started) for c in play.registry.children_of("abc123")] == [("a", IDLE, START)]


def test_the_children_of_one_session_are_bounded() -> None:
    play = Play()
    for number in range(150):
        play("SubagentStart", agent_id=f"a{number}", agent_type="Explore")
        play("SubagentStop", agent_id=f"a{number}", agent_type="Explore")

    kept = play.registry.children_of("abc123")
    assert (len(kept), kept[-1].agent_id, kept[0].agent_id) == (100, "a149", "a50")
    assert play.registry.agent("a0") is None


# -- processes -----------------------------------------------------------------------------------------


def test_a_pid_that_is_used_again_ends_the_session_that_had_it() -> None:
    play = Play()
    play("UserPromptSubmit")
    play.take(make("SessionStart", "new"), play.now + 1, Caller(pid=42, start=2000))

    assert (play.main.end_reason, play.registry.get("new")) == ("process gone", play.registry.by_id["new"])
    assert play.main.evidence is not None
    assert play.main.evidence.source == "process"


def test_a_pid_that_two_machines_have_proves_nothing() -> None:
    play = Play()
    other = Caller(pid=42, start=2000)
    for number in range(3):
        play.take(make("PreToolUse", "here"), START + number, Caller(pid=42, start=1000))
        play.take(make("PreToolUse", "there"), START + number + 0.5, other)

    assert {session.id for session in play.registry.sessions()} == {"here", "there"}


def test_two_processes_with_one_session_id_share_a_row_that_ends_with_the_last() -> None:
    play, other = Play(), Caller(pid=77, start=3000)
    play("UserPromptSubmit")
    play.pre()
    play.take(make("PreToolUse", tool_use_id="x"), play.now + 1, other)
    assert (play.main.pid, play.main.others) == (77, ((42, 1000),))

    play.take(make("SessionEnd"), play.now + 2, other)
    assert (play.main.ended, play.main.pid, play.main.others) == (None, 42, ())
    play.take(make("SessionEnd"), play.now + 2, other)  # twice
    assert play.main.ended is None
    play("SessionEnd", after=5)
    assert play.main.ended == play.now


def test_a_session_resumed_in_another_process_lives_there() -> None:
    play = Play()
    play("SessionStart")
    play("SessionEnd", reason="prompt_input_exit")
    play.take(make("SessionStart", source="resume"), play.now + 100, Caller(pid=77, start=3000))

    assert (play.main.ended, play.main.pid, play.main.others) == (None, 77, ())


def test_processes_that_died_without_a_word_end_their_sessions() -> None:
    play = Play()
    play("UserPromptSubmit")
    play("SubagentStart", agent_id="a", agent_type="Explore")
    assert play.registry.processes() == {(42, 1000)}
    play.registry.bury([(42, 1000)], play.now + 1)

    assert (play.main.end_reason, play.child("a").end_reason) == ("process gone", "parent ended")
    assert play.registry.processes() == set()


def test_clear_without_its_end_is_seen_by_the_process() -> None:
    play = Play()
    play("UserPromptSubmit")
    play("SessionStart", source="clear", session="second")
    play("SessionStart", source="clear", session="third")

    (row,) = play.registry.sessions()
    assert (row.id, row.previous) == ("third", ("abc123", "second"))
    assert play.main.end_reason == "clear"


def test_back_to_an_earlier_session() -> None:
    play = Play()
    play("SessionStart")
    play("SessionEnd", reason="clear")
    play("SessionStart", source="clear", session="b")
    play("SessionEnd", reason="resume", session="b")
    play("SessionStart", source="resume")

    assert [session.id for session in play.registry.sessions()] == ["abc123"]
    assert play.registry.get("b") == play.main
    assert play.main.previous == ("b",)


# -- order ---------------------------------------------------------------------------------------------


def test_an_event_that_is_late_by_an_hour_is_no_news() -> None:
    play = Play()
    play("UserPromptSubmit")
    play("Stop", after=3600)
    play.take(make("PreToolUse", tool_use_id="old"), START + 10)
    play.take(make("PermissionRequest"), START + 11)

    assert (play.state, play.main.last_activity) == (IDLE, play.now)


def test_a_clock_that_was_set_back_holds_two_events_up() -> None:
    play = Play()
    play("Stop")
    play.now -= 3600
    states = []
    for number in range(4):
        play.pre(call=f"t{number}")
        states.append(play.state)

    assert states == [IDLE, IDLE, Working("Bash"), Working("Bash")]
    play("Stop")
    assert play.state == IDLE


def test_a_question_that_was_overtaken_by_a_parallel_call_still_stands() -> None:
    play = Play()
    play.take(make("PreToolUse", tool_use_id="t1"), START)
    play.take(make("PreToolUse", tool_name="Read", tool_use_id="t2"), START + 0.01)
    play.take(make("PostToolUse", tool_name="Read", tool_use_id="t2"), START + 0.2)
    play.take(make("PermissionRequest"), START + 0.1)

    assert play.state == AttentionNeeded("Permission for Bash")


def test_an_end_that_was_overtaken_is_the_end() -> None:
    play = Play()
    play.take(make("Stop"), START + 1)
    play.take(make("SessionEnd"), START + 0.9)
    assert play.main.ended == START + 1

    play.take(make("UserPromptSubmit"), START + 2)
    assert play.registry.sessions() == [play.main]
    play.take(make("SessionEnd"), START - 3600)
    assert play.registry.sessions() == [play.main]


def test_the_end_of_an_unknown_session_is_kept_as_ended() -> None:
    play = Play()
    play("SessionEnd")
    play.take(make("PreToolUse", tool_use_id="t"), START - 5)

    assert play.registry.sessions() == []


TURN = [
    make("UserPromptSubmit"),
    make("PreToolUse", tool_use_id="t1"),
    make("PreToolUse", tool_name="Read", tool_use_id="t2"),
    make("SubagentStart", agent_id="a", agent_type="Explore"),
    make("PreToolUse", tool_use_id="c1", agent_id="a", agent_type="Explore"),
    make("PostToolUse", tool_use_id="c1", agent_id="a", agent_type="Explore"),
    make("SubagentStop", agent_id="a", agent_type="Explore"),
    make("PostToolUse", tool_use_id="t1"),
    make("PostToolUse", tool_name="Read", tool_use_id="t2"),
    make("Stop", background_tasks=[]),
]


@given(st.permutations(list(enumerate(TURN))))
@settings(max_examples=300, deadline=None)
def test_a_turn_ends_idle_in_whatever_order_its_events_come(order: list[tuple[int, Event]]) -> None:
    registry = Registry()
    for number, event in order:
        registry.take(event, START + number / 10)

    (main,), children = registry.sessions(), registry.children_of("abc123")
    assert (main.state, main.calls, main.agents) == (IDLE, {}, {})
    assert [(child.state, child.calls) for child in children] == [(IDLE, {})]


# -- the stream of changes -----------------------------------------------------------------------------


def test_revisions_rise_by_one_and_a_reader_catches_up() -> None:
    play = Play()
    first = play("UserPromptSubmit")
    more = play("SubagentStart", agent_id="a", agent_type="Explore") + play("Stop")

    numbers = [change.revision for change in first + more]
    assert numbers == list(range(1, len(numbers) + 1))
    caught_up = play.registry.changes_since(1)
    assert caught_up is not None
    assert {change.session.id: change.session for change in caught_up} == play.registry.by_id
    assert play.registry.changes_since(play.registry.revision) == []


def test_a_reader_who_was_away_too_long_or_knows_another_life_reads_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "MOST_CHANGES", 5)
    play = Play()
    for _ in range(8):
        play("Notification")

    assert play.registry.changes_since(2) is None
    assert play.registry.changes_since(3) is not None
    assert play.registry.changes_since(99) is None
    assert restore(snapshot(play.registry)).changes_since(7) is None


def test_sweeping_forgets_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "MOST_ENDED", 2)
    play = Play()
    for number in range(4):
        play("SessionStart", session=f"s{number}")
        play("SessionEnd", session=f"s{number}")
    play("SubagentStart", agent_id="a", agent_type="Explore")

    assert [change.session.id for change in play.registry.sweep(play.now)] == ["s0", "s1"]
    gone = play.registry.sweep(play.now + 3601)
    assert [(change.session.id, change.gone) for change in gone] == [("s2", True), ("s3", True)]
    assert [change.session.id for change in play.registry.sweep(play.now + 8 * 24 * 3600)] == ["abc123/a", "abc123"]
    assert (play.registry.by_id, play.registry.by_process, play.registry.by_agent) == ({}, {}, {})


def test_there_is_room_for_so_many_sessions_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "MOST_SESSIONS", 3)
    play = Play()
    for number in range(5):
        play("SessionStart", session=f"s{number}")

    assert [session.id for session in play.registry.sessions()] == ["s2", "s3", "s4"]


# -- written down --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"\xff", b'{"format":9,"revision":0,"sessions":[],"starts":{},"shared":[]}']
)
def test_what_is_no_snapshot_is_refused(data: bytes) -> None:
    with pytest.raises(SnapshotError):
        restore(data)


def test_a_journal_that_holds_nonsense_is_read_past_it() -> None:
    records: list[Record] = [
        DaemonRecord(at=START, what="started"),
        EventRecord(id="1", at=START, event="PreToolUse"),
        EventRecord(id="2", at=START, event="SessionStart", session="s"),
    ]
    assert rebuild(records).by_id == {}


def test_whatever_texts_come_the_registry_can_be_written() -> None:
    play = Play("s")
    half, long = "\ud800", "x" * 5000
    play.take(make("UserPromptSubmit", "s", prompt=half + long), START)
    play.take(
        make("PreToolUse", "s", tool_name="T", tool_use_id=half, tool_input={"file_path": half + long}), START + 1
    )
    play.take(make("PreToolUse", "s", tool_use_id=half, agent_id=half, agent_type=half), START + 2)
    play.take(make("Stop", "s", background_tasks=[{"id": half, "type": half}, 3, {}, {"id": 4}]), START + 3)
    play.take(make("PostToolBatch", "s", tool_calls=[1, {}, {"tool_use_id": 3}]), START + 4)
    play.take(make("PostToolUse", "s", tool_name="Agent", tool_response=["agentId"]), START + 5)
    play.take(make("PostToolUse", "s", tool_name="Agent", tool_response={"agentId": 5}), START + 6)
    play.take(make("PreToolUse", "s", tool_name="Agent", tool_input={"name": 1, "description": 2}), START + 7)

    written = snapshot(play.registry)
    assert len(written) < 20_000
    assert restore(written).by_id == play.registry.by_id
