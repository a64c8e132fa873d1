"""A hook file that a person has trusted stays in force when the policy that lists it changes, and nothing else runs."""

from __future__ import annotations

import subprocess
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import scratch_home

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from daemon.daemon_home import DaemonHome, Done

GUARDS = """\
import os

from fairlead import HookManager, HookOutput, PreToolUse

hooks = HookManager()
open(os.path.join(os.path.dirname(__file__), "ran"), "a").close()


@hooks.on(PreToolUse, matcher="Bash")
def no_forced_push(event):
    if event.tool_input["command"] == "git push -f":
        return HookOutput.deny(f"not forced, in {os.getcwd()}")
"""
RULES = "preToolUse: {preventRootAdditions: false}\n"


class Session:
    """A session that began before its project had a policy."""

    def __init__(self, home: DaemonHome, way: str) -> None:
        self.home = home
        self._way = way
        self.policy = home.project / ".fairlead.yaml"
        self.send("SessionStart", source="startup")

    def send(self, event: str, *, cwd: Path | None = None, **fields: object) -> Done:
        cwd = cwd or self.home.project
        payload = self.home.payload(hook_event_name=event, cwd=str(cwd), **fields)
        variables = {"CLAUDE_PROJECT_DIR": str(self.home.project)}
        if self._way == "daemon":
            return self.home.hook(event, payload, **variables)
        return self.home.cold(event, payload, **variables)

    def push(self, cwd: Path | None = None) -> Done:
        return self.send("PreToolUse", cwd=cwd, tool_name="Bash", tool_input={"command": "git push -f"})

    def person(self, *words: str) -> None:
        done = self.home.fairlead(*words, "--yes")
        assert done.exit_code == 0, done


@pytest.fixture(params=["daemon", "without a daemon"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as home, home.daemon() if request.param == "daemon" else nullcontext():
        yield Session(home, request.param)


def write(folder: Path, text: str = GUARDS, name: str = "guards.py") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text)
    return file


def reason(done: Done) -> str:
    return str(done.answer.get("hookSpecificOutput", {}).get("permissionDecisionReason", ""))


def message(done: Done) -> str:
    return str(done.answer.get("systemMessage", ""))


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def test_a_guard_stays_in_force_when_the_policy_that_lists_it_changes(session: Session) -> None:
    write(session.home.project)
    write(session.home.project, GUARDS.replace("no_forced_push", "other"), "other.py")
    session.person("hooks", "add", "guards.py")
    session.person("hooks", "add", "other.py")
    denied = f"not forced, in {session.home.project}"
    assert reason(session.push()) == denied

    session.policy.write_text(session.policy.read_text() + "# changed\n")
    answers = [session.push() for _ in range(2)]
    assert [(one.exit_code, reason(one)) for one in answers] == [(2, denied)] * 2
    assert "Its rules apply, but not preToolUse.preventRootAdditions. Read it" in message(answers[0])

    session.person("hooks", "remove", "other.py")
    assert reason(session.push()) == denied


def test_a_guard_that_changes_with_its_policy_denies(session: Session) -> None:
    guards = write(session.home.project)
    session.person("hooks", "add", "guards.py")
    session.policy.write_text(session.policy.read_text() + "# changed\n")
    guards.write_text(GUARDS + "\n")
    assert f"{guards} has changed since it was trusted" in reason(session.push())
    guards.unlink()
    assert f"{guards} cannot be read" in reason(session.push())


def test_a_hook_file_in_another_folder_stays_in_force_in_a_policy_that_was_trusted_with_it(session: Session) -> None:
    write(session.home.folder / "shared")
    session.person("hooks", "add", "../shared/guards.py")
    session.policy.write_text(session.policy.read_text() + "# changed\n")
    assert reason(session.push()) == f"not forced, in {session.home.project}"


def test_a_hook_that_is_added_to_a_policy_that_was_there_is_in_force_in_a_session_that_runs(session: Session) -> None:
    write(session.home.project)
    session.policy.write_text("stop: {commands: [{run: touch commanded}]}\n")
    session.person("hooks", "add", "guards.py")
    answer = session.push()
    assert (answer.exit_code, reason(answer)) == (2, f"not forced, in {session.home.project}")
    assert "Its rules apply, but not stop. Read it" in message(answer)
    session.send("Stop", stop_hook_active=False)
    assert not (session.home.project / "commanded").exists()


def test_nobody_is_told_that_a_policy_has_changed_when_a_hook_is_added_that_is_in_force(session: Session) -> None:
    write(session.home.project)
    session.policy.write_text("stop: {commands: [{run: 'true'}]}\n")
    session.send("SessionStart", source="startup")
    session.person("hooks", "add", "guards.py")
    answer = session.push()
    assert (reason(answer), message(answer)) == (f"not forced, in {session.home.project}", "")


def test_the_list_of_an_untrusted_policy_alone_runs_nothing(session: Session) -> None:
    write(session.home.project)
    session.policy.write_text(RULES + "hooks: [guards.py]\n")
    answers = [session.push() for _ in range(2)]
    assert [one.exit_code for one in answers] == [0, 0]
    assert ["Its rules apply, but not hooks" in message(one) for one in answers] == [True, False]
    assert not (session.home.project / "ran").exists()


@pytest.mark.parametrize("listed", ["{shared}/guards.py", "../../shared/guards.py", "link.py", "linked/guards.py"])
def test_a_cloned_repository_cannot_have_the_hooks_of_another_project_run(session: Session, listed: str) -> None:
    shared = session.home.folder / "shared"
    write(shared)
    clone = session.home.project / "clone"
    write(clone, RULES + f"hooks: [{listed.format(shared=shared)}]\n", ".fairlead.yaml")
    (clone / "link.py").symlink_to(shared / "guards.py")
    (clone / "linked").symlink_to(shared)
    session.person("trust", str(shared / "guards.py"))

    answer = session.push(clone)

    assert (answer.exit_code, "but not hooks" in message(answer)) == (0, True)
    assert not (shared / "ran").exists()


def test_a_policy_that_is_linked_to_a_trusted_one_has_no_hooks_run_once_that_has_changed(session: Session) -> None:
    write(session.home.folder / "shared")
    session.person("hooks", "add", "../shared/guards.py")
    session.policy.write_text(session.policy.read_text() + "# changed\n")
    clone = session.home.folder / "clone"
    clone.mkdir()
    (clone / ".fairlead.yaml").symlink_to(session.policy)

    assert reason(session.push(clone)) == f"not forced, in {session.home.project}"


def test_a_module_beside_a_link_is_not_loaded(session: Session) -> None:
    real = write(session.home.project / "real", "import helper\n" + GUARDS)
    write(real.parent, "", "helper.py")
    write(session.home.project / "site-packages", "open('ran', 'w')\n", "helper.py")
    (session.home.project / "site-packages/guards.py").symlink_to(real)
    session.person("trust", str(real))
    session.policy.write_text(RULES + "hooks: [site-packages/guards.py]\n")

    assert reason(session.push()) == f"not forced, in {session.home.project}"
    assert not (session.home.project / "ran").exists()


def test_in_a_worktree_with_another_policy_the_guard_of_the_main_checkout_stays_in_force(session: Session) -> None:
    project = session.home.project
    git(project, "init", "-q")
    write(project)
    session.person("hooks", "add", "guards.py")
    git(project, "add", ".")
    git(project, "commit", "-qm", "x")
    tree = session.home.folder / "tree"
    git(project, "worktree", "add", "-q", str(tree))
    (tree / ".fairlead.yaml").write_text(RULES + "hooks: [guards.py]\n# of a branch\n")

    assert reason(session.push(tree)) == f"not forced, in {project}"
    assert not (tree / "ran").exists()
