"""Which file a path means, and which patterns it matches."""

from __future__ import annotations

import os
import subprocess
import time
import unicodedata
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from fairlead.policy.paths._git_ignored import find_ignored
from fairlead.policy.paths._gitignore import PatternError, read_glob
from fairlead.policy.paths._patterns import GitPatterns, Pattern
from fairlead.policy.paths._resolve import Base, Disk, Target, is_case_blind, resolve, target_of

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


def matched(patterns: list[str], path: str, folder: Path, *, loose: bool = False) -> str | None:
    pattern = GitPatterns(patterns, str(folder), loose=loose).match(target_of(path, str(folder)))
    return None if pattern is None else pattern.text


# -- resolving -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "secret.txt",
        "./secret.txt",
        "././/secret.txt",
        "src/../secret.txt",
        "src/deep/../../secret.txt",
        "missing/../secret.txt",
        "secret.txt/",
        "secret.txt/.",
        "../project/secret.txt",
        "{folder}/secret.txt",
        "{folder}//secret.txt",
        "/{folder}/secret.txt",
        "//{folder}/./src/../secret.txt",
        "/proc/self/cwd/secret.txt",
        "/proc/thread-self/cwd/src/../secret.txt",
        "/proc/1/cwd/secret.txt",
        "/proc/self/root{folder}/secret.txt",
    ],
)
def test_every_spelling_leads_to_the_same_file(path: str, folder: Path) -> None:
    assert resolve(path.format(folder=folder), str(folder)) == f"{folder}/secret.txt"


PARTS = ["src", "deep", "main.py", "secret.txt", "missing", "link", "loop", "away", "up", "..", ".", "", ".env", "a..b"]


SEEN = ("given", "names", "real", "disk", "exists", "is_folder", "is_file", "blind")


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


@settings(max_examples=500, deadline=None)
@given(paths=st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=6), min_size=1, max_size=6))
def test_the_fast_road_leads_where_the_slow_one_does(paths: list[list[str]], linked: Path) -> None:
    """What was seen for one path is used for the next, and must not lead it astray."""
    disk = Disk(str(linked))
    for path in ["/".join(parts) for parts in paths]:
        for given_path in (path, f"{linked}/{path}"):
            fast, slow = disk.target(given_path), target_of(given_path, str(linked))
            assert [getattr(fast, name) for name in SEEN] == [getattr(slow, name) for name in SEEN], given_path


@pytest.mark.parametrize("cwd", ["/", "/proc", "/proc/self", "//proc", "/proc/self/cwd"])
def test_both_roads_lead_to_the_process_s_own_folder(cwd: str, folder: Path) -> None:
    for path in ("self/cwd/secret.txt", "proc/self/cwd/x", "cwd/x", f"/proc/self/root{folder}/secret.txt"):
        assert Disk(cwd).target(path).names == target_of(path, cwd).names


def test_what_was_seen_on_the_disk_is_forgotten_with_the_check(folder: Path) -> None:
    assert not Disk(str(folder)).target("src/new").exists
    (folder / "src" / "new").symlink_to("../secret.txt")

    assert Disk(str(folder)).target("src/new").real == f"{folder}/secret.txt"


def test_a_path_without_end_is_no_burden(folder: Path) -> None:
    assert not Disk(str(folder)).target("src/" * 20_000).exists


def test_a_tilde_is_the_home_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))

    assert resolve("~/secret.txt", "/") == f"{folder}/secret.txt"
    assert resolve("~", "/") == str(folder)


def test_links_are_followed_also_where_the_last_parts_do_not_exist(folder: Path) -> None:
    (folder / "link").symlink_to("src")

    assert resolve("link/new/file.py", str(folder)) == f"{folder}/src/new/file.py"


def test_a_dangling_link_leads_to_what_would_be_made(folder: Path) -> None:
    (folder / "link").symlink_to("src/later.py")
    target = target_of("link", str(folder))

    assert (target.real, target.exists) == (f"{folder}/src/later.py", False)


def test_all_names_on_the_way_are_known(folder: Path) -> None:
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("secret.txt")

    assert target_of("one", str(folder)).names == (f"{folder}/one", f"{folder}/two", f"{folder}/secret.txt")


def test_dots_behind_a_link_are_taken_both_ways(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "below").mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path / "elsewhere" / "below")
    names = target_of("link/../secret.txt", str(folder)).names

    assert f"{folder}/secret.txt" in names
    assert f"{tmp_path.resolve()}/elsewhere/secret.txt" == names[-1]


def test_a_loop_of_links_ends(folder: Path) -> None:
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    target = target_of("a/x", str(folder))

    assert not target.exists
    assert {f"{folder}/a/x", f"{folder}/b/x"} <= set(target.names)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_names_are_compared_in_nfc_and_looked_up_as_they_are(form: Literal["NFC", "NFD"], folder: Path) -> None:
    name = unicodedata.normalize(form, "clé.txt")
    (folder / name).write_text("x")
    target = target_of(name, str(folder))

    assert target.real == f"{folder}/" + unicodedata.normalize("NFC", "clé.txt")
    assert target.exists
    assert matched([unicodedata.normalize("NFD", "clé.txt")], name, folder)


def test_a_nul_is_an_error_and_not_a_pass() -> None:
    with pytest.raises(ValueError, match="null"):
        resolve("a\0b", "/tmp")  # noqa: S108 - nothing is written


def test_where_case_does_not_count_the_true_case_is_found(folder: Path) -> None:
    target = target_of("SRC/Main.PY", str(folder), lambda _: True)

    assert target.real == f"{folder}/src/main.py"
    assert Pattern("SECRET.*", Base.at(str(folder))).matches(target_of("secret.TXT", str(folder), lambda _: True))


def test_whether_case_counts_is_asked_of_the_disk(folder: Path) -> None:
    blind = (folder / "SRC").exists()

    assert is_case_blind(str(folder / "src")) is blind
    assert is_case_blind(str(folder / "missing" / "below")) is blind


# -- patterns ------------------------------------------------------------------------------------------

PATHS = [
    *("a", "b", "a/b", "a/b/c", "b/a", "x.ts", "src/x.ts", "src/a/x.ts", "src/a/b/x.ts", ".env", "a/.env", "dist/x"),
    *("a/dist/x", "docs/a.md", "docs/x/a.md", "foo1", "foo-bar", "a b", "a*b", "#x", "A", "aXbXc", "a]b", "-"),
]
PATTERNS = [
    *("a", "/a", "a/", "/a/", "a/b", "a/**", "**/b", "a/**/c", "**", "*", "*.ts", "src/*.ts", "src/**/*.ts", ".env"),
    *("dist", "dist/", "/dist/", "docs/*.md", "docs/**/*.md", "foo?", "foo[0-9]", "foo[!0-9]*", "*b*"),
    *(
        "a?b",
        r"a\*b",
        r"\#x",
        "**/a/**",
        "a/*/c",
        "*/b",
        "**/",
        "src/**/x.ts",
        "a*b*c",
        "[]a]]b",
        "[-]",
        "a**",
        "x/**/",
    ),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_what_pathspec_says(pattern: str, folder: Path) -> None:
    spec = GitIgnoreSpec.from_lines([pattern])
    target = {path: Target(path, (f"{folder}/{path}",), f"{folder}/{path}", 0o100000) for path in PATHS}
    ours = Pattern(pattern, Base.at(str(folder)))

    assert [p for p in PATHS if ours.matches(target[p])] == [p for p in PATHS if spec.match_file(p)]


@settings(max_examples=300, deadline=None)
@given(
    st.text("ab*?/", min_size=1, max_size=9).filter(lambda text: "//" not in text and text.strip("/")),
    st.lists(st.text("ab", min_size=1, max_size=2), min_size=1, max_size=5).map("/".join),
)
def test_any_pattern_matches_what_pathspec_says(pattern: str, path: str) -> None:
    ours = Pattern(pattern, Base("/p", ("/p/",)), own_base=True)

    assert ours.matches(Target(path, (f"/p/{path}",), path, 0o100000)) == GitIgnoreSpec.from_lines(
        [pattern]
    ).match_file(path)


@pytest.mark.parametrize("pattern", ["[a", "a\\", "/", "//", "!", "[[:what:]]", "[z-a]"])
def test_a_pattern_that_git_would_drop_is_an_error(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"."):
        read_glob(pattern)


@pytest.mark.parametrize(
    "pattern", ["*a" * 30 + "b", "**/a/" * 12 + "b", "*" * 50 + "b", "a*" * 40 + "/**/" + "*a" * 40]
)
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    ours = Pattern(pattern, Base("/p", ("/p/",)))
    path = "/p/" + "a/" * 40 + "a" * 200
    start = time.perf_counter()
    ours.matches(Target(path, (path,), path, 0o100000))

    assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize(
    ("patterns", "path", "expected"),
    [
        (["*.log", "!keep.log"], "keep.log", None),
        (["*.log", "!keep.log"], "a/keep.log", None),
        (["*.log", "!keep.log"], "other.log", "*.log"),
        (["!keep.log", "*.log"], "keep.log", "*.log"),
        (["secrets/", "!secrets/open.txt"], "secrets/open.txt", "secrets/"),
        (["secrets/*", "!secrets/open.txt"], "secrets/open.txt", None),
        (["*", "!*.md"], "a.md", None),
    ],
)
def test_a_later_pattern_takes_back_as_git_does(
    patterns: list[str], path: str, expected: str | None, folder: Path
) -> None:
    assert matched(patterns, path, folder) == expected


def test_a_relative_pattern_ends_at_the_folder(folder: Path) -> None:
    assert matched(["*.txt", "/etc/**"], f"{folder.parent}/x.txt", folder) is None
    assert matched(["*.txt", "/etc/**"], "/etc/passwd", folder) is None


def test_two_slashes_mean_the_disk_and_a_tilde_the_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))

    assert matched(["//etc/**"], "/etc/passwd", folder) == "//etc/**"
    assert matched(["~/.ssh/**"], f"{folder.parent}/.ssh/id", folder) == "~/.ssh/**"
    assert matched(["~/.ssh/**"], ".ssh/id", folder) is None


@pytest.mark.parametrize(
    ("pattern", "path"),
    [("src/*.ts", "src/a/b.ts"), ("*.lock", "/else/x.lock"), ("/else/*", "/else/a/b"), ("src/?.ts", "src/a.ts")],
)
def test_in_a_file_of_conclaude_a_star_also_takes_slashes(pattern: str, path: str, folder: Path) -> None:
    assert matched([pattern], path, folder, loose=True) == pattern


def test_a_folder_known_by_a_link_is_the_same_folder(folder: Path, tmp_path: Path) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(folder)

    assert GitPatterns(["secret.txt"], str(alias)).match(target_of("secret.txt", str(folder)))
    assert GitPatterns(["secret.txt"], str(folder)).match(target_of("secret.txt", str(alias)))


def test_a_protected_name_holds_though_it_is_a_link_seen_through_another(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder / "vault").symlink_to(tmp_path / "elsewhere")
    alias = tmp_path / "alias"
    alias.symlink_to(folder)

    assert GitPatterns(["vault/key"], str(folder)).match(target_of("vault/key", str(alias)))


# -- git -----------------------------------------------------------------------------------------------

IGNORE = """\
# a comment
*.log
!important.log
/build
dist/
node_modules/
!node_modules/kept/
src/**/*.test.ts
\\#hash
trailing  \n
secret?/
[[:digit:]]x
[!a-y]y
"""
ASKED = [
    *("a.log", "x/b.log", "important.log", "x/important.log", "build/out.js", "x/build/out.js", "dist", "x/dist/y"),
    *("node_modules/kept/a.js", "src/a.test.ts", "src/c/d/a.test.ts", "src/a.ts", "#hash", "# a comment", "trailing"),
    *("secret1/x", "secret1", "sub/local.json", "sub/other.json", "sub/deep/local.json", "local.json", "sub/kept.log"),
    *("1x", "ax", "zy", "by", "d/7x/e"),
    *("vendored.bin", "x/excluded.txt"),
]


@pytest.fixture
def repository(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = folder.parent / "home"
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".config" / "git" / "ignore").write_text("*.bin\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    subprocess.run(["git", "init", "-q", folder], check=True)
    (folder / ".gitignore").write_text(IGNORE)
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "exclude").write_text("excluded.txt\n")
    (folder / "sub").mkdir()
    (folder / "sub" / ".gitignore").write_text("local.json\n!kept.log\n")
    return folder


def test_git_says_the_same(repository: Path) -> None:
    asked = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        input="\n".join(ASKED),
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [path for path in ASKED if find_ignored(target_of(path, str(repository)))]

    assert ours == asked.stdout.splitlines()


def test_it_says_which_pattern_in_which_file(repository: Path) -> None:
    ignored = find_ignored(target_of("sub/local.json", str(repository)))

    assert ignored is not None
    assert (ignored.pattern, ignored.source) == ("local.json", f"{repository}/sub/.gitignore")


def test_a_changed_file_is_read_again(repository: Path) -> None:
    target = target_of("new.txt", str(repository))
    assert find_ignored(target) is None

    (repository / ".gitignore").write_text("new.txt\n")

    assert find_ignored(target)


def test_outside_of_a_repository_nothing_is_ignored(folder: Path) -> None:
    (folder / ".gitignore").write_text("*\n")

    assert find_ignored(target_of("x", str(folder))) is None


def test_a_worktree_shares_the_excludes_of_its_repository(repository: Path) -> None:
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "-C", str(repository)]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", "../tree"], check=True, capture_output=True)

    assert find_ignored(target_of("excluded.txt", os.fspath(repository.parent / "tree")))
