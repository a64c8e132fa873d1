"""Everyday commands of git in a repository with protected files: none of them is blocked or questioned."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from policy.cases import for_each
from policy.git_repository import check, commit, git, make_guards, make_repository, verdict, write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repository(tmp_path_factory.mktemp("everyday").resolve() / "work")


EVERYDAY = (
    # looking
    "git status",
    "git status -sb",
    "git log --oneline -5",
    "git log -p -2 -- src",
    "git log --graph --all --oneline",
    "git log --since='2 weeks ago' --author=a --stat",
    "git diff",
    "git diff --stat",
    "git diff HEAD~1",
    "git diff main...feature",
    "git diff --cached",
    "git diff --name-only origin/main",
    "git show",
    "git show HEAD --stat",
    "git show HEAD:src/app.py",
    "git show feature",
    "git blame src/app.py",
    "git grep -n TODO",
    "git ls-files",
    "git ls-files | head",
    "git rev-parse --abbrev-ref HEAD",
    "git branch -a",
    "git branch --show-current",
    "git remote -v",
    "git reflog -5",
    "git describe --tags --always",
    "git shortlog -sn",
    "git cat-file -p HEAD",
    "git ls-tree -r HEAD --name-only",
    "git config user.name",
    "git config --get remote.origin.url",
    "git config --list",
    "git stash list",
    "git stash show",
    "git worktree list",
    "git tag -l 'v*'",
    "git --version",
    "git help commit",
    "git --no-pager log -3",
    "git -c core.pager=cat log -3",
    "git -c color.ui=always diff",
    "HASH=$(git rev-parse HEAD); git show $HASH",
    "git merge-base main feature",
    "git range-diff main feature other",
    "git check-ignore -v build/out",
    # index and commits
    "git add -A",
    "git add src/app.py docs",
    "git add .",
    "git add -p src/app.py",
    "git commit -m 'Change the lock file'",
    "git commit -am 'Fix: config.lock is not touched'",
    "git commit --amend --no-edit",
    "git commit -m \"$(cat <<'EOF'\nFix the `config.lock` thing\n\nIt's done; see .env > notes\nEOF\n)\"",
    "git commit -F - <<'EOF'\nUpdate config.lock handling\nEOF",
    "git add -A && git commit -m x && git push",
    "git -c user.name=a -c user.email=a@example.org commit -m x",
    "git -c commit.gpgsign=false commit -m x",
    "git -c core.editor=true commit --amend",
    "git reset",
    "git reset HEAD~1",
    "git reset --soft HEAD~1",
    "git reset HEAD -- src/app.py",
    "git restore --staged .",
    "git restore --staged config.lock",
    "git rm --cached notes",
    "git rm -r docs",
    "git rm src/app.py",
    "git mv src/app.py src/main.py",
    "git mv docs documentation",
    "git update-index --refresh",
    # branches
    "git branch topic",
    "git branch -d topic",
    "git branch -D topic",
    "git branch -m old new",
    "git checkout -b topic",
    "git checkout -b topic feature",
    "git switch -c topic",
    "git switch -c topic feature",
    "git checkout feature",
    "git switch feature",
    "git switch -",
    "git checkout -",
    "git switch --detach HEAD~1",
    "git checkout main",
    "git checkout -f main",
    "git checkout remote-only",
    "git checkout -t origin/remote-only",
    'git checkout -b "$NAME"',
    "git checkout --orphan pages",
    "git tag v2",
    "git tag -a v2 -m 'Version 2: config.lock'",
    "git push origin main",
    "git push -u origin HEAD",
    "git push --force-with-lease",
    "git push origin --delete topic",
    "git fetch",
    "git fetch origin main",
    "git fetch --all --prune",
    "git remote add upstream https://example.org/a.git",
    "git remote set-url origin git@example.org:a/b.git",
    "git ls-remote origin",
    # files
    "git checkout -- .",
    "git checkout .",
    "git checkout -- config.lock",
    "git checkout -- src/app.py",
    "git checkout HEAD -- .",
    "git checkout feature -- src",
    "git checkout HEAD~1 -- src/app.py",
    "git restore .",
    "git restore src/app.py",
    "git restore config.lock",
    "git restore --source=HEAD~1 src/app.py",
    "git restore -s feature -- src",
    'for f in src/app.py docs/a; do git checkout -- "$f"; done',
    "git reset --hard",
    "git reset --hard HEAD",
    "git reset --hard HEAD~1",
    "git reset --hard origin/main",
    "git reset --keep HEAD~1",
    "git stash",
    "git stash -u",
    "git stash push -m 'wip: config.lock'",
    "git stash push -- src",
    "git stash && git checkout feature && git stash pop",
    "git stash pop",
    "git stash apply stash@{0}",
    "git stash drop",
    "git clean -fd",
    "git clean -n -xfd",
    "git clean -fd src",
    "git clean -fdx build",
    "git checkout-index -f -a",
    "git checkout $(git rev-parse HEAD)",
    "git reset --soft $(git merge-base main feature)",
    "git reset --hard $(git merge-base main feature)",
    "START=$(git rev-parse HEAD); git checkout feature; git checkout $START",
    "git checkout $(git describe --tags --abbrev=0)",
    "git checkout $(git branch --show-current)",
    'cd "$(git rev-parse --show-toplevel)" && git checkout -- .',
    "cd $(git rev-parse --show-toplevel) && git stash && git stash pop",
    "git checkout -- $(git diff --name-only)",
    # joining
    "git merge feature",
    "git merge --no-ff feature -m 'Merge config.lock'",
    "git merge --squash feature",
    "git merge --abort",
    "git merge origin/main",
    "git rebase origin/main",
    "git rebase main feature",
    "git rebase --onto main HEAD~1",
    "GIT_SEQUENCE_EDITOR=: git rebase -i HEAD~2",
    "git rebase -x true HEAD~1",
    "git rebase --exec 'make test' HEAD~1",
    "git cherry-pick feature",
    "git cherry-pick main..feature",
    "git revert --no-edit HEAD",
    "git pull . feature",
    "git checkout feature && git merge main",
    "git checkout -b topic && git add -A && git commit -m x && git checkout main",
    "git checkout main && git branch -D topic",
    "git checkout -b topic && git rm --cached notes && git commit -m x",
    "git switch -c topic && git commit --allow-empty -m x && git push -u origin topic && git switch -",
    "git stash && git switch feature && git switch - && git stash pop",
    "git commit -am x && git rebase feature",
    "git add -A && git commit -m x && git checkout main && git merge feature",
    "git reset --soft HEAD~1 && git stash && git switch feature",
    "git apply <<'EOF'\n--- a/src/app.py\n+++ b/src/app.py\n@@ -1 +1 @@\n-a = 2\n+a = 4\nEOF",
    "git apply --check fix.patch",
    "git apply fix.patch",
    "git diff > fix2.patch",
    "git format-patch -1",
    "git format-patch main..feature -o out",
    "git archive -o out.tar HEAD",
    "git bundle create out.bundle main",
    "git am fix.patch",
    # elsewhere
    "git worktree add ../topic",
    "git worktree add ../topic -b topic main",
    "git worktree remove ../topic",
    "git worktree prune",
    "git clone https://example.org/a.git ../a",
    "git clone --depth 1 https://example.org/a.git ../a",
    "git init ../fresh",
    "git -C ../origin.git log --oneline",
    "git submodule status",
    "git submodule update --init --recursive",
    "git submodule foreach 'git status'",
    "git bisect log",
    "git gc",
    "git maintenance run",
    "git notes add -m x",
    "git config user.email a@example.org",
    "git config core.pager cat",
    "git config alias.st status",
    "git config --global pull.rebase true",
    "git co feature",
    "git lg",
    "git hello",
    "GIT_PAGER=cat git log",
    "GIT_EDITOR=true git commit --amend",
    "GIT_SSH_COMMAND='ssh -i ~/.ssh/key' git fetch",
    "cd src && git checkout -- .",
    "cd src && git status && git diff .",
    "git diff HEAD --quiet || git commit -am x",
    "git status --porcelain | wc -l",
    "git log --format=%s -1 | head -1",
    "git rev-list --count HEAD",
    "git diff --name-only | xargs -r wc -l",
)


@pytest.fixture(scope="module")
def everyday(project: Path) -> Path:
    copy = project.parent.parent / "everyday"
    shutil.copytree(project.parent, copy, symlinks=True)
    folder = copy / "project"
    git(folder, "config", "alias.co", "checkout")
    git(folder, "config", "alias.lg", "log --oneline --graph")
    git(folder, "config", "alias.hello", "!echo hello")
    write(folder, {"src/app.py": "a = 5\n"})
    git(folder, "stash")
    write(folder, {"src/app.py": "a = 2\n"})
    (folder / "fix.patch").write_text("--- a/src/app.py\n+++ b/src/app.py\n@@ -1 +1 @@\n-a = 2\n+a = 6\n")
    return folder


@for_each("command", EVERYDAY)
def test_everyday_git_is_not_questioned(everyday: Path, command: str) -> None:
    output = check(everyday, command)
    assert verdict(output) == "pass", output.reason


@for_each("command", [command for command in EVERYDAY if "xargs" not in command])
def test_everyday_git_is_not_questioned_for_files_that_may_not_be_read(everyday: Path, command: str) -> None:
    output = check(everyday, command, unreadableFiles=[".env", "*.pem"])
    assert verdict(output) == "pass", output.reason


def test_the_tables_are_large_enough() -> None:
    assert len(set(EVERYDAY)) == len(EVERYDAY) >= 80


def test_a_changed_protected_file_is_only_a_matter_for_what_changes_it(tmp_path: Path) -> None:
    project = make_repository(tmp_path.resolve() / "work")
    write(project, {"config.lock": "edited by the user\n"})
    for command in ("git checkout feature", "git switch -c x", "git merge feature", "git commit -am x", "git add -A"):
        assert verdict(check(project, command)) == "pass", command
    for command in ("git checkout -- .", "git stash", "git reset --hard", "git checkout -f main", "git restore ."):
        assert verdict(check(project, command)) == "block", command


def test_a_file_that_git_converts_is_not_taken_for_changed(tmp_path: Path) -> None:
    project = make_repository(tmp_path.resolve() / "work")
    commit(project, "attributes", {".gitattributes": "config.lock text eol=crlf\n"})
    (project / "config.lock").unlink()
    git(project, "checkout", "--", "config.lock")
    assert b"\r\n" in (project / "config.lock").read_bytes()
    assert verdict(check(project, "git checkout -- .")) == "pass"
    assert verdict(check(project, "git reset --hard")) == "pass"
    (project / "config.lock").write_bytes(b"2wo\r\n")
    assert verdict(check(project, "git checkout -- .")) == "block"


def test_a_folder_that_is_not_a_repository_has_nothing_to_move(tmp_path: Path) -> None:
    guards = make_guards(tmp_path)
    for command in ("git checkout main", "git stash", "git pull", "git reset --hard", "git merge x"):
        assert verdict(check(tmp_path, command, guards=guards)) == "pass", command


def test_without_rules_on_files_nothing_is_asked(project: Path) -> None:
    for command in ("git pull", "git checkout $BRANCH", "git stash pop", "git bisect good", "git fetch && git merge x"):
        output = check(project, command, preventRootAdditions=True)
        assert verdict(output) == "pass", output.reason
