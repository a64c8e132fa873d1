"""The policy of a folder stays cached while folders above it change, and only as long as it is the same."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from contextlib import suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING

import pytest

from fairlead.errors import NeedsThread
from fairlead.policy import shared_lookups, watch_folders
from fairlead.policy.config import _memory_cache
from fairlead.policy.config._files import LoadedPolicy, load_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(params=["asked", "watched"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder without a policy, two folders below one that changes all the time; in a daemon, folders are watched."""
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path / "home"))
    folder = tmp_path / "busy/project/src"
    folder.mkdir(parents=True)
    if request.param == "watched":
        if not sys.platform.startswith("linux"):
            pytest.skip("folders are watched on Linux")
        watch_folders()
    yield folder
    watch, _memory_cache._Watching.watch = _memory_cache._Watching.watch, None
    if watch is not None:
        watch.close()


def cached(folder: Path) -> LoadedPolicy:
    return load_policy(str(folder), may_wait=False)


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
    with pytest.raises(NeedsThread):
        cached(folder)


def test_a_repository_above_ends_the_cache(folder: Path, tmp_path: Path) -> None:
    first = cached(folder)
    (tmp_path / "busy/project/.git").mkdir()
    assert cached(folder) is not first


def test_another_folder_in_the_place_of_one_above_ends_the_cache(folder: Path, tmp_path: Path) -> None:
    first = cached(folder)
    for place in ("busy/project", "busy"):
        (tmp_path / place).rename(tmp_path / f"away-{place.replace('/', '-')}")
        folder.mkdir(parents=True)
        assert cached(folder) is not first
        first = _once_it_is_cached(folder)
    (folder / ".git").mkdir()
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
    with pytest.raises(NeedsThread):
        cached(link / "project/src")


def test_events_that_have_arrived_share_their_lookups_and_later_ones_do_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_memory_cache, "MIN_AGE", 0)
    first = cached(folder)
    monkeypatch.setattr(shared_lookups, "stamps", {})
    assert cached(folder) is first
    (folder / ".fairlead.yaml").write_text("stop: {infinite: true}\n")
    assert cached(folder) is first
    monkeypatch.setattr(shared_lookups, "stamps", {})
    with pytest.raises(NeedsThread):
        cached(folder)


def _edit(file: Path) -> None:
    with file.open("r+") as opened:
        opened.write("stop: {infinite: false}\n")


def _edit_and_set_the_time_back(file: Path) -> None:
    before = file.stat()
    _edit(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def _replace(file: Path) -> None:
    other = file.with_name("other")
    other.write_text("stop: {infinite: false}\n")
    other.replace(file)


def _point_elsewhere(file: Path) -> None:
    other = file.parents[2] / "another-policy"
    other.write_text("stop: {infinite: false}\n")
    file.unlink()
    file.symlink_to(other)


def _rename_parent(file: Path) -> None:
    file.parent.rename(file.parent.with_name("away"))
    file.parent.mkdir()
    (file.parent / "src").mkdir()


def _create_user_wide(file: Path) -> None:
    home = file.parents[2] / "home"
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text("stop: {infinite: false}\n")


def _once_it_is_cached(folder: Path) -> LoadedPolicy:
    """Return the policy when it is cached: not before its files and folders are older than a tick of the clock."""
    deadline = monotonic() + 10
    while monotonic() < deadline:
        first = load_policy(str(folder))
        with suppress(NeedsThread):
            first = cached(folder)
            if cached(folder) is first:
                return first
        sleep(0.01)
    raise AssertionError("the policy was never cached")


@pytest.mark.parametrize(
    "change",
    [
        *(_edit, _edit_and_set_the_time_back, _replace, _point_elsewhere, _rename_parent, _create_user_wide),
        os.unlink,
    ],
)
def test_a_changed_policy_is_never_taken_from_the_cache(
    folder: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    file = tmp_path / "busy/project/.fairlead.yaml"
    file.write_text("stop: {infinite: true}\n")
    first = _once_it_is_cached(folder)
    change(file)
    try:
        assert cached(folder) is not first
    except NeedsThread:
        assert load_policy(str(folder)) != first


def test_folders_that_are_watched_are_not_asked_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".fairlead.yaml").write_text("stop: {infinite: true}\n")
    first = _once_it_is_cached(folder)
    asked: list[str] = []
    stamp = _memory_cache._stamp

    def noted(path: str) -> _memory_cache.Stamp:
        asked.append(path)
        return stamp(path)

    monkeypatch.setattr(_memory_cache, "_stamp", noted)
    assert cached(folder) is first
    is_watched = _memory_cache._Watching.watch is not None
    assert (asked == [str(folder / ".fairlead.yaml")]) == is_watched


def _write_through_a_mapping(file: Path) -> None:
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapping:
        mapping[:22] = b"stop: {infinite: null}"


def _write_and_keep_open(file: Path) -> None:
    _open.append(os.open(file, os.O_WRONLY))
    os.write(_open[-1], b"stop: {infinite: null}")


def _write_another_name(file: Path) -> None:
    other = file.parents[2] / "another-name"
    other.hardlink_to(file)
    other.write_text("stop: {infinite: null}")


_open: list[int] = []


@pytest.mark.parametrize("change", [_write_through_a_mapping, _write_and_keep_open, _write_another_name])
def test_a_change_that_the_kernel_does_not_report_is_seen_at_once(
    folder: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    file = tmp_path / "busy/project/.fairlead.yaml"
    file.write_text("stop: {infinite: true}\n")
    first = _once_it_is_cached(folder)
    change(file)
    try:
        assert cached(folder) is not first
    except NeedsThread:
        assert load_policy(str(folder)) != first
    finally:
        while _open:
            os.close(_open.pop())


@pytest.mark.parametrize("make", [os.link, os.symlink])
def test_a_file_with_another_name_is_looked_at_for_each_event(
    folder: Path, tmp_path: Path, make: Callable[[Path, Path], None]
) -> None:
    other = tmp_path / "another-name"
    other.write_text("stop: {infinite: true}\n")
    make(other, tmp_path / "busy/project/.fairlead.yaml")
    _once_it_is_cached(folder)
    other.write_text("stop: {infinite: null}\n")
    with pytest.raises(NeedsThread):
        cached(folder)


def test_a_folder_behind_a_link_is_not_watched(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "busy")
    watch = _memory_cache._Watching.watch
    if watch is not None:
        assert watch.add(str(folder))
        assert watch.add(str(folder / "missing/below"))
        assert not watch.add(str(tmp_path / "link/project/src"))
        assert not watch.add("/proc/self")


def test_a_link_that_takes_the_place_of_a_folder_in_use_ends_the_cache(folder: Path, tmp_path: Path) -> None:
    """The kernel reports the end of a folder only when no process has it as its working directory any more."""
    other = tmp_path / "other"
    other.mkdir()
    (other / ".fairlead.yaml").write_text("stop: {infinite: true}\n")
    below = folder / "below"
    below.mkdir()
    _once_it_is_cached(below)
    uses = subprocess.Popen(["sleep", "60"], cwd=below)
    try:
        below.rmdir()
        below.symlink_to(other)
        with pytest.raises(NeedsThread):
            cached(below)
    finally:
        uses.kill()
        uses.wait()


def test_a_folder_below_one_that_cannot_be_watched_is_never_taken_for_watched(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = _memory_cache._Watching.watch
    if watch is None:
        return
    watch._start_again()
    monkeypatch.setattr(watch, "_is_local", lambda path: path != str(folder.parent))
    assert [watch.add(str(folder)), watch.add(str(folder))] == [False, False]


def test_more_folders_than_can_be_watched_end_the_cache_and_not_the_watch(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.policy.paths._folder_watch._MAX_WATCHES", 12)
    first = _once_it_is_cached(folder)
    for number in range(20):
        other = tmp_path / f"other{number}"
        other.mkdir()
        _once_it_is_cached(other)
    assert cached(folder) is first
    (folder / ".fairlead.yaml").write_text("stop: {infinite: true}\n")
    with pytest.raises(NeedsThread):
        cached(folder)
