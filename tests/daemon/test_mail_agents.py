"""Which agent a session and a command are: across /clear and /resume, for subagents, in worktrees."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from daemon.callers import client, person
from daemon.daemon_home import FAIRLEAD, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from daemon.callers import Process
    from daemon.daemon_home import DaemonHome, Done


def agents(home: DaemonHome) -> dict[str, dict[str, Any]]:
    """All agents, by their sessions, subagents as `session/agent_id`."""
    rows = home.ask("GET", "/v1/mail/agents?all=true")["agents"]
    return {"/".join(filter(None, (row["session"], row["agent_id"]))): row for row in rows}


# -- /clear and /resume --------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_an_agent_goes_on_after_clear_although_the_daemon_is_replaced_meanwhile(
    home: DaemonHome, end: signal.Signals
) -> None:
    daemon = home.start()
    until(home.has_mail, "there is mail")
    with client(home, "first") as elk, person(home) as somebody:
        name = elk.mail("identity")["agent"]["name"]
        elk.event("SessionEnd", "first", reason="clear")
        daemon.send_signal(end)
        daemon.wait(30)
        with home.daemon():
            until(home.has_mail, "there is mail")
            elk.event("SessionStart", "second", source="clear")
            assert agents(home)["second"]["name"] == name
            assert somebody.mail("send", name, "hello")["recipients"][0]["name"] == name


def test_an_agent_goes_on_after_clear_although_no_daemon_was_there(home: DaemonHome) -> None:
    daemon = home.start()
    until(home.has_mail, "there is mail")
    with client(home, "first") as elk:
        name = elk.mail("identity")["agent"]["name"]
        daemon.kill()
        daemon.wait(30)
        for before, after in (("first", "second"), ("second", "third")):
            elk.event("SessionEnd", before, reason="clear")
            elk.event("SessionStart", after, source="clear")
        with home.daemon():
            until(home.has_mail, "there is mail")
            until(lambda: "third" in agents(home), "its last session is known")
            assert {session: row["name"] for session, row in agents(home).items()} == {"third": name}


def test_a_session_that_makes_way_for_a_resumed_one_has_ended(posted: DaemonHome) -> None:
    with client(posted, "a") as elk:
        elk.event("SessionEnd", "a", reason="resume")
        elk.event("SessionStart", "b", source="resume")

        found = agents(posted)

        assert (found["a"]["presence"], found["a"]["reach"]) == ("offline", "gone")
        assert (found["b"]["presence"], found["b"]["ended"]) == ("active", 0.0)

        elk.event("SessionEnd", "b", reason="resume")
        elk.event("SessionStart", "a", source="resume")
        until(lambda: agents(posted)["b"]["ended"], "the other one has ended")
        assert not agents(posted)["a"]["ended"]


def test_an_agent_is_back_in_the_session_that_it_had_before_clear(posted: DaemonHome) -> None:
    with client(posted, "old") as elk:
        name = elk.mail("identity")["agent"]["name"]
        elk.event("SessionEnd", "old", reason="clear")
        elk.event("SessionStart", "new", source="clear")
        elk.event("SessionEnd", "new", reason="resume")
        elk.event("SessionStart", "old", source="resume")

        assert (agents(posted)["old"]["name"], agents(posted)["old"]["ended"]) == (name, 0.0)
        assert "new" not in agents(posted)


def test_a_session_from_before_clear_that_is_resumed_beside_its_agent_is_another_agent(posted: DaemonHome) -> None:
    with client(posted, "old") as elk, client(posted) as other:
        elk.event("SessionEnd", "old", reason="clear")
        elk.event("SessionStart", "new", source="clear")
        other.event("SessionStart", "old", source="resume")

        found = agents(posted)

        assert found["old"]["name"] != found["new"]["name"]
        assert not found["new"]["ended"]


# -- subagents -----------------------------------------------------------------------------------------


@contextmanager
def shell(elk: Process, session: str, command: str, agent_id: str = "", call: str = "t1") -> Iterator[None]:
    """A call of the client's shell that is under way."""
    fields: dict[str, object] = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": call}
    if agent_id:
        fields |= {"agent_id": agent_id, "agent_type": "explore"}
    elk.event("PreToolUse", session, **fields)
    yield
    elk.event("PostToolUse", session, **fields, tool_response={})


def run(elk: Process, command: str) -> Done:
    """Run a command as the client does: in a shell of its own, quoted once more."""
    return elk.run(["bash", "-c", f"eval {shlex.quote(command)} < /dev/null && pwd -P > /dev/null"])


def fairlead(*words: str) -> str:
    return shlex.join([str(FAIRLEAD), *words])


@pytest.fixture
def elk(posted: DaemonHome) -> Iterator[Process]:
    """A client with a session and a subagent in it."""
    with client(posted, "s1") as process:
        process.event("SubagentStart", "s1", agent_id="a1", agent_type="explore")
        yield process


def test_a_command_in_a_subagents_call_is_the_subagents(posted: DaemonHome, elk: Process) -> None:
    who = fairlead("identity", "--json")
    with shell(elk, "s1", who, "a1"):
        as_child = json.loads(run(elk, who).stdout)["agent"]
    with shell(elk, "s1", who):
        as_parent = json.loads(run(elk, who).stdout)["agent"]

    assert (as_child["agent_id"], as_parent["agent_id"]) == ("a1", "")
    assert as_child["name"] == f"{as_parent['name']}/explore-1"
    sent = fairlead("send", "User", 'it\'s "done"', "--json")
    with shell(elk, "s1", sent, "a1"):
        assert json.loads(run(elk, sent).stdout)["from"] == as_child["name"]


def test_a_subagent_polls_its_own_mail_and_never_its_parents(posted: DaemonHome, elk: Process) -> None:
    poll = fairlead("poll", "--json")
    name = agents(posted)["s1"]["name"]
    with person(posted) as somebody:
        somebody.mail("send", name, "for the parent")
        with shell(elk, "s1", poll, "a1"):
            assert json.loads(run(elk, poll).stdout)["messages"] == []
            somebody.mail("send", f"{name}/explore-1", "for the errand")
            assert [one["body"] for one in json.loads(run(elk, poll).stdout)["messages"]] == ["for the errand"]
    with shell(elk, "s1", poll):
        assert [one["body"] for one in json.loads(run(elk, poll).stdout)["messages"]] == ["for the parent"]


def test_where_two_agents_run_the_same_command_neither_is_guessed(posted: DaemonHome, elk: Process) -> None:
    poll, name = fairlead("poll"), agents(posted)["s1"]["name"]
    with shell(elk, "s1", poll, "a1", "t1"), shell(elk, "s1", poll, call="t2"):
        done = run(elk, poll)
        assert (done.exit_code, done.stdout) == (1, "")
        assert f"add --as {name} or --as {name}/explore-1" in done.stderr
        named = run(elk, fairlead("identity", "--as", f"{name}/explore-1"))
        assert named.stdout.splitlines()[0] == f"{name}/explore-1"


def test_a_command_that_no_call_explains_is_not_the_parents_while_a_subagent_runs_one(
    posted: DaemonHome, elk: Process
) -> None:
    name = agents(posted)["s1"]["name"]
    with shell(elk, "s1", "./run-the-tests", "a1"):
        done = run(elk, fairlead("poll"))
        assert done.exit_code == 1
        assert "may be any's" in done.stderr
        assert run(elk, fairlead("identity", "--session", "s1")).stdout.splitlines()[0] == name
    assert run(elk, fairlead("identity")).stdout.splitlines()[0] == name


def test_a_subagent_cannot_speak_for_its_parent(posted: DaemonHome, elk: Process) -> None:
    name = agents(posted)["s1"]["name"]
    command = fairlead("poll", "--as", name)
    with shell(elk, "s1", command, "a1"):
        done = run(elk, command)
    assert (done.exit_code, f"runs in a call of {name}/explore-1" in done.stderr) == (1, True)


# -- projects ------------------------------------------------------------------------------------------


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_a_repository_is_one_project_with_its_worktrees_and_folders(posted: DaemonHome) -> None:
    main, other = posted.folder / "shop", posted.folder / "other"
    for folder in (main, other):
        folder.mkdir()
        git(folder, "init", "-q")
        git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(posted.folder / "shop-fix"))
    (main / "src").mkdir()
    places = {"top": main, "below": main / "src", "beside": posted.folder / "shop-fix", "far": other}
    with client(posted) as elk:
        for session, folder in places.items():
            elk.event("SessionStart", session, source="startup", cwd=str(folder))

        found = agents(posted)
        assert {name: found[name]["project"] for name in places} == {
            "top": str(main),
            "below": str(main),
            "beside": str(main),
            "far": str(other),
        }
        here = posted.ask("GET", f"/v1/mail/agents?cwd={places['beside']}")["agents"]
        assert {row["session"] for row in here} == {"top", "below", "beside"}
        for words, listed in (((), {"top", "below", "beside"}), (("--all",), set(places))):
            done = subprocess.run(
                [str(FAIRLEAD), "agents", "--json", *words],
                cwd=places["below"],
                env=posted.environment(),
                capture_output=True,
                check=True,
            )
            assert {row["session"] for row in json.loads(done.stdout)["agents"]} == listed, words
        with person(posted) as somebody:
            sent = somebody.mail("send", "everyone", "hello", "--session", "below")
        assert {one["name"] for one in sent["recipients"]} == {found["top"]["name"], found["beside"]["name"]}


# -- the truth about recipients ------------------------------------------------------------------------


def test_send_says_when_each_recipient_will_see_it(posted: DaemonHome) -> None:
    with client(posted, "idle", "busy", "gone") as elk, person(posted) as somebody:
        elk.event("UserPromptSubmit", "busy", prompt="Go.")
        elk.event("SessionEnd", "gone", reason="prompt_input_exit")
        until(lambda: agents(posted)["gone"]["ended"], "it has ended")
        names = {session: row["name"] for session, row in agents(posted).items()}
        assert posted.fairlead("heartbeat", "--session-start", "--session", "outside").exit_code == 0
        poll = [str(FAIRLEAD), "poll", "--wait", "60s", "--session", "outside"]
        waiter = subprocess.Popen(poll, env=posted.environment())
        try:
            until(lambda: agents(posted)["outside"]["reach"] == "now", "it listens")
            names["outside"] = agents(posted)["outside"]["name"]

            done = somebody.fairlead("send", *names.values(), "--body", "hello")

            told = {name: done.stdout.partition(f"{name} (")[2].partition(")")[0] for name in names.values()}
            assert told == {
                names["idle"]: "at its next prompt",
                names["busy"]: "at its next event",
                names["gone"]: "gone: shown if it is resumed",
                names["outside"]: "listening now",
            }
            assert waiter.wait(30) == 0
        finally:
            waiter.kill()
