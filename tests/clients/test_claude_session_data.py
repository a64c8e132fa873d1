"""What Claude Code keeps about its sessions: session files, to-do lists, the file of exported variables."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from fairlead.clients import ClientSessionFile, Task
from fairlead.clients.claude._env_file import export_session
from fairlead.clients.claude._environment import config_folder
from fairlead.clients.claude._session_files import find_session_files, parse_session_file
from fairlead.clients.claude._tasks import MAX_SIZE, read_tasks

if TYPE_CHECKING:
    from pathlib import Path

# -- session files ---------------------------------------------------------------------------------------

FILE = b"""{"pid": 12345, "sessionId": "s", "cwd": "/home/user/project", "startedAt": 1794773764147,
"procStart": "438534", "version": "2.1.325", "peerProtocol": 1, "kind": "interactive", "entrypoint": "cli",
"messagingSocketPath": "/x.sock", "name": "project-d5", "status": "waiting", "updatedAt": 1794773773757,
"statusUpdatedAt": 1794773773757, "waitingFor": "permission prompt", "asksForConvertedSkills": null}"""


def test_a_file_of_the_client_is_read() -> None:
    assert parse_session_file(FILE) == ClientSessionFile(
        pid=12345,
        session_id="s",
        start=438534,
        status="waiting",
        waiting_for="permission prompt",
        status_at=1794773773.757,
        started=1794773764.147,
        cwd="/home/user/project",
        version="2.1.325",
        name="project-d5",
        in_terminal=True,
    )


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff", b'{"pid":"1","sessionId":"s"}', b'{"pid":1}', b"[" * 9999])
def test_what_is_no_such_file_is_none(text: bytes) -> None:
    assert parse_session_file(text) is None


def test_odd_values_are_left_out() -> None:
    odd = b'{"pid":1,"sessionId":"s","procStart":"Mon","status":3,"statusUpdatedAt":true,"startedAt":1e300,"cwd":null}'

    assert parse_session_file(odd) == ClientSessionFile(1, "s")


def test_a_folder_is_read_and_the_keys_in_it_are_not(tmp_path: Path) -> None:
    (tmp_path / "12345.json").write_bytes(FILE)
    (tmp_path / "12345.abc.key").write_text("secret")
    (tmp_path / "pid-7.json").write_bytes(FILE)
    (tmp_path / "8.json").write_text("{")
    os.mkfifo(tmp_path / "12345.def.key")  # to open it would wait for ever

    assert [session.pid for session in find_session_files(str(tmp_path))] == [12345]
    assert find_session_files(str(tmp_path / "missing")) == []


def test_the_folder_is_the_clients(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions/12345.json").write_bytes(FILE)

    assert len(find_session_files()) == 1


# -- to-do lists -----------------------------------------------------------------------------------------


def write(folder: Path, name: str, content: object) -> None:
    path = folder / "tasks/s1"
    path.mkdir(parents=True, exist_ok=True)
    (path / name).write_text(content if isinstance(content, str) else json.dumps(content))


def test_each_task_is_a_file(tmp_path: Path) -> None:
    for number, status in (("10", "pending"), ("2", "in_progress"), ("1", "completed")):
        write(tmp_path, f"{number}.json", {"id": number, "subject": f"do {number}", "status": status, "blocks": []})
    (tmp_path / "tasks/s1/.lock").touch()

    assert sorted(read_tasks(str(tmp_path), "s1") or (), key=lambda task: int(task.id)) == [
        Task("1", "completed", "do 1"),
        Task("2", "in_progress", "do 2"),
        Task("10", "pending", "do 10"),
    ]


@pytest.mark.parametrize("status", [3, None])
def test_a_status_that_is_no_text_is_left_out(tmp_path: Path, status: object) -> None:
    write(tmp_path, "1.json", {"id": "1", "status": status})

    assert read_tasks(str(tmp_path), "s1") == (Task("1"),)


def test_broken_files_are_skipped(tmp_path: Path) -> None:
    write(tmp_path, "1.json", '{"id": "1", "status": "pen')
    write(tmp_path, "2.json", "[1]")
    write(tmp_path, "3.json", {"id": "3", "status": "pending", "description": "x" * MAX_SIZE})
    write(tmp_path, "4.json", {"status": "pending"})
    (tmp_path / "tasks/s1/5.json").mkdir()
    os.mkfifo(tmp_path / "tasks/s1/6.json")
    (tmp_path / "tasks/s1/7.json").symlink_to(tmp_path / "tasks/s1/4.json")

    assert read_tasks(str(tmp_path), "s1") == (Task("4", "pending"),)


@pytest.mark.parametrize("session", ["", ".", "..", "../s1", "a/b", "s1\n", "x" * 300, "s\0"])
def test_a_session_id_cannot_leave_the_folder(tmp_path: Path, session: str) -> None:
    write(tmp_path, "1.json", {"id": "1", "status": "pending"})

    assert read_tasks(str(tmp_path), session) is None


def test_the_clients_folder_is_found_as_the_client_finds_it() -> None:
    assert config_folder({"HOME": "/home/u"}) == "/home/u/.claude"
    assert config_folder({"HOME": "/home/u", "CLAUDE_CONFIG_DIR": "/etc/c"}) == "/etc/c"
    assert config_folder({"HOME": "/home/u", "CLAUDE_CONFIG_DIR": "c"}, "/project") == "/project/c"


# -- exported variables ----------------------------------------------------------------------------------


def test_only_a_regular_file_of_the_user_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "own").touch()
    (tmp_path / "link").symlink_to(tmp_path / "own")
    (tmp_path / "nowhere").symlink_to(tmp_path / "made")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")

    assert export_session("own", "s1", str(tmp_path))
    assert export_session(str(tmp_path / "link"), "s2")
    assert export_session(str(tmp_path / "new"), "s3")
    assert (tmp_path / "own").read_text() == "export CLAUDE_SESSION_ID='s1'\nexport CLAUDE_SESSION_ID='s2'\n"
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600
    for path in ("nowhere", "folder", "pipe", "no/such/folder"):
        assert not export_session(str(tmp_path / path), "s1"), path
    assert not export_session("/dev/null", "s1")
    assert not export_session("", "s1")
    assert not export_session(str(tmp_path / "own"), "a\0b")
    assert not export_session(str(tmp_path / "\ud800"), "s1")
    assert not (tmp_path / "made").exists()


def test_the_last_line_counts_when_a_session_is_resumed(tmp_path: Path) -> None:
    file = tmp_path / "env"
    for session in ("a", "b", "a", "a"):
        assert export_session(str(file), session)

    assert [line[-2] for line in file.read_text().splitlines()] == ["a", "b", "a"]
