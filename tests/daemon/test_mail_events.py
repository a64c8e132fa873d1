"""Mail at the events, by the real launcher, daemon and command line: once, in the right words, to the right agent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from daemon.daemon_home import until

if TYPE_CHECKING:
    from daemon.clients import Client
    from daemon.daemon_home import DaemonHome, Done

TOOL: dict[str, Any] = {"tool_name": "Read", "tool_input": {}, "tool_response": {}}


def context(done: Done) -> str:
    told: dict[str, Any] = done.answer.get("hookSpecificOutput", {})
    return str(told.get("additionalContext", ""))


def is_silent(done: Done) -> bool:
    return (done.exit_code, done.stdout, done.stderr) == (0, "", "")


def test_without_mail_every_event_is_silent(fox: Client) -> None:
    for event, fields in (
        ("SessionStart", {"source": "startup"}),
        ("UserPromptSubmit", {"prompt": "hello"}),
        ("PostToolUse", TOOL),
        ("SubagentStart", {"agent_id": "a1", "agent_type": "Explore"}),
        ("SubagentStop", {"agent_id": "a1", "agent_type": "Explore"}),
        ("SubagentStop", {"agent_id": "a2", "agent_type": ""}),
        ("Stop", {}),
        ("SessionEnd", {"reason": "other"}),
    ):
        assert is_silent(fox.hook(event, **fields)), event


def test_a_prompt_brings_what_has_come_once_and_showing_is_not_reading(fox: Client, owl: Client) -> None:
    sent = fox.send(owl.name, "Build completed successfully")

    first = owl.hook("UserPromptSubmit", prompt="hello")
    second = owl.hook("UserPromptSubmit", prompt="hello")

    assert context(first).splitlines()[0] == f'📬 New message from {fox.name}: "Build completed successfully"'
    assert is_silent(second)
    assert fox.ledger(sent) == [(owl.name, "shown", "UserPromptSubmit")]


def test_a_session_finds_its_mail_when_it_starts(fox: Client, owl: Client) -> None:
    fox.send(owl.name, "Deploy fix to production", "", "--urgent")
    fox.send(owl.name, "Code review complete")

    told = context(owl.hook("SessionStart", source="resume")).splitlines()

    assert told[:5] == [
        "📬 You have 2 unread messages:",
        f'- From: {fox.name} (urgent) - "Deploy fix to production"',
        f'- From: {fox.name} - "Code review complete"',
        "",
        "Use `fairlead inbox` to read full messages.",
    ]


def test_a_stop_shows_mail_and_then_lets_go(fox: Client, owl: Client) -> None:
    sent = fox.send(owl.name, "Please review this")

    first, second = owl.hook("Stop"), owl.hook("Stop", stop_hook_active=True)

    assert first.exit_code == 0
    assert first.answer["decision"] == "block"
    assert first.answer["reason"].startswith(f'You have 1 unread message:\n- From: {fox.name} - "Please review this"')
    assert is_silent(second)
    assert fox.ledger(sent) == [(owl.name, "shown", "Stop")]


def test_mail_at_the_end_of_a_turn_comes_before_the_policys_checks(
    posted: DaemonHome, fox: Client, owl: Client
) -> None:
    posted.policy("stop:\n  commands:\n    - run: touch checked && exit 1\n")
    fox.send(owl.name, "first")

    mailed = owl.hook("Stop")
    assert mailed.answer["reason"].startswith("You have 1 unread message:")
    assert not (posted.project / "checked").exists()

    assert "exit code 1" in owl.hook("Stop").answer["reason"]
    assert (posted.project / "checked").exists()


def test_only_urgent_mail_comes_in_the_middle_of_a_turn(fox: Client, owl: Client) -> None:
    fox.send(owl.name, "no hurry")
    assert is_silent(owl.hook("PostToolUse", **TOOL))

    fox.send(owl.name, "the build is broken", "", "--urgent")
    assert context(owl.hook("PostToolUse", **TOOL)).splitlines()[0] == (
        f'📬 New message from {fox.name} (urgent): "the build is broken"'
    )
    assert is_silent(owl.hook("PostToolUse", **TOOL))
    assert "no hurry" in context(owl.hook("UserPromptSubmit", prompt="go on"))


def test_a_subagent_gets_its_own_mail_once_and_not_its_parents(fox: Client, owl: Client) -> None:
    child: dict[str, Any] = {"agent_id": "a1", "agent_type": "Explore"}
    owl.hook("SubagentStart", **child)
    name = owl.row("a1")["name"]
    assert name.startswith(f"{owl.name}/")
    fox.send(owl.name, "for the parent")
    fox.send(name, "for the child")

    first = owl.hook("SubagentStop", **child, stop_hook_active=False)
    again = owl.hook("SubagentStop", **child, stop_hook_active=False)

    assert first.answer["decision"] == "block"
    assert first.answer["reason"].splitlines()[:2] == [
        "You have 1 unread message:",
        f'- From: {fox.name} - "for the child"',
    ]
    assert is_silent(again)
    assert '"for the parent"' in owl.hook("Stop").answer["reason"]


def test_a_subagent_that_was_kept_from_stopping_once_may_stop(fox: Client, owl: Client) -> None:
    """Then it ends, so its mail is not shown at a later stop either."""
    child: dict[str, Any] = {"agent_id": "a1", "agent_type": "Explore"}
    owl.hook("SubagentStart", **child)
    fox.send(owl.row("a1")["name"], "for the child")

    assert is_silent(owl.hook("SubagentStop", **child, stop_hook_active=True))
    until(lambda: owl.row("a1")["ended"], "the subagent has ended")
    assert is_silent(owl.hook("SubagentStop", **child, stop_hook_active=False))


def test_urgent_mail_goes_to_the_agent_whose_tool_it_was(fox: Client, owl: Client) -> None:
    owl.hook("SubagentStart", agent_id="a1", agent_type="Explore")
    fox.send(owl.row("a1")["name"], "stop looking", "", "--urgent")

    assert is_silent(owl.hook("PostToolUse", **TOOL))
    assert '"stop looking"' in context(owl.hook("PostToolUse", **TOOL, agent_id="a1", agent_type="Explore"))


def test_an_agent_knows_itself_again_after_a_compaction(fox: Client, owl: Client) -> None:
    sent = fox.send(owl.name, "Deploy?", "", "--request")
    owl.hook("UserPromptSubmit", prompt="hello")
    name = owl.name

    before = owl.hook("PreCompact", trigger="auto")
    of_child = owl.hook("PreCompact", trigger="auto", agent_id="a1", agent_type="Explore")
    after = context(owl.hook("SessionStart", source="compact"))

    assert before.exit_code == 0
    assert after.splitlines() == [
        f"You are the agent {name}; other agents can write to you by that name.",
        "1 message unread: fairlead inbox",
        f'You owe {fox.name} a reply to "Deploy?": fairlead reply {sent["id"]} "…"',
    ]
    assert is_silent(of_child)
    assert before.stdout.splitlines()[1:] == [f"> {line}" for line in after.splitlines()]
    assert json.loads(owl.fairlead("identity", "current", "--json").stdout)["saved"] == after


def test_what_an_agent_saved_itself_survives_a_compaction(owl: Client) -> None:
    owl.fairlead("identity", "save", "half way through the parser")

    owl.hook("PreCompact", trigger="auto")

    assert context(owl.hook("SessionStart", source="compact")).splitlines() == [
        f"You are the agent {owl.name}; other agents can write to you by that name.",
        "half way through the parser",
    ]


def test_after_clear_the_agent_goes_on_under_another_session(fox: Client, owl: Client) -> None:
    name = owl.name
    fox.send(name, "before")
    owl.hook("SessionEnd", reason="clear")
    owl.session = "33333333-3333-4333-8333-333333333333"

    told = context(owl.hook("SessionStart", source="clear"))

    assert '"before"' in told
    assert owl.name == name
    fox.send(name, "after")
    assert '"after"' in context(owl.hook("UserPromptSubmit", prompt="hello"))


def test_mail_to_an_agent_that_ends_comes_back_and_is_there_when_it_is_resumed(fox: Client, owl: Client) -> None:
    name = owl.name
    sent = fox.send(name, "Ready?", "", "--request")

    owl.hook("SessionEnd", reason="prompt_input_exit")
    until(lambda: fox.ledger(sent)[0][1] == "bounced", "it bounces")
    assert "Ready?" in context(fox.hook("UserPromptSubmit", prompt="hello"))

    assert '"Ready?"' in context(owl.hook("SessionStart", source="resume"))
    assert fox.ledger(sent)[0][:2] == (name, "shown")


def test_a_client_that_is_killed_has_ended(fox: Client, owl: Client) -> None:
    sent = fox.send(owl.name, "hello")

    owl.kill()

    until(lambda: fox.ledger(sent)[0][1] == "bounced", "it bounces")


def test_who_asked_is_told_when_the_other_goes_idle_without_an_answer(fox: Client, owl: Client) -> None:
    fox.send(owl.name, "Is main green?", "", "--request")
    owl.hook("UserPromptSubmit", prompt="hello")

    working = [{"id": "a", "type": "subagent", "status": "running"}]
    owl.hook("Stop", background_tasks=working)
    assert is_silent(fox.hook("UserPromptSubmit", prompt="hello"))
    owl.hook("Stop")

    told = context(fox.hook("UserPromptSubmit", prompt="hello"))
    assert "Fairlead" in told
    assert "Is main green?" in told
    owl.hook("Stop")
    assert is_silent(fox.hook("UserPromptSubmit", prompt="hello"))


def test_a_prompt_that_a_command_blocks_has_shown_nothing(posted: DaemonHome, fox: Client, owl: Client) -> None:
    posted.policy("userPromptSubmit: {slashCommands: {commands: {deploy: [{run: exit 2}]}}}\n")
    sent = fox.send(owl.name, "hello")

    assert owl.hook("UserPromptSubmit", prompt="/deploy").exit_code == 2

    until(lambda: fox.ledger(sent)[0][1] == "queued", "it is queued again")
    assert '"hello"' in context(owl.hook("UserPromptSubmit", prompt="never mind"))


def test_what_the_policy_says_and_what_the_mail_says_are_both_said(
    posted: DaemonHome, fox: Client, owl: Client
) -> None:
    posted.policy("userPromptSubmit:\n  contextRules:\n    - {pattern: release, prompt: Mind the changelog.}\n")
    fox.send(owl.name, "hello")

    told = context(owl.hook("UserPromptSubmit", prompt="release it"))

    assert "Mind the changelog." in told
    assert f'📬 New message from {fox.name}: "hello"' in told


def test_many_messages_come_a_few_at_a_time_and_in_order(fox: Client, owl: Client) -> None:
    for number in range(18):
        fox.send(owl.name, f"number {number}")

    first, second = (owl.hook("Stop").answer["reason"].splitlines() for _ in range(2))

    assert first[0] == "You have 18 unread messages:"
    assert first[1] == f'- From: {fox.name} - "number 0"'
    assert first[16] == "… and 3 more, shown at the next events; to see them now: fairlead inbox"
    assert second[:4] == ["You have 3 unread messages:", *(f'- From: {fox.name} - "number {n}"' for n in (15, 16, 17))]
    assert is_silent(owl.hook("Stop"))


# -- the session's id for its shells -------------------------------------------------------------------


@pytest.mark.parametrize("road", ["daemon", "cold"])
def test_the_shells_of_a_session_know_its_id(home: DaemonHome, road: str) -> None:
    file = home.folder / "env file.sh"
    file.write_text("export A=1")
    session = 'it\'s $(touch harm) "quoted"'
    payload = home.payload(session_id=session, hook_event_name="SessionStart", source="startup")
    if road == "daemon":
        with home.daemon():
            done = [home.hook("SessionStart", payload, CLAUDE_ENV_FILE=str(file)) for _ in range(2)]
    else:
        done = [home.hook("SessionStart", payload, CLAUDE_ENV_FILE=str(file)) for _ in range(2)]

    assert [one.exit_code for one in done] == [0, 0]
    assert file.read_text().startswith("export A=1\nexport CLAUDE_SESSION_ID=")
    told = home.run(["sh", "-c", '. "$1"; printf %s "$CLAUDE_SESSION_ID"', "sh", str(file)], b"")
    assert told.stdout == session
    assert file.read_text().count("CLAUDE_SESSION_ID") == 1
    assert not (home.project / "harm").exists()
