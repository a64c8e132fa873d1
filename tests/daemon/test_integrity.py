"""After a tool has run, the protected files are looked at again: a real daemon, the real launcher, real files."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from daemon.daemon_home import DaemonHome, Done

REPORT = "preToolUse: {uneditableFiles: [.env, 'keys/**']}\n"
RESTORE = "preToolUse: {uneditableFiles: [.env, 'keys/**'], integrity: restore}\n"
COMMAND = "uptime"
BEFORE = "KEY=1\n"


@pytest.fixture
def env(home: DaemonHome) -> Path:
    """A protected file, in a project whose policy has files put back."""
    home.policy(RESTORE)
    file = home.project / ".env"
    file.write_text(BEFORE)
    file.chmod(0o640)
    return file


def event(home: DaemonHome, name: str, call: str = "t1", **fields: Any) -> Done:
    """Send an event of a call; by default of a shell command."""
    usual = {"hook_event_name": name, "tool_name": "Bash", "tool_input": {"command": COMMAND}, "tool_use_id": call}
    if name == "PostToolUse":
        usual["tool_response"] = {"stdout": "", "stderr": ""}
    done = home.hook(name, home.payload(**{**usual, **fields}))
    assert done.exit_code == 0, done
    assert home.happened()[-1].route == "daemon"
    return done


@contextmanager
def tool(home: DaemonHome, call: str = "t1", **fields: Any) -> Iterator[dict[str, Any]]:
    """Run a tool: what happens inside is what it does. Yields the answer, which is there afterwards."""
    assert event(home, "PreToolUse", call, **fields).answer == {}
    answer: dict[str, Any] = {}
    yield answer
    answer |= event(home, "PostToolUse", call, **fields).answer


def for_agent(answer: dict[str, Any]) -> str:
    text: str = answer.get("hookSpecificOutput", {}).get("additionalContext", "")
    return text


def for_user(answer: dict[str, Any]) -> str:
    text: str = answer.get("systemMessage", "")
    return text


def kept(home: DaemonHome) -> list[Path]:
    return sorted((home.state / "integrity").glob("*"))


# -- what is told --------------------------------------------------------------------------------------


def test_a_changed_file_is_reported_to_the_agent_and_to_the_user(home: DaemonHome, env: Path) -> None:
    home.policy(REPORT)
    with home.daemon(), tool(home) as answer:
        env.write_text("KEY=2\n")

    assert for_agent(answer) == (
        "This call has changed files that the policy protects from you (preToolUse.integrity):\n"
        "- .env was changed (preToolUse.uneditableFiles '.env'); it is left as it is now.\n"
        "Tell the user about it. Do not change them again, or back, unless the user asks you to."
    )
    assert for_user(answer) == (
        "Integrity check (preToolUse.integrity):\n"
        "- .env was changed (preToolUse.uneditableFiles '.env') by `uptime`. It is left as it is now."
    )
    assert env.read_text() == "KEY=2\n"


def test_a_tool_that_changes_no_protected_file_gets_no_answer(home: DaemonHome, env: Path) -> None:
    with home.daemon(), tool(home) as answer:
        (home.project / "other.txt").write_text("x")
        env.touch()
        env.write_text(BEFORE)

    assert answer == {}


def test_the_status_of_the_daemon_names_the_projects(home: DaemonHome, env: Path) -> None:
    with home.daemon(), tool(home):
        status = home.fairlead("daemon", "status").stdout

    assert env.exists()
    assert f"integrity  restore: 2 protected files, 0.0 MB of copies in {home.project}\n" in status


def test_nothing_is_looked_at_if_the_check_is_off(home: DaemonHome, env: Path) -> None:
    home.policy(REPORT.replace("]}", "], integrity: 'off'}"))
    with home.daemon() as _, tool(home) as answer:
        env.unlink()

    assert answer == {}


@pytest.mark.parametrize("tool_name", ["Bash", "mcp__files__run", "NewTool"])
def test_every_tool_whose_effects_are_not_known_is_checked(home: DaemonHome, env: Path, tool_name: str) -> None:
    with home.daemon(), tool(home, tool_name=tool_name) as answer:
        env.write_text("KEY=2\n")

    assert "was changed" in for_agent(answer)


def test_a_command_that_fails_is_checked_too(home: DaemonHome, env: Path) -> None:
    with home.daemon():
        event(home, "PreToolUse")
        env.unlink()
        answer = event(home, "PostToolUseFailure", error="Exit code 1").answer

    assert "- .env was removed" in for_agent(answer)
    assert env.read_text() == BEFORE


def test_a_new_file_with_a_protected_name_is_reported_and_left(home: DaemonHome, env: Path) -> None:
    with home.daemon(), tool(home) as answer:
        (home.project / "keys/deep").mkdir(parents=True)
        (home.project / "keys/deep/new.pem").write_text("x")
        (home.project / "src").mkdir()
        (home.project / "src/.env").write_text("x")

    assert "- keys/deep/new.pem was created" in for_agent(answer)
    assert "- src/.env was created" in for_agent(answer)
    assert (home.project / "src/.env").exists()
    assert env.read_text() == BEFORE


def test_the_policy_itself_is_protected(home: DaemonHome, env: Path) -> None:
    policy = home.project / ".fairlead.yaml"
    with home.daemon(), tool(home) as answer:
        policy.write_text("preToolUse: {}\n")
        env.write_text("KEY=2\n")

    assert "- .fairlead.yaml was changed (preToolUse.protectOwnFiles); it was put back." in for_agent(answer)
    assert (policy.read_text(), env.read_text()) == (RESTORE, BEFORE)


def test_a_rule_for_another_agent_or_that_only_warns_protects_nothing_here(home: DaemonHome, env: Path) -> None:
    home.policy(
        "preToolUse: {integrity: restore, uneditableFiles: "
        "[{pattern: .env, agent: reviewer}, {pattern: notes.txt, action: warn}]}\n"
    )
    notes = home.project / "notes.txt"
    notes.write_text("1")
    with home.daemon():
        with tool(home) as of_main:
            env.write_text("KEY=2\n")
            notes.write_text("2")
        with tool(home, "t2", agent_id="a1", agent_type="reviewer") as of_reviewer:
            env.write_text("KEY=3\n")

    assert of_main == {}
    assert "- .env was changed" in for_agent(of_reviewer)
    assert env.read_text() == "KEY=2\n"


# -- what is put back ----------------------------------------------------------------------------------


def test_a_changed_file_is_put_back_and_the_change_is_kept(home: DaemonHome, env: Path) -> None:
    with home.daemon(), tool(home) as answer:
        env.write_text("KEY=2\n")
        env.chmod(0o666)

    (other,) = kept(home)
    assert for_agent(answer).splitlines()[1:] == [
        "- .env was changed (preToolUse.uneditableFiles '.env'); it was put back.",
        "Do not change them by any other way. If they have to change, ask the user to do it.",
    ]
    assert f"by `uptime`. It was put back; the changed version is {other}." in for_user(answer)
    assert str(other) not in for_agent(answer)  # it may contain what the agent must not read
    assert (env.read_text(), stat.S_IMODE(env.stat().st_mode)) == (BEFORE, 0o640)
    assert (other.read_text(), stat.S_IMODE(other.stat().st_mode)) == ("KEY=2\n", 0o600)
    assert stat.S_IMODE(other.parent.stat().st_mode) == 0o700


def test_what_is_put_back_is_known_again(home: DaemonHome, env: Path) -> None:
    with home.daemon():
        for change in ("KEY=2\n", "KEY=3\n"):
            with tool(home, change) as answer:
                env.write_text(change)
            assert "it was put back" in for_agent(answer)
        with tool(home, "quiet") as answer:
            pass

    assert answer == {}
    assert [file.read_text() for file in kept(home)] == ["KEY=2\n", "KEY=3\n"]


def test_a_folder_that_was_removed_is_made_again(home: DaemonHome, env: Path) -> None:
    key = home.project / "keys/deep/a.pem"
    key.parent.mkdir(parents=True)
    key.write_text("secret")
    with home.daemon(), tool(home) as answer:
        key.unlink()
        key.parent.rmdir()
        env.unlink()

    assert "- keys/deep/a.pem was removed" in for_agent(answer)
    assert (key.read_text(), env.read_text()) == ("secret", BEFORE)


def test_a_file_that_a_link_has_replaced_is_a_file_again(home: DaemonHome, env: Path) -> None:
    elsewhere = home.folder / "elsewhere"
    elsewhere.write_text(BEFORE)
    with home.daemon(), tool(home) as answer:
        env.unlink()
        env.symlink_to(elsewhere)

    assert "- .env was replaced by something that is not the file" in for_agent(answer)
    assert (env.is_symlink(), env.read_text(), elsewhere.read_text()) == (False, BEFORE, BEFORE)
    assert kept(home)[0].readlink() == elsewhere


def test_nothing_is_written_through_a_folder_that_a_link_has_replaced(home: DaemonHome, env: Path) -> None:
    key, elsewhere = home.project / "keys/a.pem", home.folder / "elsewhere"
    key.parent.mkdir()
    elsewhere.mkdir()
    key.write_text("secret")
    with home.daemon(), tool(home) as answer:
        key.unlink()
        key.parent.rmdir()
        key.parent.symlink_to(elsewhere)

    assert "could not be put back: a folder above it was replaced by a link" in for_user(answer)
    assert not list(elsewhere.iterdir())
    assert env.read_text() == BEFORE


def test_permissions_are_put_back(home: DaemonHome, env: Path) -> None:
    with home.daemon(), tool(home) as answer:
        env.chmod(0o666)

    assert "- .env has other permissions (preToolUse.uneditableFiles '.env'); it was put back." in for_agent(answer)
    assert stat.S_IMODE(env.stat().st_mode) == 0o640


def test_two_names_of_one_file_are_one_file(home: DaemonHome, env: Path) -> None:
    other_name = home.project / "harmless.txt"
    with home.daemon():
        with tool(home, "link") as answer:
            other_name.hardlink_to(env)
        assert answer == {}
        with tool(home, "write") as answer:
            other_name.write_text("KEY=2\n")

    assert "- .env was changed" in for_agent(answer)
    assert (env.read_text(), other_name.read_text()) == (BEFORE, BEFORE)
    assert env.samefile(other_name)


def test_a_link_whose_file_has_changed_is_reported_and_left(home: DaemonHome, env: Path) -> None:
    target = home.project / "shared.txt"
    target.write_text("1")
    env.unlink()
    env.symlink_to(target)
    with home.daemon(), tool(home) as answer:
        target.write_text("2")

    assert "could not be put back: it is a link, and the file that it leads to has changed" in for_user(answer)
    assert target.read_text() == "2"


def test_a_file_without_a_copy_is_reported_and_left(home: DaemonHome, env: Path) -> None:
    env.write_bytes(b"x" * (1024 * 1024 + 1))
    with home.daemon():
        with tool(home) as answer:
            env.write_text("KEY=2\n")
        (status,) = home.ask("GET", "/v1/status")["integrity"]

    assert "could not be put back: there is no copy of it: it is too large, or could not be read." in for_user(answer)
    assert "it is left as it is now" in for_agent(answer)
    assert env.read_text() == "KEY=2\n"
    assert status["limits"] == ["files without a copy, because they are too large or cannot be read"]


def test_what_cannot_be_kept_is_left_and_told(home: DaemonHome, env: Path) -> None:
    (home.state / "integrity").write_text("in the way")
    with home.daemon(), tool(home) as answer:
        env.write_text("KEY=2\n")

    assert "It could not be put back: [Errno 17] File exists" in for_user(answer)
    assert env.read_text() == "KEY=2\n"


# -- who did it ----------------------------------------------------------------------------------------


def test_what_the_user_changes_between_two_calls_is_not_laid_to_the_agent(home: DaemonHome, env: Path) -> None:
    with home.daemon():
        with tool(home, "first"):
            pass
        env.write_text("KEY=mine\n")
        with tool(home, "second") as answer:
            pass

    assert for_agent(answer) == ""
    assert for_user(answer) == (
        "Integrity check (preToolUse.integrity):\n"
        "- .env was changed (preToolUse.uneditableFiles '.env') outside of tool calls: by you, or by a process that an "
        "earlier command has left running. It is left as it is now."
    )
    assert (env.read_text(), kept(home)) == ("KEY=mine\n", [])


def test_nothing_is_put_back_while_another_tool_was_running(home: DaemonHome, env: Path) -> None:
    with home.daemon(), tool(home, "first") as first:
        other = {"session_id": "s2", "tool_input": {"command": "sleep 9"}}
        with tool(home, "second", **other) as second:
            env.write_text("KEY=2\n")

    assert "This call, or one that ran beside it, has changed files" in for_agent(second)
    assert "while several calls could have done it: `sleep 9`, `uptime`. It is left as it is now." in for_user(second)
    assert first == {}
    assert (env.read_text(), kept(home)) == ("KEY=2\n", [])


def test_a_call_that_only_reads_is_no_other_tool(home: DaemonHome, env: Path) -> None:
    reading = {"tool_name": "Read", "tool_input": {"file_path": str(env)}, "session_id": "s2"}
    with home.daemon(), tool(home) as answer, tool(home, "r", **reading):
        env.write_text("KEY=2\n")

    assert "it was put back" in for_agent(answer)


def test_a_call_in_another_folder_is_no_other_tool(home: DaemonHome, env: Path) -> None:
    (home.folder / "beside").mkdir()
    with home.daemon(), tool(home) as answer, tool(home, "x", session_id="s2", cwd=str(home.folder / "beside")):
        env.write_text("KEY=2\n")

    assert "it was put back" in for_agent(answer)


def test_a_change_is_reported_once_although_two_policies_protect_the_file(home: DaemonHome, env: Path) -> None:
    home.policy(REPORT)
    nested = home.project / "nested"
    nested.mkdir()
    (nested / ".fairlead.yaml").write_text("preToolUse: {uneditableFiles: [own.txt]}\n")
    with home.daemon():
        with tool(home, "above"):
            pass
        with tool(home, "below", cwd=str(nested)) as below:
            env.write_text("KEY=2\n")
        with tool(home, "again") as above:
            pass

    assert "- .env was changed" in for_agent(below)
    assert above == {}


def test_an_agent_that_has_gone_elsewhere_is_held_to_its_project(home: DaemonHome, env: Path) -> None:
    (home.folder / "elsewhere").mkdir()
    with home.daemon():
        home.hook("SessionStart", home.payload(hook_event_name="SessionStart", source="startup"))
        with tool(home, cwd=str(home.folder / "elsewhere")) as answer:
            env.write_text("KEY=2\n")

    assert "- .env was changed (preToolUse.uneditableFiles '.env'); it was put back." in for_agent(answer)
    assert env.read_text() == BEFORE


def test_a_background_command_is_found_out_at_the_next_look(home: DaemonHome, env: Path) -> None:
    background = {"tool_input": {"command": "sleep 60", "run_in_background": True}}
    response = {"tool_response": {"backgroundTaskId": "b1"}}
    with home.daemon():
        event(home, "PreToolUse", "b", **background)
        assert event(home, "PostToolUse", "b", **background, **response).answer == {}
        env.write_text("KEY=2\n")
        with tool(home, "next") as answer:
            pass
        assert "while several calls could have done it: `sleep 60`" in for_user(answer)

        stop = {"hook_event_name": "Stop", "background_tasks": []}
        home.hook("Stop", home.payload(**stop))
        with tool(home, "after"):
            pass
        with tool(home, "alone") as answer:
            env.write_text("KEY=3\n")

    assert "it was put back" in for_agent(answer)
    assert env.read_text() == "KEY=2\n"


def test_a_call_that_was_interrupted_is_not_running_for_ever(home: DaemonHome, env: Path) -> None:
    with home.daemon():
        event(home, "PreToolUse", "interrupted")
        home.hook("UserPromptSubmit", home.payload(hook_event_name="UserPromptSubmit", prompt="no"))
        with tool(home, "next") as answer:
            env.write_text("KEY=2\n")

    assert "it was put back" in for_agent(answer)


def test_a_call_that_the_user_was_asked_about_is_theirs(home: DaemonHome, env: Path) -> None:
    asked: dict[str, Any] = {"tool_input": {"command": "$UNKNOWN"}}
    with home.daemon():
        decision = event(home, "PreToolUse", **asked).answer["hookSpecificOutput"]["permissionDecision"]
        env.write_text("KEY=2\n")
        answer = event(home, "PostToolUse", **asked).answer

    assert decision == "ask"
    assert for_agent(answer) == ""
    assert "by `$UNKNOWN`, which you were asked about. It is left as it is now." in for_user(answer)
    assert env.read_text() == "KEY=2\n"


def test_what_a_file_tool_was_allowed_to_write_is_no_finding(home: DaemonHome, env: Path) -> None:
    writes = {"tool_name": "Write", "tool_input": {"file_path": str(env), "content": "x"}}
    home.policy("preToolUse: {integrity: restore, uneditableFiles: [{pattern: .env, agent: reviewer}]}\n")
    with home.daemon():
        with tool(home, "shell"):
            pass
        with tool(home, "write", **writes):
            env.write_text("KEY=2\n")
        with tool(home, "again") as answer:
            pass

    assert answer == {}
    assert env.read_text() == "KEY=2\n"


def test_a_daemon_that_starts_in_the_middle_of_a_call_blames_nobody(home: DaemonHome, env: Path) -> None:
    with home.daemon():
        event(home, "PreToolUse")
        env.write_text("KEY=2\n")
    with home.daemon():
        assert event(home, "PostToolUse").answer == {}
        with tool(home, "next") as answer:
            env.write_text("KEY=3\n")

    assert "it was put back" in for_agent(answer)
    assert env.read_text() == "KEY=2\n"


def test_a_call_whose_beginning_was_not_seen_is_not_undone(home: DaemonHome, env: Path) -> None:
    with home.daemon():
        with tool(home, "before"):
            pass
        env.write_text("KEY=2\n")
        answer = event(home, "PostToolUse", "unseen").answer

    assert "This call, or one that ran beside it, has changed" in for_agent(answer)
    assert "before the end of `uptime`; what it was when that began is not known." in for_user(answer)
    assert env.read_text() == "KEY=2\n"


def test_a_file_that_changes_twice_within_a_tick_of_the_clock_is_noticed(home: DaemonHome, env: Path) -> None:
    with home.daemon():
        for number in range(5):
            env.write_text(f"KEY={number}\n")
            event(home, "PreToolUse", f"t{number}")
            env.write_text("KEY=x\n")
            os.utime(env, (0, 0))
            assert "- .env was changed" in for_agent(event(home, "PostToolUse", f"t{number}").answer)
            assert env.read_text() == f"KEY={number}\n"


def test_without_a_daemon_the_user_is_told_once_that_nothing_is_checked(home: DaemonHome, env: Path) -> None:
    def answer(session: str, tool_name: str = "Bash") -> str:
        call = {"tool_name": tool_name, "tool_input": {"command": COMMAND}, "tool_response": {}}
        payload = home.payload(session_id=session, hook_event_name="PostToolUse", **call)
        return for_user(home.hook("PostToolUse", payload).answer)

    env.write_text("KEY=2\n")
    assert answer("s1", "Read") == ""
    assert answer("s1").startswith("preToolUse.integrity is restore, but this call was handled without the daemon: ")
    assert answer("s1") == ""
    assert answer("s2") != ""
    home.policy(REPORT)
    assert answer("s3") == ""
