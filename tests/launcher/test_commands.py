"""`fairlead` as a native program: the daemon runs commands for it, and Python prints the same byte for byte."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from cli.command_line import at_terminal
from daemon.daemon_home import PATIENCE, scratch_home, until
from launcher.build import compile_for_wheel, compile_sanitized, unavailable

from fairlead import __version__
from fairlead.cli.commands import SECTIONS
from fairlead.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from daemon.daemon_home import DaemonHome

SCRIPT = f"""\
#!{sys.executable}
import os, sys
open(os.environ["MARK"], "w").write(" ".join(sys.argv[1:]))
from fairlead.cli.main import main
sys.exit(main())
"""
"""`fairlead-python`, which leaves a mark when it is started."""

TEXT = "Ünïcode, and a rather long first line that a narrow terminal has to cut somewhere.\nSecond line."


class Output(NamedTuple):
    """What a command has printed, and its exit code."""

    exit_code: int
    stdout: str
    stderr: str


class Native:
    """The program in a folder of its own, and a home with a daemon."""

    def __init__(self, folder: Path, home: DaemonHome) -> None:
        self.home = home
        self.program = folder / "fairlead"
        self.mark = home.folder / "python-was-started"

    def env(self, **more: str) -> dict[str, str]:
        """Return the variables of a command."""
        return self.home.environment(
            MARK=str(self.mark), ASAN_OPTIONS="exitcode=99:detect_leaks=0", UBSAN_OPTIONS="exitcode=99", **more
        )

    def run(self, *words: str, stdin: Any = b"", **more: Any) -> Output:
        """Run the program, in the project."""
        self.mark.unlink(missing_ok=True)
        command = [str(self.program), *words]
        done = subprocess.run(
            command, input=stdin, capture_output=True, cwd=self.home.project, env=self.env(**more), check=False
        )
        return Output(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *words: str, **more: str) -> subprocess.Popen[bytes]:
        """Start the program."""
        self.mark.unlink(missing_ok=True)
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([self.program, *words], cwd=self.home.project, env=self.env(**more), **streams)  # type: ignore[call-overload, no-any-return]

    @property
    def started_python(self) -> bool:
        """Whether the last command needed Python."""
        return self.mark.exists()


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path | str]:
    """For each build its folder, or what is wrong with it."""
    made: dict[str, Path | str] = {}
    for name in ("compiled", "sanitized"):
        folder = tmp_path_factory.mktemp(name)
        program = folder / "fairlead-hook"
        problem = (
            compile_for_wheel(program, __version__)
            if name == "compiled"
            else compile_sanitized(program, "-UFAIRLEAD_VERSION", f'-DFAIRLEAD_VERSION="{__version__}"')
        )
        made[name] = problem or folder
        if not problem:
            program.rename(folder / "fairlead")
        (folder / "fairlead-python").write_text(SCRIPT, encoding="utf-8")
        (folder / "fairlead-python").chmod(0o755)
    return made


def folder_of(folders: dict[str, Path | str], name: str) -> Path:
    folder = folders[name]
    if isinstance(folder, str):
        unavailable(folder)
    return folder


@pytest.fixture(scope="module")
def native(folders: dict[str, Path | str]) -> Iterator[Native]:
    """A home with a daemon, a session, some events and some mail."""
    with scratch_home() as home, home.daemon():
        native = Native(folder_of(folders, "compiled"), home)
        home.policy("version: 1\npreToolUse:\n  uneditableFiles:\n    - pattern: secret.txt\n")
        for name, fields in {"SessionStart": {"source": "startup"}, "UserPromptSubmit": {"prompt": "Go on."}}.items():
            assert home.hook(name, home.payload(hook_event_name=name, **fields)).exit_code == 0
        home.hook("PreToolUse", home.edit("secret.txt"))
        (home.project / "notes.md").write_text("From a file.\n")
        (home.project / "hooked").mkdir()
        (home.project / "hooked/.fairlead.yaml").write_text("hooks: [guards.py, gone.py]\n")
        (home.project / "hooked/guards.py").write_text("from fairlead import HookManager\n\nhooks = HookManager()\n")
        assert native.home.fairlead("trust", "hooked/guards.py", "--yes").exit_code == 0
        until(home.has_mail, "the mail is open")
        assert native.run("send", "User", TEXT, "--request").exit_code == 0
        yield native


@pytest.fixture
def in_process(native: Native, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process be one in the project of the home."""
    env = native.env()
    for name in [name for name in os.environ if not name.startswith("PYTEST")]:
        monkeypatch.delenv(name)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(native.home.project)


def in_python(words: list[str], stdin: bytes, monkeypatch: pytest.MonkeyPatch) -> Output:
    """Run a command as `python -m fairlead` does."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    return Output(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def comparable(output: Output) -> Output:
    """Leave out what differs from one call to the next: clocks, and the numbers of messages."""
    changing = r'"(now|at|seen|seconds|duration|in_state|uptime|memory|loop_lag|idle|id|waited|thread)": [-0-9.e]+'
    texts = (re.sub(changing, r'"\1": 0', text) for text in (output.stdout, output.stderr))
    texts = (re.sub(r"#\d+|\bpoll-[\w-]+", "#0", text) for text in texts)
    return Output(
        output.exit_code, *(re.sub(r"\b\d+(\.\d+)? ?(s|ms|min|MB)\b( ago)?|\bnow\b", "0", text) for text in texts)
    )


LINES: dict[str, list[list[str]]] = {
    "agents": [[], ["--all"], ["--project", "."], ["--project", "notes.md"], ["--json"]],
    "send": [
        *(["User", "Hello."], ["User", "Hello.", "--json"], ["User", "-"], ["User", "--file", "notes.md"], ["User"]),
        *(
            ["User", "--file", "missing.md"],
            ["nobody-here", "Hello."],
            [],
            ["User", "--subject", "A", "--priority", "x"],
        ),
        *(["User", "Hello.", "--deadline", "soon"], ["User", "- a list"]),
    ],
    "inbox": [[], ["--all"], ["--search", "Second"], ["--limit", "0"], ["--limit", "1"], ["--json", "--limit", "1"]],
    "read": [["1"], ["1", "--body"], ["1", "--json"], ["999"], [], ["x"]],
    "reply": [["1", "Done."], ["999", "Done."], ["1"], []],
    "status": [[], ["1"], ["1", "--json"], ["999"], ["--as", "nobody-here"]],
    "poll": [[], ["--json"], ["--wait", "0.05"], ["--verbose"], ["--wait", "9d"], ["--format", "x"]],
    "topics list": [[], ["--json"]],
    "topics join": [["build"], [], ["a b"]],
    "topics leave": [["build"]],
    "team status": [[], ["--json"], ["extra"]],
    "identity current": [[], ["--json"], ["--session", "s1"], ["--session", "nobody"]],
    "identity save": [["half way"]],
    "identity restore": [[]],
    "identity rename": [[], ["someone"]],
    "lease": [
        *([], ["--json"], ["a.py"], ["--release"], ["--release", "a.py"], ["--why", "x"], ["a.py", "--for", "25h"]),
        *(["--release", "--shared"], ["a.py", "--for", "soon"]),
    ],
    "heartbeat": [[], ["--session-start"], ["--session", "nobody"]],
    "tasks": [[], ["--all", "--json"]],
    "answer": [
        *([], ["--json"], ["zzzzz", "allow"], ["zzzzz", "deny", "--reason", "No."], ["zzzzz"], ["zzzzz", "perhaps"]),
        *(["../x", "allow"], ["--choose", "x"], ["zzzzz", "allow", "--reason", "x"]),
    ],
    "sessions list": [[], ["--all"], ["--tree"], ["--line"], ["--json"]],
    "events": [
        *(["--last", "5"], ["--json"], ["--since", "1h"], ["--verdict", "blocked"], ["--verdict", "x"]),
        *(["--event", "PreToolUse"], ["--event", "PreTolUse"], ["--session", "nobody"], ["--last", "-1"]),
    ],
    "history": [
        *(
            [],
            ["--json"],
            ["--project", "."],
            ["--search", "secret"],
            ["--search", "nothing like it"],
            ["--limit", "0"],
        ),
        *(["--session", "s1"], ["--session", "nobody"], ["--since", "soon"], ["--since", "2099-01-01"]),
    ],
    "daemon status": [[], ["--json"]],
    "version": [[], ["--json"], ["surplus"]],
    "schema": [[]],
    "explain": [
        *(["--tool", "Edit", "--file", "secret.txt"], ["--tool", "Bash", "--command", "rm -r build", "--all"]),
        *(["--tool", "Bash"], ["--cwd", "nowhere"], ["--command", "ls", "--cwd", "..", "--json"], []),
        *(["--command", "ls", "--cwd", "hooked"], ["--command", "ls", "--cwd", "hooked", "--json"]),
    ],
}
"""For each command that the daemon runs: command lines that succeed and that fail."""


def every_command() -> Iterator[tuple[str, bool]]:
    """Yield each command, and whether the daemon runs it."""
    for section in SECTIONS:
        for entry in section.entries:
            if not entry.subcommands:
                yield entry.name, entry.is_served
            yield from ((f"{entry.name} {one.name}", one.is_served) for one in entry.subcommands)


SERVED = [name for name, is_served in every_command() if is_served]
NOT_SERVED = [name for name, is_served in every_command() if not is_served]


def test_every_command_that_the_daemon_runs_has_lines_here() -> None:
    assert sorted(LINES) == sorted(SERVED)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace shows the programs that are started")
def test_a_trace_of_every_command_shows_no_other_program(native: Native) -> None:
    trace = native.home.folder / "trace"
    tracer = ["strace", "-f", "-qq", "-o", str(trace), "-e", "trace=execve"]
    for command, lines in LINES.items():
        for line in lines:
            words = [*tracer, str(native.program), *command.split(), *line]
            subprocess.run(
                words, input=b"Hi.\n", capture_output=True, cwd=native.home.project, env=native.env(), check=False
            )
            started = re.findall(r'execve\("([^"]+)"', trace.read_text())
            assert started == [str(native.program)], (command, line)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("command", SERVED)
def test_a_command_prints_the_same_by_the_daemon_and_by_python(
    native: Native, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for line in [*LINES[command], ["--help"], ["--jsno"], ["--help", "--jsno"]]:
        words = [*command.split(), *line]
        stdin = b'{"hook_event_name": "Stop"}' if command == "explain" else b"From a pipe."
        by_daemon = native.run(*words, stdin=stdin)
        assert not native.started_python, words
        assert comparable(by_daemon) == comparable(in_python(words, stdin, monkeypatch)), words


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--help"],
        ["-h"],
        ["help"],
        ["help", "inbox"],
        ["--version"],
        ["-V"],
        ["inbx"],
        ["--nope"],
        ["topics", "jion"],
        ["topics", "--as", "x", "join", "y"],
        ["daemon"],
        ["--timeout", "5"],
        ["sessions", "--help"],
        ["pretooluse"],
    ],
)
def test_so_do_command_lines_without_a_command(
    native: Native, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_daemon = native.run(*words)
    assert not native.started_python
    assert by_daemon == in_python(words, b"", monkeypatch)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("words", [*([*name.split(), "--help"] for name in NOT_SERVED[::4]), ["events", "-f", "--hlp"]])
def test_what_needs_a_process_is_run_by_python(
    native: Native, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert native.run(*words) == in_python(words, b"", monkeypatch)


def test_an_event_is_decided_by_python(native: Native) -> None:
    """Somebody tries it out: it is neither recorded nor answered by the daemon."""
    done = native.run("PreToolUse", "--timeout", "50", stdin=native.home.edit("secret.txt"))
    assert done.exit_code == 2
    assert native.mark.read_text() == "PreToolUse --timeout 50"


def test_the_width_and_colours_are_those_of_the_callers_terminal(native: Native) -> None:
    for more in ({}, {"NO_COLOR": "1"}, {"COLUMNS": "50"}, {"TERM": "dumb"}):
        env = {**native.env(), "TERM": "xterm", "COLUMNS": "70", **more}
        for words in (["inbox", "--all"], ["agents", "--help"], ["events"], ["read", "1", "--body"]):
            native.mark.unlink(missing_ok=True)
            shown = at_terminal([native.program, *words], env, b"", cwd=native.home.project)
            assert not native.started_python
            python = [sys.executable, "-m", "fairlead", *words]
            assert shown == at_terminal(python, env, b"", cwd=native.home.project), (more, words)


def test_output_that_is_not_utf8_and_completion_are_left_to_python(native: Native) -> None:
    for more in ({"LC_ALL": "en_US.ISO-8859-1"}, {"PYTHONIOENCODING": "ascii"}):
        assert native.run("inbox", "--limit", "1", **more).exit_code == 0
        assert native.started_python
    completed = native.run(_FAIRLEAD_COMPLETE="bash_complete", COMP_WORDS="fairlead inb", COMP_CWORD="1")
    assert native.started_python
    assert completed.stdout == "plain,inbox\n"


# -- waiting, receipts, and daemons that go ----------------------------------------------------------------


SESSION = ("--session", "s1")


def delivery(native: Native, number: int) -> str:
    letters = json.loads(native.run("status", str(number), "--json").stdout)["letters"]
    return str(letters[0]["stage"])


def sent(native: Native, text: str) -> int:
    """Send a message to the agent of the session."""
    name = json.loads(native.run("identity", *SESSION, "--json").stdout)["agent"]["name"]
    return int(json.loads(native.run("send", name, text, "--json").stdout)["id"])


@pytest.fixture
def quiet(native: Native) -> Native:
    """The same home, without mail that was not shown yet."""
    while native.run("poll", *SESSION).exit_code == 0:
        pass
    return native


def is_waiting(native: Native) -> bool:
    status = native.home.status()
    return status is not None and status["waiting"] == 1


@pytest.mark.parametrize("build", ["compiled", "sanitized"])
def test_a_poll_waits_in_the_launcher_and_shows_the_message_once(
    quiet: Native, folders: dict[str, Path | str], build: str
) -> None:
    waiting = Native(folder_of(folders, build), quiet.home)
    process = waiting.start("poll", *SESSION, "--wait", "5m", "--verbose")
    until(lambda: is_waiting(quiet), "the poll waits")
    number = sent(quiet, "News.")
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert b"News." in out
    assert re.fullmatch(rb"fairlead: for [a-z-]+, known by .*; waited \d+\.\d s; 1 new, 0 more waiting\n", err)
    assert not waiting.started_python
    until(lambda: delivery(quiet, number) == "shown", "the message counts as shown")
    assert quiet.run("poll", *SESSION) == Output(3, "no new messages\n", "")


def test_a_poll_that_ends_before_it_has_printed_has_shown_nothing(quiet: Native) -> None:
    process = quiet.start("poll", *SESSION, "--wait", "5m")
    until(lambda: is_waiting(quiet), "the poll waits")
    process.kill()
    process.communicate()
    until(lambda: not is_waiting(quiet), "the daemon has noticed")
    number = sent(quiet, "For the next one.")
    read, write = os.pipe()
    os.close(read)
    broken = subprocess.run(
        [quiet.program, "poll", *SESSION], cwd=quiet.home.project, env=quiet.env(), stdout=write, stderr=-1, check=False
    )
    os.close(write)
    assert broken.returncode == 1
    assert broken.stderr == b"fairlead: the mail cannot be printed, so it counts as not shown: broken pipe\n"
    until(lambda: delivery(quiet, number) == "queued", "the message is queued again")
    assert "For the next one." in quiet.run("poll", *SESSION).stdout


def test_ctrl_c_ends_a_wait_as_it_ends_python(quiet: Native) -> None:
    process = quiet.start("poll", *SESSION, "--wait", "5m")
    until(lambda: is_waiting(quiet), "the poll waits")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (130, b"", b"fairlead: interrupted\n")


def test_a_poll_goes_on_in_python_if_the_daemon_is_killed(folders: dict[str, Path | str]) -> None:
    with scratch_home() as home:
        native = Native(folder_of(folders, "sanitized"), home)
        with home.daemon() as daemon:
            start = home.payload(hook_event_name="SessionStart", source="startup")
            assert home.hook("SessionStart", start).exit_code == 0
            until(home.has_mail, "the mail is open")
            process = native.start("poll", *SESSION, "--wait", "5m", LANG="C.UTF-8")
            until(lambda: is_waiting(native), "the poll waits")
            daemon.kill()
            daemon.wait()
        until(lambda: native.started_python and is_waiting(native), "Python waits, with a daemon of its own")
        sent(native, "After the fall.")
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, err) == (0, b"")
        assert b"After the fall." in out


def test_a_daemon_that_hangs_is_waited_for_a_while_and_a_person_gets_a_word(folders: dict[str, Path | str]) -> None:
    with scratch_home() as home, home.daemon() as daemon:
        native = Native(folder_of(folders, "sanitized"), home)
        daemon.send_signal(signal.SIGSTOP)
        env = native.env(FAIRLEAD_DEADLINE_MS="1200")
        shown = at_terminal([native.program, "version"], env, b"", cwd=home.project)
        done = native.run("version", FAIRLEAD_DEADLINE_MS="100")
        daemon.send_signal(signal.SIGCONT)
        started = native.mark.read_text()
    word = "fairlead: the daemon has not answered for a second; if it hangs, see fairlead doctor\n"
    assert shown == f"{word}fairlead {__version__}\n"
    assert done == Output(0, f"fairlead {__version__}\n", "")
    assert re.fullmatch(r"--launched [0-9a-f]{16}-[0-9a-f]+ version", started)


def test_without_a_daemon_and_for_another_home_python_runs_the_command(folders: dict[str, Path | str]) -> None:
    for build in ("compiled", "sanitized"):
        with scratch_home() as home:
            native = Native(folder_of(folders, build), home)
            assert native.run("version") == Output(0, f"fairlead {__version__}\n", "")
            assert native.started_python
            done = native.run("send", "User", "-", stdin=b"Piped.", FAIRLEAD_NO_DAEMON="1")
            assert (done.exit_code, done.stdout) == (1, "")


def test_no_python_at_all_is_said(folders: dict[str, Path | str], tmp_path: Path) -> None:
    program = tmp_path / "fairlead"
    program.write_bytes((folder_of(folders, "compiled") / "fairlead").read_bytes())
    program.chmod(0o755)
    env = {"FAIRLEAD_HOME": str(tmp_path)}
    done = subprocess.run([program, "inbox"], env=env, capture_output=True, check=False, text=True)
    said = "fairlead cannot run this command: cannot run the Python beside fairlead-hook: no such file. "
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{said}Reinstall Fairlead if this continues\n")
