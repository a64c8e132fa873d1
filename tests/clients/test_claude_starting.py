"""What the files beside the client's own say: a start that waits, a pane, a name; and a transcript as text."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from time import time
from typing import TYPE_CHECKING

import pytest

from fairlead.clients import STARTING, client_named
from fairlead.clients.claude._session_files import find_session_files, parse_session_file
from fairlead.process import process_start_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")

PANE = {"TMUX": "/tmp/tmux-0/default,1,0", "TMUX_PANE": "%7"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    (tmp_path / ".claude/sessions").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    return tmp_path


@pytest.fixture
def client(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process under the client's name, in a tmux pane, as its variables say."""
    program = home / "claude"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    with subprocess.Popen([program, "600"], cwd=home / "work", env={**os.environ, **PANE}) as process:
        yield process
        process.kill()


def write_key(home: Path, pid: int, age: float) -> Path:
    key = home / f".claude/sessions/{pid}.0a1b.key"
    key.write_text("secret")
    key.chmod(0)  # it is never opened
    at = time() - age
    os.utime(key, (at, at))
    return key


def trust(home: Path, folder: Path) -> None:
    (home / ".claude.json").write_text(json.dumps({"projects": {str(folder): {"hasTrustDialogAccepted": True}}}))


def starting() -> list[tuple[str, str, str, str]]:
    return [(one.session_id, one.waiting_for, one.cwd, one.pane) for one in find_session_files()]


def test_a_client_with_a_key_and_without_a_session_waits_in_a_dialog(
    home: Path, client: subprocess.Popen[bytes]
) -> None:
    key = write_key(home, client.pid, -1.0)
    assert starting() == [], "it has only just begun"
    os.utime(key, (time() + 1, time() - 0.5))
    work = str(home / "work")
    deadline = time() + 20
    while not starting() and time() < deadline:
        pass
    assert starting() == [(f"{STARTING}{client.pid}", "trust dialog", work, "%7")]
    trust(home, home)
    assert starting() == [], "a folder below one that is trusted is trusted: it is only slow"
    (home / ".claude.json").unlink()
    fields = {"pid": client.pid, "sessionId": "s1", "procStart": str(process_start_time(client.pid)), "status": "idle"}
    (home / f".claude/sessions/{client.pid}.json").write_text(json.dumps(fields))
    assert starting() == [("s1", "", "", "%7")], "it has a session now, and the same pane"


def test_a_key_of_a_process_that_is_gone_or_of_another_program_says_nothing(home: Path) -> None:
    write_key(home, 2**22 + 5, 60.0)
    write_key(home, os.getpid(), 3.0)
    assert starting() == []


def test_a_key_that_is_older_than_its_process_was_written_by_another(
    home: Path, client: subprocess.Popen[bytes]
) -> None:
    write_key(home, client.pid, 3600.0)
    assert starting() == []


@pytest.mark.parametrize(
    ("source", "name"), [("user", "Login"), ("auto", "Login"), (None, "Login"), ("derived", ""), ("collision", "")]
)
def test_a_name_that_the_client_only_made_up_is_none(source: str | None, name: str) -> None:
    fields = {"pid": 1, "sessionId": "s1", "name": "Login"} | ({"nameSource": source} if source else {})
    parsed = parse_session_file(json.dumps(fields).encode())
    assert parsed is not None
    assert parsed.name == name


def test_a_transcript_becomes_text(home: Path) -> None:
    folder = home / ".claude/projects/-x"
    folder.mkdir(parents=True)
    entries = [
        {"type": "user", "timestamp": "2026-11-18T01:35:53.629Z", "message": {"role": "user", "content": "Fix it."}},
        {"type": "user", "isMeta": True, "message": {"content": "not shown"}},
        {"type": "mode", "mode": "normal"},
        {
            "type": "assistant",
            "message": {
                "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "name": "Bash", "input": {"command": "make test"}},
                ]
            },
        },
        {"type": "user", "message": {"content": [{"type": "tool_result", "content": "boom", "is_error": True}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "content": [{"text": "x" * 3000}]}]}},
    ]
    file = folder / "s1.jsonl"
    file.write_text("\n".join([*map(json.dumps, entries), "not json", "[]"]))
    text = list(client_named("claude").transcript_text(str(file)))
    assert text[:-1] == [
        "2026-11-18 01:35:53  you:\nFix it.\n",
        "agent:\nI look.\n",
        "Bash: make test\n",
        "error:\nboom\n",
    ]
    assert text[-1] == f"result:\n{'x' * 2000} …\n"
    outside = home / "elsewhere.jsonl"
    outside.write_text(file.read_text())
    with pytest.raises(ValueError, match="outside the client's folder"):
        list(client_named("claude").transcript_text(str(outside)))
