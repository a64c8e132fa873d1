"""The client's own files, and the processes themselves."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import pytest
from sessions.fake_client import IDLE, START, FakeClient

from fairlead.sessions import (
    AttentionNeeded,
    ClientSessionFile,
    Idle,
    Session,
    State,
    Working,
    find_session_files,
    read_session_file,
    reconcile,
)
from fairlead.sessions._states import Evidence

if TYPE_CHECKING:
    from pathlib import Path

FILE = b"""{"pid": 12345, "sessionId": "s", "cwd": "/home/user/project", "startedAt": 1794773764147,
"procStart": "438534", "version": "2.1.325", "peerProtocol": 1, "kind": "interactive", "entrypoint": "cli",
"messagingSocketPath": "/x.sock", "name": "project-d5", "status": "waiting", "updatedAt": 1794773773757,
"statusUpdatedAt": 1794773773757, "waitingFor": "permission prompt", "asksForConvertedSkills": null}"""


def test_a_file_of_the_client_is_read() -> None:
    assert read_session_file(FILE) == ClientSessionFile(
        pid=12345,
        session_id="s",
        start=438534,
        status="waiting",
        waiting_for="permission prompt",
        status_at=1794773773.757,
        started=1794773764.147,
        cwd="/home/user/project",
        version="2.1.325",
        entrypoint="cli",
        name="project-d5",
    )


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff", b'{"pid":"1","sessionId":"s"}', b'{"pid":1}', b"[" * 9999])
def test_what_is_no_such_file_is_none(text: bytes) -> None:
    assert read_session_file(text) is None


def test_odd_values_are_left_out() -> None:
    odd = b'{"pid":1,"sessionId":"s","procStart":"Mon","status":3,"statusUpdatedAt":true,"startedAt":1e300,"cwd":null}'

    assert read_session_file(odd) == ClientSessionFile(1, "s")


def test_a_folder_is_read_and_the_keys_in_it_are_not(tmp_path: Path) -> None:
    (tmp_path / "12345.json").write_bytes(FILE)
    (tmp_path / "12345.abc.key").write_text("secret")
    (tmp_path / "pid-7.json").write_bytes(FILE)
    (tmp_path / "8.json").write_text("{")
    os.mkfifo(tmp_path / "12345.def.key")  # to open it would wait for ever

    assert [witness.pid for witness in find_session_files(str(tmp_path))] == [12345]
    assert find_session_files(str(tmp_path / "missing")) == []


def test_the_folder_is_the_clients(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions/12345.json").write_bytes(FILE)

    assert len(find_session_files()) == 1


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
    found = read_session_file(FILE)
    assert found is not None
    changes = client.registry.reconcile(
        [found, ClientSessionFile(1, "old"), ClientSessionFile(2, "nostart", 0, "busy")], NOW
    )

    (session,) = client.registry.sessions()
    assert (session.id, session.pid, session.cwd) == ("s", 12345, "/home/user/project")
    assert session.state == AttentionNeeded("Permission prompt")
    assert [change.session for change in changes] == [session]
    assert client.registry.reconcile([found], NOW) == []
