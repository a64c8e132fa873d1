"""Sequences of recorded payloads, as the real client sends them: the states after each step."""

from __future__ import annotations

from typing import Any

import pytest
from sessions.fake_client import IDLE, PAYLOADS, START, THINKING, FakeClient, make, recorded

from fairlead.events import Event, parse
from fairlead.sessions import AttentionNeeded, Registry, State, Working

MAIN = "00000000-0000-4000-8000-000000000001"
ONE, TWO = "a7fe81120d126f83a", "a5dc68169f39536c4"

Step = tuple[Event, State, dict[str, State]]


def pre_agent(call: str, about: str, kind: str) -> Event:
    tool_input = {"description": about, "prompt": "p", "subagent_type": kind}
    return recorded("PreToolUse-Agent", tool_use_id=call, tool_input=tool_input)


def launched(call: str, agent: str, about: str, kind: str) -> Event:
    tool_input = {"description": about, "prompt": "p", "subagent_type": kind}
    response = {"isAsync": True, "status": "async_launched", "agentId": agent, "resolvedModel": "claude-opus-5-5"}
    return recorded("PostToolUse-Agent_async_launched", tool_use_id=call, tool_input=tool_input, tool_response=response)


def listed(*agents: tuple[str, str]) -> dict[str, Any]:
    tasks = [{"id": a, "type": "subagent", "status": "running", "description": "", "agent_type": k} for a, k in agents]
    return {"background_tasks": tasks}


def in_background() -> list[Step]:
    """Client 2.1.325: two subagents, both in the background by default; one asks for permission."""
    work, bash = Working(), AttentionNeeded("Permission for Bash", "touch qqq")
    one, two = (ONE, "general-purpose"), (TWO, "Explore")
    bg = Working("2 in background")
    return [
        (recorded("SessionStart-startup"), IDLE, {}),
        (recorded("UserPromptSubmit"), work, {}),
        (pre_agent("t1", "sub one", "general-purpose"), Working("Agent"), {}),
        (recorded("SubagentStart-general_purpose"), Working("general-purpose"), {ONE: work}),
        (launched("t1", ONE, "sub one", "general-purpose"), THINKING, {ONE: work}),
        (pre_agent("t2", "sub two", "Explore"), Working("Agent"), {ONE: work}),
        (launched("t2", TWO, "sub two", "Explore"), THINKING, {ONE: work, TWO: work}),  # before its start
        (recorded("SubagentStart-Explore"), THINKING, {ONE: work, TWO: work}),
        (recorded("Stop-background_tasks", **listed(one, two)), bg, {ONE: work, TWO: work}),
        (recorded("PreToolUse-Bash-subagent", agent_id=TWO), bg, {ONE: work, TWO: Working("Bash")}),
        (recorded("PermissionRequest-Bash-subagent", agent_id=ONE), bg, {ONE: bash, TWO: Working("Bash")}),
        (recorded("Notification-permission_prompt"), bg, {ONE: bash, TWO: Working("Bash")}),
        (recorded("PostToolUse-Bash-subagent", agent_id=TWO), bg, {ONE: bash, TWO: THINKING}),
        (recorded("SubagentStop-Explore"), Working("general-purpose in background"), {ONE: bash, TWO: IDLE}),
        (recorded("UserPromptSubmit-task_notification"), work, {ONE: bash, TWO: IDLE}),
        (recorded("Stop-background_tasks", **listed(one)), Working("general-purpose in background"), {ONE: bash}),
        (
            recorded("PostToolUse-Bash-subagent", agent_id=ONE),
            Working("general-purpose in background"),
            {ONE: THINKING},
        ),
        (recorded("SubagentStop-general_purpose", agent_id=ONE), THINKING, {ONE: IDLE}),
        (recorded("UserPromptSubmit-task_notification"), work, {}),
        (recorded("Stop"), IDLE, {ONE: IDLE, TWO: IDLE}),
        (recorded("SessionEnd-prompt_input_exit"), IDLE, {ONE: IDLE, TWO: IDLE}),
    ]


def in_front() -> list[Step]:
    """Client 2.1.197: the subagent runs while its call is open; the conversation is compacted in between."""
    agent = "a52c324b0b31db783"
    start = {"agent_id": agent, "agent_type": "general-purpose"}
    return [
        (recorded("UserPromptSubmit", "2.1.197"), Working(), {}),
        (recorded("PreToolUse-Agent", "2.1.197", tool_use_id="toolu_fake0000100"), Working("Agent"), {}),
        (recorded("SubagentStart-general_purpose", "2.1.197", **start), Working("general-purpose"), {agent: Working()}),
        (
            recorded("PreToolUse-Bash-subagent", "2.1.197", **start),
            Working("general-purpose"),
            {agent: Working("Bash")},
        ),
        (recorded("SubagentStop-general_purpose", "2.1.197", **start), THINKING, {agent: IDLE}),
        (recorded("PostToolUse-Agent_completed"), THINKING, {agent: IDLE}),
        (recorded("PostToolBatch-single", "2.1.197"), THINKING, {agent: IDLE}),
        (recorded("PreCompact-auto", "2.1.197"), Working("Compacting"), {}),
        (recorded("SubagentStop-compaction_no_type", "2.1.197"), Working("Compacting"), {}),
        (recorded("SessionStart-compact", "2.1.197"), Working("Compacting"), {}),
        (recorded("PostCompact-auto", "2.1.197"), THINKING, {}),
        (recorded("Stop", "2.1.197"), IDLE, {agent: IDLE}),
    ]


@pytest.mark.parametrize("steps", [in_background(), in_front()], ids=["background", "front"])
def test_the_states_after_each_step(steps: list[Step]) -> None:
    client = FakeClient(MAIN)
    for number, (event, main, children) in enumerate(steps):
        client.now += 1
        client.send(event)
        assert client.state == main, f"step {number}: {event.event_name}"
        for agent, state in children.items():
            assert client.child(agent).state == state, f"step {number}: {event.event_name}: {agent}"


def test_subagents_have_type_description_call_model_and_duration() -> None:
    client = FakeClient(MAIN)
    for event, _, _ in in_background():
        client.now += 1
        client.send(event)

    one, two = client.child(ONE), client.child(TWO)
    assert (one.agent_type, one.description, one.call) == ("general-purpose", "sub one", "t1")
    assert (two.agent_type, two.description, two.call) == ("Explore", "sub two", "t2")
    assert two.model == "claude-opus-5-5"
    assert two.duration(client.now) == 7  # from the answer of its call to its stop
    assert (client.main.counters.prompts, client.main.counters.wakes) == (1, 2)


def test_a_start_that_comes_after_its_calls_answer_belongs_to_no_other_call() -> None:
    client = FakeClient(MAIN)
    first, second = ("t1", "sub one", "general-purpose"), ("t2", "sub two", "general-purpose")
    both = [pre_agent(*first), pre_agent(*second)]
    for event in (*both, launched("t1", ONE, *first[1:]), recorded("SubagentStart-general_purpose", agent_id=ONE)):
        client.now += 1
        client.send(event)
    assert client.state == Working("Agent")

    client.now += 1
    client.send(recorded("SubagentStart-general_purpose", agent_id=TWO))
    assert [client.child(agent).description for agent in (ONE, TWO)] == ["sub one", "sub two"]


def test_a_delayed_call_describes_its_subagent() -> None:
    client = FakeClient(MAIN)
    client("UserPromptSubmit")
    client.now += 1
    client.send(recorded("SubagentStart-general_purpose", agent_id=ONE))
    client.send(pre_agent("t1", "sub one", "Explore"), client.now - 0.5)
    assert client.child(ONE).description == ""

    client.send(pre_agent("t2", "sub two", "general-purpose"), client.now - 0.4)
    assert (client.child(ONE).description, client.child(ONE).call) == ("sub two", "t2")
    assert client.main.calls["t2"].agent == ONE


@pytest.mark.parametrize("delay", [0.0, 0.5])
def test_a_start_after_an_event_of_the_subagent_describes_it(delay: float) -> None:
    client = FakeClient(MAIN)
    client("UserPromptSubmit")
    client.now += 1
    client.send(pre_agent("t1", "sub one", "general-purpose"))
    client.now += 1
    client.send(make("InstructionsLoaded", MAIN, agent_id=ONE, agent_type="general-purpose"))
    assert client.child(ONE).description == ""

    client.send(recorded("SubagentStart-general_purpose", agent_id=ONE), client.now - delay)

    assert (client.child(ONE).description, client.child(ONE).call) == ("sub one", "t1")
    assert client.main.calls["t1"].agent == ONE


def test_a_teammate_idles_without_ending() -> None:
    client = FakeClient(MAIN)
    for event in (
        recorded("UserPromptSubmit"),
        recorded("PostToolUse-Agent_teammate_spawned"),
        recorded("SubagentStart-bob"),
        recorded("TeammateIdle"),
    ):
        client.now += 1
        client.send(event)

    bob = client.child("abob-77ff0aa007179876")
    assert (bob.state, bob.ended, bob.agent_type, bob.description) == (IDLE, None, "bob", "mate")


def test_an_older_client_names_the_teammate_only() -> None:
    client = FakeClient()
    client("SubagentStart", agent_id="x", agent_type="bob")
    client("TeammateIdle", teammate_name="bob")

    assert client.child("x").state == IDLE


def test_every_recorded_payload_is_applied_and_repeats_change_nothing() -> None:
    for path in sorted(PAYLOADS.rglob("*.json")):
        registry, event = Registry(), parse(path.read_bytes())

        assert registry.apply_event(event, START), path
        assert registry.apply_event(event, START) == [], path
        assert len(registry.sessions(ended=True)) == 1, path


def test_an_mcp_server_asks_during_its_tool_call() -> None:
    client = FakeClient(MAIN)
    steps = {
        "PreToolUse-mcp_elic_ask": Working("mcp__elic__ask"),
        "Elicitation": AttentionNeeded("MCP input", "What is your name?"),
        "ElicitationResult": Working("mcp__elic__ask"),
        "Notification-elicitation_response": Working("mcp__elic__ask"),
        "PostToolUse-mcp_elic_ask": THINKING,
    }
    for name, state in steps.items():
        client.now += 1
        client.send(recorded(name))
        assert client.state == state, name


def test_a_notification_keeps_what_a_request_asks_whose_call_is_not_known() -> None:
    """As if no hook of PreToolUse were installed. The notification comes 6 seconds later, and says less."""
    client = FakeClient(MAIN)
    question = AttentionNeeded("Permission for Bash", "touch zzz")
    for name in ("UserPromptSubmit", "PermissionRequest-Bash", "Notification-permission_prompt"):
        client.now += 6
        client.send(recorded(name))
    assert client.state == question
    client.send(recorded("PostToolUse-Bash"))
    assert client.state == THINKING


def test_prompts_of_the_user_and_of_the_client_are_distinguished() -> None:
    client = FakeClient(MAIN)
    client.send(recorded("UserPromptSubmit"))
    assert (client.main.by_person, client.main.first_prompt) == (True, "do many things")
    client.now += 1
    client.send(recorded("UserPromptSubmit-asyncRewake"))
    assert (client.main.by_person, client.main.first_prompt) == (False, "do many things")


def test_the_model_and_the_folder_are_updated() -> None:
    client = FakeClient(MAIN)
    client.send(recorded("PostModelSwitch"))
    client.now += 1
    client.send(recorded("CwdChanged"))

    assert (client.main.model, client.main.cwd) == (recorded("PostModelSwitch").to_model, "/home/user/project/nested")  # type: ignore[attr-defined]


def test_background_shells_do_not_make_a_session_busy() -> None:
    """A development server runs all day."""
    client = FakeClient()
    client("UserPromptSubmit")
    client("Stop", background_tasks=[{"id": "b1", "type": "shell", "status": "running", "command": "npm run dev"}])

    assert client.state == IDLE
    assert list(client.main.tasks) == ["b1"]


def test_our_answers_decide_the_state() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client.send(make("PreToolUse", tool_use_id="t1"), client.now + 1, verdict="blocked")
    assert (client.state, client.main.calls, client.main.counters.denials) == (THINKING, {}, 1)
    client.send(make("PermissionRequest"), client.now + 2, verdict="allowed")
    assert client.state == THINKING
    client.send(make("UserPromptSubmit"), client.now + 3, verdict="blocked")
    assert client.main.counters.prompts == 1
