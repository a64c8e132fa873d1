"""Which file a path leads to, and every name on the way there."""

from __future__ import annotations

import os
import subprocess
import unicodedata
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.policy.paths._gitignore import Pattern
from fairlead.policy.paths._resolve import BaseFolder, PathResolver, resolve
from fairlead.policy.paths._spelling import is_case_insensitive

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project, by its real name."""
    project = tmp_path.resolve() / "project"
    (project / "src" / "deep").mkdir(parents=True)
    (project / "secret.txt").write_text("s")
    (project / "src" / "main.py").write_text("m")
    return project


def test_every_spelling_leads_to_the_same_file(folder: Path) -> None:
    spellings = [
        *("secret.txt", "./secret.txt", "././/secret.txt", "src/../secret.txt", "src/deep/../../secret.txt"),
        *("missing/../secret.txt", "secret.txt/", "secret.txt/.", "../project/secret.txt"),
        *(f"{folder}/secret.txt", f"{folder}//secret.txt", f"/{folder}/secret.txt"),
        *(f"//{folder}/./src/../secret.txt", "/proc/self/cwd/secret.txt", "/proc/thread-self/cwd/src/../secret.txt"),
        *("/proc/1/cwd/secret.txt", f"/proc/self/root{folder}/secret.txt"),
    ]

    assert [path for path in spellings if resolve(path, str(folder)).real != f"{folder}/secret.txt"] == []


PARTS = ["src", "deep", "main.py", "secret.txt", "missing", "link", "loop", "away", "up", "..", ".", "", ".env", "a..b"]
COMPARED = ("given", "names", "real", "disk_path", "exists", "is_folder", "is_file", "case_insensitive")


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with links in it: down, up, to nowhere and back to the top."""
    folder = tmp_path_factory.mktemp("linked").resolve()
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "secret.txt").touch()
    (folder / "src" / "main.py").touch()
    (folder / "link").symlink_to("src/deep")
    (folder / "src" / "up").symlink_to("..")
    (folder / "loop").symlink_to("loop")
    (folder / "src" / "deep" / "away").symlink_to(folder)
    return folder


@settings(max_examples=300, deadline=None)
@given(paths=st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=6), min_size=1, max_size=6))
def test_the_cached_lookup_agrees_with_the_full_one(paths: list[list[str]], linked: Path) -> None:
    """The cache is shared by the paths of one check, and must not make one of them wrong."""
    paths_of_check = PathResolver(str(linked))
    for path in ["/".join(parts) for parts in paths]:
        for given_path in (path, f"{linked}/{path}"):
            fast, slow = paths_of_check.resolve(given_path), resolve(given_path, str(linked))
            assert [getattr(fast, name) for name in COMPARED] == [getattr(slow, name) for name in COMPARED], given_path


def test_both_lookups_resolve_the_links_of_a_process(folder: Path) -> None:
    paths = ("self/cwd/secret.txt", "proc/self/cwd/x", "cwd/x", f"/proc/self/root{folder}/secret.txt")
    for cwd in ("/", "/proc", "/proc/self", "//proc", "/proc/self/cwd"):
        for path in paths:
            assert PathResolver(cwd).resolve(path).names == resolve(path, cwd).names, (cwd, path)


def test_the_next_check_looks_at_the_disk_again(folder: Path) -> None:
    assert not PathResolver(str(folder)).resolve("src/new").exists
    (folder / "src" / "new").symlink_to("../secret.txt")

    assert PathResolver(str(folder)).resolve("src/new").real == f"{folder}/secret.txt"


def test_a_very_long_path_is_resolved(folder: Path) -> None:
    assert not PathResolver(str(folder)).resolve("src/" * 20_000).exists


def test_a_tilde_is_the_home_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))

    assert resolve("~/secret.txt", "/").real == f"{folder}/secret.txt"
    assert resolve("~", "/").real == str(folder)


def test_links_are_followed_also_where_the_last_parts_do_not_exist(folder: Path) -> None:
    (folder / "link").symlink_to("src")

    assert resolve("link/new/file.py", str(folder)).real == f"{folder}/src/new/file.py"


def test_a_dangling_link_leads_to_the_file_that_would_be_created(folder: Path) -> None:
    (folder / "link").symlink_to("src/later.py")
    target = resolve("link", str(folder))

    assert (target.real, target.exists) == (f"{folder}/src/later.py", False)


def test_the_name_after_each_link_is_known(folder: Path) -> None:
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("secret.txt")

    assert resolve("one", str(folder)).names == (f"{folder}/one", f"{folder}/two", f"{folder}/secret.txt")


def test_dots_behind_a_link_are_followed_both_ways(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "below").mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path / "elsewhere" / "below")
    names = resolve("link/../secret.txt", str(folder)).names

    assert f"{folder}/secret.txt" in names
    assert f"{tmp_path.resolve()}/elsewhere/secret.txt" == names[-1]


def test_a_loop_of_links_ends(folder: Path) -> None:
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    target = resolve("a/x", str(folder))

    assert not target.exists
    assert {f"{folder}/a/x", f"{folder}/b/x"} <= set(target.names)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_names_are_compared_in_nfc_and_looked_up_as_they_are(form: Literal["NFC", "NFD"], folder: Path) -> None:
    name = unicodedata.normalize(form, "clé.txt")
    (folder / name).write_text("x")
    target = resolve(name, str(folder))

    assert target.real == f"{folder}/" + unicodedata.normalize("NFC", "clé.txt")
    assert target.exists
    assert Pattern(unicodedata.normalize("NFD", "clé.txt"), BaseFolder.at(str(folder))).matches(target)


def test_a_nul_is_an_error_and_not_a_pass() -> None:
    with pytest.raises(ValueError, match="null"):
        resolve("a\0b", "/tmp")


def test_where_the_disk_ignores_case_its_own_case_is_found(folder: Path) -> None:
    target = resolve("SRC/Main.PY", str(folder), lambda _: True)

    assert target.real == f"{folder}/src/main.py"
    assert Pattern("SECRET.*", BaseFolder.at(str(folder))).matches(resolve("secret.TXT", str(folder), lambda _: True))


def test_whether_case_matters_is_probed_on_the_disk(folder: Path) -> None:
    ignored = (folder / "SRC").exists()

    assert is_case_insensitive(str(folder / "src")) is ignored
    assert is_case_insensitive(str(folder / "missing" / "below")) is ignored


def test_the_root_of_a_disk_that_ignores_case_is_probed_by_its_own_files(folder: Path) -> None:
    """Two hard links stand for one file that a disk finds in either case."""
    root = folder / "disk"
    root.mkdir()
    (root / "readme").touch()
    assert is_case_insensitive(str(root)) is (folder / "SRC").exists()

    other = folder / "other"
    other.mkdir()
    (other / "readme").touch()
    (other / "README").hardlink_to(other / "readme")
    assert is_case_insensitive(str(other)) is True


@pytest.mark.parametrize("other_name", ["protected.txt.", "protected.txt ", "protected.txt. ."])
def test_dots_and_blanks_at_the_end_do_not_count_where_the_disk_ignores_case(folder: Path, other_name: str) -> None:
    """As FAT and NTFS have it; on other disks it is another file."""
    (folder / "protected.txt").touch()
    rule = Pattern("protected.txt", BaseFolder.at(str(folder)))

    assert rule.matches(resolve(other_name, str(folder), lambda _: True))
    assert not rule.matches(resolve(other_name, str(folder), lambda _: False))


def test_a_link_to_the_working_directory_of_a_process_leads_to_that_of_the_agent(folder: Path) -> None:
    (folder / "here").symlink_to("/proc/self/cwd")
    (folder / "thread").symlink_to("/proc/thread-self/cwd")
    spellings = ["here/secret.txt", "thread/secret.txt", "/proc/self/../self/cwd/secret.txt"]
    spellings += ["../" * 20 + "proc/self/cwd/secret.txt", f"/proc/{os.getpid()}/cwd/secret.txt"]
    for path in spellings:
        assert f"{folder}/secret.txt" in resolve(path, str(folder)).names, path
        assert f"{folder}/secret.txt" in PathResolver(str(folder)).resolve(path).names, path


def test_another_process_may_work_elsewhere(folder: Path) -> None:
    with subprocess.Popen(["cat"], cwd=folder / "src", stdin=subprocess.PIPE) as process:
        path = f"/proc/{process.pid}/cwd/main.py"
        names = PathResolver(str(folder)).resolve(path).names
        process.communicate()

    assert f"{folder}/src/main.py" in names
    assert f"{folder}/main.py" in names
