"""`fairlead doctor`, run as a user runs it: each finding is brought about for real."""

from __future__ import annotations

import ast
import fcntl
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cli.command_line import error_of, run
from daemon.daemon_home import BIN, LAUNCHER, until
from doctor.installation import NO_DAEMON, Installation, Report, entry, installation, put, without_times
from test_docs import parts

from fairlead import __version__
from fairlead.clients.claude.settings import _inspect
from fairlead.doctor.probes import _run_hooks

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]


@pytest.fixture
def running() -> Iterator[Installation]:
    """An installation whose daemon runs."""
    with installation() as made, made.home.daemon():
        yield made


@pytest.fixture
def stopped() -> Iterator[Installation]:
    """An installation without a daemon."""
    with installation(**NO_DAEMON) as made:
        yield made


NO_HOOKS = ("--scope", "local")
"""A scope without hooks: none is run, and the only other error is that there are none."""


def only(report: Report, *checks: str) -> None:
    """Assert that these checks found errors, and no others."""
    assert (report.errors, report.exit_code) == (set(checks), 1)


# -- nothing is wrong -----------------------------------------------------------------------------------------


def test_a_healthy_install_is_reported_with_the_time_of_each_hook(running: Installation) -> None:
    started_at = time.monotonic()
    done = running.home.fairlead("doctor")

    assert time.monotonic() - started_at < 20, "a user does not wait long; a busy machine takes its time"
    assert (done.exit_code, done.stderr) == (0, "")
    lines = without_times(done.stdout.replace(str(running.home.folder), "~").replace(str(BIN), "BIN")).splitlines()
    assert lines[:17] == [
        f"Fairlead {__version__}, in ~/project",
        "",
        "client",
        "  ok       Claude Code 2.1.325",
        "",
        "install",
        "  ok       user: 29 events in ~/.claude/settings.json",
        "  skipped  project: not installed",
        "  skipped  local: not installed",
        "",
        "settings",
        "  ok       read as the client does: user",
        "",
        "programs",
        f"  ok       BIN/fairlead-hook, version {__version__}",
        f"  ok       BIN/python, with fairlead {__version__}",
        "",
    ]
    assert len([line for line in lines if " … ms  daemon" in line]) == 29
    assert lines[-1].startswith("no errors: 29 hooks ran, ")


def test_the_keys_of_the_json_are_stable(running: Installation) -> None:
    report = running.doctor()

    document = report.document
    assert list(document) == [
        *("version", "client", "client_version", "cwd", "scopes", "healthy", "counts", "findings", "runs"),
    ]
    assert (document["version"], document["client"], document["client_version"]) == (__version__, "claude", "2.1.325")
    assert (document["cwd"], document["scopes"]) == (str(running.home.project), ["user", "project", "local"])
    assert document["healthy"]
    assert list(document["counts"]) == ["ok", "warning", "wrong", "skipped"]
    assert {tuple(one) for one in document["findings"]} == {("check", "level", "found", "advice")}
    run = report.run("PreToolUse")
    assert run.pop("ms") > 0
    assert run.pop("level") in {"ok", "warning"}, "on a busy machine it may be slow"
    assert run == {
        "event": "PreToolUse",
        "scope": "user",
        "program": str(LAUNCHER),
        "ours": True,
        "road": "daemon",
        "exit_code": 0,
    }


def test_the_first_event_starts_the_daemon_and_the_others_are_answered_by_it() -> None:
    with installation() as made:
        report = made.doctor()
        again = made.doctor()

    assert (report.exit_code, report.text("daemon")) == (0, "not running, which is fine: the next event starts it")
    routes = [run["road"] for run in report.document["runs"]]
    assert routes == ["cold", *["daemon"] * 28]
    assert again.text("daemon").startswith("running: pid ")


def test_without_a_daemon_every_hook_still_answers(stopped: Installation) -> None:
    report = stopped.doctor()

    assert (report.exit_code, {run["road"] for run in report.document["runs"]}) == (0, {"cold"})
    assert "FAIRLEAD_NO_DAEMON" in report.text("daemon")


# -- the install -----------------------------------------------------------------------------------------


def test_nothing_is_installed(running: Installation) -> None:
    running.home.fairlead("hooks", "uninstall", "--yes")

    done = running.home.fairlead("doctor")

    assert done.exit_code == 1
    assert (
        "install\n"
        "  error    no hooks are installed in the scope user or project or local, so nothing is guarded\n"
        "             fairlead hooks install\n"
    ) in done.stdout
    assert re.search(r"\n1 error, \d warnings?, no hook ran; first: fairlead hooks install\n\Z", done.stdout)


def test_a_requested_scope_must_have_hooks(running: Installation) -> None:
    only(running.doctor("--scope", "local"), "install.none")
    assert running.doctor("--scope=user").exit_code == 0


def test_events_are_missing_or_not_as_an_install_writes_them(running: Installation) -> None:
    document = running.document()
    document["hooks"]["Stop"][0]["hooks"][0]["timeout"] = 1
    put(running.user, document)
    report = running.doctor()
    only(report, "install.outdated")
    assert report.found["install.outdated"]["advice"] == "fairlead hooks install --scope user"

    del document["hooks"]["Stop"]
    put(running.user, document)
    report = running.doctor()
    only(report, "install.partial")
    assert report.text("install.partial").endswith("events are missing: Stop")


def test_two_launchers_run_twice_and_the_same_one_runs_once(running: Installation) -> None:
    running.install("--scope", "local")
    report = running.doctor()
    assert (report.exit_code, report.level("install.repeated")) == (0, "ok")
    assert len(report.document["runs"]) == 29

    other = running.launcher(LAUNCHER.read_bytes())
    running.use(launcher=other)
    report = running.doctor()
    only(report, "install.double", "install.outdated")
    assert len(report.document["runs"]) == 58
    assert report.found["install.double"]["advice"] == "take one out: fairlead hooks uninstall --scope local"


def test_hooks_of_conclaude_and_substrate_beside_ours(running: Installation) -> None:
    put(running.project, entry({"type": "command", "command": "conclaude Stop"}, "Stop"))

    report = running.doctor()

    assert (report.exit_code, report.level("install.rival")) == (0, "warning")
    advice = "fairlead hooks install --scope project --replace conclaude"
    assert report.found["install.rival"]["advice"] == advice


def test_questions_that_the_hooks_do_not_wait_for(running: Installation) -> None:
    """The setting alone is not enough, and neither are the hooks. Each advice mends it."""
    assert "install.answer" not in running.doctor().found
    (running.home.state / "config.yaml").write_text("attention: {answer: true}\n")
    report = running.doctor()
    assert (report.exit_code, report.level("install.answer")) == (0, "warning")
    assert report.found["install.answer"]["advice"] == "fairlead hooks install --scope user --answer"

    running.install("--scope", "user", "--answer")
    assert running.doctor().level("install.answer") == "ok"

    (running.home.state / "config.yaml").write_text("attention: {answer: false}\n")
    report = running.doctor()
    assert (report.exit_code, report.level("install.answer")) == (0, "warning")
    assert report.found["install.answer"]["advice"].endswith("fairlead hooks install --scope user --no-answer")
    running.install("--scope", "user", "--no-answer")
    assert "install.answer" not in running.doctor().found


# -- the client ------------------------------------------------------------------------------------------


def test_a_client_that_is_too_old(running: Installation) -> None:
    running.client("2.0.1")

    assert "client.old" in running.doctor().errors


# -- programs --------------------------------------------------------------------------------------------


def test_the_launcher_is_missing(running: Installation) -> None:
    running.use(launcher=Path("/nowhere/fairlead-hook"))

    report = running.doctor()

    assert {"launcher.missing", "install.broken", "run.PreToolUse"} <= report.errors
    assert report.text("run.PreToolUse").endswith("it cannot be started: No such file or directory")


def test_the_launcher_of_the_status_line_is_missing(running: Installation) -> None:
    line = {"type": "command", "command": "/nowhere/fairlead-hook StatusLine --then 'cat ~/secret'"}
    put(running.user, {**running.document(), "statusLine": line})

    report = running.doctor()

    assert {"install.status_line", "install.outdated"} <= report.errors
    assert "/nowhere/fairlead-hook" in report.text("install.status_line")
    assert "secret" not in json.dumps(report.document)

    running.install()
    assert running.doctor().level("install.status_line") == "ok"


def test_a_launcher_that_cannot_be_used(running: Installation) -> None:
    running.use(launcher=running.launcher(LAUNCHER.read_bytes(), 0o644))
    path = f"{running.home.folder}/other/fairlead-hook"
    assert running.doctor().found["launcher.not_executable"]["advice"] == f"chmod +x {path}"

    running.launcher(b"\x7fELF" + bytes(60))
    assert running.doctor().text("launcher.platform").endswith("cannot be started on this machine: Exec format error")

    running.launcher(b'#!/bin/sh\n[ "$1" = --version ] || echo fine\n')
    assert running.doctor().text("run.PreToolUse").endswith("its output is not a JSON object, so the client ignores it")

    own = f"fairlead-version: {__version__}".encode()
    assert own in LAUNCHER.read_bytes()
    older = f"fairlead-version: {re.sub(r'[1-9]', '0', __version__)}".encode()
    running.launcher(LAUNCHER.read_bytes().replace(own, older))
    only(running.doctor(), "launcher.version", "install.outdated")


def test_the_python_is_missing_or_cannot_import_us(running: Installation) -> None:
    running.use(python="/nowhere/python")
    report = running.doctor()
    assert {"python.missing", "install.broken"} <= report.errors

    running.install()
    running.use(python=os.path.realpath(sys.executable))
    report = running.doctor()
    assert "python.cannot_import" in report.errors
    assert "No module named 'fairlead'" in report.text("python.cannot_import")


def test_the_python_imports_another_version(running: Installation) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", running.home.folder / "venv"], check=True)
    (site,) = (running.home.folder / "venv/lib").glob("python*/site-packages")
    (site / "fairlead").mkdir()
    (site / "fairlead/__init__.py").write_text("__version__ = '0.0.1'\n")
    running.use(python=f"{running.home.folder}/venv/bin/python")

    report = running.doctor()

    assert report.exit_code == 1
    assert f"imports fairlead 0.0.1, and this is {__version__}" in report.text("python.version")


def test_a_launcher_in_python_is_reported_with_the_remedy(running: Installation) -> None:
    source = (ROOT / "launcher/hook.py").read_text("utf-8").replace("@VERSION@", __version__)
    script = source.replace("#!/usr/bin/env python3", f"#!{sys.executable}").encode()
    running.use(launcher=running.launcher(script))

    report = running.doctor()

    assert report.level("launcher.python") == "warning"
    assert "written in Python, about 10 ms slower per event" in report.text("launcher.python")
    assert report.found["launcher.python"]["advice"].startswith("install a C compiler, then run: pip install ")


def test_another_fairlead_is_on_the_path(running: Installation) -> None:
    program = running.bin("fairlead", "#!/bin/sh\n")

    report = running.doctor()

    assert (report.exit_code, report.level("path.other")) == (0, "warning")
    assert report.text("path.other") == f"{program} on the PATH belongs to another installation"


# -- the daemon ------------------------------------------------------------------------------------------


def test_the_daemon_hangs() -> None:
    with installation() as made, made.home.daemon() as process:
        made.keep_hooks("SessionStart", "PreToolUse")
        process.send_signal(signal.SIGSTOP)
        try:
            report = made.doctor()
        finally:
            process.send_signal(signal.SIGCONT)

    only(report, "install.partial", "daemon.stuck")
    assert report.found["daemon.stuck"]["advice"] == f"end it: kill {process.pid}, and kill -9 if it stays"


def test_the_daemon_is_older() -> None:
    code = "import fairlead; fairlead.__version__ = '0.0.1'; from fairlead.daemon.command import main; main([])"
    with installation() as made:
        older = subprocess.Popen([sys.executable, "-c", code], env=made.home.environment(), stderr=subprocess.DEVNULL)
        until(made.home.status, "it answers")
        report = made.doctor()
        older.wait(30)

    assert report.text("daemon.version").endswith(f"has version 0.0.1, and this is {__version__}")
    assert (report.level("daemon.version"), report.exit_code) == ("warning", 0)


def test_the_daemons_folder_or_socket_is_open_to_others(running: Installation) -> None:
    (running.home.state / "run").chmod(0o755)
    report = running.doctor()
    only(report, "daemon.mode")
    assert report.found["daemon.mode"]["advice"] == f"chmod 700 {running.home.state}/run"

    (running.home.state / "run").chmod(0o700)
    running.home.socket.chmod(0o666)
    report = running.doctor()
    only(report, "daemon.mode")
    assert report.found["daemon.mode"]["advice"] == f"chmod 600 {running.home.socket}"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_the_daemons_folder_belongs_to_another_user(stopped: Installation) -> None:
    (stopped.home.state / "run").mkdir(mode=0o700)
    os.chown(stopped.home.state / "run", 12345, 12345)

    only(stopped.doctor(*NO_HOOKS), "install.none", "daemon.owner")


def test_something_else_is_in_place_of_the_socket(stopped: Installation) -> None:
    (stopped.home.state / "run").mkdir(mode=0o700)
    stopped.home.socket.write_text("")

    only(stopped.doctor(*NO_HOOKS), "install.none", "daemon.no_socket")


def test_two_daemons_run_for_one_home() -> None:
    """A daemon that notices it exits by itself; one that hangs cannot."""
    with installation() as made, made.home.daemon() as first:
        first.send_signal(signal.SIGSTOP)
        (made.home.state / "run/daemon.lock").unlink()
        try:
            with made.home.daemon() as second:
                report = made.doctor()
        finally:
            first.send_signal(signal.SIGCONT)

    only(report, "daemon.two")
    pids = " and ".join(map(str, sorted([first.pid, second.pid])))
    assert report.text("daemon.two") == f"2 daemons run for this home: pid {pids}"
    assert report.found["daemon.two"]["advice"] == f"kill {first.pid}"


def test_a_process_holds_the_lock_and_does_not_answer(stopped: Installation) -> None:
    (stopped.home.state / "run").mkdir(mode=0o700)
    lock = os.open(stopped.home.state / "run/daemon.lock", os.O_RDWR | os.O_CREAT, 0o600)
    os.write(lock, b"%d\n" % os.getpid())
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        report = stopped.doctor(*NO_HOOKS)
    finally:
        os.close(lock)

    only(report, "install.none", "daemon.lock")
    assert report.text("daemon.lock").startswith(f"pid {os.getpid()} holds the lock ")


def test_the_socket_of_a_killed_daemon_does_no_harm() -> None:
    with installation() as made:
        daemon = made.home.start()
        daemon.kill()
        daemon.wait(30)
        report = made.doctor()

    assert (report.exit_code, report.level("daemon.left")) == (0, "ok")
    assert report.run("SessionEnd")["road"] == "daemon"


def test_a_daemon_with_another_environment_declines_events(running: Installation) -> None:
    running.keep_hooks("SessionStart", "PreToolUse")
    report = running.doctor(XDG_CONFIG_HOME="/elsewhere")

    only(report, "install.partial", "daemon.not_reached")
    assert report.level("daemon.environment") == "warning"
    assert "was started with a different XDG_CONFIG_HOME" in report.text("daemon.environment")


def test_the_settings_move_the_home_of_the_hooks(running: Installation) -> None:
    running.keep_hooks("SessionStart", "PreToolUse")
    put(running.user, {**running.document(), "env": {"FAIRLEAD_HOME": f"{running.home.folder}/moved"}})

    report = running.doctor()

    only(report, "install.partial")
    assert report.level("environment.moved") == "warning"
    assert {run["road"] for run in report.document["runs"]} == {"apart"}
    assert not (running.home.folder / "moved").exists()


# -- in this process: what cannot be set from outside ----------------------------------------------------


@pytest.fixture
def inside(running: Installation, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """An installation whose doctor runs in this process, with managed settings of its own."""
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in running.home.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(running.home.project)
    monkeypatch.setattr(_inspect, "MANAGED", running.home.folder / "managed")
    return running


def examined(capsys: pytest.CaptureFixture[str], *words: str) -> Report:
    code = run("doctor", ["--json", *words])
    return Report(code, json.loads(capsys.readouterr().out))


def test_managed_settings_can_turn_hooks_off(inside: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    file = inside.home.folder / "managed/managed-settings.json"
    put(file, {"allowManagedHooksOnly": True})
    only(examined(capsys), "settings.managed_only")
    put(file, {"disableAllHooks": True})
    only(examined(capsys), "settings.disabled")
    put(file, '{"hooks": ')
    only(examined(capsys), "settings.skipped")
    put(file, {"allowManagedHooksOnly": True, **inside.document()})
    assert examined(capsys).exit_code == 0

    file.unlink()
    put(file.parent / "managed-settings.d/10.json", {"disableAllHooks": True})
    only(examined(capsys), "settings.disabled")


def test_no_daemon_can_run_where_the_path_is_too_long(
    inside: Installation, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inside.keep_hooks("SessionStart", "PreToolUse")
    monkeypatch.setenv("FAIRLEAD_HOME", f"{inside.home.folder}/{'long' * 30}")
    monkeypatch.setattr(_run_hooks, "_DAEMON_TIMEOUT", 0.5)

    report = examined(capsys)

    only(report, "install.partial", "daemon.path_too_long", "daemon.does_not_come")
    assert {run["road"] for run in report.document["runs"]} == {"cold"}


def test_a_hook_that_never_ends_is_ended(
    inside: Installation, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inside.use(launcher=inside.launcher(b'#!/bin/sh\n[ "$1" = --version ] || exec sleep 1000\n'))
    monkeypatch.setattr(_run_hooks, "_MAX_SECONDS", 0.2)
    monkeypatch.setattr(_run_hooks, "_MAX_SECONDS_FOR_ALL", 1.0)

    report = examined(capsys)

    assert report.text("run.SessionStart").endswith("it did not end within 0.2 s")
    assert report.text("run.SessionEnd").endswith("not run: the hooks before it took too long")
    assert report.exit_code == 1


def test_a_slow_hook_is_flagged(
    inside: Installation, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = f'#!/bin/sh\n[ "$1" = --version ] || sleep 0.06\nexec {LAUNCHER} "$@"\n'
    inside.keep_hooks("SessionStart", "PreToolUse")
    inside.use(launcher=inside.launcher(slow.encode()))

    report = examined(capsys)

    assert report.level("run.PreToolUse") == "warning"
    assert report.text("run.PreToolUse").endswith("ms  daemon: over 50 ms")


def test_a_folder_that_no_longer_exists_is_reported(
    inside: Installation, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = inside.home.folder / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()

    assert error_of(capsys, "doctor") == "this folder no longer exists; run the doctor in another one"


# -- settings --------------------------------------------------------------------------------------------


def test_a_settings_file_that_the_client_skips(running: Installation) -> None:
    leaky = '{"hooks": {"Stop": [{"hooks": [{"type": "http", "url": "http://x", "headers": "Bearer abc"}]}]}}'
    for text, expected in (
        ('{"hooks": {', ":1:12: not valid JSON: "),
        ('{"model": "opus",}', ":1:17: a comma after the last item; remove it"),
        ('// mine\n{"model": "opus"}', ":1:1: a comment, which JSON does not allow; remove it"),
        (leaky, "headers: expected an object of strings, got a text; "),
    ):
        put(running.project, text)
        report = running.doctor()
        only(report, "settings.skipped")
        assert expected in report.text("settings.skipped")
        assert "Bearer" not in json.dumps(report.document)


def test_hooks_are_turned_off_in_any_scope(running: Installation) -> None:
    put(running.local, {"disableAllHooks": True})

    report = running.doctor()

    only(report, "settings.disabled")
    assert report.text("settings.disabled").startswith(f"disableAllHooks is set in {running.local}")


def test_a_project_that_repeats_our_command_line_reopens_the_gate(running: Installation) -> None:
    hook = running.ours("PreToolUse")
    del hook["onFailure"]
    for measure in ({}, {"onFailure": "continue"}):
        put(running.project, entry({**hook, **measure}))
        report = running.doctor("--scope", "user")
        only(report, "settings.reopened")
        assert report.found["settings.reopened"]["advice"] == f"take the later entry out of {running.project}"


def test_a_later_entry_in_the_same_file_reopens_the_gate_and_an_earlier_one_does_not(running: Installation) -> None:
    document, hook = running.document(), running.ours("PreToolUse")
    del hook["onFailure"]
    repeated = {"matcher": "Bash", "hooks": [hook]}
    ours = document["hooks"]["PreToolUse"]
    document["hooks"]["PreToolUse"] = [*ours, repeated]
    put(running.user, document)
    assert "settings.reopened" in running.doctor().errors

    document["hooks"]["PreToolUse"] = [repeated, *ours]
    put(running.user, document)
    assert "settings.reopened" not in running.doctor().errors


# -- what is run, and what is not ------------------------------------------------------------------------


def test_hooks_of_others_are_listed_and_run_only_if_asked(running: Installation) -> None:
    trace = running.home.folder / "trace"
    hook = {"type": "command", "command": f"cat > {trace}; sleep 0.1; : SECRET"}
    put(running.project, entry(hook))

    report = running.doctor()
    assert (report.exit_code, report.level("foreign")) == (0, "skipped")
    assert report.text("foreign").endswith("cat … (project): not run: it is not ours, and may do anything")
    assert not trace.exists()

    report = running.doctor("--run-foreign")
    assert (report.exit_code, report.level("foreign")) == (0, "warning")
    assert json.loads(trace.read_text())["session_id"] == "fairlead-doctor"
    assert "SECRET" not in json.dumps(report.document)


def test_a_hook_with_files_of_the_user_is_not_run(running: Installation) -> None:
    trace, file = running.home.folder / "trace", running.home.folder / "mine.py"
    file.write_text(f"from fairlead import HookManager\nopen({str(trace)!r}, 'w')\nhooks = HookManager()\n")
    document = running.document()
    document["hooks"]["Stop"][0]["hooks"][0]["args"] += ["--hooks", str(file)]
    put(running.user, document)

    report = running.doctor()

    assert (report.errors, report.exit_code) == (set(), 0)
    assert (report.level("run.Stop"), report.run("Stop")["road"]) == ("skipped", None)
    assert not trace.exists()


POLICY = """\
stop:
  commands: [{run: "touch ran"}]
preToolUse:
  uneditableFiles: ["*.lock"]
"""


def test_no_command_of_a_policy_is_run(running: Installation) -> None:
    running.keep_hooks("PreToolUse", "Stop")
    running.home.policy(POLICY)
    report = running.doctor()
    assert {run["road"] for run in report.document["runs"]} == {"apart"}, "no event was decided by it yet"
    (running.home.project / ".fairlead.yaml").rename(running.home.project / "away")
    assert running.doctor().level("policy") == "skipped", "nor does it apply because the doctor read it"

    (running.home.project / "away").rename(running.home.project / ".fairlead.yaml")
    assert running.home.hook("PreToolUse", running.home.edit("a.lock")).exit_code == 2
    report = running.doctor()
    assert (report.run("Stop")["road"], report.run("PreToolUse")["road"]) == ("apart", "daemon")
    only(report, "install.partial")
    assert not (running.home.project / "ran").exists()


def test_no_notification_is_sent(running: Installation) -> None:
    running.keep_hooks("PreToolUse", "PreCompact")
    trace = running.home.folder / "notified"
    running.bin("notify-send", f"#!/bin/sh\ntouch {trace}\n")
    running.home.policy('notifications: {enabled: true, hooks: ["*"]}\n')
    running.home.hook("PreCompact", running.home.payload(hook_event_name="PreCompact", trigger="auto"), PATH="/nowhere")

    report = running.doctor()

    only(report, "install.partial")
    assert {run["road"] for run in report.document["runs"]} == {"apart"}
    assert not trace.exists()


def test_foreign_text_cannot_move_the_cursor(running: Installation) -> None:
    put(running.project, entry({"type": "command", "command": "/opt/\x1b[2Jevil\u202e"}))

    done = running.home.fairlead("doctor")

    assert "\x1b" not in done.stdout
    assert "/opt/␛[2Jevil� (project)" in done.stdout


def test_a_terminal_without_unicode_is_no_reason_to_fail(running: Installation) -> None:
    put(running.project, entry({"type": "command", "command": "/opt/ä b"}))

    done = running.home.fairlead("doctor", PYTHONIOENCODING="ascii")

    assert (done.exit_code, done.stderr) == (0, "")
    assert "/opt/\\xe4 \\u2026 (project)" in done.stdout


# -- the policy ------------------------------------------------------------------------------------------


def test_a_policy_with_mistakes(running: Installation) -> None:
    running.keep_hooks("PreToolUse", "Stop")
    running.home.policy("stopp: {}\n")
    report = running.doctor()
    only(report, "install.partial", "policy.broken")
    assert report.text("policy.broken").endswith(f"{running.home.project}/.fairlead.yaml:1:1")

    running.home.policy("preToolUse: {}\n")
    only(running.doctor(), "install.partial")
    running.home.policy("stopp: {}\nnotify: {}\n")
    report = running.doctor()
    only(report, "install.partial", "policy.last_good")
    assert report.text("policy.last_good").endswith(".fairlead.yaml:1:1 (and 1 more)")


def test_a_policy_that_is_valid_but_may_not_do_what_you_mean(running: Installation) -> None:
    rule = "{tool: Bash, pattern: 'git push *', action: block}"
    running.keep_hooks("PreToolUse", "Stop")
    running.home.policy(f"preToolUse: {{toolUsageValidation: [{rule}]}}\n")

    report = running.doctor()

    only(report, "install.partial")
    assert report.level("policy.hint") == "warning"


def test_a_policy_whose_file_is_gone_still_applies(running: Installation) -> None:
    running.keep_hooks("PreToolUse", "Stop")
    running.home.policy(POLICY)
    running.home.hook("PreToolUse", running.home.edit("a.lock"))
    (running.home.project / ".fairlead.yaml").unlink()

    report = running.doctor()

    assert report.level("policy.warning") == "warning"
    assert "the file was deleted. Its last good version is used." in report.text("policy.warning")


HOOKS = """\
from fairlead import HookManager, PreToolUse

import helper

hooks = HookManager()


@hooks.on(PreToolUse)
def check(event):
    return None
"""


def trusted_hooks(made: Installation, *words: str) -> Path:
    """Write a hook file and a module that it imports, and list it in a policy."""
    file = made.home.project / "guards.py"
    file.write_text(HOOKS)
    (made.home.project / "helper.py").write_text("")
    made.home.policy("preToolUse: {preventRootAdditions: false}\n")
    added = made.home.fairlead("hooks", "add", *words, str(file), "--yes")
    assert added.exit_code == 0, added
    return file


def test_a_hook_file_that_has_changed_is_an_error_until_it_is_trusted_again(running: Installation) -> None:
    running.keep_hooks("PreToolUse")
    file, helper = trusted_hooks(running), running.home.project / "helper.py"
    report = running.doctor()
    only(report, "install.partial")
    assert report.text("policy.hooks") == f"hooks of your own, as you trusted them: {file}"

    file.write_text(HOOKS + "# more\n")
    assert (
        running.home.hook(
            "PreToolUse", running.home.payload(tool_name="Bash", tool_input={"command": "true"})
        ).exit_code
        == 2
    )
    report = running.doctor()
    only(report, "install.partial", "policy.hook_changed")
    assert report.text("policy.hook_changed").startswith(
        f"every event that can be blocked is denied here: {file} has changed since it was trusted"
    )
    assert report.found["policy.hook_changed"]["advice"] == f"fairlead trust {file}"
    assert report.level("policy.hooks") == "absent"

    assert running.home.fairlead("trust", str(file), "--yes").exit_code == 0
    only(running.doctor(), "install.partial")
    helper.write_text("# more\n")
    report = running.doctor()
    only(report, "install.partial", "policy.hook_changed")
    assert f"{helper}, which {file} imports, has changed" in report.text("policy.hook_changed")
    assert report.found["policy.hook_changed"]["advice"] == f"fairlead trust {file}"


def test_hooks_of_ones_own_are_not_called(running: Installation) -> None:
    running.keep_hooks("PreToolUse")
    file = trusted_hooks(running)
    called = file.with_name("guards.py.called")
    file.write_text(HOOKS.replace("return None", "open(__file__ + '.called', 'w').close()"))
    assert running.home.fairlead("trust", str(file), "--yes").exit_code == 0
    running.home.hook("PreToolUse", running.home.payload(tool_name="Bash", tool_input={"command": "true"}))
    called.unlink()

    only(running.doctor(), "install.partial")

    assert not called.exists()


def test_a_hook_file_that_nobody_trusts_is_an_error(stopped: Installation) -> None:
    file = trusted_hooks(stopped)
    assert stopped.home.fairlead("untrust", str(file), "--yes").exit_code == 0

    report = stopped.doctor(*NO_HOOKS)

    only(report, "install.none", "policy.hook_untrusted")
    assert report.found["policy.hook_untrusted"]["advice"] == f"fairlead trust {file}"


def test_a_hook_file_that_is_gone_is_an_error_and_the_command_that_mends_it_does(stopped: Installation) -> None:
    file = trusted_hooks(stopped)
    file.unlink()
    report = stopped.doctor(*NO_HOOKS)

    only(report, "install.none", "policy.hook_missing")
    assert str(file) in report.text("policy.hook_missing")
    advice = report.found["policy.hook_missing"]["advice"]
    assert advice == f"restore it, or: fairlead hooks remove {file}"
    assert stopped.home.fairlead(*advice.partition(": fairlead ")[2].split(), "--yes").exit_code == 0
    only(stopped.doctor(*NO_HOOKS), "install.none")


def test_a_module_of_a_hook_file_that_is_gone_is_an_error(stopped: Installation) -> None:
    file, helper = trusted_hooks(stopped), stopped.home.project / "helper.py"
    helper.unlink()

    report = stopped.doctor(*NO_HOOKS)
    assert f"{helper} cannot be read: No such file or directory" in report.text("policy.hook_missing")

    file.write_text(HOOKS.replace("import helper\n", ""))
    only(stopped.doctor(*NO_HOOKS), "install.none", "policy.hook_changed")


def test_a_hook_file_of_the_user_wide_policy_or_of_one_above_is_taken_out_there(stopped: Installation) -> None:
    file = trusted_hooks(stopped, "--user")
    file.unlink()
    advice = stopped.doctor(*NO_HOOKS).found["policy.hook_missing"]["advice"]
    assert advice == f"restore it, or: fairlead hooks remove --user {file}"
    assert stopped.home.fairlead(*advice.partition(": fairlead ")[2].split(), "--yes").exit_code == 0

    above = stopped.home.folder / ".fairlead.yaml"
    above.write_text("hooks: [gone.py]\n")
    folder = stopped.home.folder
    assert stopped.doctor(*NO_HOOKS).found["policy.hook_missing"]["advice"] == (
        f"restore it, or: cd {folder} && fairlead hooks remove {folder}/gone.py"
    )


# -- the state folder -------------------------------------------------------------------------------------


def test_the_state_folder_cannot_be_written(stopped: Installation) -> None:
    (stopped.home.folder / "file").write_text("")

    report = stopped.doctor(*NO_HOOKS, FAIRLEAD_HOME=str(stopped.home.folder / "file"))

    only(report, "install.none", "state.unwritable")


def test_a_database_that_another_process_has_locked_is_not_reported_as_damaged(stopped: Installation) -> None:
    with stopped.home.daemon():
        until(stopped.home.has_mail, "the mail is open")
    with closing(sqlite3.connect(stopped.home.state / "mail.db")) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        report = stopped.doctor(*NO_HOOKS)

    only(report, "install.none")
    assert report.text("mail").endswith("mail.db could not be checked in a moment: it is large, or in use")


def test_a_database_is_damaged_or_of_a_newer_version(stopped: Installation) -> None:
    files = {"store": stopped.home.state / "fairlead.db", "mail": stopped.home.state / "mail.db"}
    for file in files.values():
        file.write_bytes(b"nonsense" * 1000)
    only(stopped.doctor(*NO_HOOKS), "install.none", "store.damaged", "mail.damaged")
    for file in files.values():
        assert file.read_bytes() == b"nonsense" * 1000, "only read"
        file.unlink()

    with stopped.home.daemon():
        until(files["store"].exists, "there is a database")
        until(stopped.home.has_mail, "the mail is open")
    for file in files.values():
        with sqlite3.connect(file) as connection:
            connection.execute("UPDATE fairlead_revision SET version_num = '9999'")
        connection.close()
    only(stopped.doctor(*NO_HOOKS), "install.none", "store.too_new", "mail.too_new")


def test_databases_set_aside_and_the_end_of_the_log_are_reported(running: Installation) -> None:
    (running.home.state / "fairlead.db.damaged-20260101T000000Z").write_text("")
    (running.home.state / "fairlead.db.damaged-20260101T000000Z-wal").write_text("")
    (running.home.state / "daemon.log").write_text("fairlead: listening at x\nfairlead: out of luck\n")
    (running.home.state / "spool/broken").mkdir(parents=True)
    (running.home.state / "spool/broken/a.json").write_text("")

    report = running.doctor()

    assert report.exit_code == 0
    warnings = [check for check in ("store.set_aside", "state.log", "state.broken") if report.level(check) == "warning"]
    assert warnings == ["store.set_aside", "state.log", "state.broken"]
    assert report.text("store.set_aside").endswith("damaged-20260101T000000Z")
    assert report.text("state.log") == "the daemon's log ends with: fairlead: out of luck"


# -- the command line ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["now"], "doctor: unexpected argument 'now'; see fairlead doctor --help"),
        (["--scope"], "--scope needs a value"),
        (["--scope", "global"], "--scope: expected one of user, project, local, got 'global'"),
        (["--client", "codex"], "--client: expected one of claude, got 'codex'"),
    ],
)
def test_a_wrong_command_line_is_explained(args: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert error_of(capsys, "doctor", args) == expected


def texts_of_findings() -> list[tuple[str, str]]:
    """The constant parts of every warning and error, by file."""
    found: list[tuple[str, str]] = []
    for file in sorted((ROOT / "src/fairlead/doctor/checks").glob("_*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"wrong", "warning", "make_finding"}:
                texts: list[Any] = [part for part in ast.walk(node.args[1]) if isinstance(part, ast.JoinedStr)]
                found += [(file.name, part) for text in texts or [node.args[1]] for part in parts(text)]
    return found


def test_every_finding_is_explained() -> None:
    explained = " ".join((ROOT / "docs/troubleshooting.md").read_text("utf-8").split())

    assert len(texts_of_findings()) > 30
    assert [(name, part) for name, part in texts_of_findings() if part not in explained] == []
