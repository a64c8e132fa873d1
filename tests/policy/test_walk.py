"""Globs mean what they mean to the library, but are bounded by what is looked at."""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING

import pytest

from fairlead.policy.paths import _search as _walk
from fairlead.policy.paths._resolve import Disk
from fairlead.policy.paths._search import TooMany, expand

if TYPE_CHECKING:
    from pathlib import Path

FILES = ("f.py", "a/f.py", "a/b/g.py", "a/b/c/h.txt", ".env", "a/.env", ".h/x/f.py", "a/[x].py", "é/ü.py")
GLOBS = ("*", "**", "**/*.py", "*/f.py", "a/**", "a/*/*", "?.py", "[af]*", ".*", "*/.*", "**/b/**/*", "a/b/../b/*.py")
MORE_GLOBS = ("nope/*", "a/[[]x].py", "**/", "*/", "ln/*", "**/**/f.py", ".h/*/f.py", "[!a]*", "*/*/*/h.*", "a//*.py")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in FILES:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (tmp_path / "ln").symlink_to(tmp_path / "a")
    return tmp_path


@pytest.mark.parametrize("pattern", GLOBS + MORE_GLOBS)
def test_a_glob_finds_what_the_library_finds(tree: Path, pattern: str) -> None:
    found = {os.path.realpath(target.disk) for target in expand(pattern, Disk(str(tree)))}
    assert found == {os.path.realpath(tree / name) for name in glob.iglob(f"{tree}/{pattern}", recursive=True)}  # noqa: PTH207 - the measure


def test_a_glob_that_finds_little_and_looks_at_much_is_given_up(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_walk, "MAX_LOOKED_AT", 5)
    with pytest.raises(TooMany, match=r"\*\*/h.txt looks at more than 5 files"):
        expand("**/h.txt", Disk(str(tree)))


def test_a_glob_over_the_whole_disk_ends_soon() -> None:
    with pytest.raises(TooMany):
        expand("/**/there-is-no-such-file", Disk("/"))
