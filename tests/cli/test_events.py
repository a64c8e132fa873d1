"""`fairlead events`, as a person reads it, as a program does, and while things happen."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from cli.command_line import error_of, run

from fairlead.cli.support.event_text import record_to_text
from fairlead.cli.support.invocation import Screen
from fairlead.journal import (
    DOCTOR_SESSION,
    CommandResult,
    CommandsRecord,
    DaemonRecord,
    EventRecord,
    Journal,
    Record,
    spool_record,
)

if TYPE_CHECKING:
    from pathlib import Path

NOON = 1_763_208_000.0  # 2025-11-15 12:00:00 UTC
COMMAND = [sys.executable, "-m", "fairlead", "events"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    return tmp_path


@pytest.fixture
def journal(home: Path) -> Journal:
    return Journal(str(home / "journal"))


def event(number: int, name: str = "PreToolUse", **fields: Any) -> EventRecord:
    usual = {"id": f"{number:016x}", "at": NOON + number, "session": "3f2a91c0-aaaa", "seconds": 0.0012}
    return EventRecord(event=name, **{**usual, **fields})


def write(journal: Journal, *records: Record) -> None:
    for record in records:
        journal.append(record)


def a_day(journal: Journal) -> None:
    write(
        journal,
        DaemonRecord(at=NOON, what="started", pid=77, version="0.4.0"),
        event(1, tool="Bash", verdict="blocked", reason="Do not force a push.\nAsk the person."),
        event(2, "Stop", session="77aa00bb-cccc", steps=2, seconds=1.5),
        event(3, "SubagentStart", agent="coder", verdict="said"),
        CommandsRecord(
            id=f"{2:016x}", at=NOON + 9, verdict="blocked", reason="make test failed", seconds=5.0, steps=STEPS
        ),
    )


STEPS = (CommandResult("make lint", "passed", 0), CommandResult("make test", "failed", 1))
A_DAY = """\
11-15 12:00:00  daemon                         pid 77                                 started 0.4.0
11-15 12:00:01  PreToolUse           3f2a91c0  Bash                blocked    1.2 ms  Do not force a push.
11-15 12:00:02  Stop                 77aa00bb                      none        1.5 s  2 commands to run
11-15 12:00:09  └ done               77aa00bb  2 commands          blocked     5.0 s  make test failed
11-15 12:00:03  SubagentStart        3f2a91c0  coder               said       1.2 ms
"""


def shown(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert run("events", args) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_each_event_is_a_line_and_the_end_of_its_commands_stands_below_it(
    journal: Journal, capsys: pytest.CaptureFixture[str]
) -> None:
    a_day(journal)

    assert shown(capsys) == A_DAY


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        (["--session", "77aa"], [2, 3]),
        (["--session=3f2a91c0-aaaa"], [1, 4]),
        (["--event", "pre_tool_use"], [1]),
        (["--verdict", "blocked"], [1, 2, 3]),
        (["--verdict", "said", "--event", "SubagentStart"], [4]),
        (["--last", "1"], [4]),
        (["--last", "2"], [2, 3, 4]),
        (["--last", "1", "--session", "77"], [2, 3]),
    ],
)
def test_what_is_asked_for_is_shown(
    journal: Journal, capsys: pytest.CaptureFixture[str], args: list[str], lines: list[int]
) -> None:
    a_day(journal)

    assert shown(capsys, *args) == "".join(A_DAY.splitlines(keepends=True)[number] for number in lines)


def test_the_events_of_doctor_are_shown_if_they_are_asked_for(
    journal: Journal, capsys: pytest.CaptureFixture[str]
) -> None:
    write(journal, event(1), event(2, "Stop", session=DOCTOR_SESSION))

    assert [line.split()[2] for line in shown(capsys).splitlines()] == ["PreToolUse"]
    assert [line.split()[2] for line in shown(capsys, "--session", DOCTOR_SESSION).splitlines()] == ["Stop"]


def test_the_last_twenty_are_shown_unless_a_time_is_given(
    journal: Journal, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(journal, *(event(number) for number in range(100)))
    monkeypatch.setattr("fairlead.cli.events.time", lambda: NOON + 100)

    assert len(shown(capsys).splitlines()) == 20
    assert len(shown(capsys, "--last", "50").splitlines()) == 50
    assert len(shown(capsys, "--since", "30s").splitlines()) == 30
    assert len(shown(capsys, "--since", "30").splitlines()) == 30
    assert len(shown(capsys, "--since", "1h").splitlines()) == 100
    assert len(shown(capsys, "--since", "1d", "--last", "7").splitlines()) == 7


def test_what_came_late_out_of_the_spool_stands_where_it_happened(
    journal: Journal, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = event(-9000, route="cold")
    write(
        journal, event(1, "Setup"), event(3, "Stop"), event(2, "SessionEnd", route="cold"), old, event(4, "PreCompact")
    )
    monkeypatch.setattr("fairlead.cli.events.time", lambda: NOON + 100)

    lines = shown(capsys, "--since", "2m").splitlines()

    assert [line.split()[2] for line in lines] == ["Setup", "SessionEnd", "Stop", "PreCompact"]


def test_programs_read_one_object_a_line_with_every_field(journal: Journal, capsys: pytest.CaptureFixture[str]) -> None:
    a_day(journal)

    turn, first, second, end, _ = map(json.loads, shown(capsys, "--json").splitlines())

    assert turn == {"kind": "daemon", "at": NOON, "what": "started", "pid": 77, "version": "0.4.0"}
    assert (first["kind"], first["event"], first["verdict"], first["road"]) == (
        "event",
        "PreToolUse",
        "blocked",
        "daemon",
    )
    assert (second["verdict"], second["reason"], second["payload"]) == ("none", "", {})
    assert (end["kind"], end["id"], end["steps"][1]) == (
        "done",
        second["id"],
        {"run": "make test", "status": "failed", "exit": 1},
    )


def test_nothing_to_show_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("events") == 0
    told = "fairlead: no events yet; `fairlead hooks status` shows whether the hooks are installed\n"
    assert capsys.readouterr() == ("", told)
    for words in (["--verdict", "blocked"], ["--since", "1h"], ["--last", "0"]):
        assert run("events", words) == 0
        assert capsys.readouterr() == ("", "fairlead: no such events in the journal\n")


def test_what_cannot_be_shown_is_counted_on_stderr(
    journal: Journal, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(journal, event(1))
    with (home / "journal/00000001.jsonl").open("ab") as file:
        file.write(b"nonsense\n")
    spool_record(str(home / "spool"), event(2))

    assert run("events", ["--event=PreToolUse"]) == 0

    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert err == (
        "fairlead: lines of the journal that cannot be read: 1\n"
        "fairlead: events in the spool, which are not shown: 1; `fairlead daemon start` records them\n"
    )


def test_a_journal_that_cannot_be_read_is_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "journal").write_text("a file")

    assert error_of(capsys, "events") == f"the events cannot be shown: Not a directory: {home}/journal"


# -- the line ------------------------------------------------------------------------------------------


def test_a_text_cannot_move_the_cursor_or_turn_other_text() -> None:
    evil = event(1, "Pre\x1b[2J\rTool", tool="a\tb\u202ec", reason="\x1b]0;x\x07 \u2066y\x9b\u2028z\nnext")

    line = record_to_text(evil, None, Screen())

    assert line.isprintable()
    assert line.endswith("␛]0;x␇ \ufffdy\ufffd\ufffdz")


@pytest.mark.parametrize("width", [20, 60, 80, 109, 110, 200])
def test_a_line_fits_the_terminal(width: int) -> None:
    for text in ("x" * 300, "漢字" * 150):
        line = record_to_text(event(1, tool=text, reason=text), None, Screen(width))
        assert sum(2 if char in "漢字" else 1 for char in line) in {width, width - 1}
        assert line.rstrip().endswith("…")


def test_a_narrow_terminal_has_room_for_the_reason() -> None:
    line = record_to_text(event(1, tool="Bash", verdict="blocked", reason="no"), None, Screen(80))

    assert line == "12:00:01  PreToolUse         3f2a91c0  Bash        blocked  no"


def test_colour_only_repeats_what_the_word_says() -> None:
    for verdict in ("none", "said", "asked", "allowed", "blocked", "failed"):
        record = event(1, verdict=verdict, tool="漢字" * 20, reason=verdict)
        plain = record_to_text(record, None, Screen())
        coloured = record_to_text(record, None, Screen(has_colour=True))
        start, rest = coloured.split("\x1b[", 1)
        assert plain.startswith(start + verdict)
        assert rest.partition("m")[2].replace("\x1b[0m", "", 1) == plain.removeprefix(start)
    assert "\x1b" not in record_to_text(DaemonRecord(at=1.0, what="started"), None, Screen(has_colour=True))
    assert "\x1b" not in record_to_text(event(1, verdict="blocked"), None, Screen(50, has_colour=True))


@pytest.mark.parametrize(("extra", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_a_terminal_has_colour_and_an_edge(journal: Journal, extra: dict[str, str], *, is_coloured: bool) -> None:
    write(journal, event(1, verdict="blocked", reason="x" * 500))
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "90", **extra}
    if not extra:
        env.pop("NO_COLOR", None)

    subprocess.run(COMMAND, stdout=theirs, env=env, check=True)
    os.close(theirs)

    line = os.read(ours, 10_000).decode()
    os.close(ours)
    assert ("\x1b[31mblocked\x1b[0m" in line) == is_coloured
    assert len(line.replace("\x1b[31m", "").replace("\x1b[0m", "")) == 90 + len("\r\n")


def test_a_stdout_that_knows_few_characters_is_no_error(journal: Journal) -> None:
    write(journal, event(1, reason="ä → 漢"))

    done = subprocess.run(
        COMMAND, env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, text=True, check=True
    )

    assert done.stdout.endswith("\\xe4 \\u2192 \\u6f22\n")


# -- while things happen -------------------------------------------------------------------------------


def following(*args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "--follow", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )


def line_of(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout
    return process.stdout.readline().split()[2:]


def test_what_happens_is_shown_until_ctrl_c(journal: Journal) -> None:
    write(journal, event(1, "Setup"), event(2, "SessionStart"))
    with following("--last", "1") as process:
        assert line_of(process)[0] == "SessionStart"
        write(journal, event(3, "Stop", steps=1))
        assert line_of(process)[0] == "Stop"
        write(journal, CommandsRecord(id=f"{3:016x}", at=NOON, steps=STEPS), DaemonRecord(at=NOON, what="stopped"))
        assert line_of(process)[:3] == ["└", "done", "3f2a91c0"]
        assert line_of(process) == ["daemon", "stopped"]

        process.send_signal(signal.SIGINT)

        assert process.communicate() == ("", "fairlead: interrupted\n")
    assert process.returncode == 130


def test_only_what_is_asked_for_is_followed(journal: Journal) -> None:
    write(journal, event(0, verdict="blocked"))
    with following("--session", "3f2a", "--verdict", "blocked", "--json") as process:
        assert process.stdout
        assert json.loads(process.stdout.readline())["id"] == f"{0:016x}"
        write(
            journal,
            DaemonRecord(at=NOON, what="started"),
            event(1, "Stop", session="other", verdict="blocked"),
            event(2, "Stop"),
            event(3, verdict="blocked"),
            CommandsRecord(id=f"{1:016x}", at=NOON, verdict="blocked"),
            CommandsRecord(id=f"{2:016x}", at=NOON, verdict="blocked"),
            CommandsRecord(id="gone", at=NOON, verdict="blocked"),
            event(4, verdict="blocked"),
        )
        found = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.communicate() == ("", "fairlead: interrupted\n")

    assert [(record["kind"], int(record["id"], 16)) for record in found] == [("event", 3), ("done", 2), ("event", 4)]


def test_a_journal_may_begin_later(journal: Journal) -> None:
    with following() as process:
        write(journal, event(1, "Setup"))
        assert line_of(process)[0] == "Setup"
        process.send_signal(signal.SIGINT)
        assert process.communicate() == ("", "fairlead: interrupted\n")


def test_a_reader_who_leaves_ends_it_quietly_even_if_nothing_happens(journal: Journal) -> None:
    write(journal, event(1, "Setup"))
    with following() as process:
        assert line_of(process)[0] == "Setup"
        assert process.stdout
        process.stdout.close()
        assert process.wait(timeout=30) == 0
        assert process.stderr
        assert process.stderr.read() == ""


def test_a_pipe_that_is_closed_too_early_is_no_error(journal: Journal) -> None:
    write(journal, *(event(number) for number in range(3000)))
    with subprocess.Popen([*COMMAND, "--last", "3000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.close()
        assert process.wait(timeout=30) == 0
        assert process.stderr
        assert process.stderr.read() == b""


# -- the command line ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--folow"], "unknown option '--folow'; did you mean --follow?"),
        (["Stop"], "events: unexpected argument 'Stop'; see fairlead events --help"),
        (["--follow=1"], "--follow takes no value"),
        (["--event", "PreTolUse"], "unknown event 'PreTolUse'; did you mean PreToolUse?"),
        (["--event"], "--event needs a value"),
        (["--session="], "--session needs a value"),
        (
            ["--verdict", "no"],
            "--verdict: expected one of none, said, asked, allowed, blocked, failed, got 'no'",
        ),
        (["--last", "-1"], "--last: expected a whole number, 0 or more, got '-1'"),
        (
            ["--since", "m"],
            "--since: expected a duration such as 30s, 10m, 2h or 1d, or a number of seconds, got 'm'",
        ),
    ],
)
def test_a_slip_on_the_command_line_is_told(args: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert error_of(capsys, "events", args) == expected


def test_an_event_of_a_newer_client_can_be_asked_for(journal: Journal, capsys: pytest.CaptureFixture[str]) -> None:
    write(journal, event(1, "Daydream"), event(2))

    assert "Daydream" in shown(capsys, "--event", "Daydream")


# -- what was asked, and who answered ----------------------------------------------------------------------


def as_text(record: EventRecord | CommandsRecord | DaemonRecord, about: EventRecord | None = None) -> str:
    return record_to_text(record, about, Screen())


def test_a_question_shows_what_is_asked() -> None:
    payload = {"session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "make\x1b[31m\nmake install"}}
    asked = event(1, "PermissionRequest", tool="Bash", payload=msgspec.Raw(msgspec.json.encode(payload)))
    assert as_text(asked).endswith("  make␛[31m")
    assert as_text(event(1, "PermissionRequest", tool="Bash", payload=msgspec.Raw(b"{}"))).rstrip().endswith("ms")


def test_an_error_of_the_service_shows_the_clients_message() -> None:
    payload = {"session_id": "s1", "error": "unknown", "last_assistant_message": "API Error: 400 bad thing"}
    failed = event(1, "StopFailure", payload=msgspec.Raw(msgspec.json.encode(payload)))
    assert as_text(failed).endswith("  API Error: 400 bad thing")


def test_an_answer_shows_who_gave_it() -> None:
    asked = event(1, "PermissionRequest", tool="Bash")
    answer = CommandsRecord(id=asked.id, at=2.0, verdict="allowed", reason="allowed by ana at /dev/pts/3")
    assert "  └ answered  " in as_text(answer, asked)
    assert as_text(answer, asked).endswith("  allowed by ana at /dev/pts/3")
