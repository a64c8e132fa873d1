"""The registry's rules: subagents, processes, order, limits, and the change log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions.fake_client import IDLE, START, THINKING, FakeClient, make

from fairlead.journal import Caller, EventRecord
from fairlead.sessions import (
    AttentionNeeded,
    Registry,
    SavedRegistryError,
    Working,
    apply_record,
    encode_registry,
    restore_registry,
)
from fairlead.sessions import _changes as changes_module
from fairlead.sessions import _registry as registry_module

if TYPE_CHECKING:
    from fairlead.events import Event

# -- subagents -----------------------------------------------------------------------------------------


def agent_call(client: FakeClient, call: str, about: str, kind: str = "Explore", **fields: str) -> None:
    client.pre("Agent", call, tool_input={"description": about, "subagent_type": kind}, after=0.01, **fields)


def answered(client: FakeClient, call: str, agent: str, about: str, status: str = "completed", **fields: str) -> None:
    response = {"status": status, "agentId": agent}
    client.post("Agent", call, tool_input={"description": about}, tool_response=response, **fields)


def test_the_calls_of_parallel_subagents_are_guessed_by_order_and_then_corrected() -> None:
    client = FakeClient()
    agent_call(client, "t1", "first")
    agent_call(client, "t2", "second")
    client("SubagentStart", agent_id="b", agent_type="Explore")
    client("SubagentStart", agent_id="a", agent_type="Explore")
    assert [(c.agent_id, c.description) for c in client.registry.children_of("abc123")] == [
        ("b", "first"),
        ("a", "second"),
    ]

    answered(client, "t1", "a", "first")

    calls = {c.agent_id: (c.call, c.description) for c in client.registry.children_of("abc123")}
    assert calls == {"a": ("t1", "first"), "b": ("t2", "second")}
    assert client.state == Working("Explore")
    answered(client, "t2", "b", "second")
    assert (client.child("b").state, client.state) == (IDLE, THINKING)


def test_a_guess_prefers_the_call_that_asked_for_this_type() -> None:
    client = FakeClient()
    agent_call(client, "t1", "first", "Plan")
    agent_call(client, "t2", "second", "Explore")
    client("SubagentStart", agent_id="a", agent_type="Explore")

    assert client.child("a").description == "second"


def test_nested_subagents_belong_to_the_one_that_started_them() -> None:
    client = FakeClient()
    agent_call(client, "t1", "outer", "Plan")
    client("SubagentStart", agent_id="outer", agent_type="Plan")
    agent_call(client, "t2", "inner", "Explore", agent_id="outer", agent_type="Plan")
    client("SubagentStart", agent_id="inner", agent_type="Explore")

    assert client.child("inner").parent == "abc123/outer"
    assert (client.state, client.child("outer").state) == (Working("Plan"), Working("Explore"))
    client("SubagentStop", agent_id="inner", agent_type="Explore")
    assert (client.state, client.child("outer").state, client.child("inner").state) == (Working("Plan"), THINKING, IDLE)


def test_a_wrong_guess_about_the_parent_is_corrected_by_the_answer() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client("SubagentStart", agent_id="outer", agent_type="Plan")
    client("SubagentStart", agent_id="inner", agent_type="Explore")
    assert client.child("inner").parent == "abc123"

    answered(client, "t2", "inner", "look", "async_launched", agent_id="outer", agent_type="Plan")

    assert client.child("inner").parent == "abc123/outer"
    assert (list(client.main.agents), list(client.child("outer").agents)) == (["outer"], ["inner"])
    assert [child.id for child in client.registry.descendants("abc123")] == ["abc123/outer", "abc123/inner"]


def test_a_child_whose_stop_was_not_seen_ends_with_its_parent() -> None:
    client = FakeClient()
    client("SubagentStart", agent_id="outer", agent_type="Plan")
    agent_call(client, "t", "x", agent_id="outer", agent_type="Plan")
    client("SubagentStart", agent_id="inner", agent_type="Explore")
    client("SessionEnd", reason="other")

    ends = {child.agent_id: (child.state, child.end_reason) for child in client.registry.descendants("abc123")}
    assert ends == {"outer": (IDLE, "parent ended"), "inner": (IDLE, "parent ended")}


def test_a_subagent_that_the_list_of_a_stop_lacks_has_ended() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client("SubagentStart", agent_id="a", agent_type="Explore")
    client("Stop", background_tasks=[])

    assert (client.state, client.child("a").end_reason) == (IDLE, "stop not seen")


def test_a_subagent_that_works_again_is_open_again() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client("SubagentStart", agent_id="a", agent_type="Explore")
    client("SubagentStop", agent_id="a", agent_type="Explore")
    client("Stop", background_tasks=[])
    client.pre(agent_id="a", agent_type="Explore")

    assert (client.child("a").ended, client.child("a").state) == (None, Working("Bash"))
    assert client.state == Working("Explore in background")


def test_a_subagent_of_which_only_a_tool_call_is_seen_is_known() -> None:
    client = FakeClient()
    client.pre(agent_id="a", agent_type="Explore")

    assert (client.child("a").state, client.child("a").agent_type) == (Working("Bash"), "Explore")


def test_a_stop_without_a_start() -> None:
    client = FakeClient()
    client("SubagentStop", agent_id="a", agent_type="Explore")
    client("SubagentStop", agent_id="b", agent_type="")
    client.send(make("SubagentStart", agent_id="a", agent_type="Explore"), START)

    assert [(c.agent_id, c.state, c.started) for c in client.registry.children_of("abc123")] == [("a", IDLE, START)]


def test_the_number_of_children_is_limited() -> None:
    client = FakeClient()
    for number in range(150):
        client("SubagentStart", agent_id=f"a{number}", agent_type="Explore")
        client("SubagentStop", agent_id=f"a{number}", agent_type="Explore")

    kept = client.registry.children_of("abc123")
    assert (len(kept), kept[-1].agent_id, kept[0].agent_id) == (100, "a149", "a50")
    assert client.registry.agent("a0") is None


# -- processes -----------------------------------------------------------------------------------------


def test_a_reused_pid_ends_the_session_of_its_former_process() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client.send(make("SessionStart", "new"), client.now + 1, Caller(pid=42, start=2000))

    assert (client.main.end_reason, client.registry.get("new")) == ("process gone", client.registry.by_id["new"])
    assert client.main.evidence is not None
    assert client.main.evidence.source == "process"


def test_a_pid_that_two_machines_share_is_no_evidence() -> None:
    client = FakeClient()
    other = Caller(pid=42, start=2000)
    for number in range(3):
        client.send(make("PreToolUse", "here"), START + number, Caller(pid=42, start=1000))
        client.send(make("PreToolUse", "there"), START + number + 0.5, other)

    assert {session.id for session in client.registry.sessions()} == {"here", "there"}


def test_a_session_of_two_processes_ends_with_the_last_one() -> None:
    client, other = FakeClient(), Caller(pid=77, start=3000)
    client("UserPromptSubmit")
    client.pre()
    client.send(make("PreToolUse", tool_use_id="x"), client.now + 1, other)
    assert (client.main.pid, client.main.others) == (77, ((42, 1000),))

    client.send(make("SessionEnd"), client.now + 2, other)
    assert (client.main.ended, client.main.pid, client.main.others) == (None, 42, ())
    client.send(make("SessionEnd"), client.now + 2, other)  # twice
    assert client.main.ended is None
    client("SessionEnd", after=5)
    assert client.main.ended == client.now


def test_a_session_resumed_in_another_process_belongs_to_it() -> None:
    client = FakeClient()
    client("SessionStart")
    client("SessionEnd", reason="prompt_input_exit")
    client.send(make("SessionStart", source="resume"), client.now + 100, Caller(pid=77, start=3000))

    assert (client.main.ended, client.main.pid, client.main.others) == (None, 77, ())


def test_processes_that_ended_without_an_event_end_their_sessions() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client("SubagentStart", agent_id="a", agent_type="Explore")
    assert client.registry.processes() == {(42, 1000)}
    client.registry.end_processes([(42, 1000)], client.now + 1)

    assert (client.main.end_reason, client.child("a").end_reason) == ("process gone", "parent ended")
    assert client.registry.processes() == set()


def test_clear_without_a_session_end_is_detected_by_the_process() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client("SessionStart", source="clear", session="second")
    client("SessionStart", source="clear", session="third")

    (row,) = client.registry.sessions()
    assert (row.id, row.previous) == ("third", ("abc123", "second"))
    assert client.main.end_reason == "clear"


def test_resuming_an_earlier_session() -> None:
    client = FakeClient()
    client("SessionStart")
    client("SessionEnd", reason="clear")
    client("SessionStart", source="clear", session="b")
    client("SessionEnd", reason="resume", session="b")
    client("SessionStart", source="resume")

    assert [session.id for session in client.registry.sessions()] == ["abc123"]
    assert client.registry.get("b") == client.main
    assert client.main.previous == ("b",)


# -- order ---------------------------------------------------------------------------------------------


def test_an_event_that_is_delayed_by_an_hour_changes_no_state() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client("Stop", after=3600)
    client.send(make("PreToolUse", tool_use_id="old"), START + 10)
    client.send(make("PermissionRequest"), START + 11)

    assert (client.state, client.main.last_activity) == (IDLE, client.now)


def test_after_a_clock_was_set_back_two_events_are_taken_for_delayed_ones() -> None:
    client = FakeClient()
    client("Stop")
    client.now -= 3600
    states = []
    for number in range(4):
        client.pre(call=f"t{number}")
        states.append(client.state)

    assert states == [IDLE, IDLE, Working("Bash"), Working("Bash")]
    client("Stop")
    assert client.state == IDLE


def test_the_delayed_question_of_a_parallel_call_is_open() -> None:
    client = FakeClient()
    client.send(make("PreToolUse", tool_use_id="t1"), START)
    client.send(make("PreToolUse", tool_name="Read", tool_use_id="t2"), START + 0.01)
    client.send(make("PostToolUse", tool_name="Read", tool_use_id="t2"), START + 0.2)
    client.send(make("PermissionRequest"), START + 0.1)

    assert client.state == AttentionNeeded("Permission for Bash")


def test_an_end_that_is_delayed_by_a_moment_ends_the_session() -> None:
    client = FakeClient()
    client.send(make("Stop"), START + 1)
    client.send(make("SessionEnd"), START + 0.9)
    assert client.main.ended == START + 1

    client.send(make("UserPromptSubmit"), START + 2)
    assert client.registry.sessions() == [client.main]
    client.send(make("SessionEnd"), START - 3600)
    assert client.registry.sessions() == [client.main]


def test_the_end_of_an_unknown_session_is_kept_as_ended() -> None:
    client = FakeClient()
    client("SessionEnd")
    client.send(make("PreToolUse", tool_use_id="t"), START - 5)

    assert client.registry.sessions() == []


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
def test_a_turn_ends_idle_in_any_order_of_its_events(order: list[tuple[int, Event]]) -> None:
    registry = Registry()
    for number, event in order:
        registry.apply_event(event, START + number / 10)

    (main,), children = registry.sessions(), registry.children_of("abc123")
    assert (main.state, main.calls, main.agents) == (IDLE, {}, {})
    assert [(child.state, child.calls) for child in children] == [(IDLE, {})]


# -- the change log ------------------------------------------------------------------------------------


def test_revisions_increase_by_one_and_a_reader_catches_up() -> None:
    client = FakeClient()
    first = client("UserPromptSubmit")
    more = client("SubagentStart", agent_id="a", agent_type="Explore") + client("Stop")

    numbers = [change.revision for change in first + more]
    assert numbers == list(range(1, len(numbers) + 1))
    caught_up = client.registry.changes_since(1)
    assert caught_up is not None
    assert {change.session.id: change.session for change in caught_up} == client.registry.by_id
    assert client.registry.changes_since(client.registry.revision) == []


def test_a_reader_that_lags_too_far_or_has_an_unknown_revision_reads_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes_module, "MAX_CHANGES", 5)
    client = FakeClient()
    for _ in range(8):
        client("Notification")

    assert client.registry.changes_since(2) is None
    assert client.registry.changes_since(3) is not None
    assert client.registry.changes_since(99) is None
    assert restore_registry(encode_registry(client.registry)).changes_since(7) is None


def test_pruning_drops_sessions_and_reports_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "MAX_ENDED", 2)
    client = FakeClient()
    for number in range(4):
        client("SessionStart", session=f"s{number}")
        client("SessionEnd", session=f"s{number}")
    client("SubagentStart", agent_id="a", agent_type="Explore")

    assert [change.session.id for change in client.registry.prune(client.now)] == ["s0", "s1"]
    dropped = client.registry.prune(client.now + 3601)
    assert [(change.session.id, change.gone) for change in dropped] == [("s2", True), ("s3", True)]
    assert [change.session.id for change in client.registry.prune(client.now + 8 * 24 * 3600)] == ["abc123/a", "abc123"]
    assert (client.registry.by_id, client.registry.by_process, client.registry.by_agent) == ({}, {}, {})


def test_the_number_of_sessions_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "MAX_SESSIONS", 3)
    client = FakeClient()
    for number in range(5):
        client("SessionStart", session=f"s{number}")

    assert [session.id for session in client.registry.sessions()] == ["s2", "s3", "s4"]


# -- snapshots -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"\xff", b'{"format":9,"revision":0,"sessions":[],"starts":{},"shared":[]}']
)
def test_invalid_snapshots_are_refused(data: bytes) -> None:
    with pytest.raises(SavedRegistryError):
        restore_registry(data)


def test_records_that_cannot_be_parsed_are_skipped() -> None:
    records = [
        EventRecord(id="1", at=START, event="PreToolUse"),
        EventRecord(id="2", at=START, event="SessionStart", session="s"),
    ]
    registry = Registry()
    for record in records:
        apply_record(registry, record)
    assert registry.by_id == {}


def test_a_registry_with_any_text_can_be_encoded() -> None:
    client = FakeClient("s")
    half, long = "\ud800", "x" * 5000
    client.send(make("UserPromptSubmit", "s", prompt=half + long), START)
    client.send(
        make("PreToolUse", "s", tool_name="T", tool_use_id=half, tool_input={"file_path": half + long}), START + 1
    )
    client.send(make("PreToolUse", "s", tool_use_id=half, agent_id=half, agent_type=half), START + 2)
    client.send(make("Stop", "s", background_tasks=[{"id": half, "type": half}, 3, {}, {"id": 4}]), START + 3)
    client.send(make("PostToolBatch", "s", tool_calls=[1, {}, {"tool_use_id": 3}]), START + 4)
    client.send(make("PostToolUse", "s", tool_name="Agent", tool_response=["agentId"]), START + 5)
    client.send(make("PostToolUse", "s", tool_name="Agent", tool_response={"agentId": 5}), START + 6)
    client.send(make("PreToolUse", "s", tool_name="Agent", tool_input={"name": 1, "description": 2}), START + 7)

    written = encode_registry(client.registry)
    assert len(written) < 20_000
    assert restore_registry(written).by_id == client.registry.by_id
