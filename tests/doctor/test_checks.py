"""The doctor's checks over facts that are written down: what cannot be brought about in a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from fairlead.doctor import examine
from fairlead.doctor._facts import (
    Client,
    Daemon,
    Database,
    Entry,
    Facts,
    Hook,
    Played,
    Policy,
    Program,
    Ran,
    Run,
    SettingsFile,
    State,
)
from fairlead.doctor._findings import harmless

if TYPE_CHECKING:
    from fairlead.doctor._findings import Finding

WELL = Facts(
    version="1.0.0",
    cwd="/project",
    scopes=("user",),
    files=(),
    statuses=(),
    client=Client("/bin/claude", (2, 1, 325)),
    programs=(),
    own="/bin/fairlead-hook",
    on_path=(),
    settles=(),
    daemon=Daemon(Entry("/run/f"), Entry("/run/f/daemon.sock"), Entry("/run/f/daemon.lock")),
    state=State(Entry("/state", "folder", 0o700), free=10**12),
    policy=Policy(),
    played=Played(),
)


def findings(**changes: Any) -> dict[str, Finding]:
    facts = msgspec.structs.replace(WELL, **changes)
    return {finding.check: finding for _, group in examine(facts) for finding in group}


def test_nothing_is_wrong_with_what_is_well() -> None:
    assert {finding.level for finding in findings().values()} <= {"ok", "skipped"}


@pytest.mark.parametrize(
    ("changes", "check", "level", "found"),
    [
        ({"free": 99_000_000}, "state.space", "warning", "99 MB are free where /state is"),
        ({"free": 9_000_000}, "state.space", "wrong", "9 MB are free where /state is"),
        ({"spooled": 3}, "state.spool", "ok", "3 events wait in the spool for a daemon"),
        ({"spooled": 1001}, "state.spool", "warning", "1001 events wait in the spool"),
        ({"spooled": 10_000}, "state.spool_full", "wrong", "10000 events wait in the spool, and no more are kept"),
        ({"journal": 400_000_000}, "state.journal", "warning", "the journal has 400 MB"),
        (
            {"database": Database("/state/fairlead.db", is_there=True, is_whole=False)},
            "store",
            "skipped",
            "/state/fairlead.db is too large to be looked at in a moment",
        ),
    ],
)
def test_what_is_kept(changes: dict[str, Any], check: str, level: str, found: str) -> None:
    finding = findings(state=msgspec.structs.replace(WELL.state, **changes))[check]

    assert (finding.level, finding.found) == (level, found)


@pytest.mark.parametrize(
    ("run", "level", "end"),
    [
        (Run("Stop", "user", "x", road="daemon", seconds=0.004, exit_code=0), "ok", "    4.0 ms  daemon"),
        (Run("Stop", "user", "x", road="daemon", seconds=0.051, exit_code=0), "warning", "daemon: over 50 ms"),
        (Run("Stop", "user", "x", road="cold", seconds=0.3, exit_code=0), "ok", "  300.0 ms  no daemon"),
        (Run("Stop", "user", "x", road="cold", seconds=2.1, exit_code=0), "warning", "no daemon: over 2 s"),
        (Run("Stop", "user", "x", road="apart", exit_code=2), "ok", "isolated, no daemon  blocked"),
        (Run("Stop", "user", "x", road="cold", exit_code=1, stderr=b"no\nmore"), "wrong", "exit code 1: no"),
        (Run("Stop", "user", "x", road="cold", exit_code=2, stderr=b"fairlead cannot go"), "wrong", "cannot go"),
        (Run("Stop", "user", "x", road="cold", exit_code=0, stdout=b"[1]"), "wrong", "would not be heard"),
        (Run("Stop", "user", "x", road="cold", exit_code=0, stdout=b'{"a": 1}'), "ok", "no daemon"),
        (Run("Stop", "user", "x", road="cold", exit_code=-9), "wrong", "it ends with exit code -9"),
    ],
)
def test_how_a_hook_did(run: Run, level: str, end: str) -> None:
    finding = findings(played=Played((run,)))["run.Stop"]

    assert (finding.level, finding.found[-len(end) :]) == (level, end)


def test_a_launcher_that_does_not_reach_its_python() -> None:
    broken = Program("/bin/h", "/bin/p", start=Ran(1, "", "no such module"), imports=Ran(0, "1.0.0"))

    found = findings(programs=(broken,))

    assert found["launcher.start"].found == "/bin/h does not reach its Python: no such module"
    assert findings(own="")["launcher.none"].level == "wrong"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"type": "command", "command": "/bin/x", "args": ["--token", "s3cret"]}, "/bin/x"),
        ({"type": "command", "command": "curl -H 'Authorization: s3cret' x"}, "curl …"),
        ({"type": "command", "command": "TOKEN=s3cret run"}, "TOKEN=…"),
        ({"type": "http", "url": "http://x/?token=s3cret"}, "a hook of the type 'http'"),
    ],
)
def test_a_hook_is_named_without_its_secrets(value: dict[str, Any], shown: str) -> None:
    assert Hook("user", "f", "Stop", value).program == shown


def test_a_gate_that_was_never_shut_is_not_reopened() -> None:
    """An install that is outdated is told by another check."""
    hook = Hook("user", "f", "PreToolUse", {"type": "command", "command": "fairlead PreToolUse"}, is_ours=True)

    assert "settings.reopened" not in findings(files=(SettingsFile("user", "f", is_there=True, hooks=(hook,)),))


def test_text_of_others_is_made_harmless() -> None:
    assert harmless("a\x1b[0m\nb\u2028\udc80ä") == "a\\x1b[0m\\nb\\u2028\\udc80ä"
    assert harmless("x" * 500) == "x" * 399 + "…"


def test_a_status_line_whose_launcher_is_gone_is_told() -> None:
    lines = {
        "user": SettingsFile("user", "/home/settings.json", status_line="/bin/fairlead-hook"),
        "project": SettingsFile("project", "/p/settings.json", status_line="/gone/fairlead-hook", line_there=False),
        "local": SettingsFile("local", "/p/local.json"),
    }
    assert findings(files=(lines["user"], lines["local"]))["install.status_line"].level == "ok"
    assert "install.status_line" not in findings(files=(lines["local"],))
    told = findings(files=tuple(lines.values()))["install.status_line"]
    assert told.level == "wrong"
    assert told.found == (
        "the status line of /p/settings.json starts /gone/fairlead-hook, which is not there: nothing is shown"
    )
    assert "fairlead hooks install --scope project" in told.advice
