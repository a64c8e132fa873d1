"""Who a caller is, as the daemon observes its process: real processes try to act for others, and cannot."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from daemon.callers import Process, client, person, program
from daemon.daemon_home import FAIRLEAD, LAUNCHER, scratch_home, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome


@pytest.fixture(scope="module")
def live() -> Iterator[DaemonHome]:
    """A home with a daemon."""
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as home, home.daemon():
        yield home


@pytest.fixture(scope="module")
def fox(live: DaemonHome) -> Iterator[Process]:
    """A client with the session s1."""
    with client(live, "s1") as process:
        yield process


@pytest.fixture(scope="module")
def owl(live: DaemonHome) -> Iterator[Process]:
    """A client with the session s2."""
    with client(live, "s2") as process:
        yield process


def who(process: Process, *words: str, **env: str) -> dict[str, Any]:
    """Who a process is taken for."""
    found: dict[str, Any] = process.mail("identity", *words, **env)
    return found


def name(process: Process, *words: str, **env: str) -> str:
    """By which name."""
    found: str = who(process, *words, **env)["agent"]["name"]
    return found


def refused(process: Process, *words: str, **env: str) -> str:
    """What a process is told that may not do something."""
    done = process.fairlead(*words, **env)
    assert (done.exit_code, done.stdout) == (1, ""), done
    return done.stderr.removeprefix("fairlead: ").rstrip()


# -- who it is -----------------------------------------------------------------------------------------


def test_a_command_that_a_client_runs_is_its_sessions(fox: Process, owl: Process) -> None:
    first, second = who(fox), who(owl)
    assert (first["agent"]["session"], first["how"]) == ("s1", "process")
    assert (second["agent"]["session"], second["how"]) == ("s2", "process")
    assert first["agent"]["name"] != second["agent"]["name"]


def test_so_is_one_that_runs_deep_below_it(fox: Process) -> None:
    deep = fox.run(["/bin/sh", "-c", f"/bin/sh -c '{FAIRLEAD} identity; true'; true"])
    assert deep.stdout == fox.fairlead("identity").stdout


def test_so_is_one_that_has_a_session_of_the_system_of_its_own(fox: Process) -> None:
    """As the client starts its tools."""
    code = f"import subprocess; subprocess.run([{str(FAIRLEAD)!r}, 'identity'], start_new_session=True)"
    assert fox.run([sys.executable, "-c", code]).stdout == fox.fairlead("identity").stdout


def test_so_is_one_with_a_terminal_that_it_made_itself(fox: Process) -> None:
    code = f"import pty; pty.spawn([{str(FAIRLEAD)!r}, 'identity'])"
    assert fox.run([sys.executable, "-c", code]).stdout.split()[0] == name(fox)


def test_a_client_within_a_client_is_another(fox: Process) -> None:
    inner = (
        "import json, subprocess, sys\n"
        f"payload = json.dumps({{'session_id': 'inner', 'hook_event_name': 'SessionStart', 'source': 'startup'}})\n"
        f"subprocess.run([{str(LAUNCHER)!r}, 'SessionStart'], input=payload, text=True, stdout=subprocess.DEVNULL)\n"
        f"subprocess.run([{str(FAIRLEAD)!r}, 'identity'])"
    )
    assert "session  inner" in fox.run([sys.executable, "-c", inner]).stdout
    assert who(fox)["agent"]["session"] == "s1"


def test_a_person_at_a_terminal_is_the_user(live: DaemonHome) -> None:
    with person(live) as somebody:
        assert (name(somebody), who(somebody)["how"]) == ("User", "terminal")


def test_a_program_without_either_is_a_script(live: DaemonHome) -> None:
    with program(live) as nobody:
        assert (name(nobody), who(nobody)["how"]) == ("Script", "program")


def test_who_has_no_process_here_is_a_script(home: DaemonHome) -> None:
    """Over loopback nobody is seen."""
    with home.daemon("--port", "0"):
        status = home.status()
        assert status is not None
        token = (home.state / "run/token").read_text().strip()
        url = f"{status['listens'][1]}/v1/mail/identity"
        command = ["curl", "-sf", "-H", f"authorization: Bearer {token}", url]
        assert '"name":"Script"' in home.run(command, b"").stdout


def test_after_clear_the_session_goes_on_under_its_name(live: DaemonHome) -> None:
    with client(live, "first") as elk:
        before = name(elk)
        elk.event("SessionEnd", "first", reason="clear")
        elk.event("SessionStart", "second", source="clear")
        after = who(elk, CLAUDE_CODE_SESSION_ID="first")["agent"]
    assert (after["name"], after["session"]) == (before, "second")


def test_of_several_sessions_in_one_process_the_variable_tells(live: DaemonHome) -> None:
    with client(live, "a", "b") as both:
        assert who(both, CLAUDE_CODE_SESSION_ID="a")["agent"]["session"] == "a"
        assert who(both, CLAUDE_SESSION_ID="b")["agent"]["session"] == "b"
        assert who(both, "--session-id", "a", CLAUDE_CODE_SESSION_ID="b")["agent"]["session"] == "a"
        assert who(both)["agent"]["session"] == "b"


# -- borrowing -----------------------------------------------------------------------------------------


def test_an_agent_cannot_speak_for_another(fox: Process, owl: Process) -> None:
    own, other = name(fox), name(owl)
    told = (
        f"this command runs in the session of {own}, so it cannot act for {other}; no agent can use the name of another"
    )
    assert refused(fox, "send", "User", "Give it to me.", "--as", other) == told


def test_an_agent_cannot_speak_for_the_person(fox: Process) -> None:
    assert "so it cannot act for User" in refused(fox, "send", "everyone", "Stop.", "--as", "User")


def test_an_agent_cannot_name_another_session(fox: Process, owl: Process) -> None:
    assert refused(fox, "send", name(owl), "x", "--session-id", "s2") == (
        "this command runs in the session s1, so it cannot act for s2; no agent can use the name of another"
    )


def test_a_variable_of_another_session_is_not_believed(fox: Process, owl: Process) -> None:
    assert name(fox, CLAUDE_CODE_SESSION_ID="s2") == name(fox) != name(owl)


def test_a_terminal_of_its_own_does_not_make_an_agent_a_person(fox: Process, owl: Process) -> None:
    code = f"import pty, sys; sys.exit(pty.spawn([{str(FAIRLEAD)!r}, 'send', {name(owl)!r}, 'x', '--as', 'User']))"
    done = fox.run([sys.executable, "-c", code])
    assert "so it cannot act for User" in done.stdout


def test_an_orphan_of_an_agent_cannot_speak_for_another(fox: Process, owl: Process, live: DaemonHome) -> None:
    """It has left its client's line, so it is a program; and the other's client is there to be asked."""
    other, out = name(owl), live.folder / "out"
    orphaned = "while kill -0 $0 2>/dev/null; do sleep 0.01; done"  # not PPID: the shell may be an orphan already
    words = f"{orphaned}; {FAIRLEAD} identity --session-id s2 >{out} 2>&1; echo done >>{out}"
    options = "start_new_session=True, stdout=-3, stderr=-3"  # DEVNULL: who waits for the pipes waits for the orphan
    argv = f"['/bin/sh', '-c', {words!r}, str(os.getpid())]"
    code = f"import os, subprocess; subprocess.Popen({argv}, {options})"
    fox.run([sys.executable, "-c", code])
    until(lambda: out.exists() and out.read_text().endswith("done\n"), "the orphan has asked")
    assert f"session s2 runs as process {owl.pid}, which did not start this command" in out.read_text()
    assert other not in out.read_text()


def test_a_program_cannot_speak_for_anybody(owl: Process, live: DaemonHome) -> None:
    other = name(owl)
    with program(live) as nobody:
        assert "leave --as out, and it acts as Script" in refused(nobody, "send", "User", "x", "--as", other)
        assert "leave --as out" in refused(nobody, "send", other, "x", "--as", "User")
        assert "no agent can use the name of another" in refused(nobody, "send", "User", "x", "--session-id", "s2")
        assert name(nobody, CLAUDE_CODE_SESSION_ID="s2") == "Script"
        assert name(nobody, "--as", "script") == "Script"


def test_nobody_speaks_for_fairlead(live: DaemonHome) -> None:
    with person(live) as somebody:
        assert "it only sends notices" in refused(somebody, "send", "User", "x", "--as", "Fairlead")


# -- who may --------------------------------------------------------------------------------------------


def test_an_agent_may_name_itself(fox: Process) -> None:
    own = name(fox)
    assert name(fox, "--as", own.upper()) == own
    assert name(fox, "--session-id", "s1") == own


def test_an_agent_may_speak_for_its_own_subagents_alone(fox: Process, owl: Process) -> None:
    fox.event("SubagentStart", "s1", agent_id="a1", agent_type="Explore")
    owl.event("SubagentStart", "s2", agent_id="a2", agent_type="Explore")
    own = f"{name(fox)}/explore-1"
    assert name(fox, "--as", own) == own
    assert "no agent can use the name of another" in refused(owl, "identity", "--as", own)


def test_a_person_may_speak_for_anybody(fox: Process, live: DaemonHome) -> None:
    with person(live) as somebody:
        assert name(somebody, "--as", name(fox)) == name(fox)
        assert name(somebody, "--session-id", "s1") == name(fox)


def test_a_program_speaks_for_a_session_whose_process_is_not_here(live: DaemonHome) -> None:
    """As of one in a container, whose pids are others: the launcher tells what it sees."""
    elsewhere = {"CLAUDE_PID": "99999999"}
    with client(live, "boxed", **elsewhere) as inside, program(live) as nobody:
        assert who(inside, CLAUDE_CODE_SESSION_ID="boxed")["how"] == "session id"
        assert who(nobody, "--session-id", "boxed")["agent"]["session"] == "boxed"
        other = name(nobody, "--session-id", "boxed")
        assert name(nobody, "--session-id", "boxed", "--as", other) == other
        refusal = refused(nobody, "identity", "--session-id", "boxed", "--as", "User")
        assert refusal == f"the session boxed is {other}, so it cannot act for User"


def test_an_unknown_session_is_named_as_such(live: DaemonHome) -> None:
    told = "no session 'nope' is known here; its first event makes it known"
    with person(live) as somebody, program(live) as nobody:
        assert refused(somebody, "identity", "--session-id", "nope") == told
        assert refused(nobody, "identity", "--session-id", "nope") == told
        assert name(nobody, CLAUDE_CODE_SESSION_ID="nope") == "Script"


def test_a_heartbeat_makes_an_agent_of_a_program(live: DaemonHome) -> None:
    with program(live) as bot:
        bot.mail("heartbeat", "--session-start", "--session-id", "my-bot")
        assert who(bot, "--session-id", "my-bot")["agent"]["session"] == "my-bot"


def test_a_process_above_the_daemon_proves_nothing_alone(live: DaemonHome) -> None:
    """Such a one is above everybody, as this one is here: a client is known below it only if it names its session."""
    live.hook("SessionStart", live.payload(session_id="top", hook_event_name="SessionStart", source="startup"))
    with program(live) as anybody:
        assert name(anybody) == "Script"
        assert who(anybody, CLAUDE_CODE_SESSION_ID="top")["how"] == "process"
        assert who(anybody, "--session-id", "top")["agent"]["session"] == "top"
