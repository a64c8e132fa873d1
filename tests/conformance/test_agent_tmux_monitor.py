"""The monitor's document: one test for each row of each of its tables, named after the row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from sessions.fake_client import IDLE, START, THINKING, FakeClient, make

from fairlead import HookEvent
from fairlead.errors import PayloadError
from fairlead.events import parse, to_payload
from fairlead.journal import Caller
from fairlead.sessions import AttentionNeeded, Idle, Session, State, Working, apply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.events import Event

# -- SessionStatus: The Three Fundamental States -------------------------------------------------------


def after(*told: Event) -> Session:
    session = Session(id="abc123", started=START)
    for number, event in enumerate(told, 1):
        session = apply(session, event, START + number)
    return session


def test_idle() -> None:
    """Claude finished, waiting for user."""
    session = after(make("UserPromptSubmit"), make("Stop"))

    assert session.state == Idle()
    assert msgspec.json.encode(session.state) == b'{"is":"idle"}'


def test_working() -> None:
    """Claude is busy; the detail is optional."""
    assert after(make("UserPromptSubmit")).state == Working(None)
    assert after(make("PreToolUse")).state == Working("Bash")
    assert msgspec.json.decode(b'{"is":"working","detail":"Bash"}', type=State) == Working("Bash")


def test_attentionneeded() -> None:
    """Blocked on user; the reason is not optional."""
    assert after(make("PermissionRequest")).state == AttentionNeeded("Permission for Bash")
    with pytest.raises(ValueError, match="attention needs a reason"):
        AttentionNeeded("")


def test_every_session_is_in_exactly_one_of_these_states() -> None:
    session = after(make("UserPromptSubmit"))
    with pytest.raises(AttributeError):
        session.state = Idle()  # type: ignore[misc]


# -- Staleness (Computed Property) ---------------------------------------------------------------------


def test_staleness_is_not_a_state() -> None:
    """It is computed from the last activity: more than 8 hours ago."""
    session = after(make("UserPromptSubmit"))
    last = START + 1

    assert session.last_activity == last
    assert not session.is_stale(last + 8 * 3600)
    assert session.is_stale(last + 8 * 3600 + 1)
    assert session.state == Working()


# -- Tool Execution Events -----------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["AskUserQuestion", "EnterPlanMode", "ExitPlanMode"])
def test_pretooluse_interactive_tool(tool: str) -> None:
    """User must respond to question/approve plan."""
    assert after(make("PreToolUse", tool_name=tool)).state == AttentionNeeded(tool)
    assert after(make("PreToolUse", tool_name=tool, tool_use_id="t")).state == AttentionNeeded(tool)


@pytest.mark.parametrize("tool", ["Bash", "Read", "mcp__server__tool"])
def test_pretooluse_standard_tool(tool: str) -> None:
    """Tool is executing."""
    assert after(make("PreToolUse", tool_name=tool)).state == Working(tool)
    assert after(make("PreToolUse", tool_name=tool, tool_use_id="t")).state == Working(tool)


def test_posttooluse() -> None:
    """Tool done, Claude processing result."""
    assert after(make("PreToolUse"), make("PostToolUse")).state == THINKING
    assert after(make("PreToolUse", tool_use_id="t"), make("PostToolUse", tool_use_id="t")).state == THINKING
    assert after(make("PostToolUse")).state == THINKING


def test_posttoolusefailure() -> None:
    """Tool failed, Claude deciding next step."""
    assert after(make("PreToolUse"), make("PostToolUseFailure")).state == THINKING
    assert after(make("PreToolUse", tool_use_id="t"), make("PostToolUseFailure", tool_use_id="t")).state == THINKING


# -- User Interaction Events ---------------------------------------------------------------------------


def test_userpromptsubmit() -> None:
    """User submitted, Claude processing."""
    assert after(make("SessionStart"), make("UserPromptSubmit")).state == Working(None)


def test_stop() -> None:
    """Claude finished responding, user's turn."""
    assert after(make("UserPromptSubmit"), make("PreToolUse", tool_use_id="t"), make("Stop")).state == IDLE
    assert after(make("UserPromptSubmit"), make("Stop", stop_hook_active=True)).state == IDLE


# -- Subagent Events -----------------------------------------------------------------------------------


def test_subagentstart() -> None:
    """The parent works with it; a child session is created."""
    client = FakeClient()
    client("SubagentStart", agent_id="agent_456", agent_type="Explore")

    assert client.state == Working("Explore")
    assert client.child("agent_456").parent == "abc123"


def test_subagentstop() -> None:
    """The parent thinks; the child is marked as complete."""
    client = FakeClient()
    client("SubagentStart", agent_id="agent_456", agent_type="Explore")
    client("SubagentStop", agent_id="agent_456")

    assert client.state == THINKING
    assert (client.child("agent_456").state, client.child("agent_456").end_reason) == (IDLE, "completed")


# -- Session Lifecycle Events --------------------------------------------------------------------------


@pytest.mark.parametrize("source", [None, "startup", "resume", "clear", "fork"])
def test_sessionstart(source: str | None) -> None:
    """Session started, waiting for user."""
    assert after(make("SessionStart", source=source)).state == IDLE


def test_sessionend() -> None:
    """Session terminated: it is no longer among those that run."""
    client = FakeClient()
    client("SessionStart")
    client("SessionEnd", reason="logout")

    assert client.registry.sessions() == []
    assert [session.end_reason for session in client.registry.sessions(ended=True)] == ["logout"]


# -- Context Management Events -------------------------------------------------------------------------


def test_precompact() -> None:
    """Context being reduced."""
    assert after(make("PreCompact", trigger="auto")).state == Working("Compacting")


def test_setup() -> None:
    """One-time setup running."""
    assert after(make("Setup", trigger="init")).state == Working("Setup")


# -- Notification Events -------------------------------------------------------------------------------


def test_notification_permission_prompt() -> None:
    """Permission dialog shown."""
    noted = make("Notification", notification_type="permission_prompt")
    assert after(make("PreToolUse"), noted).state == AttentionNeeded("Permission")


def test_notification_idle_prompt() -> None:
    """Claude waiting 60+ seconds."""
    noted = make("Notification", notification_type="idle_prompt")
    assert after(make("UserPromptSubmit"), noted).state == IDLE
    assert after(make("Notification", notification_type="permission_prompt"), noted).state == IDLE


def test_notification_elicitation_dialog() -> None:
    """MCP tool needs user input."""
    noted = make("Notification", notification_type="elicitation_dialog")
    assert after(make("PreToolUse"), noted).state == AttentionNeeded("MCP input")


@pytest.mark.parametrize("before", ["SessionStart", "PreToolUse", "PermissionRequest"])
def test_notification_auth_success(before: str) -> None:
    """Informational only."""
    known = after(make(before))
    assert after(make(before), make("Notification", notification_type="auth_success")).state == known.state


@pytest.mark.parametrize("before", ["SessionStart", "PreToolUse", "PermissionRequest"])
@pytest.mark.parametrize("kind", [None, "", "brand_new"])
def test_notification_unknown_missing(before: str, kind: str | None) -> None:
    """Safe fallback."""
    known = after(make(before))
    assert after(make(before), make("Notification", notification_type=kind)).state == known.state


# -- RawHookEvent Structure ----------------------------------------------------------------------------


def test_common_fields() -> None:
    session = after(make("PreToolUse", cwd="/home/user", permission_mode="plan"))

    assert (session.id, session.cwd, session.permission_mode) == ("abc123", "/home/user", "plan")
    assert session.evidence is not None
    assert session.evidence.event == "PreToolUse"


def test_injected_by_hook_script() -> None:
    """The pid and the pane come from the launcher, beside the payload."""
    client = FakeClient()
    client.send(make("SessionStart"), caller=Caller(pid=7, start=99, pane="%5", tmux="sock,1,0"))

    assert (client.main.pid, client.main.pid_start, client.main.pane) == (7, 99, "%5")


# -- Fields by Event Type ------------------------------------------------------------------------------


def check_fields(name: str, required: Mapping[str, object], optional: Mapping[str, object]) -> None:
    """With what is required it is read; without any of it, it is refused; what is optional is kept."""
    payload = {"session_id": "abc123", "hook_event_name": name, **required}
    usual: dict[str, object] = {"tool_input": {}} if "tool_name" in required else {}
    assert to_payload(parse(payload)) == {**usual, **payload}
    assert to_payload(parse({**payload, **optional})) == {**payload, **optional}
    for field in ("session_id", *required):
        with pytest.raises(PayloadError):
            parse({key: value for key, value in payload.items() if key != field})
    session = after(parse({**payload, **optional}))
    assert session.last_activity == START + 1


CALL = {"tool_input": {"command": "ls"}, "tool_use_id": "t1"}
WHERE = {"cwd": "/home/user", "permission_mode": "default"}


def test_fields_of_pretooluse() -> None:
    """The tool's input, optional there, is required here: a gate that sees no input cannot judge it."""
    check_fields("PreToolUse", {"tool_name": "Bash", "tool_input": {}}, {**CALL, **WHERE})


def test_fields_of_posttooluse() -> None:
    check_fields("PostToolUse", {"tool_name": "Bash"}, {**CALL, "tool_response": {"stdout": ""}})


def test_fields_of_posttoolusefailure() -> None:
    """The real client says what failed, and that is required here."""
    check_fields("PostToolUseFailure", {"tool_name": "Bash", "error": "no"}, {**CALL, "tool_response": {"stdout": ""}})


def test_fields_of_userpromptsubmit() -> None:
    check_fields("UserPromptSubmit", {"prompt": "do it"}, WHERE)


def test_fields_of_stop() -> None:
    check_fields("Stop", {}, {"stop_hook_active": True})


def test_fields_of_subagentstart() -> None:
    check_fields("SubagentStart", {"agent_id": "agent_456", "agent_type": "Explore"}, WHERE)


def test_fields_of_subagentstop() -> None:
    check_fields("SubagentStop", {"agent_id": "a"}, {"agent_transcript_path": "/t.jsonl", "stop_hook_active": False})


def test_fields_of_sessionstart() -> None:
    check_fields("SessionStart", {}, {"source": "startup", "model": "opus", "agent_type": "reviewer"})
    session = after(make("SessionStart", source="startup", model="opus", agent_type="reviewer"))
    assert (session.model, session.agent_type) == ("opus", "reviewer")


def test_fields_of_sessionend() -> None:
    check_fields("SessionEnd", {}, {"reason": "logout"})


def test_fields_of_precompact() -> None:
    check_fields("PreCompact", {}, {"trigger": "manual", "custom_instructions": "keep the plan"})


def test_fields_of_setup() -> None:
    check_fields("Setup", {}, {"trigger": "init"})


def test_fields_of_notification() -> None:
    check_fields("Notification", {}, {"notification_type": "idle_prompt", "message": "waiting"})


# -- Subagent Tracking ---------------------------------------------------------------------------------


def test_subagents_as_child_sessions() -> None:
    """A child has its parent's id and an id of its own; a main session has neither."""
    client = FakeClient()
    client("SubagentStart", agent_id="agent_456", agent_type="Explore")

    assert (client.main.parent, client.main.agent_id, client.main.is_child) == ("", "", False)
    child = client.child("agent_456")
    assert (child.parent, child.agent_id, child.is_child) == ("abc123", "agent_456", True)


def test_hierarchy_example() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    for agent_id, kind in (("agent_456", "Explore"), ("agent_789", "Plan"), ("agent_012", "CodeReviewer")):
        client("SubagentStart", agent_id=agent_id, agent_type=kind)
    client("SubagentStop", agent_id="agent_789", agent_type="Plan")

    rows = [(child.agent_type, type(child.state)) for child in client.registry.children_of("abc123")]

    assert type(client.state) is Working
    assert rows == [("Explore", Working), ("Plan", Idle), ("CodeReviewer", Working)]


def test_lifecycle_subagentstart() -> None:
    """Create child session with parent_session_id = current session."""
    client = FakeClient()
    changes = client("SubagentStart", agent_id="agent_456", agent_type="Explore")

    assert {change.session.id for change in changes} == {"abc123", "abc123/agent_456"}
    child = client.child("agent_456")
    assert (child.agent_type, child.started, child.duration(START + 11)) == ("Explore", START + 1, 10)


def test_lifecycle_subagentstop() -> None:
    """Set child status to Idle."""
    client = FakeClient()
    client("SubagentStart", agent_id="agent_456", agent_type="Explore")
    client("SubagentStop", agent_id="agent_456", agent_type="Explore", after=5)

    assert client.child("agent_456").state == IDLE
    assert client.child("agent_456").duration(START + 1000) == 5


# -- Registry Changes ----------------------------------------------------------------------------------


def test_sessions_by_pid() -> None:
    client = FakeClient()
    client("SessionStart")

    assert client.registry.in_process(42, 1000) == [client.main]
    assert client.registry.in_process(42, 1001) == []


def test_sessions_by_agent_id() -> None:
    client = FakeClient()
    client("SubagentStart", agent_id="agent_456", agent_type="Explore")

    assert client.registry.agent("agent_456") == client.child("agent_456")
    assert client.registry.agent("nobody") is None


# -- HookEventType Enum --------------------------------------------------------------------------------

TWELVE = """
PreToolUse PostToolUse PostToolUseFailure UserPromptSubmit Stop SubagentStart SubagentStop SessionStart SessionEnd
PreCompact Setup Notification
""".split()  # noqa: SIM905 - as the document lists them


def test_all_12_claude_code_hook_events() -> None:
    assert len(TWELVE) == 12
    for name in TWELVE:
        agent = {"agent_id": "a", "agent_type": "t"} if name.startswith("Subagent") else {}
        assert HookEvent[name].value == name
        assert after(make(name, **agent)).last_activity == START + 1
