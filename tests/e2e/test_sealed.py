"""The harness proves itself: nothing else in this folder means anything otherwise."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from e2e import sealed
from e2e.conftest import unavailable
from e2e.model import OVER, bash
from e2e.room import room

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.model import Turn

LOOK_AROUND = """
import os, socket, sys
print([name for _, name in socket.if_nameindex()])
try:
    socket.create_connection(("192.0.2.1", 80), timeout=5)
except OSError as error:
    print(error.strerror)
print(os.environ["HOME"], os.getcwd())
sys.exit(3)
"""


@pytest.mark.usefixtures("client")
def test_it_refuses_to_work_where_it_is_not_sealed(tmp_path: Path) -> None:
    sealed.run(["touch", "ran"], folder=tmp_path)
    (tmp_path / "project/ran").unlink()  # it ran, sealed

    again = subprocess.run(sealed.inner(tmp_path / "job.json"), check=False, capture_output=True, text=True)

    assert again.stderr == "not sealed: this is the network of the process that asked for the run\n"
    assert (again.returncode, (tmp_path / "project/ran").exists()) == (1, False)


@pytest.mark.usefixtures("client")
def test_a_program_that_does_not_end_is_killed_and_reported(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match=r"still running after 0\.5 s: .*stdout='waiting\\n'"):
        sealed.run(["sh", "-c", "echo waiting; sleep 600"], folder=tmp_path, timeout=0.5)


@pytest.mark.usefixtures("client")
def test_inside_there_is_only_loopback_and_a_home_of_the_run(tmp_path: Path) -> None:
    run = sealed.run([sys.executable, "-c", LOOK_AROUND], folder=tmp_path)

    here = f"{tmp_path / 'home'} {tmp_path / 'project'}"
    assert run.stdout == f"['lo']\nNetwork is unreachable\n{here}\n"
    assert (run.exit_code, run.stderr, run.requests) == (3, "", [])


@pytest.mark.usefixtures("client")
def test_a_room_is_sealed_too_and_what_is_left_in_it_is_killed(tmp_path: Path) -> None:
    with room(tmp_path) as place:
        looked = place.run(sys.executable, "-c", LOOK_AROUND)
        left = place.start("sh", "-c", "echo here; exec sleep 600")
        assert left.stdout is not None
        assert left.stdout.readline() == "here\n"

    here = f"{tmp_path / 'home'} {tmp_path / 'project'}"
    assert (looked.returncode, looked.stdout) == (3, f"['lo']\nNetwork is unreachable\n{here}\n")
    left.communicate(timeout=20)
    assert (left.returncode, place.requests()) == (-signal.SIGKILL, [])


def test_a_prompt_is_answered_by_the_script(client: Path, tmp_path: Path) -> None:
    run = sealed.run(sealed.claude(client, "What is it?"), folder=tmp_path, script=["It is a scripted answer."])

    assert (run.exit_code, run.stdout, run.asked) == (0, "It is a scripted answer.\n", ["main"])
    assert run.requests[0].said("user")[-1] == "What is it?"


def test_a_tool_call_of_the_script_really_runs(client: Path, tmp_path: Path) -> None:
    script: list[Turn] = [[bash("pwd > where.txt; cat where.txt; exit 7")], "Done."]

    run = sealed.run(sealed.claude(client, "Where are you?"), folder=tmp_path, script=script)

    project = str(tmp_path / "project")
    assert (run.exit_code, run.stdout, run.asked) == (0, "Done.\n", ["main", "main"])
    assert (tmp_path / "project/where.txt").read_text() == f"{project}\n"
    assert run.requests[-1].results == [f"Exit code 7\n{project}"]


def test_a_turn_that_the_script_does_not_have_is_seen(client: Path, tmp_path: Path) -> None:
    run = sealed.run(sealed.claude(client, "Go on."), folder=tmp_path, script=[[bash("true")]])

    assert (run.exit_code, run.stdout, run.asked) == (0, f"{OVER}\n", ["main", "main"])


def test_what_is_missing_skips_for_a_person_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"^the real client cannot be run: no unshare$"):
        unavailable("no unshare")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"^the real client cannot be run: no unshare$"):
        unavailable("no unshare")
