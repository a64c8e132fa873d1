"""gitignore patterns, compared with git itself: in the guards, in `when:`, and in git's own files."""

from __future__ import annotations

import itertools
import os
import random
import re
import subprocess
import time
from typing import TYPE_CHECKING

import msgspec
import pytest
from policy.cases import for_each

from fairlead import stop
from fairlead.execute._git_changes import FileChanges
from fairlead.policy.commands._planner import plan_commands
from fairlead.policy.config._types import Layer, Policy, PreToolUse
from fairlead.policy.guards._evaluation import Evaluation
from fairlead.policy.guards._file_rules import FileRules
from fairlead.policy.paths._git_ignored import find_ignored
from fairlead.policy.paths._gitignore import Pattern, PatternList, PatternSet
from fairlead.policy.paths._plain_match import plain_test
from fairlead.policy.paths._resolve import BaseFolder, PathResolver, ResolvedPath, resolve
from fairlead.policy.paths._translate import MAX_ALTERNATIVES, PatternError, translate
from fairlead.process import CancellationToken

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
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
    pattern = PatternList(patterns, str(folder), loose=loose).match(resolve(path, str(folder)))
    return None if pattern is None else pattern.text


# -- git as the oracle ---------------------------------------------------------------------------------

PATHS = [
    *("a", "b", "a/b", "a/b/c", "b/a", "x.ts", "src/x.ts", "src/a/x.ts", "src/a/b/x.ts", ".env", "a/.env", "dist/x"),
    *("a/dist/x", "docs/a.md", "docs/x/a.md", "foo1", "foo-bar", "a b", "a*b", "#x", "!x", "A", "aXbXc", "a]b", "-"),
    *("keep.log", "a/keep.log", "other.log", "secrets/open.txt", "b/-", "7x", "d/7x/e", "trailing", "a\\b"),
]
LISTS = [
    *("a", "/a", "a/", "/a/", "a/b", "a/**", "**/b", "a/**/c", "**", "*", "*.ts", "src/*.ts", "src/**/*.ts", ".env"),
    *("dist", "dist/", "/dist/", "docs/*.md", "docs/**/*.md", "foo?", "foo[0-9]", "foo[!0-9]*", "*b*", "a?b", r"a\*b"),
    *(r"\#x", r"\!x", "**/a/**", "a/*/c", "*/b", "**/", "src/**/x.ts", "a*b*c", "[]a]]b", "[-]", "x/**/", "***"),
    *(
        "src/***/x.ts",
        "[[:digit:]]x",
        r"[\]a]",
        r"[a\-c]",
        "[a-c]",
        "[a/b]",
        "b/[!-]",
        "[!z-a]",
        "[z-ab]",
        "[-+]",
        "a\\\\b",
    ),
    *("trailing  ", r"a\ b", "[^a]", "foo[[:alnum:][:punct:]]*"),
    *("*.log\n!keep.log", "!keep.log\n*.log", "secrets/\n!secrets/open.txt", "secrets/*\n!secrets/open.txt"),
    *("*\n!*.md", "*\n!*/\n!*.md", "a/*\n!a/b/\na/b/c", "*.ts\n!src/\n!src/x.ts", "a\n!a\na/b"),
]
ATOMS = [
    *("a", "b", "ab", "*", "**", "***", "?", "*.a", "a*", "*a*", "[ab]", "[!a]", "[^a]", "[a-b]x", "[!b]*", "[a/b]"),
    *(
        r"\a",
        r"a\*",
        ".a",
        "[[:alpha:]]",
        "a b",
        " a",
        "a ",
        r"\ ",
        "[]a]",
        "[!]a]",
        r"[\]]",
        r"[a\-c]",
        "[-a]",
        "[--0]",
    ),
    *("[a", "[", "a]", r"\!a", r"\#a"),
]
NAMES = ["a", "b", "ab", "x.a", ".a", "ba", "a*", "aab", "ax", "bx", "a b", " a", "a ", "]", "-", "[", "a]", "A", "!a"]


def random_list(source: random.Random) -> str:
    return "\n".join(random_pattern(source) for _ in range(source.choice([1, 1, 1, 2, 3, 4])))


def random_pattern(source: random.Random) -> str:
    body = "/".join(source.choices(ATOMS, k=source.choice([1, 1, 2, 2, 3])))
    return source.choice(["", "", "", "!"]) + source.choice(["", "", "/"]) + body + source.choice(["", "", "/", "  "])


def ignored_by_git(root: Path, lists: list[str], paths: Iterable[str]) -> list[set[str]]:
    """Ask one git process which paths each list matches: every list is the .gitignore of a folder of its own."""
    root.mkdir()
    subprocess.run(["git", "init", "-q", root], check=True)
    for number, text in enumerate(lists):
        (root / str(number)).mkdir()
        (root / str(number) / ".gitignore").write_text(f"{text}\n")
    asked = [f"{number}/{path}" for number, path in itertools.product(range(len(lists)), paths)]
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin", "-z"],
        input="\0".join(asked).encode(),
        cwd=root,
        env={**os.environ, "HOME": str(root), "XDG_CONFIG_HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"},
        capture_output=True,
        check=False,
    )
    found: list[set[str]] = [set() for _ in lists]
    for entry in filter(None, done.stdout.decode().split("\0")):
        index, _, path = entry.partition("/")
        found[int(index)].add(path)
    return found


def valid(text: str) -> list[str]:
    """The patterns that are not an error; git ignores the others."""
    return [line for line in text.split("\n") if is_valid(line)]


def is_valid(pattern: str) -> bool:
    try:
        translate(pattern)
    except PatternError:
        return False
    return True


def matched_by_guard(patterns: list[str], paths: list[str], folder: str) -> set[str]:
    section = PreToolUse(uneditable_files=list(patterns))
    rules = FileRules([Layer(f"{folder}/.fairlead.yaml", folder, Policy(pre_tool_use=section))]).uneditable
    return {path for path in paths if rules.check(Evaluation("Edit", None, folder), file_at(f"{folder}/{path}"))}


def matched_by_when(patterns: list[str], paths: list[str], folder: str) -> set[str]:
    changes = FileChanges(time.monotonic() + 60, CancellationToken())
    found = set()
    for path in paths:
        changes._known[folder] = [path]
        if changes.match(folder, tuple(patterns)):
            found.add(path)
    return found


def matched_by_reader(paths: list[str], folder: str) -> set[str]:
    return {path for path in paths if find_ignored(file_at(f"{folder}/{path}"))}


def file_at(path: str) -> ResolvedPath:
    return ResolvedPath(path, (path,), path, 0o100000)


def test_guards_when_and_gitignore_match_what_git_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(10)
    names = {"/".join(source.choices(NAMES, k=count)) for count in (1, 2, 3, 4) for _ in range(10)}
    tables = [(LISTS, PATHS), ([random_list(source) for _ in range(100)], sorted(names))]
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    found = [line for at, (lists, paths) in enumerate(tables) for line in differences(tmp_path / str(at), lists, paths)]

    assert found == []


def differences(root: Path, lists: list[str], paths: list[str]) -> Iterator[str]:
    """Name each list that is read differently from git, with the paths."""
    root = root.resolve()
    for number, (text, expected) in enumerate(zip(lists, ignored_by_git(root, lists, paths), strict=True)):
        folder = f"{root}/{number}"
        answers = {
            "guard": matched_by_guard(valid(text), paths, folder),
            "when": matched_by_when(valid(text), paths, folder),
            ".gitignore": matched_by_reader(paths, folder),
        }
        for reader, found in answers.items():
            if found != expected:
                yield f"{reader}: {text!r}: only git {sorted(expected - found)}, only ours {sorted(found - expected)}"


def test_a_set_of_patterns_matches_what_each_of_them_matches() -> None:
    base = BaseFolder("/p", ("/p/",))
    patterns = [Pattern(text, base) for text in LISTS if "\n" not in text]
    for some in (patterns[at : at + 5] for at in range(0, len(patterns), 5)):
        together = PatternSet(some)
        for target in (file_at(f"/p/{path}") for path in PATHS):
            expected = any(pattern.matches(target) for pattern in some)
            assert together.may_match(target) is expected, ([pattern.text for pattern in some], target.given)


def test_a_plain_pattern_matches_the_same_without_regular_expressions() -> None:
    source = random.Random(3)
    paths = [
        "".join(path) for size in range(1, 5) for path in itertools.product(["a", "b/", "ab", ".", "/"], repeat=size)
    ]
    texts = ["".join(source.choices(["a", "b", ".", "/", "/", "*", "**"], k=source.randint(1, 6))) for _ in range(2000)]
    compared = 0
    for text in dict.fromkeys(["*", "**", "a/**", "**/a", "a/**/b", "*.a", "a*b", "/a", "a/", "**/", *texts]):
        if not is_valid(text):
            continue
        translated = translate(text)
        test = plain_test(translated.plain)
        if test is not None:
            find = re.compile(translated.self_or_parent).match
            assert [path for path in paths if test(path) != bool(find(path))] == [], text
            compared += 1
    assert compared > 500
    assert not any(translate(text).plain for text in ("a?", "[ab]", r"a\*"))


def test_characters_are_compared_and_not_bytes_as_in_git() -> None:
    base = BaseFolder("/p", ("/p/",))

    assert Pattern("?", base).matches(file_at("/p/é"))
    assert Pattern("[é]", base).matches(file_at("/p/é"))


@for_each("pattern", ["[a", "a\\", "/", "//", "!", "[[:what:]]"])
def test_a_pattern_that_matches_nothing_in_git_is_an_error(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"."):
        translate(pattern)


@for_each("pattern", ["*a" * 30 + "b", "**/a/" * 12 + "b", "*" * 50 + "b", "a*" * 40 + "/**/" + "*a" * 40])
def test_no_pattern_backtracks(pattern: str) -> None:
    ours = Pattern(pattern, BaseFolder("/p", ("/p/",)))
    path = "/p/" + "a/" * 40 + "a" * 200
    start = time.process_time()  # a busy machine is not slow code
    ours.matches(file_at(path))

    assert time.process_time() - start < 0.5


# -- what git does not have ----------------------------------------------------------------------------


def test_a_relative_pattern_does_not_match_outside_of_the_folder(folder: Path) -> None:
    assert matched(["*.txt", "/etc/**"], f"{folder.parent}/x.txt", folder) is None
    assert matched(["*.txt", "/etc/**"], "/etc/passwd", folder) is None


def test_two_slashes_mean_the_disk_and_a_tilde_the_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))

    assert matched(["//etc/**"], "/etc/passwd", folder) == "//etc/**"
    assert matched(["~/.ssh/**"], f"{folder.parent}/.ssh/id", folder) == "~/.ssh/**"
    assert matched(["~/.ssh/**"], ".ssh/id", folder) is None


def test_repeated_slashes_count_as_one_and_a_tab_at_the_end_is_dropped(folder: Path) -> None:
    assert matched(["src//deep//"], "src/deep/x", folder)
    assert matched(["secret.txt\t"], "secret.txt", folder)


def test_two_stars_beside_another_character_are_one_star(folder: Path) -> None:
    """So gitignore(5) says. git 2.39 also matches `ab`, because it compares the `a` before it looks at the stars."""
    assert matched(["a**/b"], "ax/b", folder)
    assert matched(["a**/b"], "a/x/b", folder) is None
    assert matched(["a**/b"], "ab", folder) is None


@for_each(
    ("pattern", "path"),
    [("src/*.ts", "src/a/b.ts"), ("*.lock", "/else/x.lock"), ("/else/*", "/else/a/b"), ("src/?.ts", "src/a.ts")],
)
def test_in_a_file_of_conclaude_a_star_also_matches_slashes(pattern: str, path: str, folder: Path) -> None:
    assert matched([pattern], path, folder, loose=True) == pattern


@for_each(("name", "matches"), [(".conclaude.yaml", True), (".fairlead.yaml", False)])
def test_when_reads_a_pattern_as_the_guards_of_the_same_file(name: str, *, matches: bool, folder: Path) -> None:
    document = {
        "stop": {"commands": [{"run": "x", "when": "src/*.py"}]},
        "preToolUse": {"uneditableFiles": ["src/*.py"]},
    }
    layer = Layer(f"{folder}/{name}", str(folder), msgspec.convert(document, Policy))
    (step,) = plan_commands(stop("s"), (layer,)).steps
    changes = FileChanges(time.monotonic() + 60, CancellationToken())
    changes._known[str(folder)] = ["src/deep/x.py"]
    rules = FileRules([layer]).uneditable
    blocked = rules.check(Evaluation("Edit", None, str(folder)), file_at(f"{folder}/src/deep/x.py"))

    assert changes.match(step.folder, step.when, loose=step.loose_when) is matches
    assert (blocked is not None) is matches


def test_where_the_disk_ignores_case_patterns_do(folder: Path) -> None:
    target = resolve("Src/Main.PY", str(folder), lambda _: True)

    assert PatternList(["SRC/*.py", "!other"], str(folder)).match(target)
    assert PatternSet([Pattern("SRC/*.py", BaseFolder.at(str(folder)))]).may_match(target)
    assert not PatternList(["SRC/*.py", "!main.py"], str(folder)).match(target)


def test_a_set_with_a_loose_pattern_still_tells_that_none_matches(tmp_path: Path) -> None:
    base = BaseFolder.at(str(tmp_path))
    patterns = PatternSet([Pattern("src/*.py", base, loose=True), Pattern("*.lock", base)])

    assert patterns.may_match(resolve("src/deep/a.py", str(tmp_path))), "a loose star matches slashes"
    assert patterns.may_match(resolve("a.lock", str(tmp_path)))
    assert not patterns.may_match(resolve("docs/a.md", str(tmp_path))), "or each file of a folder is tried by each rule"


def test_a_folder_known_by_a_link_is_the_same_folder(folder: Path, tmp_path: Path) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(folder)

    assert PatternList(["secret.txt"], str(alias)).match(resolve("secret.txt", str(folder)))
    assert PatternList(["secret.txt"], str(folder)).match(resolve("secret.txt", str(alias)))


def test_a_pattern_on_a_link_matches_through_another_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder / "vault").symlink_to(tmp_path / "elsewhere")
    alias = tmp_path / "alias"
    alias.symlink_to(folder)

    assert PatternList(["vault/key"], str(folder)).match(resolve("vault/key", str(alias)))


def test_when_matches_deleted_files_folders_and_names_that_are_no_utf_8(folder: Path) -> None:
    patterns = PatternList(["*.py", "nested/", "!kept.py"], str(folder))

    assert patterns.matches_any(["gone/deleted.py"])
    assert patterns.matches_any(["nested/"])
    assert not patterns.matches_any(["nested", "kept.py", "readme.md", os.fsdecode(b"\xff.txt")])
    assert patterns.matches_any([os.fsdecode(b"\xff.py")])


# -- git's own files -----------------------------------------------------------------------------------

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


def test_all_files_of_git_are_read_as_git_reads_them(repository: Path) -> None:
    asked = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        input="\n".join(ASKED),
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [path for path in ASKED if find_ignored(resolve(path, str(repository)))]

    assert ours == asked.stdout.splitlines()


def test_the_pattern_and_its_file_are_known(repository: Path) -> None:
    ignored = find_ignored(resolve("sub/local.json", str(repository)))

    assert ignored is not None
    assert (ignored.pattern, ignored.source) == ("local.json", f"{repository}/sub/.gitignore")


def test_a_changed_file_is_read_again(repository: Path) -> None:
    target = resolve("new.txt", str(repository))
    assert find_ignored(target) is None

    (repository / ".gitignore").write_text("new.txt\n")

    assert find_ignored(target)


def test_outside_of_a_repository_nothing_is_ignored(folder: Path) -> None:
    (folder / ".gitignore").write_text("*\n")

    assert find_ignored(resolve("x", str(folder))) is None


def test_a_worktree_shares_the_excludes_of_its_repository(repository: Path) -> None:
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "-C", str(repository)]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", "../tree"], check=True, capture_output=True)

    assert find_ignored(PathResolver(os.fspath(repository.parent / "tree")).resolve("excluded.txt"))


# -- as people write them ------------------------------------------------------------------------------


@for_each(
    ("pattern", "path", "expected"),
    [
        ("./secret.txt", "secret.txt", True),
        ("./secret.txt", "src/secret.txt", False),
        ("././src/./deep", "src/deep/x", True),
        ("src/./main.py", "src/main.py", True),
        ("{p}/secret.txt", "secret.txt", True),
        ("{p}/src/*.py", "src/main.py", True),
        ("{p}/src/*.py", "src/deep/main.py", False),
        ("{p}", "src/main.py", True),
        ("{p}/", "secret.txt", True),
        ("{p}2/secret.txt", "secret.txt", False),
        ("*.{lock,pem}", "src/a.pem", True),
        ("*.{lock,pem}", "a.lock", True),
        ("*.{lock,pem}", "a.lock2", False),
        ("./{src,lib}/**/*.{py,pyi}", "lib/a/b.pyi", True),
        ("{src/,docs}", "docs", True),
        ("{src/,docs}", "lib", False),
        ("a{b,c{d,e}}", "ace", True),
        ("a{b}", "a{b}", True),
        (r"a\{b,c\}", "a{b,c}", True),
        (r"a\{b,c\}", "ab", False),
        ("cle\u0301.txt", "cl\u00e9.txt", True),
        ("cl\u00e9.txt", "cle\u0301.txt", True),
    ],
)
def test_a_pattern_means_what_people_mean_by_it(pattern: str, path: str, folder: Path, *, expected: bool) -> None:
    written = pattern.replace("{p}", str(folder))
    assert (matched([written], path, folder) is not None) == expected


def test_what_is_written_so_is_also_reincluded(folder: Path) -> None:
    assert matched(["*.{txt,py}", "!./secret.{txt,py}"], "secret.txt", folder) is None
    assert matched(["*.{txt,py}", "!./secret.{txt,py}"], "src/main.py", folder) == "*.{txt,py}"


def test_a_pattern_with_too_many_alternatives_is_an_error(folder: Path) -> None:
    pattern = "{a,b}" * 10
    with pytest.raises(PatternError, match=f"more than {MAX_ALTERNATIVES} alternatives"):
        Pattern(pattern, BaseFolder.at(str(folder)))
