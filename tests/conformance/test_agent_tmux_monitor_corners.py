"""The 21 cases in which the monitor's tables, followed to the letter, show the wrong thing. Here they do not.

The numbers are those of the study of the original (its section 2.5); the names say what happens in the client.
"""

from __future__ import annotations

from typing import Any

import pytest
from sessions.playing import IDLE, START, THINKING, Play, make, recorded

from fairlead.journal import Caller
from fairlead.sessions import AttentionNeeded, ClientSessionFile, Registry, Working, read_usage, restore, snapshot

BASH = AttentionNeeded("Permission for Bash")
STATUS: dict[str, Any] = {
    "model": {"id": "opus"},
    "cost": {"total_cost_usd": 0.35, "total_lines_added": 3},
    "context_window": {"context_window_size": 200_000, "used_percentage": 45},
}


def seen(play: Play, status: str, *, ago: float = 3.0, waiting_for: str = "") -> ClientSessionFile:
    """The client's file, as it has been for so many seconds."""
    return ClientSessionFile(42, play.session, 1000, status, waiting_for, play.now - ago, START, entrypoint="cli")


def look(play: Play, status: str, *, after: float = 10.0, **how: Any) -> None:
    play.now += after
    play.registry.look([seen(play, status, **how)], play.now)


def running(*agents: str) -> dict[str, Any]:
    """A Stop's list of what works in the background."""
    tasks = [{"id": agent, "type": "subagent", "status": "running", "agent_type": "Explore"} for agent in agents]
    return {"background_tasks": tasks, "stop_hook_active": False}


def test_01_the_status_line_arrives_after_stop() -> None:
    play = Play()
    play("UserPromptSubmit")
    play("Stop")
    play.registry.measure("abc123", read_usage(STATUS))

    assert play.state == IDLE
    assert play.main.usage is not None
    assert play.main.usage.cost_usd == 0.35


def test_02_the_user_interrupts_and_no_stop_comes() -> None:
    play = Play()
    play("UserPromptSubmit")
    play.pre()
    look(play, "idle", ago=1)
    assert play.state == Working("Bash")  # a hook may be on its way
    look(play, "idle", after=5, ago=6)

    assert play.state == IDLE
    assert play.main.calls == {}
    assert play.main.evidence is not None
    assert (play.main.evidence.source, play.main.evidence.why) == ("client", "an interrupt fires no event")


def test_03_the_service_fails_and_stopfailure_comes_instead_of_stop() -> None:
    play = Play()
    play("UserPromptSubmit")
    play("StopFailure", error="rate_limit")
    assert play.state == AttentionNeeded("API error: rate_limit")

    play("Notification", notification_type="idle_prompt", after=60)
    look(play, "idle")
    assert play.state == AttentionNeeded("API error: rate_limit")

    play("UserPromptSubmit")
    assert play.state == Working()


def test_04_a_permission_is_asked_and_its_note_comes_6_seconds_late() -> None:
    play = Play()
    play.pre()
    play("PermissionRequest", after=0.05)
    assert play.state == BASH
    since = play.main.since

    play("Notification", notification_type="permission_prompt", after=6)

    assert (play.state, play.main.since) == (BASH, since)


def test_05_a_permission_is_granted_and_the_tool_takes_long() -> None:
    play = Play()
    play.pre()
    play("PermissionRequest")
    look(play, "busy")

    assert play.state == Working("Bash")
    assert play.main.evidence is not None
    assert play.main.evidence.why == "a permission that is granted fires no event"


@pytest.mark.parametrize("tool", ["Bash", "AskUserQuestion"])
def test_06_a_permission_is_denied_or_a_question_dismissed(tool: str) -> None:
    play = Play()
    play.pre(tool)
    play("PermissionRequest", tool_name=tool)
    look(play, "idle")
    assert play.state == IDLE

    play.pre()
    play("PermissionRequest")
    play("PermissionDenied", tool_use_id="t1")
    assert play.state == THINKING

    play.pre(call="t2")
    play("PermissionRequest")
    play.pre("Read", call="t3", after=20)
    assert play.state == Working("Read")  # the agent went on, so the person has answered


def test_07_a_rule_denies_a_call_and_no_event_closes_it() -> None:
    play = Play()
    play.pre("Write", call="denied")
    play.pre("Read", call="t2")
    play.post("Read", call="t2")
    assert play.state == Working("Write")

    play("PostToolBatch", tool_calls=[{"tool_use_id": "t2"}])

    assert (play.state, play.main.calls) == (THINKING, {})


def test_08_tools_run_in_parallel() -> None:
    play = Play()
    play.pre("Read", call="t1")
    play.pre("Grep", call="t2", after=0.01)
    play.post("Read", call="t1")
    assert play.state == Working("Grep")
    play.post("Grep", call="t2")

    assert play.state == THINKING


def test_09_a_subagents_tool_events_come_while_the_main_agent_asks() -> None:
    play = Play()
    play("UserPromptSubmit")
    play("SubagentStart", agent_id="a1", agent_type="Explore")
    play.pre()
    play("PermissionRequest")
    play.pre("Read", call="c1", agent_id="a1", agent_type="Explore")
    assert (play.state, play.child("a1").state) == (BASH, Working("Read"))

    play.post("Read", call="c1", agent_id="a1", agent_type="Explore")
    assert (play.state, play.child("a1").state) == (BASH, THINKING)


def test_09_a_subagents_question_is_its_own() -> None:
    play = Play()
    play("UserPromptSubmit")
    play("SubagentStart", agent_id="a1", agent_type="Explore")
    play("PermissionRequest", agent_id="a1", agent_type="Explore")
    play("Notification", notification_type="permission_prompt", after=6)
    look(play, "waiting", waiting_for="permission prompt")
    assert (play.state, play.child("a1").state) == (Working("Explore"), BASH)

    look(play, "busy")
    assert type(play.child("a1").state) is Working


def test_10_the_main_agent_stops_while_subagents_work_in_the_background() -> None:
    play = Play()
    play("UserPromptSubmit")
    play.pre("Agent", call="t1", tool_input={"description": "look", "subagent_type": "Explore"})
    play.post("Agent", call="t1", tool_response={"status": "async_launched", "agentId": "a1"})
    play("SubagentStart", agent_id="a1", agent_type="Explore")
    play("Stop", **running("a1"))
    assert play.state == Working("Explore in background")

    play("SubagentStop", agent_id="a1", agent_type="Explore")
    assert play.state == THINKING  # the client wakes it now
    play("UserPromptSubmit", prompt="<task-notification>\n<task-id>a1</task-id>\n</task-notification>", after=0.1)
    assert (play.state, play.main.by_person, play.main.counters.prompts) == (Working(), False, 1)
    play("Stop", background_tasks=[])
    assert play.state == IDLE


def test_10_nobody_wakes_the_main_agent() -> None:
    play = Play()
    play("UserPromptSubmit")
    play("SubagentStart", agent_id="a1", agent_type="Explore")
    play("Stop", **running("a1"))
    play("SubagentStop", agent_id="a1", agent_type="Explore")
    play.registry.look([], play.now + 4)
    assert play.state == THINKING
    play.registry.look([], play.now + 6)

    assert play.state == IDLE


def test_11_an_idle_prompt_comes_while_subagents_work() -> None:
    play = Play()
    play("UserPromptSubmit")
    play("SubagentStart", agent_id="a1", agent_type="Explore")
    play("Notification", notification_type="idle_prompt", after=60)
    assert play.state == Working("Explore")

    play("Stop", **running("a1"))
    play("Notification", notification_type="idle_prompt", after=60)
    assert play.state == Working("Explore in background")


def test_12_a_session_starts_after_compaction_in_mid_turn() -> None:
    play = Play()
    play("UserPromptSubmit")
    play("PreCompact", trigger="auto")
    play("SubagentStop", agent_id="x", agent_type="")
    assert (play.state, play.registry.children_of("abc123")) == (Working("Compacting"), [])
    play("SessionStart", source="compact")
    assert play.state == Working("Compacting")
    play("PostCompact", trigger="auto")
    assert play.state == THINKING

    play("Stop")
    play("PreCompact", trigger="manual")
    play("SessionStart", source="compact")
    play("PostCompact", trigger="manual")
    assert play.state == IDLE


@pytest.mark.parametrize("how", ["clear", "resume"])
def test_13_clear_and_resume_change_the_id(how: str) -> None:
    play = Play()
    play("SessionStart", source="startup")
    play("SessionEnd", reason=how)
    play("SessionStart", source=how, session="new")

    (row,) = play.registry.sessions()
    assert (row.id, row.previous, row.pid) == ("new", ("abc123",), 42)
    assert play.registry.get("abc123") == row  # who looked at the old one finds the new one


def test_14_a_rescan_finds_a_known_session() -> None:
    play = Play()
    play("UserPromptSubmit")
    play.pre()
    before = play.main
    play.registry.look([seen(play, "busy", ago=100)], play.now)

    assert play.registry.sessions() == [before]


def test_15_another_hook_keeps_the_agent_from_stopping() -> None:
    play = Play()
    play("UserPromptSubmit")
    play.now += 1
    play.take(make("Stop"), verdict="blocked")
    assert play.state == THINKING  # our own answer: we know

    play("Stop")
    look(play, "busy", ago=9)
    assert play.state == Working()  # another's: the client knows
    play.pre()
    assert play.state == Working("Bash")
    play("Stop", stop_hook_active=True)
    assert play.state == IDLE


def test_16_events_arrive_in_another_order() -> None:
    play = Play()
    play("UserPromptSubmit")
    play.take(make("PostToolUse", tool_use_id="t1"), START + 12)
    play.take(make("PreToolUse", tool_use_id="t1"), START + 11)
    assert (play.state, play.main.calls) == (THINKING, {})

    play.take(make("Stop"), START + 15)
    play.take(make("PreToolUse", tool_use_id="t2"), START + 13)
    play.take(make("PostToolUse", tool_use_id="t2"), START + 14)
    assert (play.state, play.main.calls) == (IDLE, {})


def test_17_several_sessions_share_a_process_or_have_none() -> None:
    play = Play()
    play("UserPromptSubmit")
    play("SessionStart", source="startup", session="second")
    play.take(make("PreToolUse", "third"), caller=Caller())

    states = {session.id: session.state for session in play.registry.sessions()}
    assert states == {"abc123": Working(), "second": IDLE, "third": Working("Bash")}
    assert [session.id for session in play.registry.in_process(42, 1000)] == ["abc123", "second"]


def test_18_the_context_window_has_a_million_tokens() -> None:
    play = Play()
    play("SessionStart")
    play.registry.measure("abc123", read_usage(STATUS))
    used = {"input_tokens": 400_000, "cache_read_input_tokens": 50_000}
    play.registry.measure(
        "abc123", read_usage({"context_window": {"context_window_size": 1_000_000, "current_usage": used}})
    )

    assert play.main.usage is not None
    assert (play.main.usage.context_window, play.main.usage.context_percent) == (1_000_000, 45)


def test_19_a_status_line_is_partial() -> None:
    play = Play()
    play("SessionStart")
    play.registry.measure("abc123", read_usage(STATUS))
    play.registry.measure("abc123", read_usage({"context_window": {"used_percentage": None}, "cost": None}))

    assert play.main.usage == read_usage(STATUS)


def test_20_a_dialog_waits_at_the_start_and_no_event_was_sent() -> None:
    play = Play()
    play.registry.look([seen(play, "waiting", waiting_for="dialog open")], play.now)
    assert (play.state, play.main.pid) == (AttentionNeeded("Dialog open"), 42)

    play("SessionStart", source="startup")
    assert [session.id for session in play.registry.sessions()] == ["abc123"]
    assert play.state == IDLE


def test_21_the_daemon_starts_anew() -> None:
    play = Play()
    play("SessionStart")
    play("UserPromptSubmit")
    play("SubagentStart", agent_id="a1", agent_type="Explore")
    play("PermissionRequest", agent_id="a1", agent_type="Explore")
    play.registry.measure("abc123", read_usage(STATUS))

    again = restore(snapshot(play.registry))

    assert again.by_id == play.registry.by_id
    assert again.revision == play.registry.revision
    assert again.take(recorded("Stop", session_id="abc123"), play.now + 1, play.caller) != []
    assert isinstance(again, Registry)
