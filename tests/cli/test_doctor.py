"""`fairlead doctor`, as a person runs it: each finding is brought about for real."""

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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cli.command_line import error_of, run
from daemon.daemon_home import BIN, LAUNCHER, until
from doctor.patient import ALONE, Patient, Report, entry, patient, put, without_times
from test_docs import parts

from fairlead import __version__
from fairlead.doctor.probes import _run_hooks as _play
from fairlead.doctor.probes import _settings as _look_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]


@pytest.fixture
def warm() -> Iterator[Patient]:
    """A patient whose daemon runs."""
    with patient() as made, made.home.daemon():
        yield made


@pytest.fixture
def cold() -> Iterator[Patient]:
    """A patient without a daemon."""
    with patient(**ALONE) as made:
        yield made


def only(report: Report, *checks: str) -> None:
    """Assert that these are wrong, and nothing else."""
    assert (report.faults, report.exit_code) == (set(checks), 1)


# -- all is well -----------------------------------------------------------------------------------------


def test_a_healthy_install_is_told_with_the_time_of_each_hook(warm: Patient) -> None:
    done = warm.home.fairlead("doctor")

    assert (done.exit_code, done.stderr) == (0, "")
    lines = without_times(done.stdout.replace(str(warm.home.folder), "~").replace(str(BIN), "BIN")).splitlines()
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


def test_programs_read_keys_that_stay(warm: Patient) -> None:
    report = warm.doctor()

    document = report.document
    assert list(document) == [
        *("version", "client", "client_version", "cwd", "scopes", "healthy", "counts", "findings", "runs"),
    ]
    assert (document["version"], document["client"], document["client_version"]) == (__version__, "claude", "2.1.325")
    assert (document["cwd"], document["scopes"]) == (str(warm.home.project), ["user", "project", "local"])
    assert document["healthy"]
    assert list(document["counts"]) == ["ok", "warning", "wrong", "skipped"]
    assert {tuple(one) for one in document["findings"]} == {("check", "level", "found", "advice")}
    run = report.run("PreToolUse")
    assert run.pop("ms") > 0
    assert run == {
        "event": "PreToolUse",
        "scope": "user",
        "program": str(LAUNCHER),
        "ours": True,
        "level": "ok",
        "road": "daemon",
        "exit_code": 0,
    }


def test_the_first_event_starts_the_daemon_and_the_others_are_answered_by_it() -> None:
    with patient() as made:
        report = made.doctor()
        again = made.doctor()

    assert (report.exit_code, report.text("daemon")) == (0, "not running, which is fine: an event starts it")
    roads = [run["road"] for run in report.document["runs"]]
    assert roads == ["cold", *["daemon"] * 28]
    assert again.text("daemon").startswith("running: pid ")


def test_without_a_daemon_every_hook_still_answers(cold: Patient) -> None:
    report = cold.doctor()

    assert (report.exit_code, {run["road"] for run in report.document["runs"]}) == (0, {"cold"})
    assert "FAIRLEAD_NO_DAEMON" in report.text("daemon")


# -- the install -----------------------------------------------------------------------------------------


def test_nothing_is_installed(warm: Patient) -> None:
    warm.home.fairlead("hooks", "uninstall")

    done = warm.home.fairlead("doctor")

    assert done.exit_code == 1
    assert (
        "install\n"
        "  error    no hooks are installed in the scope user or project or local, so nothing is guarded\n"
        "             fairlead hooks install\n"
    ) in done.stdout
    assert re.search(r"\n1 error, \d warnings?, no hook ran; first: fairlead hooks install\n\Z", done.stdout)


def test_a_scope_that_was_asked_about_must_have_them(warm: Patient) -> None:
    only(warm.doctor("--scope", "local"), "install.none")
    assert warm.doctor("--scope=user").exit_code == 0


def test_events_are_missing_or_not_as_an_install_writes_them(warm: Patient) -> None:
    document = warm.document()
    document["hooks"]["Stop"][0]["hooks"][0]["timeout"] = 1
    put(warm.user, document)
    report = warm.doctor()
    only(report, "install.outdated")
    assert report.found["install.outdated"]["advice"] == "fairlead hooks install --scope user"

    del document["hooks"]["Stop"]
    put(warm.user, document)
    report = warm.doctor()
    only(report, "install.partial")
    assert report.text("install.partial").endswith("events are missing: Stop")


def test_two_launchers_run_twice_and_the_same_one_runs_once(warm: Patient) -> None:
    warm.install("--scope", "local")
    report = warm.doctor()
    assert (report.exit_code, report.level("install.repeated")) == (0, "ok")
    assert len(report.document["runs"]) == 29

    other = warm.launcher(LAUNCHER.read_bytes())
    warm.use(launcher=other)
    report = warm.doctor()
    only(report, "install.double", "install.outdated")
    assert len(report.document["runs"]) == 58
    assert report.found["install.double"]["advice"] == "take one out: fairlead hooks uninstall --scope local"


def test_hooks_of_conclaude_and_substrate_beside_ours(warm: Patient) -> None:
    put(warm.project, entry({"type": "command", "command": "conclaude Stop"}, "Stop"))

    report = warm.doctor()

    assert (report.exit_code, report.level("install.rival")) == (0, "warning")
    advice = "fairlead hooks install --scope project --replace conclaude"
    assert report.found["install.rival"]["advice"] == advice


# -- the client ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "check", "level"),
    [
        ("2.0.1", "client.old", "wrong"),
        ("2.1.150", "client.unseen", "warning"),
        ("2.1.325", "client", "ok"),
        ("3.0.0", "client", "ok"),
        ("none", "client.unknown", "warning"),
    ],
)
def test_the_version_of_the_client(version: str, check: str, level: str, warm: Patient) -> None:
    warm.client(version)
    if check != "client.old":
        warm.install()

    report = warm.doctor()

    assert report.level(check) == level
    assert ("client.old" in report.faults) == (report.exit_code == 1) == (version == "2.0.1")


# -- programs --------------------------------------------------------------------------------------------


def test_the_launcher_is_missing(warm: Patient) -> None:
    warm.use(launcher=Path("/nowhere/fairlead-hook"))

    report = warm.doctor()

    assert {"launcher.missing", "install.broken", "run.PreToolUse"} <= report.faults
    assert report.text("run.PreToolUse").endswith("it cannot be started: No such file or directory")


def test_the_launcher_of_the_status_line_is_missing(warm: Patient) -> None:
    line = {"type": "command", "command": "/nowhere/fairlead-hook StatusLine --then 'cat ~/secret'"}
    put(warm.user, {**warm.document(), "statusLine": line})

    report = warm.doctor()

    assert {"install.status_line", "install.outdated"} <= report.faults
    assert "/nowhere/fairlead-hook" in report.text("install.status_line")
    assert "secret" not in json.dumps(report.document)

    warm.install()
    assert warm.doctor().level("install.status_line") == "ok"


def test_the_launcher_is_not_executable(warm: Patient) -> None:
    warm.use(launcher=warm.launcher(LAUNCHER.read_bytes(), 0o644))

    report = warm.doctor()

    assert report.exit_code == 1
    assert report.found["launcher.not_executable"]["advice"] == f"chmod +x {warm.home.folder}/other/fairlead-hook"


def test_the_launcher_is_for_another_machine(warm: Patient) -> None:
    warm.use(launcher=warm.launcher(b"\x7fELF" + bytes(60)))

    report = warm.doctor()

    assert report.exit_code == 1
    assert report.text("launcher.platform").endswith("cannot be started on this machine: Exec format error")


def test_the_launcher_is_of_another_version(warm: Patient) -> None:
    own = f"fairlead-version: {__version__}".encode()
    assert own in LAUNCHER.read_bytes()
    older = f"fairlead-version: {re.sub(r'[1-9]', '0', __version__)}".encode()
    warm.use(launcher=warm.launcher(LAUNCHER.read_bytes().replace(own, older)))

    only(warm.doctor(), "launcher.version", "install.outdated")


def test_the_python_is_missing_or_cannot_import_us(warm: Patient) -> None:
    warm.use(python="/nowhere/python")
    report = warm.doctor()
    assert {"python.missing", "install.broken"} <= report.faults

    warm.install()
    warm.use(python=os.path.realpath(sys.executable))
    report = warm.doctor()
    assert "python.cannot_import" in report.faults
    assert "No module named 'fairlead'" in report.text("python.cannot_import")


def test_the_python_imports_another_version(warm: Patient) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", warm.home.folder / "venv"], check=True)
    (site,) = (warm.home.folder / "venv/lib").glob("python*/site-packages")
    (site / "fairlead").mkdir()
    (site / "fairlead/__init__.py").write_text("__version__ = '0.0.1'\n")
    warm.use(python=f"{warm.home.folder}/venv/bin/python")

    report = warm.doctor()

    assert report.exit_code == 1
    assert f"imports fairlead 0.0.1, and this is {__version__}" in report.text("python.version")


def test_a_launcher_in_python_is_told_with_the_remedy(warm: Patient) -> None:
    source = (ROOT / "launcher/hook.py").read_text("utf-8").replace("@VERSION@", __version__)
    warm.use(launcher=warm.launcher(source.replace("#!/usr/bin/env python3", f"#!{sys.executable}").encode()))

    report = warm.doctor()

    assert report.level("launcher.python") == "warning"
    assert "written in Python, about 10 ms slower per event" in report.text("launcher.python")
    assert report.found["launcher.python"]["advice"].startswith("install a C compiler, then run: pip install ")


def test_another_fairlead_is_on_the_path(warm: Patient) -> None:
    program = warm.bin("fairlead", "#!/bin/sh\n")

    report = warm.doctor()

    assert (report.exit_code, report.level("path.other")) == (0, "warning")
    assert report.text("path.other") == f"{program} on the PATH is of another installation"


def test_an_answer_that_the_client_would_not_hear(warm: Patient) -> None:
    warm.use(launcher=warm.launcher(b'#!/bin/sh\n[ "$1" = --version ] || echo fine\n'))

    report = warm.doctor()

    assert report.exit_code == 1
    assert report.text("run.PreToolUse").endswith("what it prints is no JSON, and would not be heard")


# -- the daemon ------------------------------------------------------------------------------------------


def test_the_daemon_hangs() -> None:
    with patient() as made, made.home.daemon() as process:
        process.send_signal(signal.SIGSTOP)
        try:
            report = made.doctor()
        finally:
            process.send_signal(signal.SIGCONT)

    assert {"daemon.stuck"} <= report.faults
    assert report.exit_code == 1
    assert report.found["daemon.stuck"]["advice"] == f"end it: kill {process.pid}, and kill -9 if it stays"


def test_the_daemon_is_older() -> None:
    code = "import fairlead; fairlead.__version__ = '0.0.1'; from fairlead.daemon.command import main; main([])"
    with patient() as made:
        older = subprocess.Popen([sys.executable, "-c", code], env=made.home.environment(), stderr=subprocess.DEVNULL)
        until(made.home.status, "it answers")
        report = made.doctor()
        older.wait(30)

    assert report.text("daemon.version").endswith(f"is of version 0.0.1, and this is {__version__}")
    assert (report.level("daemon.version"), report.exit_code) == ("warning", 0)


def test_the_daemons_folder_or_socket_is_open_to_others(warm: Patient) -> None:
    (warm.home.state / "run").chmod(0o755)
    report = warm.doctor()
    only(report, "daemon.mode")
    assert report.found["daemon.mode"]["advice"] == f"chmod 700 {warm.home.state}/run"

    (warm.home.state / "run").chmod(0o700)
    warm.home.socket.chmod(0o666)
    report = warm.doctor()
    only(report, "daemon.mode")
    assert report.found["daemon.mode"]["advice"] == f"chmod 600 {warm.home.socket}"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_the_daemons_folder_belongs_to_another_user(cold: Patient) -> None:
    (cold.home.state / "run").mkdir(mode=0o700)
    os.chown(cold.home.state / "run", 12345, 12345)

    only(cold.doctor(), "daemon.owner")


def test_what_stands_where_the_socket_should_be_is_none(cold: Patient) -> None:
    (cold.home.state / "run").mkdir(mode=0o700)
    cold.home.socket.write_text("")

    only(cold.doctor(), "daemon.no_socket")


def test_two_daemons_run_for_one_home() -> None:
    """One that finds out leaves by itself; one that hangs cannot."""
    with patient() as made, made.home.daemon() as first:
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


def test_somebody_holds_the_lock_and_nobody_answers(cold: Patient) -> None:
    (cold.home.state / "run").mkdir(mode=0o700)
    lock = os.open(cold.home.state / "run/daemon.lock", os.O_RDWR | os.O_CREAT, 0o600)
    os.write(lock, b"%d\n" % os.getpid())
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        report = cold.doctor()
    finally:
        os.close(lock)

    only(report, "daemon.lock")
    assert report.text("daemon.lock").startswith(f"pid {os.getpid()} holds ")


def test_what_a_killed_daemon_leaves_is_no_harm() -> None:
    with patient() as made:
        daemon = made.home.start()
        daemon.kill()
        daemon.wait(30)
        report = made.doctor()

    assert (report.exit_code, report.level("daemon.left")) == (0, "ok")
    assert report.run("SessionEnd")["road"] == "daemon"


def test_a_daemon_of_another_environment_answers_none_of_ours(warm: Patient) -> None:
    report = warm.doctor(XDG_CONFIG_HOME="/elsewhere")

    only(report, "daemon.not_reached")
    assert report.level("daemon.environment") == "warning"
    assert "was started with another XDG_CONFIG_HOME" in report.text("daemon.environment")


def test_the_settings_move_the_home_of_the_hooks(warm: Patient) -> None:
    put(warm.user, {**warm.document(), "env": {"FAIRLEAD_HOME": f"{warm.home.folder}/moved"}})

    report = warm.doctor()

    assert (report.exit_code, report.level("environment.moved")) == (0, "warning")
    assert {run["road"] for run in report.document["runs"]} == {"apart"}
    assert not (warm.home.folder / "moved").exists()


# -- in this process: what cannot be brought about from outside ------------------------------------------


@pytest.fixture
def inside(warm: Patient, monkeypatch: pytest.MonkeyPatch) -> Patient:
    """A patient whose doctor runs in this process, with managed settings of its own."""
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in warm.home.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(warm.home.project)
    monkeypatch.setattr(_look_settings, "MANAGED", warm.home.folder / "managed")
    return warm


def examined(capsys: pytest.CaptureFixture[str], *words: str) -> Report:
    code = run("doctor", ["--json", *words])
    return Report(code, json.loads(capsys.readouterr().out))


def test_managed_settings_can_turn_hooks_off(inside: Patient, capsys: pytest.CaptureFixture[str]) -> None:
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
    inside: Patient, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_HOME", f"{inside.home.folder}/{'long' * 30}")
    monkeypatch.setattr(_play, "_FOR_A_DAEMON", 0.5)

    report = examined(capsys)

    only(report, "daemon.path_too_long", "daemon.does_not_come")
    assert {run["road"] for run in report.document["runs"]} == {"cold"}


def test_a_hook_that_never_ends_is_ended(
    inside: Patient, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inside.use(launcher=inside.launcher(b'#!/bin/sh\n[ "$1" = --version ] || exec sleep 1000\n'))
    monkeypatch.setattr(_play, "_LONGEST", 0.2)
    monkeypatch.setattr(_play, "_ALTOGETHER", 1.0)

    report = examined(capsys)

    assert report.text("run.SessionStart").endswith("it did not end within 0.2 s")
    assert report.text("run.SessionEnd").endswith("not run: the hooks before it took too long")
    assert report.exit_code == 1


def test_a_slow_hook_is_flagged(
    inside: Patient, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = f'#!/bin/sh\n[ "$1" = --version ] || sleep 0.06\nexec {LAUNCHER} "$@"\n'
    inside.use(launcher=inside.launcher(slow.encode()))

    report = examined(capsys)

    assert report.level("run.PreToolUse") == "warning"
    assert report.text("run.PreToolUse").endswith("ms  daemon: over 50 ms")


def test_a_folder_that_is_gone_is_told(
    inside: Patient, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = inside.home.folder / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()

    assert error_of(capsys, "doctor") == "this folder is gone; go to another, and run the doctor there"


# -- settings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"hooks": {', ":1:12: not valid JSON: "),
        ('{"model": "opus",}', ":1:17: a comma after the last item; take it out"),
        ('// mine\n{"model": "opus"}', ":1:1: a comment, which JSON does not have; take it out"),
        (
            '{"hooks": {"Stop": [{"hooks": [{"type": "http", "url": "http://x", "headers": "Bearer abc"}]}]}}',
            "headers: expected an object of strings, got a text; ",
        ),
    ],
)
def test_a_settings_file_that_the_client_skips(text: str, expected: str, warm: Patient) -> None:
    put(warm.project, text)

    report = warm.doctor()

    only(report, "settings.skipped")
    assert expected in report.text("settings.skipped")
    assert "Bearer" not in json.dumps(report.document)


def test_hooks_are_turned_off_in_any_scope(warm: Patient) -> None:
    put(warm.local, {"disableAllHooks": True})

    report = warm.doctor()

    only(report, "settings.disabled")
    assert report.text("settings.disabled").startswith(f"disableAllHooks is set in {warm.local}")


@pytest.mark.parametrize("measure", [None, "continue"])
def test_a_project_that_repeats_our_command_line_reopens_the_gate(measure: str | None, warm: Patient) -> None:
    hook = {**warm.ours("PreToolUse"), "onFailure": measure}
    put(warm.project, entry({key: value for key, value in hook.items() if value}))

    report = warm.doctor("--scope", "user")

    only(report, "settings.reopened")
    assert report.found["settings.reopened"]["advice"] == f"take the later entry out of {warm.project}"


def test_a_later_entry_in_the_same_file_reopens_the_gate(warm: Patient) -> None:
    document, hook = warm.document(), warm.ours("PreToolUse")
    del hook["onFailure"]
    document["hooks"]["PreToolUse"].append({"matcher": "Bash", "hooks": [hook]})
    put(warm.user, document)

    assert "settings.reopened" in warm.doctor().faults


def test_an_earlier_entry_does_not(warm: Patient) -> None:
    document, hook = warm.document(), warm.ours("PreToolUse")
    del hook["onFailure"]
    document["hooks"]["PreToolUse"].insert(0, {"matcher": "Bash", "hooks": [hook]})
    put(warm.user, document)

    assert "settings.reopened" not in warm.doctor().faults


# -- what is run, and what is not ------------------------------------------------------------------------


def test_hooks_of_others_are_listed_and_run_only_if_asked(warm: Patient) -> None:
    trace = warm.home.folder / "trace"
    hook = {"type": "command", "command": f"cat > {trace}; sleep 0.1; : SECRET"}
    put(warm.project, entry(hook))

    report = warm.doctor()
    assert (report.exit_code, report.level("foreign")) == (0, "skipped")
    assert report.text("foreign").endswith("cat … (project): not run: it is not ours, and may do anything")
    assert not trace.exists()

    report = warm.doctor("--run-foreign")
    assert (report.exit_code, report.level("foreign")) == (0, "warning")
    assert json.loads(trace.read_text())["session_id"] == "fairlead-doctor"
    assert "SECRET" not in json.dumps(report.document)


def test_a_hook_with_files_of_ones_own_is_not_run(warm: Patient) -> None:
    trace, file = warm.home.folder / "trace", warm.home.folder / "mine.py"
    file.write_text(f"from fairlead import HookManager\nopen({str(trace)!r}, 'w')\nhooks = HookManager()\n")
    document = warm.document()
    document["hooks"]["Stop"][0]["hooks"][0]["args"] += ["--hooks", str(file)]
    put(warm.user, document)

    report = warm.doctor()

    assert (report.exit_code, report.level("run.Stop"), report.run("Stop")["road"]) == (0, "skipped", None)
    assert not trace.exists()


POLICY = """\
stop:
  commands: [{run: "touch ran"}]
preToolUse:
  uneditableFiles: ["*.lock"]
"""


def test_no_command_of_a_policy_is_run(warm: Patient) -> None:
    warm.home.policy(POLICY)
    report = warm.doctor()
    assert {run["road"] for run in report.document["runs"]} == {"apart"}, "no event was decided by it yet"
    (warm.home.project / ".fairlead.yaml").rename(warm.home.project / "away")
    assert warm.doctor().level("policy") == "skipped", "nor does it hold because the doctor looked at it"

    (warm.home.project / "away").rename(warm.home.project / ".fairlead.yaml")
    assert warm.home.hook("PreToolUse", warm.home.edit("a.lock")).exit_code == 2
    report = warm.doctor()
    assert (report.run("Stop")["road"], report.run("PreToolUse")["road"]) == ("apart", "daemon")
    assert report.exit_code == 0
    assert not (warm.home.project / "ran").exists()


def test_nobody_is_told_anything(warm: Patient) -> None:
    trace = warm.home.folder / "told"
    warm.bin("notify-send", f"#!/bin/sh\ntouch {trace}\n")
    warm.home.policy('notifications: {enabled: true, hooks: ["*"]}\n')
    warm.home.hook("PreCompact", warm.home.payload(hook_event_name="PreCompact", trigger="auto"), PATH="/nowhere")

    report = warm.doctor()

    assert (report.exit_code, {run["road"] for run in report.document["runs"]}) == (0, {"apart"})
    assert not trace.exists()


def test_foreign_text_cannot_move_the_cursor(warm: Patient) -> None:
    put(warm.project, entry({"type": "command", "command": "/opt/\x1b[2Jevil\u202e"}))

    done = warm.home.fairlead("doctor")

    assert "\x1b" not in done.stdout
    assert "/opt/\\x1b[2Jevil\\u202e (project)" in done.stdout


def test_a_terminal_without_unicode_is_no_reason_to_fail(warm: Patient) -> None:
    put(warm.project, entry({"type": "command", "command": "/opt/ä b"}))

    done = warm.home.fairlead("doctor", PYTHONIOENCODING="ascii")

    assert (done.exit_code, done.stderr) == (0, "")
    assert "/opt/\\xe4 \\u2026 (project)" in done.stdout


# -- the policy ------------------------------------------------------------------------------------------


def test_a_policy_with_mistakes(warm: Patient) -> None:
    warm.home.policy("stopp: {}\n")
    report = warm.doctor()
    only(report, "policy.broken")
    assert report.text("policy.broken").endswith(f"{warm.home.project}/.fairlead.yaml:1:1")

    warm.home.policy("preToolUse: {}\n")
    assert warm.doctor().exit_code == 0
    warm.home.policy("stopp: {}\nnotify: {}\n")
    report = warm.doctor()
    only(report, "policy.last_good")
    assert report.text("policy.last_good").endswith(".fairlead.yaml:1:1 (and 1 more)")


def test_a_policy_that_is_valid_but_may_not_be_meant_so(warm: Patient) -> None:
    rule = "{tool: Bash, pattern: 'git push *', action: block}"
    warm.home.policy(f"preToolUse: {{toolUsageValidation: [{rule}]}}\n")

    report = warm.doctor()

    assert (report.exit_code, report.level("policy.hint")) == (0, "warning")


def test_a_policy_that_is_gone_still_holds(warm: Patient) -> None:
    warm.home.policy(POLICY)
    warm.home.hook("PreToolUse", warm.home.edit("a.lock"))
    (warm.home.project / ".fairlead.yaml").unlink()

    report = warm.doctor()

    assert report.level("policy.warning") == "warning"
    assert "the file is gone. Its last good version holds." in report.text("policy.warning")


# -- what is kept ----------------------------------------------------------------------------------------


def test_the_state_folder_cannot_be_written(cold: Patient) -> None:
    (cold.home.folder / "file").write_text("")

    report = cold.doctor(FAIRLEAD_HOME=str(cold.home.folder / "file"))

    only(report, "state.unwritable")


@pytest.mark.parametrize(("name", "of"), [("fairlead.db", "store"), ("mail.db", "mail")])
def test_a_database_is_damaged_or_of_a_newer_version(cold: Patient, name: str, of: str) -> None:
    database = cold.home.state / name
    database.write_bytes(b"nonsense" * 1000)
    only(cold.doctor(), f"{of}.damaged")
    assert database.read_bytes() == b"nonsense" * 1000, "only looked at"

    database.unlink()
    with cold.home.daemon():
        until(database.exists, "there is a database")
        until(cold.home.has_mail, "the mail is open")
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE fairlead_revision SET version_num = '9999'")
    connection.close()
    only(cold.doctor(), f"{of}.too_new")


def test_what_was_set_aside_and_what_the_log_says_is_told(warm: Patient) -> None:
    (warm.home.state / "fairlead.db.damaged-20260101T000000Z").write_text("")
    (warm.home.state / "fairlead.db.damaged-20260101T000000Z-wal").write_text("")
    (warm.home.state / "daemon.log").write_text("fairlead: listening at x\nfairlead: out of luck\n")
    (warm.home.state / "spool/broken").mkdir(parents=True)
    (warm.home.state / "spool/broken/a.json").write_text("")

    report = warm.doctor()

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
def test_a_slip_on_the_command_line_is_told(args: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert error_of(capsys, "doctor", args) == expected


def test_it_is_done_in_a_moment(warm: Patient) -> None:
    """Nobody waits long for a doctor; a busy machine may take its time."""
    begun = time.monotonic()
    warm.doctor()
    assert time.monotonic() - begun < 20


def told() -> list[tuple[str, str]]:
    """The constant parts of everything that the doctor finds wrong, or doubtful."""
    found: list[tuple[str, str]] = []
    for file in sorted((ROOT / "src/fairlead/doctor/checks").glob("_*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"wrong", "warning", "say"}:
                texts: list[Any] = [part for part in ast.walk(node.args[1]) if isinstance(part, ast.JoinedStr)]
                found += [(file.name, part) for text in texts or [node.args[1]] for part in parts(text)]
    return found


def test_every_finding_is_explained() -> None:
    explained = " ".join((ROOT / "docs/troubleshooting.md").read_text("utf-8").split())

    assert len(told()) > 30
    assert [(name, part) for name, part in told() if part not in explained] == []
