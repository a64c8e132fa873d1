"""`fairlead demo`: plays a team through the real launcher and daemon, checks what it shows, and leaves nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import LAUNCHER

from fairlead import __version__
from fairlead.cli.demo import command, scratch_home
from fairlead.cli.demo.screen import DemoScreen
from fairlead.cli.demo.team import TEAM
from fairlead.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
FAIRLEAD = Path(sys.executable).with_name("fairlead")
LINE = re.compile(r"^\d\d:\d\d:\d\d  (.{7})  (.{16})  (.{24})  (.{7})  ( *\d+\.\d)$", re.MULTILINE)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for temporary files, with a path that is short enough for a socket."""
    made = Path("/tmp") / f"fd{os.getpid()}{tmp_path_factory.mktemp('x').name}"
    made.mkdir()
    yield made
    assert list(made.iterdir()) == [], "the demo left something"
    made.rmdir()


def play(folder: Path, program: Path = FAIRLEAD, **env: str) -> subprocess.CompletedProcess[str]:
    """Run it as a person would, in a home that must stay empty."""
    home = folder.with_name(f"{folder.name}-home")
    home.mkdir()
    try:
        seen = {"PATH": os.environ["PATH"], "TMPDIR": str(folder), "HOME": str(home), "LANG": "C.UTF-8", **env}
        done = subprocess.run([program, "demo"], env=seen, capture_output=True, text=True, check=False)
    finally:
        home.rmdir()  # and so it is empty
    return done


def alive_in(folder: Path) -> list[str]:
    """The processes whose environment names a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            seen = (process / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in seen:
            found.append((process / "cmdline").read_text().replace("\0", " "))
    return found


def test_it_shows_every_event_sums_up_and_says_how_to_install(folder: Path) -> None:
    done = play(folder, PATH=f"{FAIRLEAD.parent}:{os.environ['PATH']}")

    assert (done.returncode, done.stderr) == (0, "")
    shown = LINE.findall(done.stdout)
    assert [tuple(cell.strip() for cell in cells) for *cells, _ in shown] == [
        (scene.who, scene.event, scene.what, scene.verdict) for scene in TEAM
    ]
    assert all(float(took) > 0 for *_, took in shown)
    assert done.stdout.count("Secrets are for a person to change.\n") >= 2

    assert f"{len(TEAM)} events, each as expected.\n" in done.stdout
    assert re.search(r"^ +\d+\.\d ms  an event that the daemon decides \(median\)$", done.stdout, re.MULTILINE)
    assert re.search(r"^ +\d+\.\d ms  the first event, without a daemon$", done.stdout, re.MULTILINE)
    journal = done.stdout.partition("$ fairlead events --verdict blocked\n")[2].partition("\n\n")[0]
    assert re.findall(r"(\w+) +5e551011  .*?(blocked|none)", journal) == [
        ("PreToolUse", "blocked"),
        ("PreToolUse", "blocked"),
        ("Stop", "none"),
        ("done", "blocked"),
    ]
    steps = done.stdout.partition("\nFor your own agents:\n")[2].splitlines()
    assert [line.partition("  ")[0] for line in steps if line] == ["$ fairlead init", "$ fairlead install"]

    own = done.stdout.partition("$ fairlead events")[0]  # the lines of the journal are not cut without a terminal
    assert "\x1b" not in own
    assert max(map(len, own.splitlines())) <= 80

    with LAUNCHER.open("rb") as file:
        native = file.read(2) != b"#!"
    assert ("The launcher is the native one.\n" in done.stdout) == native


def test_a_shell_that_does_not_find_the_programs_is_told_how(folder: Path) -> None:
    """As after `make run`, whose environment is not active."""
    done = play(folder, PATH=os.defpath)

    step = f'$ export PATH="{FAIRLEAD.parent}:$PATH"'
    assert f"\nFor your own agents:\n{step}   # for this shell" in done.stdout
    found = subprocess.run(
        ["/bin/sh", "-c", f"{step[2:]}; command -v fairlead"], env={}, capture_output=True, text=True, check=True
    )
    assert found.stdout == f"{FAIRLEAD}\n"


def test_no_process_is_left_and_nothing_of_the_person_is_seen(folder: Path) -> None:
    """A daemon of the person's own, or none at all, is no matter."""
    done = play(folder, FAIRLEAD_HOME="/nonexistent", FAIRLEAD_NO_DAEMON="1", CLAUDE_CONFIG_DIR="/nonexistent")

    assert (done.returncode, alive_in(folder)) == (0, [])


def test_it_works_with_the_launcher_in_python_and_says_so(folder: Path, tmp_path: Path) -> None:
    source = (ROOT / "launcher/hook.py").read_text("utf-8").replace("@VERSION@", __version__)
    program = installed(tmp_path, source.replace("#!/usr/bin/env python3", f"#!{sys.executable}"))

    done = play(folder, program)

    assert (done.returncode, done.stderr) == (0, "")
    assert "The launcher is written in Python, about 10 ms slower; install a C compiler" in done.stdout


def installed(folder: Path, launcher: str) -> Path:
    """An installation with that launcher."""
    for name, text in {
        "fairlead": f"#!{sys.executable}\nimport sys\nfrom fairlead.cli.main import main\nsys.exit(main())\n",
        "fairlead-hook": launcher,
    }.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder / "fairlead"


def test_it_fails_if_an_event_comes_out_differently(folder: Path, tmp_path: Path) -> None:
    """With a launcher that lets an edit of .env pass."""
    words = f'case "$(cat /dev/stdin | tee payload)" in *.env\\"*) exit 0;; esac; exec {LAUNCHER} "$@" < payload'
    program = installed(tmp_path, f"#!/bin/sh\n{words}\n")

    done = play(folder, program)

    assert done.returncode == 1
    wrong = re.findall(r"^ +UNEXPECTED: (.*)$", done.stdout, re.MULTILINE)
    assert wrong == [
        "expected the verdict blocked",
        "expected the reason: Secrets are for a person to",
        "expected these events in the journal",
    ]
    assert f"{len(TEAM)} events: 3 outcomes were UNEXPECTED; see above.\n" in done.stdout


def test_it_says_so_if_no_daemon_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    installed(tmp_path, "#!/bin/sh\nexit 0\n")
    monkeypatch.setattr(command, "launcher_folders", lambda: [tmp_path])
    monkeypatch.setattr(scratch_home, "TIMEOUT", 0.1)

    assert main(["demo"]) == 1
    assert "UNEXPECTED: no daemon started: its log is empty" in capfd.readouterr().out


def test_a_missing_launcher_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "launcher_folders", lambda: [tmp_path])

    assert main(["demo"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"fairlead: there is no fairlead-hook in {tmp_path}; install fairlead again: ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_told_to_end_it_leaves_nothing_either(folder: Path, number: int) -> None:
    """Also not the daemon that was begun a moment ago."""
    env = {"PATH": os.environ["PATH"], "TMPDIR": str(folder), "HOME": str(folder), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [FAIRLEAD, "demo"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        next(line for line in program.stdout if "SessionStart" in line)
        program.send_signal(number)
        _, err = program.communicate()

    assert (program.returncode, err) == (130, "fairlead: interrupted\n")
    deadline = monotonic() + 30
    while alive_in(folder) and monotonic() < deadline:
        sleep(0.01)
    assert alive_in(folder) == []


def test_an_option_that_it_does_not_have_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--fast"]) == 1
    assert capsys.readouterr().err == "fairlead: unknown option '--fast'; see fairlead demo --help\n"


def test_what_a_payload_brings_cannot_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    screen = DemoScreen()
    screen.event(0.0, ("main", "Stop", "a\x1b[2Jb\rc"), "blocked", 0.001)
    screen.reason("no\x07 \x1b]0;title\x07")

    assert "a␛[2Jb␍c" in (shown := capsys.readouterr().out)
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", shown)
