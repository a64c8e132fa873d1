"""The client's own files, and the processes themselves."""

from __future__ import annotations

import msgspec
import pytest
from sessions.fake_client import IDLE, START, FakeClient

from fairlead.clients import ClientSessionFile
from fairlead.sessions import (
    AttentionNeeded,
    Idle,
    Session,
    State,
    Working,
    reconcile,
)
from fairlead.sessions._session import Evidence

FILE = ClientSessionFile(
    pid=12345,
    session_id="s",
    start=438534,
    status="waiting",
    waiting_for="permission prompt",
    status_at=1794773773.757,
    started=1794773764.147,
    cwd="/home/user/project",
    name="project-d5",
    in_terminal=True,
)


# -- two witnesses -------------------------------------------------------------------------------------

ASKED = AttentionNeeded("Permission for Bash")
QUESTION = AttentionNeeded("AskUserQuestion")
FAILED = AttentionNeeded("API error: overloaded")
NOW = START + 100

TABLE: list[tuple[State, str, State]] = [
    (Working("Bash"), "idle", Idle()),
    (Working("Bash"), "waiting", AttentionNeeded("Permission prompt")),
    (Working("Bash"), "busy", Working("Bash")),
    (ASKED, "busy", Working("Thinking")),
    (ASKED, "idle", Idle()),
    (ASKED, "waiting", ASKED),
    (FAILED, "idle", FAILED),
    (QUESTION, "idle", Idle()),
    (Idle(), "busy", Working()),
    (Idle(), "waiting", AttentionNeeded("Permission prompt")),
    (Idle(), "idle", Idle()),
    (Idle(), "shell", Idle()),
    (Working("Bash"), "shell", Working("Bash")),
    (ASKED, "", ASKED),
]


def told(state: State, at: float = START) -> Session:
    return Session(id="s", state=state, evidence=Evidence("PreToolUse", at), in_turn=type(state) is not Idle)


def seen(status: str, at: float = START + 50) -> ClientSessionFile:
    return ClientSessionFile(7, "s", 9, status, "permission prompt" if status == "waiting" else "", at)


@pytest.mark.parametrize(("hooks", "client", "believed"), TABLE)
def test_where_hooks_and_client_disagree(hooks: State, client: str, believed: State) -> None:
    after = reconcile(told(hooks), seen(client), NOW)

    assert after.state == believed
    assert after.evidence is not None
    if believed != hooks:
        assert (after.evidence.source, after.since) == ("client", START + 50)
        assert after.evidence.why
    assert reconcile(after, seen(client), NOW + 1) == after


@pytest.mark.parametrize(("hooks", "client", "believed"), TABLE)
def test_within_a_moment_and_against_newer_events_hooks_are_believed(
    hooks: State, client: str, believed: State
) -> None:
    assert reconcile(told(hooks), seen(client, NOW - 1), NOW).state == hooks
    assert reconcile(told(hooks, START + 60), seen(client), NOW).state == hooks


def test_a_question_that_the_client_calls_idle_at_once_is_a_question() -> None:
    assert reconcile(told(QUESTION), seen("idle", START + 1), NOW).state == QUESTION


def test_a_file_about_another_process_is_no_witness() -> None:
    session = msgspec.structs.replace(told(Working("Bash")), pid=7, pid_start=8)

    assert reconcile(session, seen("idle"), NOW) is session


def test_an_interrupt_ends_what_ran_in_front_and_leaves_what_runs_in_the_background() -> None:
    client = FakeClient()
    client("UserPromptSubmit")
    client.post("Agent", tool_response={"status": "async_launched", "agentId": "back"}, tool_input={})
    client("SubagentStart", agent_id="front", agent_type="Explore")
    client.registry.reconcile([ClientSessionFile(42, "abc123", 1000, "idle", "", client.now + 1)], client.now + 10)

    assert client.state == Working("general-purpose in background")
    assert (client.child("front").state, client.child("back").ended) == (IDLE, None)


def test_sessions_that_began_before_us_are_discovered() -> None:
    client = FakeClient()
    changes = client.registry.reconcile(
        [FILE, ClientSessionFile(1, "old"), ClientSessionFile(2, "nostart", 0, "busy")], NOW
    )

    (session,) = client.registry.sessions()
    assert (session.id, session.pid, session.cwd) == ("s", 12345, "/home/user/project")
    assert session.state == AttentionNeeded("Permission prompt")
    assert [change.session for change in changes] == [session]
    assert client.registry.reconcile([FILE], NOW) == []


def test_a_discovered_session_without_any_time_is_as_old_as_our_knowledge_of_it() -> None:
    """Else it would have waited since 1970."""
    client = FakeClient()
    client.registry.reconcile([ClientSessionFile(42, "timeless", 1000, "busy")], NOW)
    client.registry.reconcile([ClientSessionFile(42, "timeless", 1000, "busy")], NOW + 10)

    (session,) = client.registry.sessions()
    assert (session.since, session.started, session.last_activity) == (NOW, NOW, NOW)
    assert session.in_state(NOW + 10) == 10
