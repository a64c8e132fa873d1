"""Reading through git under `unreadableFiles`: contents are held, names are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from policy.cases import for_each
from policy.git_repository import check, commit, git, make_repository, verdict, write

if TYPE_CHECKING:
    from pathlib import Path

    from fairlead.events import HookOutput


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that tracks `secret.pem`, which differs from the last commit; `.env` is ignored, but in a branch."""
    project = make_repository(tmp_path_factory.mktemp("reading").resolve() / "work")
    commit(project, "secret", {"secret/key": "one\n"})
    git(project, "tag", "secret")
    write(project, {"secret/key": "stashed\n"})
    git(project, "stash")
    commit(project, "code", {"src/app.py": "a = 9\n"})
    git(project, "config", "alias.peek", "show HEAD:secret/key")
    write(project, {"secret/key": "two\n"})
    return project


def read(project: Path, command: str, cwd: str = "") -> HookOutput:
    return check(project, command, cwd, unreadableFiles=["secret/*", ".env"])


HELD = (
    "git show HEAD:secret/key",
    "git show @:secret/key",
    "git show :secret/key",
    "git show :0:secret/key",
    "git show secret:secret/key",
    "git show HEAD~1:secret/key",
    "git show 'stash@{0}:secret/key'",
    "git show with-env:.env",
    "git show secret",
    "git show HEAD~1",
    "git show HEAD~1 -- secret",
    "git show --stat HEAD:secret/key",
    "git show --stat -p HEAD~1",
    "cd src && git show HEAD:./../secret/key",
    "git cat-file -p HEAD:secret/key",
    "git cat-file blob HEAD:secret/key",
    "git cat-file --textconv HEAD:secret/key",
    "git cat-file -p :secret/key",
    "git cat-file --batch <<< HEAD:secret/key",
    "echo HEAD:secret/key | git cat-file --batch",
    "git cat-file --batch-all-objects --batch",
    "git diff",
    "git diff HEAD",
    "git diff -- secret",
    "git diff secret/key",
    "git diff .",
    "git diff main~2",
    "git diff main~2 main",
    "git diff main~2..main",
    "git diff feature...main",
    "git diff --stat -p",
    "git diff --word-diff",
    "git diff HEAD:secret/key HEAD:src/app.py",
    "git diff --no-index /dev/null secret/key",
    "git diff-files -p",
    "git diff-index -p HEAD",
    "git diff-tree -p HEAD~1",
    "git diff-tree -p main~2 main",
    "git difftool HEAD",
    "git log -p",
    "git log -p -3",
    "git log -p -- secret",
    "git log --patch --all",
    "git log -L1,1:secret/key",
    "git log -u main",
    "git log -c --all",
    "git whatchanged -p",
    "git reflog -p",
    "git stash show -p",
    "git stash show -p stash@{0}",
    "git stash list -p",
    "git format-patch -2",
    "git format-patch main~2",
    "git format-patch --stdout main~2..main",
    "git archive HEAD",
    "git archive HEAD secret | tar t",
    "git archive --format=tar HEAD -- secret",
    "git grep one",
    "git grep -n one secret",
    "git grep one HEAD",
    "git grep one HEAD -- secret",
    "git grep --cached one",
    "git grep --no-index KEY .",
    "git grep -e one",
    "git blame secret/key",
    "git blame HEAD -- secret/key",
    "git annotate secret/key",
    "git fast-export main",
    "git bundle create x.bundle main",
    "git checkout-index --temp secret/key",
    "git checkout-index --prefix=out/ -a",
    "git status -vv",
    "git add -p",
    "git checkout -p",
    "git peek",
    "git -c alias.s='show HEAD:secret/key' s",
    "git -C src show HEAD:secret/key",
    "git --git-dir=.git show HEAD:secret/key",
    "git show $X",
    "git show $(git rev-parse HEAD~1)",
    "H=$(git rev-parse secret); git show $H",
    "git diff $(git merge-base feature main)",
    "git show $(git rev-parse HEAD):secret/key",
    "git diff $(cat x)",
    "git commit -F secret/key",
    "git tag -a x -F secret/key",
    "git config -f secret/key --list",
    "git merge-file -p secret/key src/app.py src/app.py",
    "git add -f .env && git show :.env",
    "git hash-object -w .env",
)

PASSES = (
    "git log",
    "git log --stat",
    "git log --oneline --name-only",
    "git log -p -1",
    "git log -p -1 --stat",
    "git log -p -- src",
    "git log -S one",
    "git status",
    "git status -s",
    "git diff --stat",
    "git diff --name-only",
    "git diff --name-status HEAD~1",
    "git diff --numstat",
    "git diff --quiet",
    "git diff -- src",
    "git diff src docs",
    "git diff --cached",
    "git diff main~1 main",
    "git diff main~4..main~3",
    "git diff -- . ':!secret'",
    "git show",
    "git show HEAD",
    "git show HEAD:src/app.py",
    "git show HEAD:secret",
    "git show --stat HEAD~1",
    "git show --name-only HEAD~1",
    "git show HEAD -- src",
    "git show v1",
    "HASH=$(git rev-parse HEAD); git show --stat $HASH",
    "HASH=$(git rev-parse HEAD); git show $HASH",
    "git diff $(git rev-parse HEAD~1)..HEAD",
    "git show $(git rev-parse HEAD):src/app.py",
    "git cat-file -t HEAD:secret/key",
    "git cat-file -p HEAD",
    "git cat-file -p HEAD:src/app.py",
    "git cat-file --batch-check <<< HEAD:secret/key",
    "git ls-files",
    "git ls-files secret",
    "git ls-tree -r HEAD",
    "git grep -l one",
    "git grep a -- src",
    "git grep a -- '*.py'",
    "git grep a -- ':!secret'",
    "git grep a v1",
    "git archive HEAD src",
    "git archive --list",
    "git blame src/app.py",
    "git stash show",
    "git stash list",
    "git format-patch -1",
    "git add -A",
    "git add secret/key",
    "git commit -am 'Rotate secret/key'",
    "git push",
    "git checkout feature",
    "git branch -vv",
    "git shortlog",
    "git rev-list --objects HEAD",
    "git diff-tree --name-only -r HEAD~1",
    "git check-ignore .env",
    "git worktree add ../x",
    "git clone https://example.org/a.git ../a",
    "git clone ../origin.git ../a",
    "git clone -q . ../copy",
)


@for_each("command", HELD)
def test_contents_of_an_unreadable_file_are_held(project: Path, command: str) -> None:
    output = read(project, command)
    assert verdict(output) in {"block", "ask"}, output.reason


@for_each("command", PASSES)
def test_names_and_other_files_pass(project: Path, command: str) -> None:
    output = read(project, command)
    assert verdict(output) == "pass", output.reason


def test_an_object_is_judged_by_the_files_that_it_is(project: Path) -> None:
    secret, code = (git(project, "rev-parse", f"HEAD:{path}") for path in ("secret/key", "src/app.py"))
    past = git(project, "rev-parse", "with-env:.env")
    assert verdict(read(project, f"git cat-file -p {secret}")) == "block"
    assert verdict(read(project, f"git show {secret[:10]}")) == "block"
    assert verdict(read(project, f"git cat-file blob {past}")) == "block"
    assert verdict(read(project, f"git cat-file -p {code}")) == "pass"
    loose = git(project, "hash-object", "-w", ".env")
    assert verdict(read(project, f"git cat-file -p {loose}")) == "ask"


def test_the_message_says_what_is_shown(project: Path) -> None:
    assert read(project, "git show HEAD:secret/key").reason == (
        "Blocked Bash operation: file matches preToolUse.unreadableFiles pattern 'secret/*'. "
        "File: secret/key (git show shows it)"
    )


def test_a_clean_unreadable_file_does_not_stop_a_diff(tmp_path: Path) -> None:
    project = make_repository(tmp_path.resolve() / "work")
    commit(project, "secret", {"secret/key": "one\n"})
    write(project, {"src/app.py": "a = 7\n"})
    for command in ("git diff", "git diff HEAD", "git diff .", "git add -p", "git stash show -p"):
        assert verdict(read(project, command)) == "pass", command
