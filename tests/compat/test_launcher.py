"""A launcher of version 0.1.0 that is installed in somebody's settings works with this daemon and this Python."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from compat.stage import PATIENCE, SAMPLES, VERSION, Client, Done, living, new_home, until

if TYPE_CHECKING:
    import subprocess

    from compat.conftest import NewClient
    from compat.stage import Home

LOCKED = 'preToolUse: {uneditableFiles: ["*.lock"], preventRootAdditions: false}\n'
RAN = "stop: {commands: [{run: 'echo $FAIRLEAD_HOOK_EVENT $OWN > ran; test ! -e red', message: It is red.}]}\n"
STAYS = "mail: {stay: always, wait: 60}\n"
HOLDS = "userPromptSubmit: {commands: [{run: 'touch begun; until test -e go_on; do sleep 0.01; done'}]}\n"
STATUS: dict[str, Any] = {"model": {"display_name": "Opus"}, "cost": {"total_cost_usd": 1.25}}
FULL = Path("/dev/full")


def ended(process: subprocess.Popen[bytes]) -> Done:
    out, err = process.communicate(timeout=PATIENCE)
    return Done(process.returncode, (out or b"").decode(), (err or b"").decode())


def is_denied(done: Done) -> bool:
    reason = "Blocked Edit operation: file matches preToolUse.uneditableFiles pattern '*.lock'. File: "
    answer = done.json["hookSpecificOutput"]
    assert answer["permissionDecision"] == "deny"
    assert answer["permissionDecisionReason"].startswith(reason)
    assert done.err.startswith(reason)
    return done.code == 2


# -- events ----------------------------------------------------------------------------------------------


def test_a_tool_call_passes_and_another_is_blocked(new_client: NewClient) -> None:
    """The daemon answers the events of that launcher (200), and records its caller and version."""
    client = new_client(LOCKED)

    assert client.edit("main.py") == (0, "", "")
    assert is_denied(client.edit("uv.lock"))

    passed, blocked = client.home.events("--session", client.session)
    assert (passed.get("verdict", "none"), blocked["verdict"], blocked["exit"]) == ("none", "blocked", 2)
    for record in (passed, blocked):
        assert record["caller"]["pid"] == client.pid
        assert record["caller"]["version"] == VERSION
        assert record["caller"]["project"] == str(client.cwd)


def test_a_command_at_the_end_of_a_turn_is_run_in_the_caller(new_client: NewClient) -> None:
    """A plan (202) is carried out by `fairlead.act.main`, which that launcher runs by that name."""
    client = new_client(RAN)

    assert client.hook("Stop", env={"OWN": "of the caller"}).out == ""
    assert (client.cwd / "ran").read_text() == "Stop of the caller\n"

    (client.cwd / "red").touch()
    assert client.hook("Stop").json == {"decision": "block", "reason": "It is red."}
    until(lambda: len(client.home.events("--session", client.session)) == 4, "two events, and how their commands ended")
    ends = [record for record in client.home.events("--session", client.session) if record["kind"] == "done"]
    assert [end["steps"][0]["exit"] for end in ends] == [0, 1]


def test_without_a_daemon_python_decides(home: Home, launcher: Path) -> None:
    """Without a daemon that launcher runs `fairlead.cli.main.main` by that name, which decides and spools the event."""
    with living() as pid:
        client = Client(home, launcher, "alone", pid, home.project(policy=LOCKED + RAN))

        assert client.edit("main.py") == (0, "", "")
        assert is_denied(client.edit("uv.lock"))
        assert client.hook("Stop", env={"OWN": "of the caller"}).out == ""

    assert (client.cwd / "ran").read_text() == "Stop of the caller\n"
    spooled = home.spooled()
    assert [(record["event"], record["road"]) for record in spooled] == [
        ("PreToolUse", "cold"),
        ("PreToolUse", "cold"),
        ("Stop", "cold"),
    ]
    assert {record["caller"]["pid"] for record in spooled} == {pid}


def test_a_gate_fails_closed_without_a_daemon(home: Home, launcher: Path) -> None:
    """A payload that cannot be read blocks on PreToolUse, and is an error elsewhere."""
    command = [str(launcher), "PreToolUse", "--python", sys.executable]
    assert home.run(command, b"{").code == 2
    command[1] = "Stop"
    assert home.run(command, b"{").code == 1


@pytest.mark.parametrize("launcher", ["python"], indirect=True)
def test_the_first_event_without_a_daemon_starts_one(home: Home, launcher: Path) -> None:
    """The event of an old launcher starts a daemon, which takes in that event and answers the next one."""
    with living() as pid:
        client = Client(home, launcher, "first", pid, home.project(policy=LOCKED))
        on_demand = {"FAIRLEAD_NO_DAEMON": ""}
        client.hook("SessionStart", source="startup", env=on_demand)
        try:
            until(home.socket_file.exists, "the daemon listens")
            client.hook("UserPromptSubmit", prompt="hi", env=on_demand)
            records = home.events("--session", "first")
        finally:
            home.fairlead("daemon", "stop")
    assert [(record["event"], record.get("road", "daemon")) for record in records] == [
        ("SessionStart", "cold"),
        ("UserPromptSubmit", "daemon"),
    ]


@pytest.mark.parametrize(("launcher", "name"), [("compiled", "wake"), ("python", "always")], indirect=["launcher"])
def test_every_installed_hook_is_answered(name: str, new_client: NewClient) -> None:
    """Each hook of an old settings file, started as the client starts it, is answered without an error."""
    client = new_client()
    settings = json.loads((SAMPLES / f"settings/{name}/settings.json").read_bytes())
    entries = [(event, entry) for event, entries in settings["hooks"].items() for entry in entries]
    hooks = [(event, hook) for event, entry in entries for hook in entry["hooks"]]
    ours = [(event, hook) for event, hook in hooks if hook["command"].endswith("/fairlead-hook")]
    assert len(ours) >= 29
    payloads = SAMPLES.parents[1] / "payloads/claude/2.1.325"
    for event, hook in ours:
        assert hook["command"] == "/opt/fairlead/bin/fairlead-hook"
        words = [sys.executable if word == "/opt/fairlead/bin/python" else word for word in hook["args"]]
        document = json.loads(min(payloads.glob(f"{event}[-.]*json")).read_bytes())
        payload = json.dumps({**document, "session_id": client.session, "cwd": str(client.cwd)}).encode()
        env = {**settings.get("env", {}), "FAIRLEAD_STAY": "no", "CLAUDE_PID": str(client.pid)}
        done = client.home.run([str(client.launcher), *words], payload, client.cwd, env=env)
        assert (done.code, done.err) == (0, ""), (event, done)


# -- mail ------------------------------------------------------------------------------------------------


def test_mail_is_shown_once(new_client: NewClient) -> None:
    """An answer that shows mail asks for a receipt (`fairlead-ack`), and the daemon accepts that launcher's."""
    client = new_client()
    client.hook("SessionStart", source="startup")
    message = client.send("hello")

    assert "hello" in client.hook("UserPromptSubmit", prompt="hi").json["hookSpecificOutput"]["additionalContext"]
    assert client.hook("UserPromptSubmit", prompt="hi").out == ""
    assert client.stage(message) == "shown"


@pytest.mark.skipif(not FULL.exists(), reason="there is no file here that is always full")
def test_mail_that_could_not_be_printed_is_shown_again(new_client: NewClient) -> None:
    """Without the receipt of that launcher, the message does not count as shown."""
    client = new_client()
    client.hook("SessionStart", source="startup")
    message = client.send("hello")

    with FULL.open("wb") as full:
        assert ended(client.begin("UserPromptSubmit", stdout=full, prompt="hi")).code == 1

    until(lambda: client.stage(message) == "queued", "it is queued again")
    assert "hello" in client.hook("UserPromptSubmit", prompt="hi").out


@pytest.mark.parametrize("killed", [False, True])
def test_mail_in_a_plan_is_shown_once_all_is_printed(new_client: NewClient, *, killed: bool) -> None:
    """With mail in a plan, `fairlead.act` gets the connection (`--ack-fd`), and writes the receipt after its answer."""
    client = new_client(HOLDS)
    client.hook("SessionStart", source="startup")
    message = client.send("hello")

    hook = client.begin("UserPromptSubmit", prompt="hi")
    until((client.cwd / "begun").exists, "the command runs")
    if killed:
        os.killpg(hook.pid, signal.SIGKILL)
        until(lambda: client.stage(message) == "queued", "it is queued again")
    (client.cwd / "go_on").touch()

    assert ("hello" in ended(hook).out) is not killed
    assert ("hello" in client.hook("UserPromptSubmit", prompt="hi").out) is killed
    assert client.stage(message) == "shown"


@pytest.mark.parametrize("policy", [STAYS, STAYS + RAN], ids=["at once", "after commands"])
def test_a_stop_waits_for_mail(new_client: NewClient, policy: str) -> None:
    """A stop gets a token to wait for (303), and the message that arrives is its answer."""
    client = new_client(policy)
    client.hook("SessionStart", source="startup")

    stop = client.begin("Stop")
    until(lambda: client.home.waiting == 1, "it waits")
    message = client.send("Please review this")

    answer = ended(stop).json
    assert answer["decision"] == "block"
    assert answer["reason"].startswith('You have 1 unread message:\n- From: Script - "Please review this"')
    assert client.stage(message) == "shown"
    assert (client.cwd / "ran").exists() is (policy != STAYS)


def test_a_message_wakes_a_session_that_has_stopped(new_client: NewClient) -> None:
    """The background hook at Stop (`--wake`) exits with 2 and the message on stderr."""
    client = new_client("mail: {stay: wake}\n")
    client.hook("SessionStart", source="startup")
    assert client.hook("Stop").out == ""

    wake = client.begin("Stop", "--wake")
    until(lambda: client.home.waiting == 1, "it waits")
    client.send("Wake up")

    done = ended(wake)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith('You have 1 unread message:\n- From: Script - "Wake up"')


@pytest.mark.parametrize("launcher", ["compiled"], indirect=True)
def test_a_wait_that_breaks_off_is_taken_up_again(launcher: Path) -> None:
    """If the daemon stops during a wait, Python (`--waited`) starts another one, and the wait goes on there."""
    with new_home() as home, living() as pid:
        client = Client(home, launcher, "patient", pid, home.project(policy=STAYS + RAN))
        with home.daemon(mail=True):
            client.hook("SessionStart", source="startup")
            stop = client.begin("Stop", env={"FAIRLEAD_NO_DAEMON": ""})
            until(lambda: home.waiting == 1, "it waits")
            (client.cwd / "ran").unlink()
        try:
            until(lambda: home.socket_file.exists() and home.waiting == 1, "it waits again")
            client.send("Still there?")
            assert "Still there?" in ended(stop).json["reason"]
        finally:
            home.fairlead("daemon", "stop")
        assert not (client.cwd / "ran").exists(), "the commands ran before the wait, and are not run again"


# -- the status line -------------------------------------------------------------------------------------


def test_the_status_line_is_shown_and_the_users_own_is_run(new_client: NewClient) -> None:
    """The daemon records the figures and returns a line; with `--then` the user's own command prints instead."""
    client = new_client()
    client.hook("SessionStart", source="startup")

    assert client.hook("StatusLine", **STATUS).out.startswith("Opus")
    own = client.hook("StatusLine", "--then", "cat; exit 7", **STATUS)
    assert (own.code, own.out) == (7, client.payload("StatusLine", **STATUS).decode())

    sessions = client.home.ask("/v1/sessions")["sessions"]
    assert next(one["usage"]["cost_usd"] for one in sessions if one["id"] == client.session) == 1.25


def test_the_status_line_is_shown_without_a_daemon(home: Home, launcher: Path) -> None:
    """Without a daemon Python prints the line."""
    with living() as pid:
        client = Client(home, launcher, "alone", pid, home.project())
        done = client.hook("StatusLine", **STATUS)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Opus")
