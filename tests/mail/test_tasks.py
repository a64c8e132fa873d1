"""An agent's tasks, read from the client's own files, or heard of by events."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from fairlead.mail._tasks import LARGEST, Task, TasksHeard, config_folder, incomplete, read_tasks

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, name: str, content: object) -> None:
    place = folder / "tasks/s1"
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(content if isinstance(content, str) else json.dumps(content))


def test_tasks_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number, status in (("10", "pending"), ("2", "in_progress"), ("1", "completed")):
        write(tmp_path, f"{number}.json", {"id": number, "subject": f"do {number}", "status": status, "blocks": []})
    (tmp_path / "tasks/s1/.lock").touch()

    tasks = read_tasks(str(tmp_path), "s1")

    assert tasks == (
        Task("1", "completed", "do 1"),
        Task("2", "in_progress", "do 2"),
        Task("10", "pending", "do 10"),
    )
    assert [task.id for task in incomplete(tasks)] == ["2", "10"]


@pytest.mark.parametrize("status", ["completed", "deleted", "something newer", "", 3, None])
def test_only_what_is_pending_or_in_progress_is_incomplete(tmp_path: Path, status: object) -> None:
    write(tmp_path, "1.json", {"id": "1", "status": status})

    assert incomplete(read_tasks(str(tmp_path), "s1") or ()) == ()


def test_broken_files_are_skipped(tmp_path: Path) -> None:
    write(tmp_path, "1.json", '{"id": "1", "status": "pen')
    write(tmp_path, "2.json", "[1]")
    write(tmp_path, "3.json", {"id": "3", "status": "pending", "description": "x" * LARGEST})
    write(tmp_path, "4.json", {"status": "pending"})
    (tmp_path / "tasks/s1/5.json").mkdir()
    os.mkfifo(tmp_path / "tasks/s1/6.json")
    (tmp_path / "tasks/s1/7.json").symlink_to(tmp_path / "tasks/s1/4.json")

    assert read_tasks(str(tmp_path), "s1") == (Task("4", "pending"),)


@pytest.mark.parametrize("session", ["", ".", "..", "../s1", "a/b", "s1\n", "x" * 300, "s\0"])
def test_a_session_id_is_no_way_out_of_the_folder(tmp_path: Path, session: str) -> None:
    write(tmp_path, "1.json", {"id": "1", "status": "pending"})

    assert read_tasks(str(tmp_path), session) is None


def test_the_clients_folder_is_found_as_the_client_finds_it() -> None:
    assert config_folder({"HOME": "/home/u"}) == "/home/u/.claude"
    assert config_folder({"HOME": "/home/u", "CLAUDE_CONFIG_DIR": "/etc/c"}) == "/etc/c"
    assert config_folder({"HOME": "/home/u", "CLAUDE_CONFIG_DIR": "c"}, "/project") == "/project/c"


def test_without_files_the_tasks_are_those_that_events_told_of(tmp_path: Path) -> None:
    heard = TasksHeard()
    heard.take("s1", Task("1", "pending", "one"))
    heard.take("s1", Task("2", "pending", "two"))
    heard.take("s1", Task("1", "completed", "one"))

    assert heard.of("s1", str(tmp_path)) == (Task("1", "completed", "one"), Task("2", "pending", "two"))
    assert heard.of("s2", str(tmp_path)) == ()

    write(tmp_path, "9.json", {"id": "9", "status": "pending"})
    assert heard.of("s1", str(tmp_path)) == (Task("9", "pending"),)

    heard.forget("s1")
    (tmp_path / "tasks/s1/9.json").unlink()
    (tmp_path / "tasks/s1").rmdir()
    assert heard.of("s1", str(tmp_path)) == ()
