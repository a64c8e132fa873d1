"""Leases on files: the real daemon, launcher and command line, and two sessions in processes of their own."""

from __future__ import annotations

import json
import subprocess
from random import Random
from time import sleep
from typing import TYPE_CHECKING, Any

import pytest
from daemon.callers import person, program
from daemon.clients import client
from daemon.daemon_home import FAIRLEAD, until
from daemon.killing import kill_daemon
from kills import ROUND, kill_rounds

if TYPE_CHECKING:
    from daemon.clients import Client
    from daemon.daemon_home import DaemonHome, Done


def context(done: Done) -> str:
    return str(done.answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


def edit(agent: Client, path: str, **fields: object) -> Done:
    """Ask whether an agent may edit a file of the project."""
    return agent.hook(
        "PreToolUse", tool_name="Edit", tool_input={"file_path": str(agent.home.project / path)}, **fields
    )


def bash(agent: Client, command: str, **fields: object) -> Done:
    return agent.hook("PreToolUse", tool_name="Bash", tool_input={"command": command}, **fields)


def leases(agent: Client) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(agent.fairlead("lease", "--json").stdout)["leases"]
    return rows


def refused(agent: Client, *words: str) -> str:
    """Run a command that must fail, and give its error."""
    done = agent.start([str(FAIRLEAD), *words], b"").end()
    assert done.exit_code == 1, done
    return done.stderr


@pytest.fixture
def blocking(posted: DaemonHome) -> DaemonHome:
    """A project in which leases block."""
    posted.policy("leases: block\npreToolUse: {preventRootAdditions: false}\n")
    return posted


def test_an_edit_of_a_leased_file_is_warned_of_and_the_holder_is_notified(fox: Client, owl: Client) -> None:
    taken = fox.fairlead("lease", "a.py", "--for", "1h", "--why", "splitting it")

    first, second = edit(owl, "a.py"), edit(owl, "a.py")

    assert taken.stdout == f"{fox.name} holds a.py for 1h00m\n"
    assert (first.exit_code, first.answer["hookSpecificOutput"].get("permissionDecision")) == (0, None)
    told = context(first).splitlines()
    assert told[0].endswith(f"a.py: {fox.name} holds a lease on it for another 59m. Why: 'splitting it'.")
    assert f'fairlead send {fox.name} --request "May I change ' in told[1]
    assert context(second) == context(first)
    until(lambda: fox.row()["queued"] == 1, "the holder has a message")
    stop = fox.hook("Stop").answer
    assert f'From: Fairlead - "{owl.name} changes ' in stop["reason"]
    assert "fairlead lease --release" in stop["reason"]
    assert fox.hook("Stop").stdout == "", "one message for both attempts"


def test_a_policy_can_have_such_a_call_blocked_by_file_tools_and_bash_alike(
    blocking: DaemonHome, fox: Client, owl: Client
) -> None:
    (blocking.project / "src").mkdir()
    for name in ("a.py", "src/b.py", "src/c.md"):
        (blocking.project / name).write_text("x = 1\n")
    fox.fairlead("lease", "a.py", "src/*.py")

    blocked = [
        edit(owl, "a.py"),
        edit(owl, "src/b.py"),
        edit(owl, "src/new.py"),
        bash(owl, "sed -i s/1/2/ a.py"),
        bash(owl, "cd src && echo 1 >> b.py"),
        bash(owl, "rm -rf src"),
        bash(owl, "python3 -c \"open('a.py', 'w').write('')\""),
    ]
    allowed = [edit(owl, "src/c.md"), edit(owl, "b.py"), bash(owl, "cat a.py src/b.py"), edit(fox, "a.py")]

    for done in blocked:
        assert done.exit_code == 2, done
        assert f"{fox.name} holds a lease on it" in done.stderr
        assert "leases: block" in done.stderr
    assert [done.exit_code for done in allowed] == [0] * len(allowed), allowed


def test_what_git_would_change_in_the_working_tree_counts_too(blocking: DaemonHome, fox: Client, owl: Client) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=blocking.project, check=True)

    (blocking.project / "a.py").write_text("one\n")
    (blocking.project / "b.py").write_text("one\n")
    git("init", "-q")
    git("add", "a.py", "b.py")
    git("commit", "-qm", "one")
    (blocking.project / "a.py").write_text("two\n")
    before = bash(owl, "git checkout -- a.py")

    fox.fairlead("lease", "a.py")

    assert before.exit_code == 0, before
    assert bash(owl, "git checkout -- a.py").exit_code == 2
    assert bash(owl, "git stash").exit_code == 2
    assert bash(owl, "git checkout -- b.py").exit_code == 0
    fox.fairlead("lease", "--release")
    assert bash(owl, "git checkout -- a.py").exit_code == 0


def test_a_link_to_a_leased_file_is_that_file(blocking: DaemonHome, fox: Client, owl: Client) -> None:
    (blocking.project / "real.py").write_text("")
    (blocking.project / "link.py").symlink_to("real.py")
    fox.fairlead("lease", "link.py")

    assert edit(owl, "real.py").exit_code == 2


def test_the_agents_of_one_session_share_its_leases(blocking: DaemonHome, fox: Client, owl: Client) -> None:
    fox.hook("SubagentStart", agent_id="a1", agent_type="coder")
    fox.fairlead("lease", "a.py")

    assert edit(fox, "a.py", agent_id="a1", agent_type="coder").exit_code == 0
    assert edit(owl, "a.py", agent_id="a2", agent_type="coder").exit_code == 2


def test_a_lease_cannot_be_taken_from_another_session_but_shared_ones_stand_beside_each_other(
    blocking: DaemonHome, fox: Client, owl: Client
) -> None:
    fox.fairlead("lease", "src", "--why", "moving\x1b[2Jit")
    fox.fairlead("lease", "--shared", "docs/*.md")

    error = refused(owl, "lease", "b.py", "src/deep/c.py")

    assert f"nothing was leased: {fox.name} holds {blocking.project / 'src'} for another 29m" in error
    assert f'To ask: fairlead send {fox.name} --request "…"' in error
    assert "\x1b" not in error
    assert {row["path"] for row in leases(owl)} == {str(blocking.project / name) for name in ("src", "docs/*.md")}
    assert edit(owl, "docs/a.md").exit_code == 2
    owl.fairlead("lease", "--shared", "docs/*.md")
    assert edit(owl, "docs/a.md").exit_code == 0
    assert "shares" in refused(owl, "lease", "docs/*.md")


def test_only_the_holder_and_the_person_release_a_lease(posted: DaemonHome, fox: Client, owl: Client) -> None:
    fox.fairlead("lease", "a.py", "b.py", "c.py")

    error = refused(owl, "lease", "--release", "a.py")
    own = fox.fairlead("lease", "--release", "a.py")
    with person(posted) as user:
        by_person = user.fairlead("lease", "--release", "b.py")

    assert f"a.py is leased by {fox.name}, who alone can release it" in error
    assert own.stdout == "released a.py\n"
    assert by_person.stdout == "released b.py\n"
    assert [row["path"] for row in leases(fox)] == [str(posted.project / "c.py")]
    assert "there is no lease on a.py" in refused(fox, "lease", "--release", "a.py")
    assert fox.fairlead("lease", "--release").stdout == "released c.py\n"
    assert fox.fairlead("lease", "--release").stdout == "you hold no leases\n"


def test_a_person_can_lease_and_a_program_cannot(blocking: DaemonHome, owl: Client) -> None:
    with person(blocking) as user, program(blocking) as script:
        taken = user.fairlead("lease", "a.py")
        refusal = script.fairlead("lease", "b.py")

    assert taken.stdout == "User holds a.py for 30m\n"
    assert "a lease belongs to a session or to the person" in refusal.stderr
    assert "User holds a lease on it" in edit(owl, "a.py").stderr


def test_a_lease_ends_with_its_time(blocking: DaemonHome, fox: Client, owl: Client) -> None:
    fox.fairlead("lease", "a.py", "--for", "1s")

    until(lambda: edit(owl, "a.py").exit_code == 0, "the lease is over")
    assert leases(owl) == []


@pytest.mark.parametrize("how", ["ends", "is killed"])
def test_a_lease_ends_with_the_session_of_its_holder(blocking: DaemonHome, owl: Client, how: str) -> None:
    with client(blocking, "s-gone") as gone:
        gone.hook("SessionStart", source="startup")
        gone.fairlead("lease", "a.py")
        assert edit(owl, "a.py").exit_code == 2
        if how == "ends":
            gone.hook("SessionEnd", reason="other")
        else:
            gone.kill()

        until(lambda: edit(owl, "a.py").exit_code == 0, "the lease is over")
        until(lambda: json.loads((blocking.state / "leases.json").read_text()) == [], "and no longer kept")


def test_a_lease_goes_on_after_clear(blocking: DaemonHome, fox: Client, owl: Client) -> None:
    fox.fairlead("lease", "a.py")
    fox.hook("SessionEnd", reason="clear")
    fox.session = "s-after-clear"
    fox.hook("SessionStart", source="clear")
    until(lambda: fox.session in [one["id"] for one in blocking.ask("GET", "/v1/sessions")["sessions"]], "it goes on")

    assert edit(fox, "a.py").exit_code == 0
    until(lambda: leases(fox)[0]["session"] == "s-after-clear", "the lease belongs to the new session")
    assert edit(owl, "a.py").exit_code == 2
    assert edit(fox, "a.py").exit_code == 0


def test_leases_survive_a_killed_daemon(home: DaemonHome) -> None:
    home.policy("leases: block\n")
    with client(home, "s1") as fox, client(home, "s2") as owl:
        with home.daemon() as first:
            fox.hook("SessionStart", source="startup")
            owl.hook("SessionStart", source="startup")
            fox.fairlead("lease", "src/*.py", "--why", "because")
            before = leases(fox)
            first.kill()
            first.wait()
        with home.daemon():
            assert edit(owl, "src/a.py").exit_code == 2, "the first event of a new daemon"
            assert leases(fox) == before
            assert edit(fox, "src/a.py").exit_code == 0


def test_a_damaged_file_of_leases_is_set_aside_and_reported(home: DaemonHome) -> None:
    (home.state / "leases.json").write_text("[{")
    with home.daemon():
        assert home.hook("PreToolUse", home.edit("a.py")).exit_code == 0
    assert (home.state / "leases.json.damaged").exists()
    assert any("leases of the last daemon are lost" in str(record) for record in home.journal())


def test_without_a_daemon_leases_are_off_and_a_policy_that_blocks_says_so_once(home: DaemonHome) -> None:
    home.policy("leases: block\n")

    first, second = (home.hook("PreToolUse", home.edit("src/a.py")) for _ in range(2))

    assert first.exit_code == 0
    assert "leases: block has no effect" in first.answer["systemMessage"]
    assert second.stdout == ""


# -- two sessions that change the same file --------------------------------------------------------------


def test_two_sessions_that_change_one_file_within_minutes_are_both_told_once(fox: Client, owl: Client) -> None:
    assert edit(fox, "src/a.py").stdout == ""

    second, third = edit(owl, "src/a.py"), edit(owl, "src/a.py")
    first = fox.hook("PostToolUse", tool_name="Read", tool_input={}, tool_response={})
    again = fox.hook("PostToolUse", tool_name="Read", tool_input={}, tool_response={})

    assert f"{fox.name} changed " in context(second)
    assert "fairlead lease" in context(second)
    assert third.stdout == ""
    assert f"{owl.name} changes " in context(first)
    assert again.stdout == ""


def test_subagents_of_one_session_are_not_told_of_each_other(fox: Client) -> None:
    assert edit(fox, "src/a.py", agent_id="a1", agent_type="coder").stdout == ""
    assert edit(fox, "src/a.py").stdout == ""


def test_a_session_that_has_ended_is_in_nobodys_way(posted: DaemonHome, owl: Client) -> None:
    with client(posted, "s-gone") as gone:
        gone.hook("SessionStart", source="startup")
        edit(gone, "src/a.py")
        gone.hook("SessionEnd", reason="other")
        until(lambda: gone.row()["presence"] == "offline", "it has ended")

        assert edit(owl, "src/a.py").stdout == ""


def test_off_is_off(posted: DaemonHome, fox: Client, owl: Client) -> None:
    posted.policy("leases: off\n")
    fox.fairlead("lease", "src/a.py")

    assert edit(fox, "src/a.py").stdout == ""
    assert edit(owl, "src/a.py").stdout == ""


def test_a_blocked_edit_is_no_edit(posted: DaemonHome, fox: Client, owl: Client) -> None:
    posted.policy("preToolUse: {uneditableFiles: [src/a.py]}\n")

    assert edit(fox, "src/a.py").exit_code == 2
    posted.policy("leases: warn\n")
    assert edit(owl, "src/a.py").stdout == ""


# -- kills ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "kills"), kill_rounds(8))
@pytest.mark.timeout(60 + ROUND * 15)
def test_no_lease_is_lost_and_none_comes_back_when_the_daemon_is_killed(
    open_home: DaemonHome, seed: int, kills: int
) -> None:
    random = Random(seed)
    expected: set[str] = set()
    with client(open_home, "s1") as fox:
        fox.hook("SessionStart", source="startup")
        for number in range(kills):
            path = f"src/{number}.py"
            taken = fox.start([str(FAIRLEAD), "lease", path], b"")
            sleep(random.uniform(0, 0.03))  # the moment of the kill is another one each time
            kill_daemon(open_home)
            if taken.end().exit_code == 0:
                expected.add(str(open_home.project / path))
            if number % 3 == 2:
                gone = expected.pop()
                fox.fairlead("lease", "--release", gone)
                kill_daemon(open_home)

        held = {row["path"] for row in leases(fox)}

    assert held == expected
    assert len(expected) > kills // 2
