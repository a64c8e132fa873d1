"""The daemon asks git in a thread, and answers as a process without it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policy.git_repository import PROTECTED, commit, git

if TYPE_CHECKING:
    from daemon.daemon_home import DaemonHome, Done


def bash(home: DaemonHome, command: str) -> Done:
    return home.hook("PreToolUse", home.payload(tool_name="Bash", tool_input={"command": command}))


def test_a_checkout_is_judged_in_the_daemon(home: DaemonHome) -> None:
    git(home.project, "init", "-q")
    commit(home.project, "one", {PROTECTED: "one\n", "a": "a\n"})
    git(home.project, "switch", "-q", "-c", "other")
    commit(home.project, "two", {PROTECTED: "two\n"})
    git(home.project, "switch", "-q", "-c", "same", "main")
    commit(home.project, "three", {"a": "b\n"})
    home.policy(f"preToolUse: {{uneditableFiles: [{PROTECTED}]}}\n")
    with home.daemon():
        for _ in range(3):  # the first in a thread, and the next ones begin in the event loop
            assert bash(home, "git status").exit_code == 0
            assert bash(home, "git checkout main").exit_code == 0
            blocked = bash(home, "git checkout other")
            assert blocked.exit_code == 2
            assert f"File: {PROTECTED} (git checkout would change it)" in blocked.stderr
        assert {event.route for event in home.happened()} == {"daemon"}
    cold = home.cold("PreToolUse", home.payload(tool_name="Bash", tool_input={"command": "git checkout other"}))
    assert (cold.exit_code, cold.stderr) == (blocked.exit_code, blocked.stderr)
