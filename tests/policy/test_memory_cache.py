"""The policy of a folder stays cached while folders above it change, and only as long as it is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fairlead.policy import shared_lookups
from fairlead.policy.config import _memory_cache
from fairlead.policy.config._files import LoadedPolicy, NotCached, load_policy

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without a policy, two folders below one that changes all the time."""
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path / "home"))
    folder = tmp_path / "busy/project/src"
    folder.mkdir(parents=True)
    return folder


def cached(folder: Path) -> LoadedPolicy:
    return load_policy(str(folder), cached_only=True)


def test_a_file_above_that_is_no_policy_does_not_end_the_cache(folder: Path, tmp_path: Path) -> None:
    first = cached(folder)
    for name in ("notes.txt", ".fairlead.yaml.swp", "fairlead.yaml"):
        (tmp_path / "busy" / name).write_text("stop: {infinite: true}\n")
        assert cached(folder) is first
    (tmp_path / "busy/notes.txt").unlink()
    assert cached(folder) is first


@pytest.mark.parametrize("name", [".fairlead.yaml", ".conclaude.yml"])
@pytest.mark.parametrize("place", ["busy", "busy/project", "busy/project/src"])
def test_a_new_policy_above_is_seen_at_once(folder: Path, tmp_path: Path, place: str, name: str) -> None:
    cached(folder)
    (tmp_path / "busy/other").write_text("")
    cached(folder)
    (tmp_path / place / name).write_text("stop: {infinite: true}\n")
    with pytest.raises(NotCached):
        cached(folder)


def test_a_repository_above_ends_the_cache(folder: Path, tmp_path: Path) -> None:
    first = cached(folder)
    (tmp_path / "busy/project/.git").mkdir()
    assert cached(folder) is not first


def test_another_folder_in_the_place_of_one_above_ends_the_cache(folder: Path, tmp_path: Path) -> None:
    first = cached(folder)
    (tmp_path / "busy/project").rename(tmp_path / "busy/away")
    folder.mkdir(parents=True)
    assert cached(folder) is not first


def test_a_link_above_that_is_pointed_elsewhere_ends_the_cache(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_memory_cache, "MIN_AGE", 0)
    elsewhere = tmp_path / "elsewhere/project/src"
    elsewhere.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "busy")
    assert cached(link / "project/src").layers == ()
    (tmp_path / "elsewhere/.fairlead.yaml").write_text("stop: {infinite: true}\n")
    link.unlink()
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotCached):
        cached(link / "project/src")


def test_events_that_have_arrived_share_their_lookups_and_later_ones_do_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_memory_cache, "MIN_AGE", 0)
    first = cached(folder)
    with shared_lookups():
        assert cached(folder) is first
        (folder / ".fairlead.yaml").write_text("stop: {infinite: true}\n")
        assert cached(folder) is first
    with pytest.raises(NotCached), shared_lookups():
        cached(folder)
