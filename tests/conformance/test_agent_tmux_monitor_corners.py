"""The 21 cases in which the monitor's tables, followed to the letter, show the wrong thing. Here they do not.

The numbers are those of the study of the original (its section 2.5); the names say what happens in the client.
"""

from __future__ import annotations

from typing import Any

import pytest
from sessions.fake_client import IDLE, START, THINKING, FakeClient, make, recorded

from fairlead.clients import ClientSessionFile
from fairlead.clients.claude._status_line import usage_of as read_usage
from fairlead.journal import Caller
from fairlead.sessions import AttentionNeeded, Registry, Working, encode_registry, restore_registry

BASH = AttentionNeeded("Permission for Bash")
STATUS: dict[str, Any] = {
    "model": {"id": "opus"},
    "cost": {"total_cost_usd": 0.35, "total_lines_added": 3},
    "context_window": {"context_window_size": 200_000, "used_percentage": 45},
}


def seen(client: FakeClient, status: str, *, ago: float = 3.0, waiting_for: str = "") -> ClientSessionFile:
    """The client's file, as it has been for so many seconds."""
    return ClientSessionFile(42, client.session, 1000, status, waiting_for, client.now - ago, START, in_terminal=True)


def look(client: FakeClient, status: str, *, after: float = 10.0, **how: Any) -> None:
    client.now += after
    client.registry.reconcile([seen(client, status, **how)], client.now)


def running(*agents: str) -> dict[str, Any]:
    """A Stop's list of what works in the background."""
    tasks = [{"id": agent, "type": "subagent", "status": "running", "agent_type": "Explore"} for agent in agents]
    return {"background_tasks": tasks, "stop_hook_active": False}


def test_01_the_status_line_arrives_after_stop() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client("Stop")
    client.registry.update_usage("abc123", read_usage(STATUS))

    assert client.state == IDLE
    assert client.main.usage is not None
    assert client.main.usage.cost_usd == 0.35


def test_02_the_user_interrupts_and_no_stop_comes() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client.pre()
    look(client, "idle", ago=1)
    assert client.state == Working("Bash")  # a hook may be on its way
    look(client, "idle", after=5, ago=6)

    assert client.state == IDLE
    assert client.main.calls == {}
    assert client.main.evidence is not None
    assert (client.main.evidence.source, client.main.evidence.why) == ("client", "an interrupt fires no event")


def test_03_the_service_fails_and_stopfailure_comes_instead_of_stop() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client("StopFailure", error="rate_limit")
    assert client.state == AttentionNeeded("API error: rate_limit")

    client("Notification", notification_type="idle_prompt", after=60)
    look(client, "idle")
    assert client.state == AttentionNeeded("API error: rate_limit")

    client("UserPromptSubmit")
    assert client.state == Working()


def test_04_a_permission_is_asked_and_its_note_comes_6_seconds_late() -> None:
    client = FakeClient()
    client.pre()
    client("PermissionRequest", after=0.05)
    assert client.state == BASH
    since = client.main.since

    client("Notification", notification_type="permission_prompt", after=6)

    assert (client.state, client.main.since) == (BASH, since)


def test_05_a_permission_is_granted_and_the_tool_takes_long() -> None:
    client = FakeClient()
    client.pre()
    client("PermissionRequest")
    look(client, "busy")

    assert client.state == Working("Bash")
    assert client.main.evidence is not None
    assert client.main.evidence.why == "a granted permission fires no event"


@pytest.mark.parametrize("tool", ["Bash", "AskUserQuestion"])
def test_06_a_permission_is_denied_or_a_question_dismissed(tool: str) -> None:
    client = FakeClient()
    client.pre(tool)
    client("PermissionRequest", tool_name=tool)
    look(client, "idle")
    assert client.state == IDLE

    client.pre()
    client("PermissionRequest")
    client("PermissionDenied", tool_use_id="t1")
    assert client.state == THINKING

    client.pre(call="t2")
    client("PermissionRequest")
    client.pre("Read", call="t3", after=20)
    assert client.state == Working("Read")  # the agent went on, so the person has answered


def test_07_a_rule_denies_a_call_and_no_event_closes_it() -> None:
    client = FakeClient()
    client.pre("Write", call="denied")
    client.pre("Read", call="t2")
    client.post("Read", call="t2")
    assert client.state == Working("Write")

    client("PostToolBatch", tool_calls=[{"tool_use_id": "t2"}])

    assert (client.state, client.main.calls) == (THINKING, {})


def test_08_tools_run_in_parallel() -> None:
    client = FakeClient()
    client.pre("Read", call="t1")
    client.pre("Grep", call="t2", after=0.01)
    client.post("Read", call="t1")
    assert client.state == Working("Grep")
    client.post("Grep", call="t2")

    assert client.state == THINKING


def test_09_a_subagents_tool_events_come_while_the_main_agent_asks() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client("SubagentStart", agent_id="a1", agent_type="Explore")
    client.pre()
    client("PermissionRequest")
    client.pre("Read", call="c1", agent_id="a1", agent_type="Explore")
    assert (client.state, client.child("a1").state) == (BASH, Working("Read"))

    client.post("Read", call="c1", agent_id="a1", agent_type="Explore")
    assert (client.state, client.child("a1").state) == (BASH, THINKING)


def test_09_a_subagents_question_is_its_own() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client("SubagentStart", agent_id="a1", agent_type="Explore")
    client("PermissionRequest", agent_id="a1", agent_type="Explore")
    client("Notification", notification_type="permission_prompt", after=6)
    look(client, "waiting", waiting_for="permission prompt")
    assert (client.state, client.child("a1").state) == (Working("Explore"), BASH)

    look(client, "busy")
    assert type(client.child("a1").state) is Working


def test_10_the_main_agent_stops_while_subagents_work_in_the_background() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client.pre("Agent", call="t1", tool_input={"description": "look", "subagent_type": "Explore"})
    client.post("Agent", call="t1", tool_response={"status": "async_launched", "agentId": "a1"})
    client("SubagentStart", agent_id="a1", agent_type="Explore")
    client("Stop", **running("a1"))
    assert client.state == Working("Explore in background")

    client("SubagentStop", agent_id="a1", agent_type="Explore")
    assert client.state == THINKING  # the client wakes it now
    client("UserPromptSubmit", prompt="<task-notification>\n<task-id>a1</task-id>\n</task-notification>", after=0.1)
    assert (client.state, client.main.by_person, client.main.counters.prompts) == (Working(), False, 1)
    client("Stop", background_tasks=[])
    assert client.state == IDLE


def test_10_nobody_wakes_the_main_agent() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client("SubagentStart", agent_id="a1", agent_type="Explore")
    client("Stop", **running("a1"))
    client("SubagentStop", agent_id="a1", agent_type="Explore")
    client.registry.reconcile([], client.now + 4)
    assert client.state == THINKING
    client.registry.reconcile([], client.now + 6)

    assert client.state == IDLE


def test_11_an_idle_prompt_comes_while_subagents_work() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client("SubagentStart", agent_id="a1", agent_type="Explore")
    client("Notification", notification_type="idle_prompt", after=60)
    assert client.state == Working("Explore")

    client("Stop", **running("a1"))
    client("Notification", notification_type="idle_prompt", after=60)
    assert client.state == Working("Explore in background")


def test_12_a_session_starts_after_compaction_in_mid_turn() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client("PreCompact", trigger="auto")
    client("SubagentStop", agent_id="x", agent_type="")
    assert (client.state, client.registry.children_of("abc123")) == (Working("Compacting"), [])
    client("SessionStart", source="compact")
    assert client.state == Working("Compacting")
    client("PostCompact", trigger="auto")
    assert client.state == THINKING

    client("Stop")
    client("PreCompact", trigger="manual")
    client("SessionStart", source="compact")
    client("PostCompact", trigger="manual")
    assert client.state == IDLE


@pytest.mark.parametrize("how", ["clear", "resume"])
def test_13_clear_and_resume_change_the_id(how: str) -> None:
    client = FakeClient()
    client("SessionStart", source="startup")
    client("SessionEnd", reason=how)
    client("SessionStart", source=how, session="new")

    (row,) = client.registry.sessions()
    assert (row.id, row.previous, row.pid) == ("new", ("abc123",), 42)
    assert client.registry.get("abc123") == row  # who looked at the old one finds the new one


def test_14_a_rescan_finds_a_known_session() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client.pre()
    before = client.main
    client.registry.reconcile([seen(client, "busy", ago=100)], client.now)

    assert client.registry.sessions() == [before]


def test_15_another_hook_keeps_the_agent_from_stopping() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client.now += 1
    client.send(make("Stop"), verdict="blocked")
    assert client.state == THINKING  # our own answer: we know

    client("Stop")
    look(client, "busy", ago=9)
    assert client.state == Working()  # another's: the client knows
    client.pre()
    assert client.state == Working("Bash")
    client("Stop", stop_hook_active=True)
    assert client.state == IDLE


def test_16_events_arrive_in_another_order() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client.send(make("PostToolUse", tool_use_id="t1"), START + 12)
    client.send(make("PreToolUse", tool_use_id="t1"), START + 11)
    assert (client.state, client.main.calls) == (THINKING, {})

    client.send(make("Stop"), START + 15)
    client.send(make("PreToolUse", tool_use_id="t2"), START + 13)
    client.send(make("PostToolUse", tool_use_id="t2"), START + 14)
    assert (client.state, client.main.calls) == (IDLE, {})


def test_17_several_sessions_share_a_process_or_have_none() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client("SessionStart", source="startup", session="second")
    client.send(make("PreToolUse", "third"), caller=Caller())

    states = {session.id: session.state for session in client.registry.sessions()}
    assert states == {"abc123": Working(), "second": IDLE, "third": Working("Bash")}
    assert [session.id for session in client.registry.in_process(42, 1000)] == ["abc123", "second"]


def test_18_the_context_window_has_a_million_tokens() -> None:
    client = FakeClient()
    client("SessionStart")
    client.registry.update_usage("abc123", read_usage(STATUS))
    used = {"input_tokens": 400_000, "cache_read_input_tokens": 50_000}
    client.registry.update_usage(
        "abc123", read_usage({"context_window": {"context_window_size": 1_000_000, "current_usage": used}})
    )

    assert client.main.usage is not None
    assert (client.main.usage.context_window, client.main.usage.context_percent) == (1_000_000, 45)


def test_19_a_status_line_is_partial() -> None:
    client = FakeClient()
    client("SessionStart")
    client.registry.update_usage("abc123", read_usage(STATUS))
    client.registry.update_usage("abc123", read_usage({"context_window": {"used_percentage": None}, "cost": None}))

    assert client.main.usage == read_usage(STATUS)


def test_20_a_dialog_waits_at_the_start_and_no_event_was_sent() -> None:
    client = FakeClient()
    client.registry.reconcile([seen(client, "waiting", waiting_for="dialog open")], client.now)
    assert (client.state, client.main.pid) == (AttentionNeeded("Dialog open"), 42)

    client("SessionStart", source="startup")
    assert [session.id for session in client.registry.sessions()] == ["abc123"]
    assert client.state == IDLE


def test_21_the_daemon_starts_anew() -> None:
    client = FakeClient()
    client("SessionStart")
    client("UserPromptSubmit")
    client("SubagentStart", agent_id="a1", agent_type="Explore")
    client("PermissionRequest", agent_id="a1", agent_type="Explore")
    client.registry.update_usage("abc123", read_usage(STATUS))

    again = restore_registry(encode_registry(client.registry))

    assert again.by_id == client.registry.by_id
    assert again.revision == client.registry.revision
    assert again.apply_event(recorded("Stop", session_id="abc123"), client.now + 1, client.caller) != []
    assert isinstance(again, Registry)
