"""Projects, worktrees and branches of folders, and when they are looked up."""

from __future__ import annotations

import subprocess
from queue import SimpleQueue
from typing import TYPE_CHECKING

from fairlead.tui.model._projects import Location, ProjectLocator, find_location
from fairlead.tui.model._rows import short_model

if TYPE_CHECKING:
    from pathlib import Path


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_worktrees_share_their_project(tmp_path: Path) -> None:
    main = tmp_path / "shop"
    main.mkdir()
    git(main, "init", "-q", "-b", "trunk")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", "-b", "fix/one", str(tmp_path / "shop-fix"))
    inside = main / "src/deep"
    inside.mkdir(parents=True)

    assert find_location(str(inside)) == Location(str(main), str(main), "trunk")
    assert find_location(str(tmp_path / "shop-fix")) == Location(str(main), str(tmp_path / "shop-fix"), "fix/one")

    git(main, "checkout", "-q", "--detach")
    assert len(find_location(str(main)).branch) == 8


def test_what_is_no_repository_is_its_own_project(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd/.git").write_bytes(b"\xff\x00nonsense")

    for folder in (str(tmp_path), str(tmp_path / "gone"), str(tmp_path / "odd"), "", "relative", "/\0"):
        assert find_location(folder) == Location(folder, folder)


def test_a_folder_is_looked_up_once_in_a_while() -> None:
    found: list[str] = []
    reported: SimpleQueue[str] = SimpleQueue()

    def find(folder: str) -> Location:
        found.append(folder)
        return Location(folder, folder)

    locator = ProjectLocator(lambda folder, _location: reported.put(folder), find)
    for now, folder in ((1.0, "/a"), (2.0, "/a"), (8.0, "/a"), (8.0, "/b")):
        locator.request(folder, now)

    assert [reported.get(timeout=30), reported.get(timeout=30)] == ["/a", "/b"]
    assert found == ["/a", "/a", "/b"]


def test_a_model_is_named_without_its_maker_and_date() -> None:
    assert short_model("claude-opus-4-8-20260701") == "opus-4-8"
    assert short_model("other/model") == "other/model"
