"""The command line as a whole: help, suggestions, durations, completion, and how a command ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from cli.command_line import error_of, run
from daemon.callers import client
from daemon.daemon_home import scratch_home

from fairlead.cli import daemon
from fairlead.cli.commands import SECTIONS, CommandEntry
from fairlead.cli.support.command import Command, Group, load, mark_texts, unmark
from fairlead.cli.support.durations import parse_duration, read_duration
from fairlead.errors import UsageError, failure_exit_code

if TYPE_CHECKING:
    from collections.abc import Iterator

BIN = Path(sys.executable).parent
ENTRIES = [entry for section in SECTIONS for entry in section.entries]


def leaves() -> Iterator[tuple[str, CommandEntry]]:
    """Every command that does something, with its words."""
    for entry in ENTRIES:
        for below in entry.subcommands:
            yield f"{entry.name} {below.name}", below
        if not entry.subcommands:
            yield entry.name, entry


# -- help ----------------------------------------------------------------------------------------------


def test_help_lists_every_command_by_sections(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    text = capsys.readouterr().out
    assert re.findall(r"^(\w+):$", text, re.MULTILINE) == [*(section.title for section in SECTIONS), "Options"]
    for entry in ENTRIES:
        assert re.search(rf"^  {entry.name}  ", text, re.MULTILINE), entry.name


@pytest.mark.parametrize(("words", "entry"), list(leaves()), ids=[words for words, _ in leaves()])
def test_the_help_of_a_command_has_its_summary_an_example_and_the_exit_codes(
    words: str, entry: CommandEntry, capsys: pytest.CaptureFixture[str]
) -> None:
    command = load(entry)
    assert isinstance(command, Command)
    assert (command.help or "").partition("\n\n")[0].replace("\n", " ") == entry.summary
    assert run(words, ["--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: fairlead {words}")
    assert re.search(r"\nExamples?:\n  \S", text)
    assert "  fairlead " in text.partition("\nExample")[2] or entry.name == "completion"
    has_exit_codes = "\nExit codes:\n  0 " in text
    assert entry.name in {"schema", "version"} or has_exit_codes, "pass exit_codes= to @click.command"
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("group", [entry for entry in ENTRIES if entry.subcommands], ids=lambda entry: str(entry.name))
def test_the_help_of_a_group_lists_its_commands_and_the_options_of_the_default(
    group: CommandEntry, capsys: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(load(group), Group)
    assert run(group.name, ["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {below.name}  " in text for below in group.subcommands)
    assert "\nExample" in text
    assert ("  --json" in text) == bool(group.default)


def test_help_is_also_a_command_and_a_short_option(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["help", "daemon", "stop"], ["daemon", "stop", "-h"]):
        assert run(words[0], words[1:]) == 0
        assert capsys.readouterr().out.startswith("Usage: fairlead daemon stop [OPTIONS]\n")


@pytest.mark.parametrize("words", ["", "hooks", "daemon"])
def test_without_a_command_the_help_is_on_stderr(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert f"Usage: fairlead {words}" in err


# -- what is wrong -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("inbxo", "unknown command 'inbxo'; did you mean inbox?"),
        ("start", "unknown command 'start'; did you mean daemon start?"),
        ("rename", "unknown command 'rename'; did you mean identity rename?"),
        ("wait", "unknown command 'wait'; did you mean sessions wait?"),
        ("hooks unistall", "unknown command 'unistall' of hooks; did you mean uninstall?"),
        ("daemon frobnicate", "unknown command 'frobnicate' of daemon; see fairlead daemon --help"),
        ("--verison", "unknown option '--verison'; did you mean --version?"),
        ("explain --comand x", "unknown option '--comand'; did you mean --command?"),
        ("doctor --jsn", "unknown option '--jsn'; did you mean --json?"),
        ("completion tcsh", "completion: expected one of bash, zsh, fish, got 'tcsh'"),
        ("completion", "completion: which shell? Name one of bash, zsh, fish"),
        ("hooks add", "hooks add: FILE is missing; see fairlead hooks add --help"),
        ("sessions mail", "sessions mail: ID is missing; see fairlead sessions mail --help"),
        ("sessions mail x", "sessions mail: TEXT is missing; see fairlead sessions mail --help"),
        ("team confirm", "team confirm: NAME is missing; see fairlead team confirm --help"),
    ],
)
def test_a_misspelt_word_gets_a_suggestion(line: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, *words = line.split()
    assert error_of(capsys, command, words) == expected


@pytest.mark.parametrize(
    ("words", "payload", "code"),
    [
        (("PreToolUse", "--hooks"), b"", 2),
        (("pre-tool-use",), b"", 2),
        (("PRE_TOOL_USE",), b"", 2),
        (("Stop",), b'{"hook_event_name": "PreToolUse"}', 2),
        (("Stop",), b"{", 1),
        ((), b"", 1),
    ],
)
def test_a_failure_blocks_a_tool_call_and_nothing_else(words: tuple[str, ...], payload: bytes, code: int) -> None:
    assert failure_exit_code(*words, payload=payload) == code


# -- durations and texts -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5),
        ("0.2", 0.2),
        (".5", 0.5),
        ("30s", 30),
        ("2m", 120),
        ("1h", 3600),
        ("1d", 86400),
        ("1.5h", 5400),
        ("1h30m", 5400),
        ("1m06s", 66),
        ("1d2h3m4.5s", 93784.5),
        ("0", 0),
    ],
)
def test_durations_are_alike_everywhere(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", ".", "s", "m", "5x", "-5s", "5m1h", "1h1h", "1hm", "1h30", "٣m", "1e3", "inf", "nan", "5 s", "9999999999d"],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--wait: expected a duration such as 30s, 10m, 2h or 1d, or a number of"):
        read_duration("--wait", text)


def test_where_there_must_be_some_time_0_is_none() -> None:
    with pytest.raises(UsageError, match="or a number of seconds above 0, got '0s'"):
        read_duration("--timeout", "0s", positive=True)


def test_every_option_with_a_duration_says_so_in_its_help() -> None:
    for _, entry in leaves():
        for param in load(entry).params:
            if param.type.name == "duration":
                assert isinstance(param, click.Option)
                assert param.metavar == "DURATION"


def test_a_text_that_begins_with_a_dash_is_no_option() -> None:
    words = ["-", "- one", "-5", "--flag", "--name=a b", "--two words", "--", "-x"]
    marked = mark_texts(words)
    assert [word for word in words if f"\0{word}" in marked] == ["- one", "-5", "--two words"]
    assert [unmark(word) for word in marked] == words


# -- completion ----------------------------------------------------------------------------------------


def complete(words: list[str], env: dict[str, str] | None = None, cwd: Path = BIN) -> list[str]:
    """What bash offers for the last word, with the real script."""
    script = (
        'eval "$(fairlead completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '_fairlead_completion fairlead; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    seen = {"PATH": f"{BIN}:/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", **(env or {})}
    command = ["bash", "-c", script, "bash", "fairlead", *words]
    done = subprocess.run(command, env=seen, cwd=cwd, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["inb"], ["inbox"]),
        (["un"], ["untrust", "uninstall"]),
        (["hooks", ""], ["install", "status", "uninstall", "add", "remove", "list"]),
        (["sessions", ""], ["list", "wait", "go", "mail", "interrupt", "end", "transcript", "copy"]),
        (["sessions", "--"], ["--all", "--tree", "--line", "--here", "--json", "--help"]),
        (["sessions", "wait", "--until", ""], ["attention", "idle", "ended"]),
        (["send", "--re"], ["--request"]),
        (["send", "--session"], ["--session"]),
        (["events", "--event", "PreT"], ["PreToolUse"]),
        (["PreTo"], ["PreToolUse"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
    ],
)
def test_bash_completes_commands_options_and_values(words: list[str], expected: list[str]) -> None:
    assert complete(words) == expected


def test_bash_completes_what_the_daemon_knows_and_starts_none() -> None:
    with scratch_home() as home:
        env = home.environment()
        del env["PATH"]
        assert complete(["send", "User", "--as", ""], env) == ["User", "everyone"]
        assert home.daemons() == []
        with home.daemon(), client(home, "s1") as fox:
            name = fox.mail("identity")["agent"]["name"]
            fox.mail("topics", "join", "build")
            assert name in complete(["send", name[:3]], env, home.project)
            assert complete(["sessions", "wait", "--session", "s"], env) == ["s1"]
            assert complete(["topics", "join", "b"], env) == ["build"]


def test_the_other_shells_have_a_script_too(capsys: pytest.CaptureFixture[str]) -> None:
    for shell, part in (("zsh", "#compdef fairlead"), ("fish", "complete --no-files --command fairlead")):
        assert run("completion", [shell]) == 0
        script = capsys.readouterr().out
        assert part in script
        assert f"_FAIRLEAD_COMPLETE={shell}_complete" in script


# -- the daemon's status -------------------------------------------------------------------------------


def test_the_status_of_the_daemon_says_that_the_launcher_is_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = tmp_path / "fairlead-hook"
    launcher.write_text(f"#!{sys.executable}\n")
    launcher.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "fairlead")])
    told = daemon._python_launcher()
    assert told.startswith("written in Python, about 10 ms slower per event")
    assert "install a C compiler, then run: pip install" in told

    document: dict[str, Any] = {
        **dict.fromkeys(("pid", "uptime", "events", "spool", "stored", "memory", "loop_lag", "troubles"), 0),
        "version": "0.0.1",
        "listens": ["/run/daemon.sock"],
    }
    assert list(daemon.status_lines(document, told))[-1] == f"launcher   {told}"
    launcher.write_bytes(b"\x7fELF")
    assert daemon._python_launcher() == ""


# -- pipes and colours ---------------------------------------------------------------------------------


def test_a_reader_who_leaves_is_no_traceback() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"{BIN}/fairlead schema | head -1"], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("{\n", "")


def test_results_are_on_stdout_and_nothing_else(tmp_path: Path) -> None:
    env = {**os.environ, "FAIRLEAD_HOME": str(tmp_path)}
    done = subprocess.run([BIN / "fairlead", "events"], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "fairlead: no events yet; `fairlead hooks status` shows whether the hooks are installed\n"


def test_a_folder_that_was_removed_is_told(tmp_path: Path) -> None:
    env = {**os.environ, "FAIRLEAD_HOME": str(tmp_path), "FAIRLEAD_NO_DAEMON": "1"}
    for words in ("validate", "visualize", "explain --command ls", "hooks list", "hooks status", "trust"):
        (tmp_path / "gone").mkdir()
        script = f"cd {tmp_path}/gone && rmdir {tmp_path}/gone && exec {BIN}/fairlead {words}"
        done = subprocess.run(["/bin/sh", "-c", script], env=env, capture_output=True, text=True, check=False)
        told = "fairlead: this folder no longer exists; run the command in another one\n"
        assert (done.returncode, done.stdout, done.stderr) == (1, "", told), words
