"""The second lock: what is left to a person is refused below a session, and confirmed at a terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from fairlead.cli.support.person import client_above

if TYPE_CHECKING:
    from pathlib import Path

ASK = "from fairlead.cli.support.person import require_person; require_person('remove the hooks', assume_yes={})"
BELOW = "only a person can remove the hooks, and this command runs below a session of Claude Code; run it in a terminal"


def python(tmp_path: Path, *, assume_yes: bool = False) -> list[str]:
    file = tmp_path / "ask.py"
    file.write_text(
        "from fairlead.errors import FairleadError\n"
        "try:\n"
        f"    {ASK.format(assume_yes)}\n"
        "except FairleadError as error:\n"
        "    print(error)\n"
        "else:\n"
        "    print('done')\n"
    )
    return [sys.executable, str(file)]


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", **more}


def output(words: list[str], env: dict[str, str]) -> str:
    done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    return done.stdout


def below_client(tmp_path: Path, words: list[str], program: str = "claude") -> list[str]:
    """A shell under the client's name, which starts a command and waits for it."""
    shell = tmp_path / program
    shell.parent.mkdir(parents=True, exist_ok=True)
    shell.symlink_to("/bin/sh")
    return [str(shell), "-c", f"{' '.join(words)}; :"]


def at_terminal(words: list[str], env: dict[str, str], typed: bytes) -> str:
    """Run a command at a terminal of its own, where somebody types."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(words, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    os.write(ours, typed)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    process.wait()
    os.close(ours)
    return shown.decode()


def test_below_the_process_of_a_client_it_is_refused(tmp_path: Path) -> None:
    words = below_client(tmp_path, python(tmp_path))
    assert output(words, environment(tmp_path)).startswith(BELOW)


def test_below_a_session_yes_does_not_help(tmp_path: Path) -> None:
    words = below_client(tmp_path, python(tmp_path, assume_yes=True))
    assert output(words, environment(tmp_path)).startswith(BELOW)


@pytest.mark.parametrize(
    "program", ["node_modules/@anthropic-ai/claude-code/cli.js", ".local/share/claude/versions/2.1.325"]
)
def test_the_client_is_known_by_where_it_is_installed(tmp_path: Path, program: str) -> None:
    words = below_client(tmp_path, python(tmp_path), program)
    assert output(words, environment(tmp_path)).startswith(BELOW)


@pytest.mark.parametrize("variable", ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_SESSION_ID"])
def test_with_the_variables_of_a_session_it_is_refused(tmp_path: Path, variable: str) -> None:
    assert output(python(tmp_path), environment(tmp_path, **{variable: "1"})).startswith(BELOW)


def test_below_a_process_that_the_client_lists_as_a_session_it_is_refused(tmp_path: Path) -> None:
    """The program may have any name, then."""
    sessions = tmp_path / ".claude/sessions"
    sessions.mkdir(parents=True)
    (sessions / f"{os.getpid()}.json").write_text(json.dumps({"pid": os.getpid(), "sessionId": "s1"}))
    assert output(python(tmp_path), environment(tmp_path)).startswith(BELOW)


def test_a_session_file_of_an_earlier_process_with_the_same_pid_means_nothing(tmp_path: Path) -> None:
    sessions = tmp_path / ".claude/sessions"
    sessions.mkdir(parents=True)
    earlier = {"pid": os.getpid(), "sessionId": "s1", "procStart": "1"}
    (sessions / f"{os.getpid()}.json").write_text(json.dumps(earlier))
    assert "no terminal" in output(python(tmp_path), environment(tmp_path))


def test_without_a_terminal_it_takes_yes(tmp_path: Path) -> None:
    env = environment(tmp_path)
    assert output(python(tmp_path), env) == (
        "to remove the hooks takes a confirmation, and there is no terminal to ask at; add --yes\n"
    )
    assert output(python(tmp_path, assume_yes=True), env) == "done\n"


@pytest.mark.parametrize(
    ("typed", "shown"), [(b"yes\n", "done"), (b"Yes \n", "done"), (b"\n", "not confirmed"), (b"y\n", "not confirmed")]
)
def test_at_a_terminal_a_person_types_the_word(tmp_path: Path, typed: bytes, shown: str) -> None:
    text = at_terminal(python(tmp_path), environment(tmp_path), typed)
    assert "This will remove the hooks. Type yes to confirm: " in text
    assert shown in text.splitlines()[-1]


def test_an_environment_without_a_session_is_of_no_client(tmp_path: Path) -> None:
    assert client_above({"HOME": str(tmp_path)}, 1) is None
