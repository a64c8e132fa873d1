"""Whatever passes the guard leaves the protected files as they are: random commands, run in a copy of a repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from random import Random
from typing import TYPE_CHECKING

import pytest
from policy.git_repository import ENVIRONMENT, IGNORED, PROTECTED, check, git, make_repository, verdict, write

if TYPE_CHECKING:
    from pathlib import Path

_ROUNDS = 8
_REVISIONS = (
    *(
        "feature",
        "other",
        "main",
        "with-env",
        "gone",
        "v1",
        "HEAD~1",
        "HEAD~2",
        "HEAD~3",
        "HEAD^",
        "topic",
        "origin/other",
    ),
    *("-", "@{u}", "stash@{0}", "$(git rev-parse other)", "$(git merge-base main other)"),
)
_PATHS = (".", "src", "config.lock", "'*.lock'", ":/", "docs src", "src/app.py", ".env", "'*'")
_COMMANDS = (
    *(
        "git checkout {r}",
        "git checkout -f {r}",
        "git switch {r}",
        "git switch --detach {r}",
        "git checkout -b topic {r}",
    ),
    *("git switch -c topic {r}", "git checkout -b topic", "git checkout {r} -- {p}", "git checkout -- {p}"),
    *("git restore {p}", "git restore -s {r} {p}", "git restore --staged {p}", "git restore -SW -s {r} {p}"),
    *("git reset --hard {r}", "git reset --hard", "git reset --soft {r}", "git reset {r}", "git reset -q -- {p}"),
    *("git reset --keep {r}", "git reset --merge {r}", "git stash", "git stash -u", "git stash -a", "git stash pop"),
    *("git stash apply", "git stash push -- {p}", "git merge -q --no-edit {r}", "git merge --squash {r}"),
    *("git merge --abort", "git rebase -q {r}", "git rebase --abort", "git cherry-pick {r}", "git cherry-pick --abort"),
    *("git revert --no-edit {r}", "git revert -n {r}", "git rm -q --cached {p}", "git rm -rqf {p}", "git clean -fd"),
    *("git clean -fdx", "git clean -f {p}", "git add -A", "git add -f {p}", "git commit -qm x", "git commit -qam x"),
    *("git commit -q --amend --no-edit", "git branch -f topic {r}", "git branch topic {r}", "git tag -f topic {r}"),
    *("git read-tree {r}", "git read-tree -u -m {r}", "git checkout-index -f -a", "git update-ref HEAD {r}"),
    *("git symbolic-ref HEAD refs/heads/topic", "git checkout --orphan pages", "git merge -s ours {r}"),
    *("git checkout --theirs {p}", "git checkout -m {r}", "git pull -q . {r}", "git stash branch topic"),
    *("git diff {r} > d.patch", "git apply d.patch", "git mv src/app.py src/b.py", "git sparse-checkout set src"),
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = make_repository(tmp_path_factory.mktemp("differential").resolve() / "work")
    write(project, {"src/app.py": "a = 8\n"})
    git(project, "stash")
    return project


def make_command(random: Random) -> str:
    parts = [
        random.choice(_COMMANDS).format(r=random.choice(_REVISIONS), p=random.choice(_PATHS))
        for _ in range(random.randint(1, 4))
    ]
    return random.choice((" && ", "; ")).join(parts)


def contents(project: Path) -> list[bytes | None]:
    return [path.read_bytes() if path.exists() else None for path in (project / PROTECTED, project / IGNORED)]


@pytest.mark.parametrize("seed", range(3))
def test_what_passes_changes_no_protected_file(original: Path, tmp_path: Path, seed: int) -> None:
    random, passed = Random(seed), 0
    for number in range(_ROUNDS):
        work = tmp_path / str(number)
        shutil.copytree(original.parent, work, symlinks=True)
        project = work / "project"
        done: list[str] = []
        for _ in range(3):  # each a tool call of its own, in the state that the others left
            command = make_command(random)
            if verdict(check(project, command)) != "pass":
                continue
            before = contents(project)
            environment = {**os.environ, **ENVIRONMENT, "HOME": str(work), "GIT_EDITOR": "true"}
            subprocess.run(["bash", "-c", command], cwd=project, env=environment, capture_output=True, check=False)
            done.append(command)
            passed += 1
            assert contents(project) == before, done
        shutil.rmtree(work)
    assert passed >= _ROUNDS  # of three commands in each round
