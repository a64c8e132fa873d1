"""Asking git about a hostile repository runs none of its code, takes a bounded time, and changes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from policy.git_repository import check, commit, git, make_guards, make_repository, verdict, write

from fairlead.errors import NeedsThread
from fairlead.events import PreToolUse
from fairlead.policy.git import _process

if TYPE_CHECKING:
    from pathlib import Path

_RUNNING_SETTINGS = (
    *("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy"),
    *("core.alternateRefsCommand", "diff.external", "diff.x.command", "diff.x.textconv", "filter.x.clean"),
    *("filter.x.smudge", "filter.x.process", "merge.x.driver", "credential.helper", "gpg.program", "pager.log"),
    *("pager.diff-tree", "pager.ls-files", "sequence.editor", "interactive.diffFilter", "remote.origin.uploadpack"),
    *("uploadpack.packObjectsHook", "trailer.x.command", "alias.diff-tree", "alias.cat-file", "alias.y"),
)
_HOOKS = (
    *("post-checkout", "post-index-change", "pre-commit", "reference-transaction", "fsmonitor-watchman", "post-merge"),
    *("pre-auto-gc", "post-rewrite", "pre-rebase", "applypatch-msg", "pre-push"),
)
_COMMANDS = (
    *("git checkout feature", "git checkout -- .", "git reset --hard HEAD~1", "git stash -u", "git stash pop"),
    *("git merge feature", "git rebase feature", "git cherry-pick feature", "git revert HEAD", "git clean -fdx src"),
    *("git pull", "git diff", "git diff HEAD~1", "git log -p", "git show", "git grep a", "git archive HEAD"),
    *("git cat-file -p HEAD:src/app.py", "git stash show -p", "git rm -r src", "git bisect start HEAD v1"),
    *("git apply x.patch", "git status -vv", "git y", "git restore -s feature src", "git switch remote-only"),
)


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[Path, Path]:
    """A repository in which each setting and each hook that runs something creates a file."""
    marker = tmp_path.resolve() / "marker"
    project = make_repository(tmp_path.resolve() / "work")
    commit(project, "attributes", {".gitattributes": "* filter=x diff=x merge=x\n"})
    program = project.parent / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {marker}\nexit 1\n')
    program.chmod(0o755)
    for setting in _RUNNING_SETTINGS:
        git(project, "config", setting, f"!{program}" if "alias" in setting or "helper" in setting else str(program))
    git(project, "config", "filter.x.required", "true")
    git(project, "config", "log.showSignature", "true")
    git(project, "config", "diff.x.cachetextconv", "true")
    hooks = project / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in _HOOKS:
        (hooks / hook).write_text(program.read_text())
        (hooks / hook).chmod(0o755)
    write(project, {"src/app.py": "changed, so that git would call the filter\n"})
    marker.unlink(missing_ok=True)
    return project, marker


def test_no_setting_and_no_hook_of_a_repository_runs(hostile: tuple[Path, Path]) -> None:
    project, marker = hostile
    guards = make_guards(project, uneditableFiles=["config.lock", "src/app.py"], unreadableFiles=["src/app.py", ".env"])
    before = (project / ".git" / "index").stat()
    for command in _COMMANDS:
        check(project, command, guards=guards)
        assert not marker.exists(), f"{command}: {marker.read_text()}"
    after = (project / ".git" / "index").stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_objects_that_a_partial_clone_lacks_are_not_fetched(hostile: tuple[Path, Path]) -> None:
    project, marker = hostile
    git(project, "config", "extensions.partialClone", "origin")
    git(project, "config", "core.repositoryFormatVersion", "1")
    git(project, "config", "remote.origin.promisor", "true")
    git(project, "config", "remote.origin.url", f"ext::{project.parent}/program")
    git(project, "config", "protocol.ext.allow", "always")
    tree = git(project, "-c", "core.fsmonitor=false", "rev-parse", "feature^{tree}")
    (project / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    marker.unlink(missing_ok=True)
    for command in ("git checkout feature", "git merge feature", "git log -p feature", "git show feature"):
        output = check(project, command, uneditableFiles=["config.lock"], unreadableFiles=["config.lock"])
        assert verdict(output) in {"ask", "block"}, command
        assert not marker.exists(), f"{command}: {marker.read_text()}"


def test_a_git_that_does_not_answer_leads_to_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_repository(tmp_path.resolve() / "work")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(_process, "TIMEOUT", 0.1)
    output = check(project, "git checkout feature")
    assert verdict(output) == "ask"
    assert "git did not answer within 0.1 seconds" in (output.reason or "")


def test_a_missing_git_leads_to_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_repository(tmp_path.resolve() / "work")
    monkeypatch.setenv("PATH", str(tmp_path))
    output = check(project, "git checkout feature")
    assert verdict(output) == "ask"
    assert "git cannot be asked: cannot start 'git'" in (output.reason or "")


def test_a_git_in_a_relative_folder_of_the_path_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_repository(tmp_path.resolve() / "work")
    (project / "git").write_text(f"#!/bin/sh\ntouch {tmp_path}/marker\n")
    (project / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    monkeypatch.chdir(project)
    assert verdict(check(project, "git checkout other")) == "block"
    assert not (tmp_path / "marker").exists()


def test_an_event_loop_does_not_wait_for_git(tmp_path: Path) -> None:
    project = make_repository(tmp_path.resolve() / "work")
    guards = make_guards(project)

    def event(command: str) -> PreToolUse:
        return PreToolUse(session_id="s", tool_name="Bash", tool_input={"command": command}, cwd=str(project))

    assert not guards.answer(event("git status && git commit -m x"), may_wait=False).blocked
    for command in ("git checkout feature", "git stash", "git unknown"):
        with pytest.raises(NeedsThread):
            guards.answer(event(command), may_wait=False)


@pytest.mark.parametrize("command", ["git status", "git diff --stat", "git add src/app.py", "git log --oneline -5"])
def test_an_event_loop_answers_a_call_of_a_repository_that_is_cached(tmp_path: Path, command: str) -> None:
    project = make_repository(tmp_path.resolve() / "work")
    guards = make_guards(project, unreadableFiles=["*.pem", ".env"])
    event = PreToolUse(session_id="s", tool_name="Bash", tool_input={"command": command}, cwd=str(project))
    with pytest.raises(NeedsThread):
        guards.answer(event, may_wait=False)
    assert not guards.answer(event).blocked
    assert not guards.answer(event, may_wait=False).blocked


def test_an_event_loop_does_not_read_the_files_that_git_shows(tmp_path: Path) -> None:
    project = make_repository(tmp_path.resolve() / "work")
    guards = make_guards(project, unreadableFiles=["*.pem", ".env"])
    event = PreToolUse(session_id="s", tool_name="Bash", tool_input={"command": "git log -p"}, cwd=str(project))
    assert not guards.answer(event).blocked
    with pytest.raises(NeedsThread):
        guards.answer(event, may_wait=False)


def test_what_git_answered_is_asked_again_only_if_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_repository(tmp_path.resolve() / "work")
    guards = make_guards(project)
    asked: list[str] = []
    run = _process.GitProcess.run

    def count(self: _process.GitProcess, *args: str, stdin: bytes = b"", may_fail: bool = False) -> bytes | None:
        asked.append(args[0])
        return run(self, *args, stdin=stdin, may_fail=may_fail)

    monkeypatch.setattr(_process.GitProcess, "run", count)
    assert verdict(check(project, "git checkout -f feature", guards=guards)) == "pass"
    asked.clear()
    assert verdict(check(project, "git checkout -f feature", guards=guards)) == "pass"
    assert set(asked) == {"cat-file"}  # revisions are resolved each time
    write(project, {"config.lock": "edited\n"})
    assert verdict(check(project, "git checkout -f feature", guards=guards)) == "block"
    git(project, "checkout", "-q", "--", "config.lock")
    git(project, "branch", "-q", "-f", "feature", "other")
    assert verdict(check(project, "git checkout -f feature", guards=guards)) == "block"
