"""What is known of protected files, and where that ends."""

from __future__ import annotations

import json
import os
import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from fairlead.daemon.integrity import _protected_file_states, _written_paths
from fairlead.daemon.integrity._protected_file_states import ProtectedFileStates
from fairlead.daemon.integrity._restore import RestoreError, restore
from fairlead.daemon.integrity._written_paths import WrittenPaths
from fairlead.policy import ProtectedFiles, find_layers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path / "home"))


def project(tmp_path: Path, *patterns: str) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    rules = {"uneditableFiles": list(patterns), "integrity": "restore", "protectOwnFiles": False}
    (folder / ".fairlead.yaml").write_text(json.dumps({"preToolUse": rules}))
    return folder


def taken(folder: Path) -> ProtectedFileStates:
    known = ProtectedFileStates(ProtectedFiles(find_layers(str(folder))))
    known.scan()
    return known


def found(known: ProtectedFileStates, folder: Path) -> set[tuple[str, str]]:
    return {(os.path.relpath(change.path, folder), change.what) for change in known.find_changes()}


def test_the_files_of_all_folders_are_known(tmp_path: Path) -> None:
    folder = project(tmp_path, ".env", "/docs/*.md")
    names = [".env", "a/b/.env", "docs/x.md", "node_modules/p/.env"]
    for name in [*names, "docs/sub/y.md", ".git/.env", "other"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)

    known = taken(folder)

    for name in [*names, "docs/sub/y.md", ".git/.env", "other"]:
        (folder / name).write_text(f"{name} is another")
    assert found(known, folder) == {(name, "changed") for name in names}


def test_a_folder_that_is_moved_in_brings_its_files(tmp_path: Path) -> None:
    folder = project(tmp_path, ".env")
    known = taken(folder)
    (tmp_path / "made/deep").mkdir(parents=True)
    (tmp_path / "made/deep/.env").write_text("x")

    (tmp_path / "made").rename(folder / "made")

    assert found(known, folder) == {("made/deep/.env", "added")}
    (folder / "made").rename(folder / "moved")
    assert found(known, folder) == {("made/deep/.env", "removed"), ("moved/deep/.env", "added")}
    assert found(known, folder) == set()


def test_new_files_among_installed_packages_are_not_noticed(tmp_path: Path) -> None:
    folder = project(tmp_path, ".env")
    (folder / "node_modules/p").mkdir(parents=True)
    known = taken(folder)

    (folder / "node_modules/p/.env").write_text("x")

    assert found(known, folder) == set()
    assert known.limits == set()


def test_what_is_beyond_the_limits_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(tmp_path, "*.pem")
    for number in range(8):
        (folder / f"{number}").mkdir()
        (folder / f"{number}/{number}.pem").write_text("x")
    monkeypatch.setattr(_protected_file_states, "MAX_FILES", 5)
    monkeypatch.setattr(_protected_file_states, "MAX_FOLDERS", 6)

    known = taken(folder)

    assert (len(known), known.copied) == (5, 5)
    assert known.limits == {
        "more than 5 protected files",
        "more than 6 folders: new files in the others are not noticed",
    }
    monkeypatch.setattr(_protected_file_states, "MAX_ENTRIES", 3)
    assert "more than 3 files: the others were not searched" in taken(folder).limits


def test_copies_end_where_their_limit_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(tmp_path, "*.pem")
    for name in ("a", "b", "c"):
        (folder / f"{name}.pem").write_text("x" * 100)
    monkeypatch.setattr(_protected_file_states, "MAX_COPIES", 150)

    known = taken(folder)

    states = [known.state(str(folder / f"{name}.pem")) for name in ("a", "b", "c")]
    assert sorted(state.content is not None for state in states if state) == [False, True, True]
    assert known.limits == {"files without a copy, because they are too large or cannot be read"}


def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    folder = project(tmp_path, ".env")
    (folder / ".env").write_text("x")
    known = taken(folder)

    (folder / ".env").unlink()
    os.mkfifo(folder / ".env")

    assert found(known, folder) == {(".env", "replaced")}


def test_a_large_file_is_compared_by_its_times_and_size(tmp_path: Path) -> None:
    folder = project(tmp_path, "big")
    big = folder / "big"
    big.write_bytes(b"x" * (8 * 1024 * 1024 + 1))
    known = taken(folder)
    status = big.stat()

    with big.open("r+b") as file:
        file.write(b"y")
    os.utime(big, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert found(known, folder) == {("big", "changed")}


# -- a disk that is full ---------------------------------------------------------------------------------


@contextmanager
def full_disk(limit: int) -> Iterator[None]:
    """Let no file grow beyond a few bytes, as if the disk were full."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [("x" * 100, "y", "File too large"), ("x", "y" * 100, "what is there now cannot be kept: ")],
)
def test_nothing_is_lost_on_a_full_disk(tmp_path: Path, before: str, after: str, problem: str) -> None:
    folder = project(tmp_path, ".env")
    (folder / ".env").write_text(before)
    known = taken(folder)
    (folder / ".env").write_text(after)
    (change,) = known.find_changes()

    with full_disk(10), pytest.raises(RestoreError, match=problem):
        restore(change)

    assert (folder / ".env").read_text() == after
    assert sorted(file.name for file in folder.iterdir()) == [".env", ".fairlead.yaml"]
    assert restore(change)
    assert (folder / ".env").read_text() == before


def test_paths_that_were_written_are_new_to_each_reader_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_written_paths, "MAX_PATHS", 3)
    written = WrittenPaths()
    for path in ("a", "b", "a", "c"):
        assert written.add(path) is None
    assert list(written.since(0)) == ["b", "a", "c"]
    assert list(written.since(3)) == ["c"]
    assert list(written.since(written.count)) == []

    assert written.add("d") == ("b", 2)  # whoever has not read so far is told of it in another way
    assert list(written.since(0)) == ["a", "c", "d"]
