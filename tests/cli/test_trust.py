"""`fairlead trust` and `untrust`, and what `validate` and `doctor` say of several policies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.command_line import at_terminal

from fairlead.doctor.checks._state import check_policy
from fairlead.doctor.probes._policy import probe_policy
from fairlead.policy import SessionCaller, load_session_policy, write_trusted

POLICY = "stop: {commands: [{run: make test}]}\n"
FAIRLEAD = str(Path(sys.executable).parent / "fairlead")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / ".fairlead.yaml").write_text(POLICY)
    return folder


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Of a person: no variable of a client is set."""
    parent = folder.parent
    return {"HOME": str(parent), "FAIRLEAD_HOME": str(parent / "home"), "PATH": os.environ["PATH"], **more}


def fairlead(folder: Path, *words: str, **more: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [FAIRLEAD, *words],
        cwd=folder,
        env=environment(folder, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def trusted(folder: Path) -> list[tuple[str, str]]:
    """What is trusted, and its state."""
    code, out, err = fairlead(folder, "trust", "--list", "--json")
    assert (code, err) == (0, "")
    return [(one["file"], one["state"]) for one in json.loads(out)]


# -- the commands --------------------------------------------------------------------------------------


def test_the_file_is_shown_and_trusted_once_a_person_confirms_it(project: Path) -> None:
    file = project / ".fairlead.yaml"
    assert "not confirmed, so nothing was changed" in at_terminal(
        [FAIRLEAD, "trust"], environment(project), b"no\n", project
    )
    assert trusted(project) == []

    shown = at_terminal([FAIRLEAD, "trust"], environment(project), b"yes\n", project)

    assert f"{file}:\n  stop: {{commands: [{{run: make test}}]}}\nWith your trust it also applies: stop\n" in shown
    assert shown.endswith(f"trusted {file}\n")
    assert trusted(project) == [(str(file), "trusted")]


def test_of_a_changed_file_the_difference_is_shown(project: Path) -> None:
    file = project / ".fairlead.yaml"
    assert fairlead(project, "trust", "--yes")[0] == 0
    assert fairlead(project, "trust", "--yes")[1] == f"{file} is trusted already\n"
    file.write_text(POLICY.replace("make test", "make all"))
    assert trusted(project) == [(str(file), "changed")]

    code, out, _ = fairlead(project, "trust", str(file), "--yes")

    assert code == 0
    assert "-stop: {commands: [{run: make test}]}\n+stop: {commands: [{run: make all}]}\n" in out
    assert trusted(project) == [(str(file), "trusted")]


def test_below_a_session_nobody_can_trust_or_untrust(project: Path) -> None:
    below = "this command runs below a session of Claude Code"
    assert below in fairlead(project, "trust", "--yes", CLAUDECODE="1")[2]
    assert trusted(project) == []
    fairlead(project, "trust", "--yes")
    assert below in fairlead(project, "untrust", "--yes", CLAUDECODE="1")[2]
    assert len(trusted(project)) == 1


def test_trust_is_taken_back(project: Path) -> None:
    file = project / ".fairlead.yaml"
    fairlead(project, "trust", "--yes")
    (project / "src").mkdir()
    assert fairlead(project / "src", "untrust", "--yes", FAIRLEAD_HOME=str(project.parent / "home"))[:2] == (
        0,
        f"no longer trusted: {file}\n",
    )
    assert trusted(project) == []
    assert fairlead(project, "untrust", "--yes")[2] == f"fairlead: {file} is not trusted; see fairlead trust --list\n"


def test_a_file_that_is_gone_is_listed_and_can_be_untrusted(project: Path) -> None:
    file = project / ".fairlead.yaml"
    fairlead(project, "trust", "--yes")
    file.unlink()
    assert trusted(project) == [(str(file), "missing")]
    assert fairlead(project, "untrust", str(file), "--yes")[0] == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["gone"], "gone: no such file or folder"),
        (["--json"], "--json is for --list alone"),
        (["/"], "/: no policy here or in the folders above; `fairlead init` writes one"),
    ],
)
def test_a_slip_on_the_command_line_is_told(project: Path, words: list[str], error: str) -> None:
    assert fairlead(project, "trust", *words) == (1, "", f"fairlead: {error}\n")


def test_a_broken_file_is_not_trusted(project: Path) -> None:
    (project / ".fairlead.yaml").write_text("stop: 1\n")
    code, _, err = fairlead(project, "trust", "--yes")
    assert code == 1
    assert f"{project}/.fairlead.yaml:1:7: " in err


def test_what_a_file_has_to_say_to_the_terminal_is_not_said(project: Path) -> None:
    (project / ".fairlead.yaml").write_text('stop: {infiniteMessage: "\\e[2J"} # \x1b[2J\n'.replace("\x1b", "\u200b"))
    assert "\u200b" not in fairlead(project, "trust", "--yes")[1]


# -- validate ------------------------------------------------------------------------------------------


def test_validate_says_where_several_files_mean_something_else_than_the_nearest_did(project: Path) -> None:
    sub = project / "sub"
    sub.mkdir()
    near = sub / ".fairlead.yaml"
    near.write_text("preToolUse: {preventGeneratedFileEdits: false}\nstop: {commands: [{run: make}]}\n")
    far = project / ".fairlead.yaml"

    code, _, err = fairlead(project, "validate", "sub")

    assert code == 0
    assert err.splitlines() == [
        (
            f"changed: {far}: it applies here too, its rules and its commands; earlier versions read the nearest file "
            f"alone, {near}"
        ),
        (
            f"changed: {near}: in a session that begins above {sub} it is not trusted, so this does not apply: stop, "
            f"preToolUse.preventGeneratedFileEdits. To allow it: fairlead trust {near}"
        ),
    ]
    fairlead(project, "trust", "sub", "--yes")
    assert len(fairlead(project, "validate", "sub")[2].splitlines()) == 1
    assert fairlead(project, "validate")[2] == ""


# -- doctor --------------------------------------------------------------------------------------------


def findings(folder: Path) -> dict[str, str]:
    policy, _ = probe_policy(str(folder))
    return {finding.check: finding.found for finding in check_policy(policy)}


def test_doctor_shows_what_is_trusted_and_what_has_changed(project: Path) -> None:
    file = project / ".fairlead.yaml"
    assert "policy.trust" not in findings(project)
    write_trusted(str(file), file.read_bytes())
    assert findings(project)["policy.trust"] == f"trusted by you: {file}"
    file.write_text("stop: {}\n")
    assert findings(project)["policy.changed"].startswith(f"{file} has changed since you trusted it: ")


def test_doctor_shows_that_a_file_has_changed_since_a_session_began(project: Path) -> None:
    from fairlead.process import process_start_time

    caller = SessionCaller("s1", str(project), os.getpid(), process_start_time(os.getpid()))
    load_session_policy(caller, str(project))
    assert "policy.session" not in findings(project)
    (project / ".fairlead.yaml").write_text("stop: {}\n")
    assert "has changed since a running session began" in findings(project)["policy.session"]
