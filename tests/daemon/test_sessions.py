"""Who is running, as the daemon tells it: the list, one of them, its events, a stream, and the commands for people."""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from daemon.daemon_home import FAIRLEAD, until

from fairlead.ipc import stream_events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome


@pytest.fixture
def live(home: DaemonHome) -> Iterator[DaemonHome]:
    """A home with a daemon."""
    with home.daemon():
        yield home


def send(home: DaemonHome, event: str, session: str = "s1", **fields: object) -> None:
    """Let something happen in a session of this very process."""
    done = home.hook(event, home.payload(session_id=session, hook_event_name=event, **fields))
    assert done.exit_code == 0, done


def sessions(home: DaemonHome) -> dict[str, dict[str, Any]]:
    """What is left out of a row has its usual value: a session is idle."""
    rows = home.ask("GET", "/v1/sessions")["sessions"]
    return {row["id"]: {"state": {"is": "idle"}, **row} for row in rows}


def becomes(home: DaemonHome, session: str, kind: str) -> None:
    """Wait for a session's state."""
    until(lambda: sessions(home).get(session, {}).get("state", {}).get("is") == kind, f"{session} is {kind}")


def test_a_session_is_told_with_its_state_and_how_that_is_known(live: DaemonHome) -> None:
    send(live, "UserPromptSubmit", prompt="Mend it.")
    send(live, "PreToolUse", tool_name="Read", tool_input={"file_path": "/etc/hosts"}, tool_use_id="t1")
    until(lambda: sessions(live).get("s1", {}).get("evidence", {}).get("event") == "PreToolUse", "it is told")

    row = live.ask("GET", "/v1/sessions/s1")
    assert row["state"] == {"is": "working", "detail": "Read"}
    assert (row["evidence"]["tool"], row["evidence"]["path"]) == ("Read", "/etc/hosts")
    assert row["first_prompt"] == "Mend it."


def test_a_list_has_the_beginning_of_a_question_and_one_session_all_of_it(live: DaemonHome) -> None:
    command = "\n".join(f"echo {number}" for number in range(2000))
    send(live, "PermissionRequest", tool_name="Bash", tool_input={"command": command})
    becomes(live, "s1", "attention")
    listed = sessions(live)["s1"]["state"]["about"]
    assert listed.startswith("echo 0\necho 1\n")
    assert listed.endswith(f"\n… and {len(command) - 4000} more characters")
    assert live.ask("GET", "/v1/sessions/s1")["state"]["about"] == command


def test_a_subagent_is_a_session_of_its_own(live: DaemonHome) -> None:
    send(live, "SubagentStart", agent_id="a1", agent_type="Explore")
    until(lambda: "s1/a1" in sessions(live), "the child is there")
    assert sessions(live)["s1/a1"]["parent"] == "s1"
    assert live.ask("GET", "/v1/sessions/s1/a1")["agent_type"] == "Explore"


def test_the_events_of_a_session_are_told(live: DaemonHome) -> None:
    send(live, "UserPromptSubmit", prompt="Go.")
    send(live, "Stop")
    send(live, "Stop", session="s2")
    rows = live.ask("GET", "/v1/sessions/s1/events?limit=10")["events"]
    assert [row["event"] for row in rows] == ["UserPromptSubmit", "Stop"]


def test_a_reader_who_was_away_catches_up(live: DaemonHome) -> None:
    send(live, "UserPromptSubmit", prompt="Go.")
    becomes(live, "s1", "working")
    before = live.ask("GET", "/v1/sessions")["revision"]
    send(live, "Stop")
    becomes(live, "s1", "idle")

    stream = stream_events(f"/v1/sessions/stream?after={before}", timeout=20, at=str(live.socket))
    kind, session = next((kind, data) for kind, data in stream if kind)
    assert (kind, session["id"], session.get("state")) == ("session", "s1", None)


def test_a_reader_from_another_life_is_told_everything_anew(live: DaemonHome) -> None:
    send(live, "Stop")
    becomes(live, "s1", "idle")
    stream = stream_events("/v1/sessions/stream?after=1", timeout=20, at=str(live.socket))
    kind, everything = next((kind, data) for kind, data in stream if kind)
    assert kind == "reset"
    assert [row["id"] for row in everything["sessions"]] == ["s1"]


def test_the_sessions_outlive_the_daemon_and_a_kill(home: DaemonHome) -> None:
    with home.daemon():
        send(home, "UserPromptSubmit", prompt="Go.")
        becomes(home, "s1", "working")
    daemon = home.start()
    assert sessions(home)["s1"]["state"]["is"] == "working"
    send(home, "Stop")
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    with home.daemon():
        assert sessions(home)["s1"]["state"]["is"] == "idle"


def test_a_session_that_met_no_daemon_is_known_when_one_comes(home: DaemonHome) -> None:
    send(home, "UserPromptSubmit", prompt="Go.")
    assert len(home.spooled()) == 1
    with home.daemon():
        assert sessions(home)["s1"]["state"]["is"] == "working"


def test_a_daemon_that_is_read_from_goes_at_once(home: DaemonHome) -> None:
    with home.daemon() as daemon:
        stream = stream_events("/v1/sessions/stream", timeout=20, at=str(home.socket))
        assert next(stream) == ("", None)
        daemon.send_signal(signal.SIGTERM)
        assert list(stream) == []
        daemon.wait(4)


@pytest.mark.parametrize("path", ["/v1/sessions/nobody", "/v1/sessions/stream?after=soon"])
def test_what_there_is_not_is_refused(live: DaemonHome, path: str) -> None:
    with pytest.raises(Exception, match=r"the daemon answers 40[04]: (no such session|after: expected)"):
        live.ask("GET", path)


# -- for people and scripts ----------------------------------------------------------------------------


def needs_permission(home: DaemonHome, session: str = "s1") -> None:
    call = {"tool_name": "Bash", "tool_input": {"command": "make deploy"}, "tool_use_id": "t9"}
    send(home, "UserPromptSubmit", session, prompt="Deploy it.")
    send(home, "PermissionRequest", session, **call)
    becomes(home, session, "attention")


def test_a_terminal_that_knows_few_characters_is_no_error(live: DaemonHome) -> None:
    send(live, "UserPromptSubmit", "s1", prompt="Zähle die Sterne.")
    becomes(live, "s1", "working")

    done = live.fairlead("sessions", PYTHONIOENCODING="ascii")

    assert (done.exit_code, done.stderr) == (0, "")
    assert "Z\\xe4hle die Sterne." in done.stdout


def test_the_list_has_first_who_needs_the_person(live: DaemonHome) -> None:
    send(live, "UserPromptSubmit", "busy", prompt="Count the stars.")
    needs_permission(live)
    lines = live.fairlead("sessions").stdout.splitlines()
    assert lines[0].startswith("! needs you")
    assert lines[0].endswith("project           Deploy it.")
    assert any(line.startswith("> working") and line.endswith("Count the stars.") for line in lines)


def test_the_line_is_short_and_names_the_project(live: DaemonHome) -> None:
    assert live.fairlead("sessions", "--line").stdout == "\n"
    send(live, "UserPromptSubmit", "busy", prompt="Go.")
    needs_permission(live)
    assert live.fairlead("sessions", "--line").stdout == "! project: Bash: make deploy | 1 working\n"


def test_json_has_all_of_it(live: DaemonHome) -> None:
    needs_permission(live)
    (row,) = json.loads(live.fairlead("sessions", "--json").stdout)["sessions"]
    assert (row["id"], row["is"], row["stale"]) == ("s1", "attention", False)
    assert "memory" not in row


def test_the_tree_is_the_view_without_a_screen(live: DaemonHome) -> None:
    needs_permission(live)
    told = live.fairlead("sessions", "--tree").stdout
    assert "project" in told
    assert "Permission" in told


@pytest.mark.parametrize(
    ("until_word", "then"),
    [("attention", needs_permission), ("idle", lambda home: send(home, "Stop"))],
)
def test_waiting_ends_when_it_has_come_true(live: DaemonHome, until_word: str, then: Any) -> None:
    send(live, "UserPromptSubmit", prompt="Go.")
    becomes(live, "s1", "working")
    waiting = subprocess.Popen(
        [FAIRLEAD, "sessions", "wait", "--until", until_word, "--session", "s1", "--timeout", "30"],
        env=live.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    then(live)
    assert waiting.communicate(timeout=30)[0] == "s1\n"
    assert waiting.returncode == 0


def has_socket(pid: int) -> bool:
    """Whether a process has asked the daemon, and listens to it."""
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            if "socket:" in str(file.readlink()):
                return True
    return False


def test_waiting_ends_by_ctrl_c_in_one_line(live: DaemonHome) -> None:
    send(live, "UserPromptSubmit", prompt="Go.")
    becomes(live, "s1", "working")
    waiting = subprocess.Popen(
        [FAIRLEAD, "sessions", "wait", "--until", "ended"],
        env=live.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: has_socket(waiting.pid), "it waits")
    waiting.send_signal(signal.SIGINT)
    assert waiting.communicate(timeout=30) == ("", "fairlead: interrupted\n")
    assert waiting.returncode == 130


def test_the_sessions_that_were_waited_for_are_json(live: DaemonHome) -> None:
    needs_permission(live)
    done = live.fairlead("sessions", "wait", "--until", "attention", "--json")
    assert [row["id"] for row in json.loads(done.stdout)["sessions"]] == ["s1"]


def test_waiting_ends_when_the_time_is_up(live: DaemonHome) -> None:
    send(live, "UserPromptSubmit", prompt="Go.")
    becomes(live, "s1", "working")
    done = live.fairlead("sessions", "wait", "--until", "ended", "--timeout", "0.2")
    assert (done.exit_code, done.stdout, done.stderr) == (3, "", "fairlead: sessions wait: the time is up\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tre"], "unknown option '--tre'; did you mean --tree?"),
        (["lsit"], "unknown command 'lsit' of sessions; did you mean list?"),
        (["wait"], "sessions wait: until when? Give --until with one of attention, idle, ended"),
        (["wait", "--until", "never"], "--until: expected one of attention, idle, ended, got 'never'"),
        (
            ["wait", "--until", "idle", "--timeout", "soon"],
            "--timeout: expected a duration such as 30s, 10m, 2h or 1d, or a number of seconds above 0, got 'soon'",
        ),
        (["wait", "--until", "idle", "--session", "x"], "--session: no session's id starts with 'x'"),
    ],
)
def test_a_wrong_command_line_is_told(live: DaemonHome, words: list[str], said: str) -> None:
    done = live.fairlead("sessions", *words)
    assert done.exit_code == 1
    assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "exit_code"),
    [((), 0), (("--until", "ended"), 0), (("--until", "idle"), 0), (("--until", "attention"), 4)],
    ids=str,
)
def test_waiting_for_one_session_ends_when_it_has_ended(
    live: DaemonHome, words: tuple[str, ...], exit_code: int
) -> None:
    send(live, "UserPromptSubmit", prompt="Go.")
    send(live, "UserPromptSubmit", session="s2", prompt="Go.")
    becomes(live, "s1", "working")
    command = [str(FAIRLEAD), "sessions", "wait", "--session", "s1", "--timeout", "30", *words]
    waiting = subprocess.Popen(command, env=live.environment(), stdout=subprocess.PIPE, text=True)
    until(lambda: has_socket(waiting.pid), "it waits")
    send(live, "SessionEnd", reason="other")
    assert waiting.communicate(timeout=30)[0] == "ended\n"
    assert waiting.returncode == exit_code
    again = live.fairlead("sessions", "wait", "--session", "s1", *words)
    assert (again.exit_code, again.stdout) == (exit_code, "ended\n"), "it has ended before"


def test_the_line_and_the_view_count_the_same(live: DaemonHome) -> None:
    """A session whose subagent asks needs the user, and so does not count as working."""
    send(live, "UserPromptSubmit", prompt="Go.")
    send(live, "SubagentStart", agent_id="a1", agent_type="Explore")
    send(live, "PermissionRequest", agent_id="a1", tool_name="Bash", tool_input={"command": "make"})
    send(live, "UserPromptSubmit", session="s2", prompt="Go.")
    send(live, "Stop", session="s3")
    becomes(live, "s3", "idle")
    becomes(live, "s1/a1", "attention")
    assert live.fairlead("sessions", "--line").stdout == "! project: Bash: make | 1 working | 1 idle\n"
    for words in (("watch", "--once"), ("sessions", "--tree")):
        summary = live.fairlead(*words).stdout.splitlines()[0]
        assert summary == " ! 1 needs you   ● 1 working   ○ 1 idle", words


def test_a_subagent_of_an_ended_one_is_listed_below_its_nearest_live_ancestor(live: DaemonHome) -> None:
    asked: dict[str, Any] = {"tool_name": "Agent", "tool_input": {"subagent_type": "Explore"}, "tool_use_id": "t1"}
    send(live, "UserPromptSubmit", prompt="Go.")
    send(live, "SubagentStart", agent_id="a1", agent_type="coder")
    send(live, "PreToolUse", agent_id="a1", agent_type="coder", **asked)
    send(live, "SubagentStart", agent_id="b1", agent_type="Explore")
    launched = {"status": "async_launched", "agentId": "b1"}
    send(live, "PostToolUse", agent_id="a1", agent_type="coder", tool_response=launched, **asked)
    send(live, "SubagentStop", agent_id="a1", agent_type="coder")
    until(lambda: sessions(live).get("s1/a1", {}).get("ended"), "the outer one has ended")
    rows = json.loads(live.fairlead("sessions", "--json").stdout)["sessions"]
    assert {row["id"]: row.get("parent") for row in rows} == {"s1": None, "s1/b1": "s1"}
    rows = json.loads(live.fairlead("sessions", "--json", "--all").stdout)["sessions"]
    assert {row["id"]: row.get("parent") for row in rows} == {"s1": None, "s1/a1": "s1", "s1/b1": "s1/a1"}


def test_what_doctor_plays_is_no_session(home: DaemonHome) -> None:
    with home.daemon():
        for event in ("SessionStart", "UserPromptSubmit", "PermissionRequest", "SubagentStart"):
            fields = {"prompt": "x", "tool_name": "Bash", "tool_input": {}, "agent_id": "a", "agent_type": "Explore"}
            send(home, event, session="fairlead-doctor", **fields)
        send(home, "Stop")
        becomes(home, "s1", "idle")
        assert set(sessions(home)) == {"s1"}
        listed = json.loads(home.fairlead("history", "--json").stdout)["sessions"]
        assert [one["id"] for one in listed] == ["s1"]
        assert json.loads(home.fairlead("history", "--search", "x", "--json").stdout)["matches"] == []
        away = home.ask("GET", "/v1/absence")
        assert (away["asked"], away["prompts"], away["active"]) == (0, 0, 1)
        assert {one["session"] for one in home.ask("GET", "/v1/mail/agents?all=true")["agents"]} == {"s1"}
    with home.daemon():  # which reads the journal
        assert set(sessions(home)) == {"s1"}


@pytest.mark.parametrize("words", [("sessions",), ("sessions", "--json"), ("sessions", "--tree"), ("watch", "--once")])
def test_the_list_and_the_view_start_a_daemon_if_there_is_none(open_home: DaemonHome, words: tuple[str, ...]) -> None:
    done = open_home.fairlead(*words)
    assert (done.exit_code, done.stderr) == (0, ""), done
    assert open_home.status() is not None


def test_without_a_daemon_the_list_says_so_and_the_line_is_empty(home: DaemonHome) -> None:
    assert "no daemon is running" in home.fairlead("sessions").stderr
    line = home.fairlead("sessions", "--line")
    assert (line.exit_code, line.stdout) == (0, "\n")
