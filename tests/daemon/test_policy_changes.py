"""The policy is read when an event comes: what a person changes holds at once, what breaks does not lift it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daemon.daemon_home import DaemonHome, Done

KEPT = "preToolUse: {uneditableFiles: [kept.txt]}\n"


def edit(home: DaemonHome, name: str) -> Done:
    done = home.hook("PreToolUse", home.edit(name))
    assert home.happened()[-1].route == "daemon"
    return done


def bash(home: DaemonHome, command: str) -> Done:
    return home.hook("PreToolUse", home.payload(tool_name="Bash", tool_input={"command": command}))


def test_an_edited_policy_holds_at_the_next_event(home: DaemonHome) -> None:
    with home.daemon():
        home.policy("preToolUse: {}\n")
        assert edit(home, "src/new.txt").exit_code == 0
        for _ in range(5):
            home.policy("preToolUse: {uneditableFiles: [new.txt]}\n")
            assert (edit(home, "src/old.txt").exit_code, edit(home, "src/new.txt").exit_code) == (0, 2)
            home.policy("preToolUse: {uneditableFiles: [old.txt]}\n")
            assert (edit(home, "src/old.txt").exit_code, edit(home, "src/new.txt").exit_code) == (2, 0)


def test_a_policy_that_breaks_leaves_its_last_good_version(home: DaemonHome) -> None:
    with home.daemon():
        home.policy(KEPT)
        assert edit(home, "kept.txt").exit_code == 2
        home.policy("preToolUse: [\n")

        blocked, let = edit(home, "kept.txt"), edit(home, "src/a.txt")

        assert (blocked.exit_code, let.exit_code) == (2, 0)
        assert ".fairlead.yaml" in let.answer["systemMessage"]


def test_a_policy_that_was_never_right_shuts_the_gate(home: DaemonHome) -> None:
    home.policy("preToolUse: [\n")
    with home.daemon():
        done = edit(home, "src/a.txt")

    assert done.exit_code == 2
    assert "The policy cannot be read, so nothing is allowed: " in done.stderr


def test_an_agent_may_leave_a_folder_whose_policy_was_never_right(home: DaemonHome) -> None:
    home.policy("preToolUse: [\n")
    with home.daemon():
        let = [bash(home, command) for command in ("cd ..", "pwd", "cd /tmp && pwd")]
        blocked = [bash(home, command) for command in ("ls", "cd .. && rm x", "cd $(rm x)", "cd ..\nrm x", "pwd > x")]

    assert [done.exit_code for done in let] == [0, 0, 0]
    assert [done.exit_code for done in blocked] == [2, 2, 2, 2, 2]
    assert "Only a person can fix the file, or remove it" in blocked[0].stderr


def test_a_policy_that_is_gone_still_holds(home: DaemonHome) -> None:
    with home.daemon():
        home.policy(KEPT)
        assert edit(home, "kept.txt").exit_code == 2
        (home.project / ".fairlead.yaml").unlink()

        assert (edit(home, "kept.txt").exit_code, edit(home, "src/a.txt").exit_code) == (2, 0)


def test_a_policy_that_comes_holds_at_once(home: DaemonHome) -> None:
    with home.daemon():
        assert edit(home, "kept.txt").exit_code == 0
        home.policy(KEPT)
        assert edit(home, "kept.txt").exit_code == 2


def test_a_nearer_policy_applies_beside_the_one_above(home: DaemonHome) -> None:
    with home.daemon():
        home.policy(KEPT)
        (home.project / "sub").mkdir()
        nearer = home.payload(
            cwd=str(home.project / "sub"),
            tool_name="Edit",
            tool_input={"file_path": str(home.project / "sub/x/own.txt")},
        )
        assert home.hook("PreToolUse", nearer).exit_code == 0
        (home.project / "sub/.fairlead.yaml").write_text("preToolUse: {uneditableFiles: [own.txt]}\n")

        assert home.hook("PreToolUse", nearer).exit_code == 2
        assert home.hook("PreToolUse", nearer.replace(b"x/own.txt", b"x/kept.txt")).exit_code == 2


def test_the_same_holds_for_a_daemon_that_comes_after_the_policy_broke(home: DaemonHome) -> None:
    home.policy(KEPT)
    with home.daemon():
        assert edit(home, "kept.txt").exit_code == 2
    home.policy("preToolUse: [\n")
    with home.daemon():
        assert edit(home, "kept.txt").exit_code == 2
