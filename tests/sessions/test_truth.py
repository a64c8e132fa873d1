"""What the registry says where several things happen at once: nested subagents, parallel calls, resumed sessions."""

from __future__ import annotations

import pytest
from sessions.fake_client import IDLE, START, THINKING, FakeClient

from fairlead.clients import STARTING, ClientSessionFile
from fairlead.sessions import AttentionNeeded, Working

OUTER = {"id": "outer", "type": "subagent", "status": "running", "agent_type": "coder"}
INNER = {"id": "inner", "type": "subagent", "status": "running", "agent_type": "Explore"}


def launch(client: FakeClient, name: str, kind: str, call: str, **by: str) -> None:
    """Let an agent start a subagent in the background, as the client reports it."""
    asked = {"subagent_type": kind}
    client.pre("Agent", call, tool_input=asked, **by)
    client("SubagentStart", agent_id=name, agent_type=kind)
    response = {"status": "async_launched", "agentId": name}
    client.post("Agent", call, tool_input=asked, tool_response=response, **by)


def nested(*, inner_is_late: bool) -> FakeClient:
    """A main session that has answered, a subagent of it, and one of that, which started before or after the answer."""
    client = FakeClient()
    client("UserPromptSubmit")
    launch(client, "outer", "coder", "t1")
    if not inner_is_late:
        launch(client, "inner", "Explore", "t2", agent_id="outer", agent_type="coder")
    client("Stop", background_tasks=[OUTER] if inner_is_late else [OUTER, INNER])
    if inner_is_late:
        launch(client, "inner", "Explore", "t2", agent_id="outer", agent_type="coder")
    return client


@pytest.mark.parametrize("inner_is_late", [False, True])
def test_a_main_session_works_while_anything_below_it_does(*, inner_is_late: bool) -> None:
    client = nested(inner_is_late=inner_is_late)
    client("SubagentStop", agent_id="outer", agent_type="coder")
    client.registry.reconcile([], client.now + 60)

    assert client.state == Working("Explore in background")
    assert (client.child("outer").end_reason, client.child("inner").ended) == ("completed", None)
    assert client.child("inner").parent == "abc123/outer", "who started it does not change"


@pytest.mark.parametrize("inner_is_late", [False, True])
def test_a_main_session_is_idle_when_the_last_below_it_has_ended(*, inner_is_late: bool) -> None:
    client = nested(inner_is_late=inner_is_late)
    client("SubagentStop", agent_id="outer", agent_type="coder")
    client("SubagentStop", agent_id="inner", agent_type="Explore")
    assert client.state == THINKING, "the client wakes the agent with the result"
    client.registry.reconcile([], client.now + 60)
    assert (client.state, client.main.agents) == (IDLE, {})


def test_a_subagent_that_is_woken_by_its_own_works_again() -> None:
    """The order of the real client: the outer one is started again when the inner one has ended."""
    client = nested(inner_is_late=False)
    client("SubagentStop", agent_id="outer", agent_type="coder")
    client("SubagentStop", agent_id="inner", agent_type="Explore")
    client("SubagentStart", agent_id="outer", agent_type="coder")
    assert (client.state, client.child("outer").ended) == (Working("coder"), None)
    client("SubagentStop", agent_id="outer", agent_type="coder")
    client("UserPromptSubmit", prompt="<task-notification>\n<task-id>outer</task-id>")
    client("Stop", background_tasks=[])
    assert client.state == IDLE


def test_a_finished_call_leaves_what_its_subagent_has_in_the_background() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client.pre("Agent", "t1", tool_input={"subagent_type": "coder"})
    client("SubagentStart", agent_id="outer", agent_type="coder")
    launch(client, "inner", "Explore", "t2", agent_id="outer", agent_type="coder")
    client.post("Agent", "t1", tool_response={"status": "completed", "agentId": "outer"})
    client("Stop")
    assert client.state == Working("Explore in background")


@pytest.mark.parametrize("ending", ["PostToolUse", "PostToolUseFailure"])
def test_the_evidence_names_the_call_that_has_ended_and_not_one_that_still_runs(ending: str) -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client.pre("Bash", "t1")
    client.pre("Read", "t2", tool_input={"file_path": "/missing"})
    client(ending, tool_name="Read", tool_use_id="t2", tool_input={"file_path": "/missing"})

    evidence = client.main.evidence
    assert evidence is not None
    assert client.state == Working("Bash")
    assert (evidence.event, evidence.tool, evidence.path) == (ending, "Read", "/missing")


def test_the_question_of_another_call_stays_about_that_call() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client.pre("Bash", "t1", tool_input={"command": "make"})
    client.pre("Read", "t2")
    client("PermissionRequest", tool_name="Bash", tool_input={"command": "make"})
    client("PostToolUseFailure", tool_name="Read", tool_use_id="t2")

    evidence = client.main.evidence
    assert evidence is not None
    assert client.state == AttentionNeeded("Permission for Bash", "make")
    assert (evidence.event, evidence.tool) == ("PermissionRequest", "Bash")


@pytest.mark.parametrize("source", ["resume", "startup"])
def test_after_a_resume_a_session_is_idle_since_the_resume(source: str) -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client("Stop")
    client("SessionEnd", reason="other")
    client("SessionStart", source=source, after=1800.0)
    assert client.main.ended is None
    assert (client.state, client.main.since) == (IDLE, client.now)


def test_the_name_follows_the_latest_prompt_and_the_clients_own_title() -> None:
    client = FakeClient()
    client("UserPromptSubmit", prompt="first")
    client("Stop")
    client("UserPromptSubmit", prompt="<task-notification> not a person's")
    assert (client.main.first_prompt, client.main.last_prompt) == ("first", "first")
    client("UserPromptSubmit", prompt="second")
    assert (client.main.first_prompt, client.main.last_prompt) == ("first", "second")
    client.registry.reconcile([ClientSessionFile(42, "abc123", 1000, "busy", name="Login form")], client.now)
    assert client.main.title == "Login form"


def test_a_start_that_waits_in_a_dialog_is_a_session_until_it_is_answered() -> None:
    client = FakeClient()
    about = "may it work in /x?"
    waiting = ClientSessionFile(
        7, f"{STARTING}7", 99, "waiting", "trust dialog", START, cwd="/x", tmux="/t,1,0", pane="%4", about=about
    )
    client.registry.reconcile([waiting], START + 5)
    (session,) = client.registry.sessions()
    assert session.state == AttentionNeeded("Trust dialog", about)
    assert (session.cwd, session.pid, session.tmux, session.pane) == ("/x", 7, "/t,1,0", "%4")

    gone = client.registry.reconcile([], START + 6)
    assert [(change.session.id, change.gone) for change in gone] == [(f"{STARTING}7", True)]
    assert client.registry.sessions(ended=True) == []


def test_a_discovered_session_knows_its_pane() -> None:
    client = FakeClient()
    client.registry.reconcile([ClientSessionFile(7, "s", 99, "idle", tmux="/t,1,0", pane="%4")], START)
    assert (client.registry.by_id["s"].tmux, client.registry.by_id["s"].pane) == ("/t,1,0", "%4")
