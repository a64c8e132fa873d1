"""Ways around the rules on files by git: each is blocked, naming the file, or asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from policy.cases import for_each
from policy.git_repository import check, commit, git, make_guards, make_repository, verdict, write

from fairlead.events import PreToolUse

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose stash, aliases and patches change `config.lock`."""
    project = make_repository(tmp_path_factory.mktemp("around").resolve() / "work")
    git(project, "config", "alias.sneak", "checkout other")
    git(project, "config", "alias.wipe", "!rm -f config.lock")
    git(project, "config", "alias.again", "sneak")
    write(project, {"config.lock": "stashed\n"})
    git(project, "stash")
    (project / "lock.patch").write_text("--- a/config.lock\n+++ b/config.lock\n@@ -1 +1 @@\n-two\n+three\n")
    (project / "new.patch").write_text("diff --git a/x b/.env\nrename from x\nrename to .env\n")
    (project / "mail").write_text(
        "From: a\nSubject: x\n\n---\n--- a/config.lock\n+++ b/config.lock\n@@ -1 +1 @@\n-two\n+x\n"
    )
    (project / "run.sh").write_text("rm -f config.lock\n")
    return project


BLOCKED = (
    # other commits
    "git checkout other",
    "git checkout -f other",
    "git checkout --detach other",
    "git checkout v1~1",
    "git checkout main~3",
    "git checkout -b topic other",
    "git checkout -B topic other",
    "git checkout remote-other",
    "git checkout -t origin/remote-other",
    "git checkout gone",
    "git checkout with-env",
    "git switch other",
    "git switch -c topic other",
    "git switch --detach other",
    "git switch -- other",
    "git switch --discard-changes other",
    "git switch remote-other",
    "git switch --orphan empty",
    "git reset --hard other",
    "git reset --hard HEAD~3",
    "git reset --har other",
    "git reset --merge other",
    "git reset --keep other",
    "git reset --hard v1~1",
    "git read-tree -u -m other",
    "git read-tree --reset -u other",
    "git -C . checkout other",
    "cd src && git checkout other",
    "cd src && git -C .. switch other",
    "git --git-dir=.git --work-tree=. checkout other",
    "GIT_DIR=.git GIT_WORK_TREE=. git checkout other",
    "git -c advice.detachedHead=false checkout other",
    "git --no-pager checkout other",
    "env git checkout other",
    "bash -c 'git checkout other'",
    "git stash; git checkout other",
    "git checkout feature && git checkout other",
    "git switch -c x other && git switch main",
    "for b in feature other; do git checkout $b; done",
    "git checkout $(git rev-parse other)",
    "H=$(git rev-parse other); git reset --hard $H",
    "git reset --hard $(git rev-parse HEAD~3)",
    'git reset --hard "$(git merge-base other v1)~1"',
    'cd "$(git rev-parse --show-toplevel)" && git checkout other',
    "cd src && cd $(git rev-parse --show-toplevel) && git checkout other -- .",
    "git checkout other -- $(git ls-files)",
    "git ls-files | xargs git checkout other --",
    "git checkout --orphan pages && git reset --hard",
    "git reset --soft other && git stash",
    "git reset --soft gone && git restore --staged '*.lock' && git clean -f",
    "git reset gone && git clean -f .",
    "git restore --staged -s other config.lock && git restore .",
    # files of other commits
    "git checkout other -- config.lock",
    "git checkout other config.lock",
    "git checkout other -- .",
    "git checkout other -- '*.lock'",
    "git checkout other -- ':(glob)**/*.lock'",
    "git checkout other -- :/",
    "cd src && git checkout other -- ../config.lock",
    "cd src && git checkout other -- :/config.lock",
    "git checkout HEAD~3 -- .",
    "git checkout --no-overlay gone -- .",
    "git checkout ':/lock' -- config.lock",
    "git checkout 'other^{/lock}' -- config.lock",
    "git --icase-pathspecs checkout other -- CONFIG.LOCK",
    "git --glob-pathspecs checkout other -- '**/config.lock'",
    "GIT_ICASE_PATHSPECS=1 git checkout other -- CONFIG.LOCK",
    "GIT_TRACE2_EVENT=$PWD/config.lock git status",
    "git restore --source=other config.lock",
    "git restore --source=HEAD -s other config.lock",
    "git restore -s other .",
    "git restore --sour other -- .",
    "git restore -s gone .",
    "git restore --source=other --staged --worktree .",
    "git restore -SW -s other :/",
    "git checkout with-env -- .env",
    "git restore -s with-env .env",
    "git restore -s other --pathspec-from-file=list",
    # joining
    "git merge other",
    "git merge --squash other",
    "git merge --no-commit other",
    "git merge feature other",
    "git merge -X theirs other",
    "git merge origin/other",
    "git pull . other",
    "git pull origin other",
    "git rebase other",
    "git rebase main other",
    "git rebase --onto other main",
    "git cherry-pick other",
    "git cherry-pick -n other",
    "git cherry-pick main..other",
    "git cherry-pick main..gone",
    "git revert HEAD~2",
    "git revert --no-commit v1",
    "git checkout feature && git merge other",
    "git stash pop",
    "git stash apply",
    "git stash apply stash@{0}",
    "git stash pop 0",
    "git stash branch topic",
    # patches
    "git apply lock.patch",
    "git apply -R lock.patch",
    "git apply --index lock.patch",
    "git apply --3way lock.patch",
    "git apply new.patch",
    "git am mail",
    "git apply <<'EOF'\n--- a/config.lock\n+++ b/config.lock\n@@ -1 +1 @@\n-two\n+x\nEOF",
    "git apply -p0 <<'EOF'\n--- config.lock\n+++ config.lock\n@@ -1 +1 @@\n-two\n+x\nEOF",
    "git apply --directory=. lock.patch",
    # removal
    "git rm config.lock",
    "git rm -rf .",
    "git rm '*.lock'",
    "git rm -f :/config.lock",
    "git mv config.lock x",
    "git mv src config.lock",
    "git clean -fdx",
    "git clean -fX",
    "git clean -fx .env",
    "git clean -xf --exclude=build",
    "git stash -a",
    "git stash push --all",
    "git add -f .env && git stash",
    "git add -f .env && git reset --hard",
    "git add -f . && git stash push",
    # commands that git runs
    "git -c alias.x='!rm config.lock' x",
    "git -c alias.x='checkout other' x",
    "git sneak",
    "git wipe",
    "git again",
    "git -c core.fsmonitor='rm config.lock' status",
    "git -c core.pager='rm config.lock' log",
    "git -c core.editor='rm config.lock' commit --amend",
    "git -c core.sshCommand='rm config.lock;' fetch",
    "git -c diff.external='rm config.lock' diff",
    "git -c sequence.editor='rm config.lock' rebase -i HEAD~1",
    "git -c credential.helper='!rm config.lock' fetch",
    "git -c filter.x.smudge='rm config.lock' checkout feature",
    "git -c filter.x.clean='rm config.lock' add .",
    "git -c merge.x.driver='rm config.lock' merge feature",
    "git -c gpg.program='rm config.lock' commit -S -m x",
    "git config alias.y '!rm config.lock'",
    "git config alias.y 'checkout other'",
    "git config core.pager 'rm config.lock'",
    "git config --local core.fsmonitor 'rm config.lock'",
    "git clone -c core.fsmonitor='rm config.lock' . ../x",
    "git rebase -x 'rm config.lock' HEAD~1",
    "git rebase --exec='rm config.lock' HEAD~1",
    "git bisect run rm config.lock",
    "git bisect run sh -c 'rm config.lock'",
    "git submodule foreach 'rm config.lock'",
    "git submodule foreach --recursive rm config.lock",
    "git submodule foreach 'rm ../config.lock'",
    "git difftool -x 'rm config.lock' -y HEAD~1",
    "git difftool --extcmd='rm config.lock' HEAD~1",
    "git filter-branch --tree-filter 'rm config.lock' HEAD",
    "git grep -O'rm config.lock' a",
    "git fetch --upload-pack='rm config.lock;' .",
    "git fetch ext::'rm config.lock'",
    "git clone -u 'rm config.lock;' . ../x",
    "git push --receive-pack='rm config.lock;' ../origin.git",
    "git remote add x 'ext::rm config.lock'",
    "GIT_EXTERNAL_DIFF='rm config.lock' git diff",
    "GIT_SSH_COMMAND='rm config.lock;' git fetch",
    "GIT_EDITOR='rm config.lock;' git commit --amend",
    "GIT_SEQUENCE_EDITOR='rm config.lock;' git rebase -i HEAD~1",
    "EDITOR='rm config.lock;' git commit",
    "GIT_PAGER='rm config.lock' git log",
    "PAGER='rm config.lock' git -p log",
    "env GIT_PAGER='rm config.lock' git -p log",
    "export GIT_EXTERNAL_DIFF='rm config.lock'; git diff",
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.pager GIT_CONFIG_VALUE_0='rm config.lock' git -p log",
    "git diff --output=config.lock",
    "git log -p --output=config.lock",
    "git archive -o config.lock HEAD",
    "git bundle create config.lock main",
    "git config -f config.lock a.b c",
    "git merge-file config.lock src/app.py src/app.py",
)

HELD = (
    "git pull",
    "git pull --rebase",
    "git pull origin main",
    "git fetch && git merge origin/main",
    "git fetch origin && git rebase origin/main",
    "git fetch origin x:y && git checkout y",
    "git checkout $BRANCH",
    'git switch "$BRANCH"',
    'git reset --hard "$(cat ref)"',
    'cd "$X" && git checkout main',
    "git apply missing.patch",
    "git diff main other | git apply",
    "cat lock.patch | git apply",
    "git apply < lock.patch",
    "cp lock.patch a.patch && git apply a.patch",
    "git symbolic-ref HEAD refs/heads/other && git reset --hard",
    "git update-ref HEAD other && git reset --hard",
    "git update-index --cacheinfo 100644,x,config.lock && git checkout -- .",
    "git read-tree other && git checkout-index -f -a",
    "git rm --cached config.lock && git clean -f",
    "cp x .git/index && git checkout -- .",
    "git reset other && git checkout -- .",
    "git branch -f feature other && git checkout feature",
    "git restore --staged -s other config.lock && git commit -m x && git checkout HEAD -- .",
    "git commit --amend --no-edit; git reset --hard HEAD~3",
    "git merge -s ours other && git cherry-pick $(git merge-base main other)",
    "git reset other && git commit -m x && git checkout main -- .",
    "git stash store other && git stash pop",
    "git reset --hard $(git commit-tree other^{tree} -m x)",
    "git bisect start HEAD v1",
    "git bisect good",
    "git sparse-checkout set src",
    "git filter-branch --index-filter true HEAD",
    "git subtree pull --prefix=x origin main",
    "git -c core.hooksPath=hooks checkout feature",
    "git -c include.path=x log",
    "git -c core.worktree=.. checkout main",
    "git config core.hooksPath hooks",
    "git config include.path ../x",
    "git --exec-path=. log",
    "GIT_EXEC_PATH=. git log",
    "git init --template=x ../y",
    "git --config-env=core.pager=X log",
    "git $SUB other",
    'git --git-dir="$X" checkout other',
    "GIT_DIR=$X git reset --hard other",
    'git -c "$SETTING" log',
    "git mergetool",
    "git rebase -x ./run.sh HEAD~1",
    "git -c core.pager=./run.sh -p log",
    "echo x > .git/hooks/post-checkout",
    "cp run.sh .git/hooks/pre-commit",
    "printf x >> .git/config",
    "git for-each-repo --config=x checkout other",
    "git whatever config.lock",
    "git checkout -b tmp && git rm --cached config.lock && git commit -m x && git checkout main",
)


@for_each("command", BLOCKED)
def test_a_way_around_by_git_is_blocked(project: Path, command: str) -> None:
    output = check(project, command)
    assert verdict(output) == "block", output.reason


@for_each("command", HELD)
def test_what_git_cannot_tell_is_asked_about(project: Path, command: str) -> None:
    output = check(project, command)
    assert verdict(output) in {"ask", "block"}, output.reason


def test_the_tables_are_large_enough() -> None:
    assert len(set(BLOCKED)) == len(BLOCKED) >= 80
    assert len(set(HELD)) == len(HELD) >= 40


def test_the_message_names_the_file_and_what_would_change_it(project: Path) -> None:
    assert check(project, "git checkout other").reason == (
        "Blocked Bash operation: file matches preToolUse.uneditableFiles pattern 'config.lock'. "
        "File: config.lock (git checkout would change it)"
    )


def test_a_pull_asks_and_says_why(project: Path) -> None:
    reason = check(project, "git pull").reason or ""
    assert "what git pull brings from the remote is only known once it is fetched" in reason


def test_our_own_files_are_protected_from_git_too(tmp_path: Path) -> None:
    project = make_repository(tmp_path.resolve() / "work")
    commit(project, "policy", {".fairlead": "x"})
    (project / ".fairlead.yaml").write_text("a: 1\n")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "policy")
    for command in ("git checkout feature", "git reset --hard HEAD~1", "git rm .fairlead.yaml", "git revert HEAD"):
        output = check(project, command, preventRootAdditions=False)
        assert verdict(output) == "block", command
        assert ".fairlead.yaml" in (output.reason or "")


def test_a_reset_on_a_branch_without_commits_removes_all_files(tmp_path: Path) -> None:
    project = make_repository(tmp_path.resolve() / "work")
    git(project, "symbolic-ref", "HEAD", "refs/heads/empty")
    assert verdict(check(project, "git reset --hard")) == "block"


def test_a_change_in_a_worktree_is_judged_there(tmp_path: Path) -> None:
    project = make_repository(tmp_path.resolve() / "work")
    git(project, "worktree", "add", "-q", "inside", "feature")
    assert verdict(check(project, "git checkout other -- config.lock", cwd="inside")) == "block"
    assert verdict(check(project, "git -C inside reset --hard other")) == "block"
    assert verdict(check(project, "git checkout -- .", cwd="inside")) == "pass"


@for_each("name", [".git/hooks/pre-commit", ".git/config", "sub/.git/hooks/post-checkout", ".git/modules/a/config"])
def test_a_file_tool_that_writes_what_git_runs_leads_to_a_question(project: Path, name: str) -> None:
    tool_input = {"file_path": str(project / name), "content": "x"}
    event = PreToolUse(session_id="s", tool_name="Write", tool_input=tool_input, cwd=str(project))
    output = make_guards(project).check(event).output
    assert verdict(output) == "ask"
    assert "in later commands" in (output.reason or "")


def test_a_file_tool_that_writes_what_git_runs_leads_to_a_question_if_the_repository_is_a_link(
    project: Path,
) -> None:
    (project / ".git").rename(project / "data")
    (project / ".git").symlink_to("data")
    tool_input = {"file_path": str(project / ".git/hooks/pre-commit"), "content": "x"}
    event = PreToolUse(session_id="s", tool_name="Write", tool_input=tool_input, cwd=str(project))
    assert verdict(make_guards(project).check(event).output) == "ask"


def test_git_s_other_files_are_no_matter_of_it(project: Path) -> None:
    for name in (".git/COMMIT_EDITMSG", ".git/info/exclude", "hooks/pre-commit", ".gitignore", ".gitattributes"):
        tool_input = {"file_path": str(project / name), "content": "x"}
        event = PreToolUse(session_id="s", tool_name="Write", tool_input=tool_input, cwd=str(project))
        assert verdict(make_guards(project).check(event).output) == "pass", name
