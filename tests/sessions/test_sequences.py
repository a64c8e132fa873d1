"""Sequences as the real client sends them, from its recorded payloads: what is true after each step."""

from __future__ import annotations

from typing import Any

import pytest
from sessions.playing import IDLE, PAYLOADS, START, THINKING, Play, make, recorded

from fairlead.events import Event, parse
from fairlead.sessions import AttentionNeeded, Registry, State, Working

MAIN = "00000000-0000-4000-8000-000000000001"
ONE, TWO = "a7fe81120d126f83a", "a5dc68169f39536c4"

Step = tuple[Event, State, dict[str, State]]


def pre_agent(call: str, about: str, kind: str) -> Event:
    told = {"description": about, "prompt": "p", "subagent_type": kind}
    return recorded("PreToolUse-Agent", tool_use_id=call, tool_input=told)


def launched(call: str, agent: str, about: str, kind: str) -> Event:
    told = {"description": about, "prompt": "p", "subagent_type": kind}
    response = {"isAsync": True, "status": "async_launched", "agentId": agent, "resolvedModel": "claude-opus-5-5"}
    return recorded("PostToolUse-Agent_async_launched", tool_use_id=call, tool_input=told, tool_response=response)


def listed(*agents: tuple[str, str]) -> dict[str, Any]:
    tasks = [{"id": a, "type": "subagent", "status": "running", "description": "", "agent_type": k} for a, k in agents]
    return {"background_tasks": tasks}


def in_background() -> list[Step]:
    """Client 2.1.325: two subagents, both in the background by default, one of which asks for permission."""
    work, bash = Working(), AttentionNeeded("Permission for Bash")
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
    """Client 2.1.197: the subagent runs while its call is open; the conversation is compacted on the way."""
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
def test_after_each_step_the_states_are_true(steps: list[Step]) -> None:
    play = Play(MAIN)
    for number, (event, main, children) in enumerate(steps):
        play.now += 1
        play.take(event)
        assert play.state == main, f"step {number}: {event.event_name}"
        for agent, state in children.items():
            assert play.child(agent).state == state, f"step {number}: {event.event_name}: {agent}"


def test_subagents_have_type_description_call_model_and_duration() -> None:
    play = Play(MAIN)
    for event, _, _ in in_background():
        play.now += 1
        play.take(event)

    one, two = play.child(ONE), play.child(TWO)
    assert (one.agent_type, one.description, one.call) == ("general-purpose", "sub one", "t1")
    assert (two.agent_type, two.description, two.call) == ("Explore", "sub two", "t2")
    assert two.model == "claude-opus-5-5"
    assert two.duration(play.now) == 7  # from the answer of its call to its stop
    assert (play.main.counters.prompts, play.main.counters.wakes) == (1, 2)


def test_a_start_that_comes_after_its_calls_answer_belongs_to_no_other_call() -> None:
    play = Play(MAIN)
    first, second = ("t1", "sub one", "general-purpose"), ("t2", "sub two", "general-purpose")
    both = [pre_agent(*first), pre_agent(*second)]
    for event in (*both, launched("t1", ONE, *first[1:]), recorded("SubagentStart-general_purpose", agent_id=ONE)):
        play.now += 1
        play.take(event)
    assert play.state == Working("Agent")

    play.now += 1
    play.take(recorded("SubagentStart-general_purpose", agent_id=TWO))
    assert [play.child(agent).description for agent in (ONE, TWO)] == ["sub one", "sub two"]


def test_a_call_that_is_heard_of_late_tells_what_its_subagent_is_for() -> None:
    play = Play(MAIN)
    play("UserPromptSubmit")
    play.now += 1
    play.take(recorded("SubagentStart-general_purpose", agent_id=ONE))
    play.take(pre_agent("t1", "sub one", "Explore"), play.now - 0.5)
    assert play.child(ONE).description == ""

    play.take(pre_agent("t2", "sub two", "general-purpose"), play.now - 0.4)
    assert (play.child(ONE).description, play.child(ONE).call) == ("sub two", "t2")
    assert play.main.calls["t2"].agent == ONE


@pytest.mark.parametrize("late", [0.0, 0.5])
def test_a_start_that_is_heard_after_an_event_of_the_subagent_tells_what_it_is_for(late: float) -> None:
    play = Play(MAIN)
    play("UserPromptSubmit")
    play.now += 1
    play.take(pre_agent("t1", "sub one", "general-purpose"))
    play.now += 1
    play.take(make("InstructionsLoaded", MAIN, agent_id=ONE, agent_type="general-purpose"))
    assert play.child(ONE).description == ""

    play.take(recorded("SubagentStart-general_purpose", agent_id=ONE), play.now - late)

    assert (play.child(ONE).description, play.child(ONE).call) == ("sub one", "t1")
    assert play.main.calls["t1"].agent == ONE


def test_a_teammate_idles_without_ending() -> None:
    play = Play(MAIN)
    for event in (
        recorded("UserPromptSubmit"),
        recorded("PostToolUse-Agent_teammate_spawned"),
        recorded("SubagentStart-bob"),
        recorded("TeammateIdle"),
    ):
        play.now += 1
        play.take(event)

    bob = play.child("abob-77ff0aa007179876")
    assert (bob.state, bob.ended, bob.agent_type, bob.description) == (IDLE, None, "bob", "mate")


def test_an_older_client_names_the_teammate_only() -> None:
    play = Play()
    play("SubagentStart", agent_id="x", agent_type="bob")
    play("TeammateIdle", teammate_name="bob")

    assert play.child("x").state == IDLE


@pytest.mark.parametrize("path", sorted(PAYLOADS.rglob("*.json")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_recorded_payload_is_taken_and_repeats_change_nothing(path: Any) -> None:
    registry, event = Registry(), parse(path.read_bytes())

    assert registry.take(event, START)
    assert registry.take(event, START) == []
    assert len(registry.sessions(ended=True)) == 1


def test_a_server_asks_in_the_midst_of_its_tool() -> None:
    play = Play(MAIN)
    steps = {
        "PreToolUse-mcp_elic_ask": Working("mcp__elic__ask"),
        "Elicitation": AttentionNeeded("MCP input"),
        "ElicitationResult": Working("mcp__elic__ask"),
        "Notification-elicitation_response": Working("mcp__elic__ask"),
        "PostToolUse-mcp_elic_ask": THINKING,
    }
    for name, state in steps.items():
        play.now += 1
        play.take(recorded(name))
        assert play.state == state, name


def test_a_person_who_speaks_is_told_from_the_client() -> None:
    play = Play(MAIN)
    play.take(recorded("UserPromptSubmit"))
    assert (play.main.by_person, play.main.first_prompt) == (True, "do many things")
    play.now += 1
    play.take(recorded("UserPromptSubmit-asyncRewake"))
    assert (play.main.by_person, play.main.first_prompt) == (False, "do many things")


def test_a_model_and_a_folder_are_followed() -> None:
    play = Play(MAIN)
    play.take(recorded("PostModelSwitch"))
    play.now += 1
    play.take(recorded("CwdChanged"))

    assert (play.main.model, play.main.cwd) == (recorded("PostModelSwitch").to_model, "/home/user/project/nested")  # type: ignore[attr-defined]


def test_background_shells_keep_no_session_busy() -> None:
    """A development server runs all day."""
    play = Play()
    play("UserPromptSubmit")
    play("Stop", background_tasks=[{"id": "b1", "type": "shell", "status": "running", "command": "npm run dev"}])

    assert play.state == IDLE
    assert list(play.main.tasks) == ["b1"]


def test_what_our_own_answer_decided() -> None:
    play = Play()
    play("UserPromptSubmit")
    play.take(make("PreToolUse", tool_use_id="t1"), play.now + 1, verdict="blocked")
    assert (play.state, play.main.calls, play.main.counters.denials) == (THINKING, {}, 1)
    play.take(make("PermissionRequest"), play.now + 2, verdict="allowed")
    assert play.state == THINKING
    play.take(make("UserPromptSubmit"), play.now + 3, verdict="blocked")
    assert play.main.counters.prompts == 1
