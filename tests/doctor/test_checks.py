"""The doctor's checks of given facts: what a test cannot easily bring about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from fairlead.clients import InstalledHook, SettingsFile
from fairlead.doctor import examine
from fairlead.doctor._facts import (
    ClientFacts,
    DaemonFacts,
    DatabaseFacts,
    Facts,
    FileFacts,
    HookRunFacts,
    HookRuns,
    PolicyFacts,
    ProgramFacts,
    ProgramResult,
    StateFacts,
)
from fairlead.doctor._findings import ok

if TYPE_CHECKING:
    from fairlead.doctor._findings import Finding

HEALTHY = Facts(
    version="1.0.0",
    cwd="/project",
    scopes=("user",),
    files=(),
    statuses=(),
    client=ClientFacts("/bin/claude", (2, 1, 325)),
    programs=(),
    own_launcher="/bin/fairlead-hook",
    on_path=(),
    moved_variables=(),
    daemon=DaemonFacts(FileFacts("/run/f"), FileFacts("/run/f/daemon.sock"), FileFacts("/run/f/daemon.lock")),
    state=StateFacts(FileFacts("/state", "folder", 0o700), free_bytes=10**12),
    policy=PolicyFacts(),
    hook_runs=HookRuns(),
)


def findings(**changes: Any) -> dict[str, Finding]:
    facts = msgspec.structs.replace(HEALTHY, **changes)
    return {finding.check: finding for _, group in examine(facts) for finding in group}


def test_nothing_is_wrong_with_healthy_facts() -> None:
    assert {finding.level for finding in findings().values()} <= {"ok", "skipped"}


@pytest.mark.parametrize(
    ("version", "check", "level"),
    [
        ((2, 0, 1), "client.old", "wrong"),
        ((2, 1, 150), "client.unseen", "warning"),
        ((2, 1, 325), "client", "ok"),
        ((3, 0, 0), "client", "ok"),
        (None, "client.unknown", "warning"),
    ],
)
def test_the_version_of_the_client(version: tuple[int, int, int] | None, check: str, level: str) -> None:
    assert findings(client=ClientFacts("/bin/claude", version))[check].level == level


@pytest.mark.parametrize(
    ("changes", "check", "level", "found"),
    [
        ({"free_bytes": 99_000_000}, "state.space", "warning", "only 99 MB are free at /state"),
        ({"free_bytes": 9_000_000}, "state.space", "wrong", "only 9 MB are free at /state"),
        ({"spooled": 3}, "state.spool", "ok", "3 events wait in the spool for a daemon"),
        ({"spooled": 1001}, "state.spool", "warning", "1001 events wait in the spool"),
        ({"spooled": 10_000}, "state.spool_full", "wrong", "the spool is full: 10000 events wait, and no more fit"),
        ({"journal_bytes": 400_000_000}, "state.journal", "warning", "the journal has 400 MB"),
        (
            {"store": DatabaseFacts("/state/fairlead.db", is_there=True, was_checked=False)},
            "store",
            "skipped",
            "/state/fairlead.db could not be checked in a moment: it is large, or in use",
        ),
    ],
)
def test_the_state_folder(changes: dict[str, Any], check: str, level: str, found: str) -> None:
    finding = findings(state=msgspec.structs.replace(HEALTHY.state, **changes))[check]

    assert (finding.level, finding.found) == (level, found)


@pytest.mark.parametrize(
    ("run", "level", "end"),
    [
        (HookRunFacts("Stop", "user", "x", route="daemon", seconds=0.004, exit_code=0), "ok", "    4.0 ms  daemon"),
        (
            HookRunFacts("Stop", "user", "x", route="daemon", seconds=0.051, exit_code=0),
            "warning",
            "daemon: over 50 ms",
        ),
        (HookRunFacts("Stop", "user", "x", route="no daemon", seconds=0.3, exit_code=0), "ok", "  300.0 ms  no daemon"),
        (
            HookRunFacts("Stop", "user", "x", route="no daemon", seconds=2.1, exit_code=0),
            "warning",
            "no daemon: over 2 s",
        ),
        (HookRunFacts("Stop", "user", "x", route="isolated", exit_code=2), "ok", "isolated, no daemon  blocked"),
        (
            HookRunFacts("Stop", "user", "x", route="no daemon", exit_code=1, stderr=b"no\nmore"),
            "wrong",
            "exit code 1: no",
        ),
        (
            HookRunFacts("Stop", "user", "x", route="no daemon", exit_code=2, stderr=b"fairlead cannot go"),
            "wrong",
            "cannot go",
        ),
        (
            HookRunFacts("Stop", "user", "x", route="no daemon", exit_code=0, stdout=b"[1]"),
            "wrong",
            "so the client ignores it",
        ),
        (HookRunFacts("Stop", "user", "x", route="no daemon", exit_code=0, stdout=b'{"a": 1}'), "ok", "no daemon"),
        (HookRunFacts("Stop", "user", "x", route="no daemon", exit_code=-9), "wrong", "it ended with exit code -9"),
    ],
)
def test_a_hook_that_was_run(run: HookRunFacts, level: str, end: str) -> None:
    finding = findings(hook_runs=HookRuns((run,)))["run.Stop"]

    assert (finding.level, finding.found[-len(end) :]) == (level, end)


def test_a_launcher_that_cannot_run_its_python() -> None:
    start, imports = ProgramResult(1, "", "no such module"), ProgramResult(0, "1.0.0")
    broken = ProgramFacts("/bin/h", "/bin/p", start=start, imports=imports)

    found = findings(programs=(broken,))

    assert found["launcher.start"].found == "/bin/h cannot run its Python: no such module"
    assert findings(own_launcher="")["launcher.none"].level == "wrong"


def test_a_gate_that_never_blocked_is_not_reopened() -> None:
    """Another check reports an outdated install."""
    hook = InstalledHook("user", "f", "PreToolUse", "fairlead", is_ours=True)

    assert "settings.reopened" not in findings(files=(SettingsFile("user", "f", is_there=True, hooks=(hook,)),))


def test_text_of_others_is_safe_to_print() -> None:
    assert ok("x", "a\x1b[0m\nb\u2028\udc80ä").found == "a␛[0m␊b��ä"
    assert ok("x", "x" * 500).found == "x" * 399 + "…"


def test_a_status_line_whose_launcher_is_gone_is_reported() -> None:
    lines = {
        "user": SettingsFile("user", "/home/settings.json", status_line="/bin/fairlead-hook"),
        "project": SettingsFile("project", "/p/settings.json", status_line="/gone/fairlead-hook", line_there=False),
        "local": SettingsFile("local", "/p/local.json"),
    }
    assert findings(files=(lines["user"], lines["local"]))["install.status_line"].level == "ok"
    assert "install.status_line" not in findings(files=(lines["local"],))
    finding = findings(files=tuple(lines.values()))["install.status_line"]
    assert finding.level == "wrong"
    assert finding.found == (
        "the status line of /p/settings.json starts /gone/fairlead-hook, which does not exist: nothing is shown"
    )
    assert "fairlead hooks install --scope project" in finding.advice


def asked(timeout: float) -> tuple[SettingsFile, ...]:
    """The settings of a user whose hook of questions has a timeout."""
    hook = InstalledHook("user", "/s.json", "PermissionRequest", "fairlead-hook", timeout=timeout, is_ours=True)
    return (SettingsFile("user", "/s.json", hooks=(hook,)),)


@pytest.mark.parametrize(
    ("timeout", "seconds", "level", "advice"),
    [
        (60, 3580, "warning", "fairlead hooks install --scope user --answer"),
        (3600, 3580, "ok", ""),
        (60, 30, "ok", ""),
        (3600, 7200, "warning", "set answerTimeout to less than 3600"),
        (3600, 0, "warning", "fairlead hooks install --scope user --no-answer"),
    ],
)
def test_a_setting_and_hooks_that_differ_about_answers(timeout: float, seconds: int, level: str, advice: str) -> None:
    finding = findings(files=asked(timeout), policy=PolicyFacts(answer_seconds=seconds))["install.answer"]
    assert (finding.level, finding.advice.endswith(advice)) == (level, True), finding


def test_nothing_is_said_about_answers_where_nobody_wants_them() -> None:
    assert "install.answer" not in findings(files=asked(60))
    assert "install.answer" not in findings(policy=PolicyFacts(answer_seconds=3580)), "without any hooks, that is said"


def test_protected_files_are_not_looked_at_without_a_daemon() -> None:
    without = msgspec.structs.replace(HEALTHY.daemon, starts_on_demand=False)
    checks = {
        mode: "integrity.no_daemon" in findings(daemon=without, policy=PolicyFacts(integrity=mode))
        for mode in ("restore", "report", "off")
    }

    assert checks == {"restore": True, "report": True, "off": False}
    assert "integrity.no_daemon" not in findings(policy=PolicyFacts(integrity="restore"))


def test_a_limit_of_the_integrity_check_is_told_with_its_project() -> None:
    met = msgspec.structs.replace(HEALTHY.daemon, integrity_limits=("/project: more than 5000 protected files",))

    finding = findings(daemon=met)["integrity.limit"]

    assert finding.level == "warning"
    assert "/project: more than 5000 protected files" in finding.found


@pytest.mark.parametrize("state", [{"free_bytes": 0}, {"write_error": "No space left on device"}])
def test_on_a_full_disk_nothing_is_advised_that_throws_data_away(state: dict[str, Any]) -> None:
    """A database that cannot be read there may be intact: SQLite needs space for its log."""
    mail = DatabaseFacts(
        "/state/mail.db", is_there=True, problem="unable to open database file", set_aside=("/state/x",)
    )
    full = StateFacts(FileFacts("/state", "folder", 0o700), mail=mail, **state)

    found = findings(state=full)

    assert (
        found["mail.damaged"].advice == "free some disk space first, then run fairlead doctor again: it may be intact"
    )
    fixes = " ".join(finding.advice for finding in found.values())
    assert not any(word in fixes for word in ("delete", "remove", "stop", "move"))


def test_a_damaged_database_is_salvaged_by_a_new_daemon() -> None:
    mail = DatabaseFacts("/state/mail.db", is_there=True, problem="malformed")

    found = findings(state=StateFacts(FileFacts("/state", "folder", 0o700), free_bytes=10**12, mail=mail))

    assert found["mail.damaged"].advice.endswith("it copies what can be read, and keeps the damaged file")
