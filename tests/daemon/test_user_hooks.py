"""Hooks that a policy lists: a real daemon, the real launcher, and the same answers without a daemon."""

from __future__ import annotations

import re
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from daemon.daemon_home import until

from fairlead.hooks.user_hooks import caller_variables
from fairlead.policy import write_trusted
from fairlead.process import is_alive

if TYPE_CHECKING:
    from pathlib import Path

    from daemon.daemon_home import DaemonHome, Done

GUARDS = """\
import os
import time

import helper
from fairlead import HookManager, HookOutput, PostToolUse, PreToolUse

hooks = HookManager()


@hooks.on(PreToolUse, matcher="Bash")
def check(event, ctx):
    command = event.tool_input["command"]
    print("printed")
    if command == "forbidden":
        return HookOutput.deny(helper.REASON)
    if command == "exit":
        os._exit(0)
    if command == "slow":
        time.sleep(1.5)
        return HookOutput.deny("slowly")
    if command == "where":
        return HookOutput().with_context(f"{ctx.cwd} {sorted(ctx.env)} {'SECRET' in os.environ}")
    if command == "rewrite":
        return HookOutput().with_updated_input({"command": "cat .env"})


@hooks.on(PreToolUse, phase="observe")
def log(event, ctx):
    with open(os.path.join(ctx.cwd, "log.txt"), "a") as file:
        file.write(event.tool_input.get("command", "?") + "\\n")
    if event.tool_input.get("command") == "raise":
        raise ValueError("observed")


@hooks.on(PostToolUse)
async def after(event):
    if event.tool_input["command"] == "raise":
        raise ValueError("after")
    if event.tool_input["command"] == "exit":
        os._exit(0)
    return HookOutput().with_context("seen")
"""
ENVIRONMENT = {"SECRET": "1", "TMUX_PANE": "%1"}
POLICY = "preToolUse: {preventRootAdditions: false, unreadableFiles: [.env]}\nhooks: [guards.py]\n"


@pytest.fixture
def project(home: DaemonHome) -> Path:
    """A project whose policy lists a trusted hook file."""
    (home.project / "guards.py").write_text(GUARDS)
    (home.project / "helper.py").write_text("REASON = 'not here'\n")
    (home.project / ".env").write_text("KEY=1\n")
    home.policy(POLICY)
    trust(home)
    return home.project


def trust(home: DaemonHome) -> None:
    done = home.fairlead("trust", "guards.py", "--yes")
    assert done.exit_code == 0, done


def record_trust(home: DaemonHome, *files: Path) -> None:
    """Record what `fairlead trust` does; it refuses files that cannot be loaded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLEAD_HOME", str(home.state))
        for file in files:
            write_trusted(str(file), file.read_bytes())


def bash(home: DaemonHome, command: str, event: str = "PreToolUse", **fields: Any) -> bytes:
    usual = {"tool_name": "Bash", "tool_input": {"command": command}, "hook_event_name": event}
    return home.payload(**{**usual, **({"tool_response": {}} if event == "PostToolUse" else {}), **fields})


def call(home: DaemonHome, command: str, event: str = "PreToolUse", **fields: Any) -> Done:
    return home.hook(event, bash(home, command, event, **fields), **ENVIRONMENT)


def reason(done: Done) -> str:
    text: str = done.answer["hookSpecificOutput"]["permissionDecisionReason"]
    return text


def test_a_hook_decides_and_the_journal_names_it(home: DaemonHome, project: Path) -> None:
    with home.daemon():
        denied = call(home, "forbidden")
        assert (denied.exit_code, reason(denied)) == (2, "not here")
        where = call(home, "where").answer["hookSpecificOutput"]["additionalContext"]
        after = call(home, "ls", "PostToolUse").answer["hookSpecificOutput"]["additionalContext"]

        records = home.happened()
        assert [(one.route, one.hook) for one in records] == [
            ("daemon", "guards.check"),
            ("daemon", ""),
            ("daemon", ""),
        ]
        listed = home.fairlead("events").stdout
    assert "guards.check: not here" in listed
    names = sorted(name for name in ("FAIRLEAD_HOME", "HOME", "TMUX_PANE") if name in caller_variables("claude"))
    assert (where, after) == (f"{project} {names} False", "seen")


def test_the_journal_shows_the_failure_of_a_hook_that_cannot_block(home: DaemonHome, project: Path) -> None:
    calls = [("raise", "PostToolUse"), ("exit", "PostToolUse"), ("raise", "PreToolUse"), ("ls", "PostToolUse")]
    with home.daemon():
        answers = [call(home, command, event) for command, event in calls]
        recorded = [(one.verdict, one.hook, one.reason) for one in home.happened()]
        listed = home.fairlead("events").stdout.splitlines()

    ended = "the hooks of guards.py failed: their process has ended with exit code 0"
    assert recorded == [
        ("failed", "guards.after", "ValueError: after"),
        ("failed", "guards.py", ended),
        ("none", "guards.log", "ValueError: observed"),
        ("said", "", ""),
    ]
    assert [one.exit_code for one in answers] == [0] * 4
    assert re.search(r"PostToolUse .* failed .* guards\.after: ValueError: after$", listed[1])


def test_the_journal_shows_the_failure_of_a_hook_without_a_daemon(open_home: DaemonHome) -> None:
    home = open_home
    (home.project / "guards.py").write_text(GUARDS)
    (home.project / "helper.py").write_text("")
    home.policy(POLICY)
    trust(home)
    assert call(home, "raise", "PostToolUse").exit_code == 0
    until(home.happened, "the event is in the journal")
    [record] = home.happened()
    assert (record.route, record.verdict, record.hook) == ("cold", "failed", "guards.after")


def test_what_changed_is_denied_until_it_is_trusted_again(home: DaemonHome, project: Path) -> None:
    with home.daemon():
        assert call(home, "ls").stdout == ""

        (project / "helper.py").write_text("REASON = 'other'\n")
        text = reason(call(home, "ls"))
        assert text.startswith(f"{project}/helper.py, which {project}/guards.py imports, has changed since it was t")
        assert text.endswith(f"fairlead trust {project}/guards.py")
        assert home.happened()[-1].hook == "guards.py"
        told = [call(home, "ls", "PostToolUse").answer for _ in range(2)]
        assert ["fairlead trust" in one.get("systemMessage", "") for one in told] == [True, False]

        trust(home)
        assert reason(call(home, "forbidden")) == "other"
        (project / "guards.py").write_text(GUARDS.replace("forbidden", "banned"))
        assert "guards.py has changed since it was trusted" in reason(call(home, "ls"))
        trust(home)
        assert reason(call(home, "banned")) == "other"
        assert home.fairlead("untrust", "guards.py", "--yes").exit_code == 0
        assert f"{project}/guards.py is not trusted, so its hooks do not run" in reason(call(home, "ls"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("from fairlead import HookManager\n\nraise SystemExit(3)\n", "{}:3: SystemExit: 3"),
        ("", "TypeError: it has no HookManager named 'hooks'"),
    ],
)
def test_of_several_files_the_one_that_cannot_be_loaded_is_named(
    home: DaemonHome, project: Path, text: str, why: str
) -> None:
    (project / "bad.py").write_text(text)
    (project / "more.py").write_text("from fairlead import HookManager\nhooks = HookManager()\n")
    home.policy(POLICY.replace("guards.py", "guards.py, bad.py, more.py"))
    with home.daemon():
        assert reason(call(home, "ls")) == (
            f"{project}/bad.py is not trusted, so its hooks do not run. "
            f"Read it, and if its hooks may run: fairlead trust {project}/bad.py\n"
            f"{project}/more.py is not trusted, so its hooks do not run. "
            f"Read it, and if its hooks may run: fairlead trust {project}/more.py"
        )
        record_trust(home, project / "bad.py", project / "more.py")
        cold = home.cold("PreToolUse", bash(home, "ls"), **ENVIRONMENT)
        denied = call(home, "ls")
        recorded = [one.hook for one in home.happened()]

    failed = f"the hooks of bad.py failed: {why.format(project / 'bad.py')}; so this is denied"
    assert [reason(denied), reason(cold)] == [failed] * 2
    assert recorded == ["bad.py, more.py", "bad.py"]


def test_a_slow_hook_is_waited_for_and_keeps_no_other_event_waiting(home: DaemonHome, project: Path) -> None:
    with home.daemon(), ThreadPoolExecutor(6) as threads:
        call(home, "ls")
        slow = [threads.submit(call, home, "slow", session_id=f"slow{at}") for at in range(6)]
        until(lambda: (project / "log.txt").exists() and home.status(), "the daemon is there")
        (home.folder / "elsewhere").mkdir()
        other = home.hook("PreToolUse", bash(home, "ls", cwd=str(home.folder / "elsewhere")))
        assert not all(one.done() for one in slow)

        assert other.exit_code == 0
        assert [reason(one.result()) for one in slow] == ["slowly"] * 6
        assert {one.route for one in home.happened()} == {"daemon"}
        assert len(home.happened()) == 8


def test_the_guards_check_what_a_hook_has_rewritten_and_observers_see_what_they_block(
    home: DaemonHome, project: Path
) -> None:
    with home.daemon():
        rewritten = call(home, "rewrite")
        blocked = call(home, "cat .env")

        assert [one.hook for one in home.happened()] == ["", ""]
    assert rewritten.exit_code == blocked.exit_code == 2
    assert "unreadableFiles" in reason(rewritten)
    assert (project / "log.txt").read_text() == "cat .env\ncat .env\n"


def test_the_answer_without_a_daemon_is_the_same(home: DaemonHome, project: Path) -> None:
    commands = ("ls", "forbidden", "exit", "where", "rewrite", "cat .env")
    cold = [home.cold("PreToolUse", bash(home, command), **ENVIRONMENT) for command in commands]
    launched = home.hook("PreToolUse", bash(home, "forbidden"), **ENVIRONMENT)
    with home.daemon():
        warm = [call(home, command) for command in commands]

    assert (launched.exit_code, reason(launched)) == (2, "not here")
    assert [(one.exit_code, one.answer) for one in cold] == [(one.exit_code, one.answer) for one in warm]
    assert "printed" not in "".join(one.stdout + one.stderr for one in warm)
    ended = "the hooks of guards.py failed: their process has ended with exit code 0; so this is denied"
    assert reason(cold[commands.index("exit")]) == ended


def test_what_the_user_is_told_once_is_told_although_the_event_waits_for_hooks(home: DaemonHome, project: Path) -> None:
    with home.daemon():
        home.hook("SessionStart", home.payload(hook_event_name="SessionStart", source="startup"))
        (project / ".fairlead.yaml").write_text(POLICY + "stop: {commands: [{run: 'true'}]}\n")
        told = [call(home, "ls").answer.get("systemMessage", "") for _ in range(2)]

    assert ["has changed since this session began" in one for one in told] == [True, False]


def test_the_workers_end_with_their_daemon(home: DaemonHome, project: Path) -> None:
    pids = []
    for end in (signal.SIGTERM, signal.SIGKILL):
        with home.daemon() as daemon:
            call(home, "ls")
            status = home.status()
            assert status is not None
            pids.append(status["hook_workers"][0]["pid"])
            daemon.send_signal(end)
            daemon.wait(30)
    until(lambda: not any(is_alive(pid, 0) for pid in pids), "no worker is left")


def test_an_agent_cannot_change_a_hook_file_or_trust_it(home: DaemonHome, project: Path) -> None:
    edit = home.payload(tool_name="Edit", tool_input={"file_path": str(project / "guards.py")})
    commands = ["fairlead trust guards.py --yes", "fairlead hooks add other.py", "fairlead hooks remove guards.py"]
    with home.daemon():
        answers = [home.hook("PreToolUse", edit), *(call(home, command) for command in commands)]

    assert [one.exit_code for one in answers] == [2] * 4
    assert all(re.search("protectOwnFiles", reason(one)) for one in answers)
