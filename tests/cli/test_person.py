"""The second lock: what is left to a person is refused below a session, and confirmed at a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.command_line import at_terminal

from fairlead.clients import client_above

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
        "to remove the hooks needs a confirmation, and there is no terminal; add --yes\n"
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


# -- the commands that need a person -----------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of a home in which the hooks are installed, and a policy is in its folder."""
    env = environment(tmp_path, FAIRLEAD_HOME=str(tmp_path / "fairlead"))
    (tmp_path / ".fairlead.yaml").write_text("{}\n")
    done = fairlead(env, "hooks install --client-version 2.1.325")
    assert done.returncode == 0, done.stderr
    return env


def fairlead(env: dict[str, str], line: str, *, below: bool = False) -> subprocess.CompletedProcess[str]:
    home = Path(env["HOME"])
    words = [sys.executable, "-m", "fairlead", *line.split()]
    if below and not (home / "claude").exists():
        (home / "claude").symlink_to("/bin/sh")
    if below:
        words = [str(home / "claude"), "-c", f"{' '.join(words)}; exit $?"]
    return subprocess.run(
        words, cwd=home, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


LEFT_TO_A_PERSON = [
    ("hooks uninstall", "remove Fairlead's hooks from {home}/.claude/settings.json"),
    ("uninstall --yes", "remove Fairlead's hooks from {home}/.claude/settings.json"),
    ("hooks install --client-version 2.1.139", "change the hooks in {home}/.claude/settings.json"),
    ("init --force --yes", "replace the policy in .fairlead.yaml"),
    ("daemon stop --yes", "stop the daemon"),
]


@pytest.mark.parametrize(("line", "action"), LEFT_TO_A_PERSON)
def test_such_a_command_is_refused_below_a_session(
    installed: dict[str, str], tmp_path: Path, line: str, action: str
) -> None:
    before = (tmp_path / ".claude/settings.json").read_bytes()

    done = fairlead(installed, line, below=True)

    assert done.returncode == 1
    assert done.stderr == (
        f"fairlead: only a person can {action.format(home=tmp_path)}, and this command runs below a session of "
        "Claude Code; run it in a terminal of your own\n"
    )
    assert (tmp_path / ".claude/settings.json").read_bytes() == before
    assert (tmp_path / ".fairlead.yaml").read_text() == "{}\n"


@pytest.mark.parametrize("line", ["hooks uninstall", "init --force", "hooks install --client-version 2.1.139"])
def test_a_script_needs_yes_where_something_is_taken_away(installed: dict[str, str], line: str) -> None:
    refused = fairlead(installed, line)
    assert refused.returncode == 1
    assert "needs a confirmation, and there is no terminal; add --yes" in refused.stderr

    done = fairlead(installed, f"{line} --yes")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_person_at_a_terminal_types_yes_to_uninstall(installed: dict[str, str], tmp_path: Path) -> None:
    words = [sys.executable, "-m", "fairlead", "uninstall"]

    shown = at_terminal(words, installed, b"no\n")
    assert "not confirmed, so nothing was changed" in shown
    assert b"fairlead-hook" in (tmp_path / ".claude/settings.json").read_bytes()

    shown = at_terminal(words, installed, b"yes\n")
    assert f"This will remove Fairlead's hooks from {tmp_path}/.claude/settings.json. Type yes to confirm: " in shown
    assert not (tmp_path / ".claude/settings.json").exists()


@pytest.mark.parametrize("line", ["hooks install --client-version 2.1.325", "init"])
def test_what_takes_nothing_away_needs_no_confirmation(tmp_path: Path, line: str) -> None:
    env = environment(tmp_path, FAIRLEAD_HOME=str(tmp_path / "fairlead"))
    assert fairlead(env, line).returncode == 0


def test_a_first_install_works_below_a_session_too(tmp_path: Path) -> None:
    env = environment(tmp_path, FAIRLEAD_HOME=str(tmp_path / "fairlead"))
    assert fairlead(env, "hooks install --client-version 2.1.325", below=True).returncode == 0


@pytest.mark.parametrize("line", ["hooks uninstall --dry-run", "hooks status", "init --dry-run --force", "validate"])
def test_what_only_shows_something_runs_below_a_session(installed: dict[str, str], line: str) -> None:
    assert "only a person" not in fairlead(installed, line, below=True).stderr


def test_stopping_the_daemon_needs_a_confirmation_only_while_sessions_run(
    installed: dict[str, str], tmp_path: Path
) -> None:
    assert fairlead(installed, "daemon start").returncode == 0
    sessions = tmp_path / ".claude/sessions"
    sessions.mkdir()
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as session:
        (sessions / f"{session.pid}.json").write_text(json.dumps({"pid": session.pid, "sessionId": "s1"}))
        refused = fairlead(installed, "daemon stop")
        session.communicate()
    assert refused.stderr.startswith("fairlead: to stop the daemon while sessions run (1) needs a confirmation")

    assert fairlead(installed, "daemon stop").stdout.startswith("stopped: pid ")


def test_the_daemon_itself_does_not_stop_for_a_session(installed: dict[str, str], tmp_path: Path) -> None:
    """Whatever program the session uses to ask it: here one that knows nothing of the lock."""
    assert fairlead(installed, "daemon start").returncode == 0
    ask = tmp_path / "ask.py"
    ask.write_text(
        "import socket\n"
        "connection = socket.socket(socket.AF_UNIX)\n"
        f"connection.connect({str(tmp_path / 'fairlead/run/daemon.sock')!r})\n"
        "connection.sendall(b'POST /v1/stop HTTP/1.1\\r\\nhost: x\\r\\ncontent-length: 0\\r\\n\\r\\n')\n"
        "print(connection.recv(65536).decode())\n"
    )
    words = [sys.executable, str(ask)]

    assert output(below_client(tmp_path, words), installed).startswith("HTTP/1.1 403 ")
    assert fairlead(installed, "daemon status").returncode == 0
    assert output(words, installed).startswith("HTTP/1.1 200 ")
