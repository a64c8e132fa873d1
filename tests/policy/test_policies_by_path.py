"""A policy belongs to the files below it: a call is checked by the policies above each file that it touches."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from fairlead.errors import NeedsThread
from fairlead.events import PreToolUse
from fairlead.policy import Guards, find_layers, load_policy
from fairlead.policy.config import _memory_cache

if TYPE_CHECKING:
    from pathlib import Path

ENV = "preToolUse: {preventRootAdditions: false, uneditableFiles: [.env], unreadableFiles: [secret]}\n"
OPEN = "preToolUse: {preventRootAdditions: false}\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The project of the session, with a policy that protects nothing."""
    return write(tmp_path / "here", OPEN)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another project, with a policy."""
    return write(tmp_path / "other", ENV)


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".fairlead.yaml").write_text(text)
    for name in (".env", "secret", "a.txt"):
        (folder / name).write_text("x\n")
    return folder


def verdict(cwd: Path, tool: str, layers_of: Path | None = None, **tool_input: Any) -> str:
    event = PreToolUse(session_id="s", cwd=str(cwd), tool_name=tool, tool_input=tool_input)
    output = Guards(find_layers(str(layers_of or cwd))).check(event).output
    return "deny" if output.blocked else output.permission or "pass"


def bash(cwd: Path, command: str) -> str:
    return verdict(cwd, "Bash", command=command)


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "core.hooksPath=/dev/null")
    subprocess.run(["git", *identity, "-C", str(folder), *words], check=True, capture_output=True)


# -- other folders -------------------------------------------------------------------------------------


def test_files_of_another_project_are_protected_by_its_policy(here: Path, other: Path) -> None:
    assert verdict(here, "Edit", file_path=str(other / ".env")) == "deny"
    assert verdict(here, "Read", file_path=str(other / "secret")) == "deny"
    assert bash(here, "rm ../other/.env") == "deny"
    assert bash(here, "cat ../other/secret") == "deny"
    assert bash(here, "cat ../oth*/secret") == "deny"
    assert bash(here, "echo x > ../*/.env") == "deny"
    assert bash(here, "cd ../other && rm .env") == "deny"


def test_its_other_files_and_our_own_are_not(here: Path, other: Path) -> None:
    assert verdict(here, "Edit", file_path=str(other / "a.txt")) == "pass"
    assert bash(here, "cat ../other/a.txt > .env") == "pass"
    assert verdict(here, "Edit", file_path=str(here / ".env")) == "pass"


def test_without_a_policy_of_the_session_the_policy_above_a_file_applies(tmp_path: Path, other: Path) -> None:
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    assert bash(nowhere, "rm ../other/.env") == "deny"
    assert bash(nowhere, "rm ../other/a.txt") == "pass"


def test_a_file_in_a_folder_below_is_protected_by_a_policy_that_is_nearer(here: Path) -> None:
    write(here / "packages/app", ENV)
    assert verdict(here, "Write", file_path="packages/app/.env", content="") == "deny"
    assert verdict(here, "Write", file_path="packages/app/new/deep/.env", content="") == "deny"
    assert bash(here, "rm -r packages/app") == "deny"


def test_a_folder_that_is_touched_as_a_whole_is_searched_for_policies(here: Path, other: Path) -> None:
    write(here / "packages/deep/app", ENV)
    assert bash(here, "rm -rf packages") == "deny"
    assert bash(here, "mv packages gone") == "deny"
    assert bash(here, "grep -r KEY packages") == "deny"
    (here / "plain/deep").mkdir(parents=True)
    assert bash(here, "rm -rf plain") == "pass"
    search = {"pattern": "KEY", "path": str(other.parent)}
    event = PreToolUse(session_id="s", cwd=str(here), tool_name="Grep", tool_input=search)
    assert Guards(find_layers(str(here))).check(event).output.updated_input == {**search, "glob": "!**/secret"}


def test_a_folder_above_the_agents_is_protected_by_its_policy(here: Path, other: Path) -> None:
    (other / "deep").mkdir()
    assert bash(other / "deep", "rm ../.env") == "deny"
    assert bash(other / "deep", f"rm {other}/.env") == "deny"
    assert bash(here, "rm .env") == "pass"


def test_a_link_into_another_project_does_not_bypass_its_policy(here: Path, other: Path) -> None:
    (here / "link").symlink_to(other)
    (here / "renamed.txt").symlink_to(other / ".env")
    assert verdict(here, "Edit", file_path=str(here / "link/.env")) == "deny"
    assert verdict(here, "Edit", file_path=str(here / "renamed.txt")) == "deny"
    assert bash(here, "rm link/.env") == "deny"


def test_the_user_wide_policy_applies_in_every_repository(here: Path, home: Path, tmp_path: Path) -> None:
    (home / "config.yaml").write_text("preToolUse: {uneditableFiles: [.env]}\n")
    repository = tmp_path / "plain"
    (repository / ".git").mkdir(parents=True)
    (repository / ".env").write_text("x\n")
    assert bash(here, "rm ../plain/.env") == "deny"
    assert bash(here, "rm ../plain/other.txt") == "pass"


def test_a_broken_policy_above_a_file_denies_the_call(here: Path, other: Path) -> None:
    (other / ".fairlead.yaml").write_text("preToolUse: 1\n")
    event = PreToolUse(session_id="s", cwd=str(here), tool_name="Edit", tool_input={"file_path": str(other / "a.txt")})
    output = Guards(find_layers(str(here))).answer(event)
    assert output.blocked
    assert (output.reason or "").startswith(
        f"A policy above the files of this call cannot be read, so it is denied: {other}/.fairlead.yaml:1:13: "
    )


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """A folder of many projects, one of which has a policy that was never valid."""
    write(tmp_path / "wide/sub/bad", "preToolUse: 1\n")
    (tmp_path / "wide/a.txt").write_text("x\n")
    return tmp_path / "wide"


def test_a_broken_policy_below_a_folder_that_a_call_changes_leads_to_a_question(here: Path, wide: Path) -> None:
    for command in ("rm -rf ../wide", "tar xzf unknown.tgz -C ../wide", "chmod -R u+w ../wide", "mv ../wide/sub x"):
        event = PreToolUse(session_id="s", cwd=str(here), tool_name="Bash", tool_input={"command": command})
        output = Guards(find_layers(str(here))).answer(event)
        assert output.permission == "ask", command
        assert f"the policy in {wide}/sub/bad cannot be read ({wide}/sub/bad/.fairlead.yaml:1:13: " in str(
            output.reason
        )
    (wide / "sub/bad/.fairlead.yaml").unlink()
    assert bash(here, "rm -rf ../wide") == "pass"


def test_it_does_not_matter_for_calls_that_list_or_read_where_no_rule_is_on_reading(here: Path, wide: Path) -> None:
    for command in (
        "ls -R ../wide",
        "find ../wide -name x",
        "ls ../wide/sub/bad",
        "du -sh ../wide",
        "cat ../wide/a.txt",
    ):
        assert bash(here, command) == "pass", command
    assert bash(here, "grep -r x ../wide; echo x > new.txt") == "pass"
    assert verdict(here, "Grep", pattern="x", path=str(wide)) == "pass"
    (here / ".fairlead.yaml").write_text(ENV)
    assert bash(here, "grep -r x ../wide") == "ask"
    assert bash(here, "ls -R ../wide") == "pass"


def test_it_still_denies_a_call_that_touches_a_file_below_it(here: Path, wide: Path) -> None:
    for command in ("cat ../wide/sub/bad/a.txt", "touch ../wide/sub/bad/new", "rm ../wide/sub/bad/*"):
        event = PreToolUse(session_id="s", cwd=str(here), tool_name="Bash", tool_input={"command": command})
        assert Guards(find_layers(str(here))).answer(event).blocked, command


def test_of_a_policy_above_a_file_that_breaks_or_is_deleted_the_last_good_version_applies_with_a_warning(
    here: Path, other: Path
) -> None:
    guards = Guards(find_layers(str(here)))
    event = PreToolUse(session_id="s", cwd=str(here), tool_name="Edit", tool_input={"file_path": str(other / ".env")})
    assert guards.check(event).output.system_message is None
    file = other / ".fairlead.yaml"
    for text in ("preToolUse: 1\n", None):
        file.unlink() if text is None else file.write_text(text)
        output = guards.check(event).output
        assert output.blocked
        assert str(file) in (output.system_message or "")


def test_with_cached_only_a_policy_above_a_file_is_not_read(here: Path, other: Path) -> None:
    event = PreToolUse(session_id="s", cwd=str(here), tool_name="Edit", tool_input={"file_path": str(other / ".env")})
    guards = Guards(find_layers(str(here)))
    with pytest.raises(NeedsThread):
        guards.answer(event, may_wait=False)
    os.utime(other / ".fairlead.yaml")
    assert guards.answer(event).blocked


def test_a_policy_that_is_created_later_applies_at_once(here: Path, tmp_path: Path) -> None:
    later = tmp_path / "later"
    later.mkdir()
    (later / ".env").write_text("x\n")
    guards = Guards(find_layers(str(here)))
    event = PreToolUse(session_id="s", cwd=str(here), tool_name="Edit", tool_input={"file_path": str(later / ".env")})
    assert not guards.check(event).output.blocked
    assert not guards.check(event).output.blocked
    write(later, ENV)
    assert guards.check(event).output.blocked


# -- composition ---------------------------------------------------------------------------------------


def test_what_one_policy_allows_does_not_lift_the_rules_of_another(here: Path, other: Path) -> None:
    rules = "preToolUse: {toolUsageValidation: [{tool: Bash, commandPattern: 'rm *', action: block}]}\n"
    (here / ".fairlead.yaml").write_text(rules)
    (other / ".fairlead.yaml").write_text(rules.replace("block", "allow"))
    assert bash(here, "rm ../other/a.txt") == "deny"
    (here / ".fairlead.yaml").write_text(OPEN)
    assert bash(here, "rm ../other/a.txt") == "pass"
    assert bash(here, "touch ../other/a.txt") == "deny"


def test_a_policy_above_a_file_does_not_switch_a_guard_off(here: Path, other: Path) -> None:
    (here / ".fairlead.yaml").write_text("preToolUse: {preventGeneratedFileEdits: true}\n")
    (other / ".fairlead.yaml").write_text(
        "preToolUse: {preventGeneratedFileEdits: false, protectOwnFiles: false, bash: {unparsable: allow}}\n"
    )
    (other / "made.py").write_text("# DO NOT EDIT\n")
    assert verdict(here, "Edit", file_path=str(other / "made.py")) == "deny"
    assert verdict(here, "Edit", file_path=str(other / ".fairlead.yaml")) == "deny"
    assert bash(here, "$X ../other/a.txt") == "ask"


def test_new_files_at_the_root_of_each_policy_are_prevented(here: Path, other: Path) -> None:
    (other / ".fairlead.yaml").write_text("preToolUse: {preventRootAdditions: true}\n")
    assert verdict(here, "Write", file_path=str(other / "new.txt"), content="") == "deny"
    (other / "src").mkdir()
    assert verdict(here, "Write", file_path=str(other / "src/new.txt"), content="") == "pass"
    assert verdict(here, "Write", file_path=str(here / "new.txt"), content="") == "pass"


def test_an_allow_list_on_files_applies_to_the_files_below_its_policy(here: Path, other: Path) -> None:
    (other / ".fairlead.yaml").write_text(
        "preToolUse: {preventRootAdditions: false,"
        " toolUsageValidation: [{tool: Bash, pattern: 'docs/**', action: allow}]}\n"
    )
    (other / "docs").mkdir()
    assert bash(here, "cp a.txt ../other/docs/a.txt") == "pass"
    assert bash(here, "cp a.txt ../other/a.txt") == "deny"


# -- worktrees -----------------------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose policy git does not track, and a worktree of it."""
    main = tmp_path / "main"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "start")
    git(main, "worktree", "add", "-q", str(tmp_path / "tree"))
    return write(main, ENV)


def test_a_worktree_has_the_policy_of_its_repository(repository: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / ".env").write_text("x\n")
    assert bash(tree, "rm .env") == "deny"
    assert bash(tree, f"rm {repository}/.env") == "deny"
    assert bash(repository, f"rm {tree}/.env") == "deny"
    (layer,) = find_layers(str(tree))
    assert (layer.file, layer.folder) == (str(repository / ".fairlead.yaml"), str(tree))
    assert layer.runs_commands


def test_a_file_of_the_worktree_runs_the_commands_in_place_of_the_main_checkouts(
    repository: Path, tmp_path: Path
) -> None:
    tree = write(tmp_path / "tree", OPEN)
    layers = find_layers(str(tree))
    assert [(layer.file, layer.runs_commands) for layer in layers] == [
        (str(tree / ".fairlead.yaml"), True),
        (str(repository / ".fairlead.yaml"), False),
    ]
    assert bash(tree, "rm .env") == "deny"


def test_in_a_worktree_inside_its_repository_commands_run_once_and_in_the_worktree(repository: Path) -> None:
    inside = repository / ".trees/one"
    git(repository, "worktree", "add", "-q", str(inside))
    running = [layer.folder for layer in find_layers(str(inside)) if layer.runs_commands]
    assert running == [str(inside)]


def test_a_git_file_alone_does_not_make_a_folder_a_worktree(repository: Path, tmp_path: Path) -> None:
    fake = tmp_path / "fake"
    fake.mkdir()
    (fake / ".git").write_text((tmp_path / "tree/.git").read_text())
    assert repository.exists()
    assert find_layers(str(fake)) == ()


def test_a_policy_that_the_main_checkout_gets_later_is_not_hidden_by_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_memory_cache, "MIN_AGE", 0)
    main, tree = tmp_path / "main", tmp_path / "tree"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "start")
    git(main, "worktree", "add", "-q", str(tree))
    assert load_policy(str(tree), may_wait=False).layers == ()
    assert load_policy(str(tree), may_wait=False).layers == ()
    write(main, ENV)
    with pytest.raises(NeedsThread):
        load_policy(str(tree), may_wait=False)
