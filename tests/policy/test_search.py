"""A glob matches what the library's `glob` matches, but the number of files that it visits is limited."""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING

import pytest

from fairlead.policy.paths import _search
from fairlead.policy.paths._resolve import PathResolver
from fairlead.policy.paths._search import TooManyFiles, expand

if TYPE_CHECKING:
    from pathlib import Path

FILES = ("f.py", "a/f.py", "a/b/g.py", "a/b/c/h.txt", ".env", "a/.env", ".h/x/f.py", "a/[x].py", "é/ü.py")
GLOBS = (
    *("*", "**", "**/*.py", "*/f.py", "a/**", "a/*/*", "?.py", "[af]*", ".*", "*/.*", "**/b/**/*", "a/b/../b/*.py"),
    *("nope/*", "a/[[]x].py", "**/", "*/", "ln/*", "**/**/f.py", ".h/*/f.py", "[!a]*", "*/*/*/h.*", "a//*.py"),
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in FILES:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (tmp_path / "ln").symlink_to(tmp_path / "a")
    return tmp_path


def test_a_glob_matches_what_the_library_matches(tree: Path) -> None:
    for pattern in GLOBS:
        found = {os.path.realpath(target.disk_path) for target in expand(pattern, PathResolver(str(tree)))}
        library = glob.iglob(f"{tree}/{pattern}", recursive=True)  # noqa: PTH207 - the oracle
        assert found == {os.path.realpath(tree / name) for name in library}, pattern


def test_a_relative_glob_has_relative_matches_also_in_a_folder_with_the_characters_of_globs(tree: Path) -> None:
    folder = tree / "[id]*"
    (folder / "deep").mkdir(parents=True)
    for name in (".env", "~a", "deep/a.py"):
        (folder / name).touch()
    paths = PathResolver(str(folder))
    assert [target.given for target in expand(".en?", paths)] == [".env"]
    assert [target.given for target in expand("./*/*.py", paths)] == ["deep/a.py"]
    assert [target.given for target in expand("?a", paths)] == ["./~a"]
    assert [target.given for target in expand("../f.*", paths)] == ["../f.py"]
    assert [target.given for target in expand(f"{tree}/f.*", paths)] == [f"{tree}/f.py"]


def test_a_glob_that_visits_too_many_files_is_given_up(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_search, "MAX_GLOB_ENTRIES", 5)
    with pytest.raises(TooManyFiles, match=r"\*\*/h.txt searches more than 5 files"):
        expand("**/h.txt", PathResolver(str(tree)))


def test_a_glob_over_the_whole_disk_ends_soon() -> None:
    with pytest.raises(TooManyFiles):
        expand("/**/there-is-no-such-file", PathResolver("/"))
