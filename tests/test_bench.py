"""The benchmarks run and report. No figure is checked: whether it is fast is for people to read.

Here some subjects are measured, which take seconds; with `FAIRLEAD_BENCH=all`, as in `.ci/run`, all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bench.__main__ import SUBJECTS
from bench._harness import Timing
from bench._table import Row, Target

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parent.parent

IS_COMPLETE = os.environ.get("FAIRLEAD_BENCH") == "all"
MEASURED = (
    list(SUBJECTS) if IS_COMPLETE else ["fire", "fire_sync", "parse, encode, merge", "command", "import", "launcher"]
)

CORPUS = [
    (f"policy corpus: {what}{note}", "", target)
    for note in ("", ", blind")
    for what, target in (
        ("ways around held", "≥ 97 %"),
        ("ways to switch it off held", "≥ 100 %"),
        ("everyday calls questioned", "≤ 1 %"),
        ("everyday calls blocked", "≤ 0 %"),
    )
]
ROWS = [
    ("fire: 10 async hooks, per hook", "bare await, same functions", "≤ 5 µs"),
    ("fire: 10 hooks that suspend once, per hook", "bare await, same functions", ""),
    ("fire: 10 hooks, none matches, per event", "await of an empty coroutine", ""),
    ("fire_sync: 10 sync hooks, inline, per hook", "bare call, same functions", ""),
    ("fire_sync: 10 sync hooks, inline, per hook", "pluggy 1.7, same functions", ""),
    ("fire_sync: 10 sync hooks, threaded, per hook", "ThreadPoolExecutor, same", ""),
    ("parse: 1019 bytes of PreToolUse", "json.loads", "≤ 5 µs"),
    ("encode: the same event", "json.dumps", ""),
    ("merge: 10 outputs into one", "{**a, **b} of 10 dicts", ""),
    ("command: CommandHook that runs `true`", "subprocess.run, same", ""),
    ("import: import fairlead", "import json, re", "≤ 2 x"),
    ("import: from fairlead import HookManager, PreToolUse", "import json, re", ""),
    ("without a daemon: fairlead PreToolUse --hooks FILE", 'python -I -c "import json"', "≤ 4 x"),
    ("without a daemon: fairlead PreToolUse --hooks FILE", "cchooks 0.1.5, same check", ""),
    ("without a daemon: fairlead PreToolUse --hooks FILE", "hcom 0.7.31, native, no check", ""),
    ("policy: Edit, 20 rules", "os.path.realpath", "≤ 60 µs"),
    ("policy: Bash, 208 characters, 20 rules", "shlex.split", "≤ 300 µs"),
    ("policy: fairlead PreToolUse, Edit", 'python -I -c "import json"', "≤ 2.2 x"),
    ("policy: fairlead PreToolUse, Bash", 'python -I -c "import json"', "≤ 4 x"),
    *CORPUS,
    ("launcher: fairlead-hook PreToolUse, Edit", "static C program that does nothing", "≤ 2 x"),
    ("launcher: fairlead-hook PreToolUse, Bash", "static C program that does nothing", "≤ 2 x"),
    ("launcher: fairlead-hook PreToolUse, Edit", "hcom 0.7.31, native, no check", ""),
    ("launcher: fairlead-hook PreToolUse, Edit", "cchooks 0.1.5, another check", ""),
    ("launcher: fairlead-hook PreToolUse, Edit", "python -c pass", ""),
    ("launcher: fairlead-hook PreToolUse, Edit", "the launcher in Python", ""),
    ("launcher: fairlead-hook PreToolUse, Edit", "the launcher, no daemon", ""),
    ("launcher: fairlead-hook Stop, one command", "bash -c true", "≤ 4.5 ms"),
    ("user hooks: fairlead-hook PreToolUse, a hook that the policy lists", "a Python script, same check", "≤ 0.5 x"),
    ("user hooks: fairlead-hook PreToolUse, a hook that the policy lists", "fairlead PreToolUse --hooks FILE", ""),
    ("in the client: a Read with 2 hooks, added by fairlead-hook", "static C program that does nothing", "≤ 1.3 x"),
    ("in the client: a Read with 2 hooks, added by fairlead-hook", "hcom 0.7.31, native, no check", ""),
    ("in the client: a Read with 2 hooks, added by fairlead-hook", "python -c pass", ""),
    ("in the client: a Read without hooks", "the same again (noise)", ""),
    ("daemon: 100 sessions, one CPU", "bare uvicorn, answers nothing", "≥ 8000 /s"),
    ("daemon: p99 at 80 % of 8000 events/s (of its rate, if lower), for a minute", "", "≤ 5 ms"),
    ("daemon: CPU time per event", "bare uvicorn, answers nothing", "≤ 120 µs"),
    ("daemon: CPU time per event, of the store", "", ""),
    ("daemon: the same, 1000 sessions", "the same, 1 session", "≤ 1.2 x"),
    ("daemon: memory at the end", "", "≤ 90 MB"),
    ("integrity: PostToolUse of Bash, 1000 protected files in 50 folders", "the same, off", "≤ 3 ms"),
    ("leases: the check of an Edit among 90 leased files and 10 patterns", "", "≤ 20 µs"),
    ("leases: the check of a Bash call that changes three files among 90 leased files and 10 patterns", "", "≤ 20 µs"),
    ("leases: the check of an Edit among 90 leased files and 10 patterns, and as many of other hosts", "", "≤ 20 µs"),
    (
        (
            "leases: the check of a Bash call that changes three files among 90 leased files and 10 patterns, "
            "and as many of other hosts"
        ),
        "",
        "≤ 20 µs",
    ),
    ("apply: one event, one session", "copy and change a dict", "≤ 3 µs"),
    ("registry: one event, 1 session", "copy and change a dict", "≤ 50 µs"),
    ("registry: one event, 1000 sessions of 10 subagents", "the same with 1 session", "≤ 50 µs"),
    ("history: first page of all sessions, 4000 events", "", "≤ 100 ms"),
    ("history: first page of a search, in all, 4000 events", "", "≤ 100 ms"),
    ("history: a search that finds nothing, 4000 events", "", "≤ 100 ms"),
    ("history: first page of one session, 4000 events", "", "≤ 100 ms"),
    ("history: summary of the last hour, 4000 events", "", "≤ 100 ms"),
    ("history: storing an event, processor time", "without its history", ""),
    ("watch: 1000 sessions x 10 subagents, 500 changes/s, share of a core", "", "≤ 0.25"),
    ("watch: the same, from a key to the screen", "", "≤ 50 ms"),
    ("watch: the same, from a character of the filter to the screen", "", "≤ 50 ms"),
    ("watch: the same, from a change to the screen", "", "≤ 100 ms"),
    ("mail: send, until a waiting Stop has printed it", "", "≤ 10 ms"),
    ("mail: the same, by `fairlead send`", "hcom 0.7.31, native, send to listen", ""),
    ("mail: memory with 25 agents waiting", "", "≤ 120 MB"),
    ("mail store: sent in batches of 100, durable", "bare sqlite3, same rows and syncs", "≥ 2000 /s"),
    ("mail store: sent one by one, durable", "bare sqlite3, same rows and syncs", "≥ 200 /s"),
    ("mail store: sent by 20 threads at once, durable", "one by one", ""),
    ("mail store: an inbox of 20 among 20000 messages", "the same among 1000", "≤ 1.5 x"),
    ("mail store: check for new mail among 20000 messages", "the same among 1000", "≤ 1.5 x"),
    ("mail store: 2 kills in 400 sends: messages lost, duplicated or incomplete", "", "≤ 0"),
    ("team: send to an agent of this host", "without a team", "≤ 1.1 x"),
    ("team: the same, relay dead", "without a team", "≤ 1.1 x"),
    ("team: send to an agent of another host, relay dead", "without a team", ""),
    ("team: send, until a waiting Stop on another host has printed it", "", "≤ 15 ms"),
    ("team: relay reached again, until 50 queued messages are on the other host", "", "≤ 2000 ms"),
    ("team: `fairlead send` to a waiting Stop on another host", "hcom 0.7.31 over mosquitto", ""),
    ("team: memory of a daemon", "without a team", ""),
    ("team: libraries of a team that a daemon without one has loaded", "", "≤ 0"),
    ("team: 4 hosts x 5 messages/s with receipts: CPU of the relay", "", "≤ 100 %"),
    ("team: the same: messages and receipts on the relay", "", "≤ 4"),
    ("answers: given, until the client goes on", "", "≤ 20 ms"),
    ("daemon: 3 kills: events lost, duplicated or wrong", "", "≤ 0"),
    ("peers: PreToolUse, Edit", "a process with musl that asks a Unix socket", "≤ 2 x"),
    ("peers: PreToolUse, Edit", "conclaude", ""),
    ("peers: PreToolUse, Edit", "hcom, a session that it knows", ""),
    ("peers: PreToolUse, Edit", "atm-hook", ""),
    ("peers: Stop, one command", "conclaude", "≤ 4.5 ms"),
    ("peers: Stop, one command", "sh -c true", ""),
    ("peers: SubagentStop, one command", "conclaude", "≤ 4.5 ms"),
    ("peers: PreToolUse, Edit, no daemon", "conclaude", ""),
    ("peers: PreToolUse, Edit, no daemon", "cchooks", ""),
    ("peers: PreToolUse, Edit, no daemon", 'python -I -c "import json"', "≤ 1.5 x"),
    ("peers: fairlead send", "hcom", "≤ 3.5 ms"),
    ("peers: fairlead send", "Subtrate", "≤ 3.5 ms"),
    ("peers: fairlead inbox", "hcom", "≤ 3.5 ms"),
    ("peers: fairlead inbox", "Subtrate", "≤ 3.5 ms"),
    ("peers: fairlead poll", "Subtrate", "≤ 3.5 ms"),
    ("peers: fairlead heartbeat", "Subtrate", "≤ 3.5 ms"),
    ("peers: fairlead status", "hcom", "≤ 3.5 ms"),
    ("peers: fairlead status", "Subtrate", "≤ 3.5 ms"),
    ("peers: fairlead sessions", "hcom", "≤ 3.5 ms"),
    ("peers: fairlead events --last 20", "hcom", "≤ 3.5 ms"),
    ("peers: PreToolUse, Edit, 100 processes at once", "conclaude", "≥ 1 x"),
    ("peers: PreToolUse, Edit, 100 processes at once", "hcom", "≥ 1 x"),
    ("peers: PreToolUse, Edit, 100 processes at once", "cchooks", "≥ 1 x"),
    ("peers: PreToolUse, Edit, 100 processes at once", "atm-hook", "≥ 1 x"),
    ("peers: Stop, one command, 100 processes at once", "conclaude", "≥ 1 x"),
    ("peers: fairlead inbox, 100 processes at once", "hcom", "≥ 1 x"),
    ("peers: fairlead inbox, 100 processes at once", "Subtrate", "≥ 1 x"),
    ("peers: 10 silent inline hooks, one event", "claude-agent-rs, native", ""),
    (
        "growth: daemon start to its first answer, 2000 events kept and not yet in the store",
        "the same with 100",
        "≤ 300 ms",
    ),
    *(
        (f"growth: {what}", "the same with 100", "≤ 1.3 x")
        for what in (
            *("PreToolUse, Edit", "PreToolUse, a user hook", "Stop, one command", "SubagentStop, one command"),
            *("send", "inbox", "inbox --search", "poll", "heartbeat", "status", "agents", "sessions"),
            "events --last 20",
        )
    ),
]
KEYS = ["subject", "what", "unit", "ours", "baseline", "theirs", "difference", "ratio", "target", "reached"]

WITHOUT_PEERS = """
import sys
sys.modules.update(pluggy=None, cchooks=None)
from bench import in_client, mail, without_daemon
without_daemon.which = in_client.which = mail.which = lambda *_, **__: None
from bench.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
ABSENT = {
    "fire_sync": ["pluggy 1.7, same functions"],
    "without a daemon": ["cchooks 0.1.5, same check", "hcom 0.7.31, native, no check"],
    "launcher": ["hcom 0.7.31, native, no check", "cchooks 0.1.5, another check"],
    "in the client": ["hcom 0.7.31, native, no check"],
    "mail": ["hcom 0.7.31, native, send to listen"],
}
"""By subject, the peers that are not installed."""


def named(cell: str) -> str:
    """Return the name of a baseline, without its figures or why it has none."""
    for reason in (": not installed", ": not built", ": not measured"):
        name, absent, _ = cell.partition(reason)
        if absent:
            return name
    return cell.rpartition(": ")[0]


def bench(start: Sequence[str], kept: Path, subjects: Sequence[str]) -> tuple[list[list[str]], dict[str, Any], str]:
    """Run it as a user would; return the cells of its table, what it saved, and its stderr."""
    command = [sys.executable, *start, "--quick", "--json", str(kept), *subjects]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return cells, json.loads(kept.read_text(encoding="utf-8")), done.stderr


def rows_of(subjects: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return the rows of some subjects: what, baseline and target."""
    others = {"sessions": ("apply", "registry")}  # the rows name what is measured of it
    named = {name for subject in subjects for name in (subject, *subject.split(", "), *others.get(subject, ()))}
    return [row for row in ROWS if row[0].partition(": ")[0] in named]


def test_every_row_belongs_to_a_subject() -> None:
    assert rows_of(list(SUBJECTS)) == ROWS


@pytest.mark.timeout(240)
def test_the_table_has_every_row_and_the_file_every_key(tmp_path: Path) -> None:
    """Every row is printed, with its baseline and target, and kept as JSON with all its keys.

    The file says where it ran: Python, platform, CPUs and versions; no host name, no path.
    """
    rows = rows_of(MEASURED)
    cells, kept, progress = bench(["-m", "bench"], tmp_path / "results.json", MEASURED)
    assert cells[0] == ["what", "ours", "baseline", "result", "target", "reached"]
    assert [(what, named(baseline), target) for what, _, baseline, _, target, _ in cells[2:]] == rows
    assert [(f"{row['subject']}: {row['what']}", row["baseline"]) for row in kept["rows"]] == [
        (what, baseline) for what, baseline, _ in rows
    ]
    assert [list(row) for row in kept["rows"]] == [KEYS] * len(rows)
    assert progress.startswith(f"1/{len(MEASURED)} fire: done\n")
    assert list(kept) == ["machine", "quick", "rows"]
    assert list(kept["machine"]) == ["when", "python", "implementation", "platform", "cpus", "versions"]
    assert kept["quick"] is True
    assert str(ROOT) not in json.dumps(kept)


@pytest.mark.timeout(240)
def test_a_peer_that_is_not_installed_is_named(tmp_path: Path) -> None:
    """Without the peers everything else is measured, and their rows say how to get them."""
    subjects = list(ABSENT) if IS_COMPLETE else ["fire_sync", "without a daemon", "launcher"]
    cells, kept, _ = bench(["-c", WITHOUT_PEERS], tmp_path / "results.json", subjects)
    absent = [row["baseline"] for row in kept["rows"] if row["theirs"] is None and row["baseline"]]
    assert absent == [name for subject in subjects for name in ABSENT[subject]]
    assert [line[2] for line in cells if "not installed" in line[2]] == [
        f"{name}: not installed: pip install -e '.[bench]'" for name in absent
    ]


@pytest.mark.parametrize("arguments", [["--json", "no/such/folder/results.json"], ["--rounds", "3"], ["fires"]])
def test_a_bad_command_line_is_refused_before_anything_runs(arguments: list[str]) -> None:
    """It ends with the usage and exit code 2."""
    command = [sys.executable, "-m", "bench", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: python -m bench [-h] [--quick] [--json FILE] [SUBJECT ...]\n")


@pytest.mark.parametrize(
    ("rates", "reached"), [((5000.0, 4000.0), "yes"), ((5000.0, 3999.0), "minimum only"), ((3999.0, 3000.0), "no")]
)
def test_a_target_can_be_a_floor(rates: tuple[float, float], reached: str) -> None:
    """Of a rate the best round is the largest figure."""
    row = Row("daemon", "rate", "/s", Timing(*rates), "", target=Target("time", 4000, is_floor=True))
    assert (row.reached, row.cells()[4]) == (reached, "≥ 4000 /s")
    assert row.as_json()["target"] == {"of": "time", "at_least": 4000}
    assert row.as_json()["ours"] == {"maximum": rates[0], "median": rates[1]}


def test_bytes_are_shown_as_megabytes() -> None:
    row = Row("daemon", "memory", "MB", Timing(71_900_000, 95_000_000), "", target=Target("time", 90))
    assert row.cells() == ("daemon: memory", "71.9 (95.0) MB", "", "", "≤ 90 MB", "minimum only")


def test_there_is_no_ratio_to_a_figure_within_the_noise() -> None:
    row = Row("client", "hook", "ms", Timing(0.001, 0.002), "nothing", Timing(0.0, 0.001), target=Target("ratio", 2))
    assert row.cells()[1:] == ("1.00 (2.00) ms", "nothing: 0.00 (1.00) ms", "", "≤ 2 x", "")
    assert row.as_json()["ratio"] is None


def test_a_row_that_could_not_be_measured_says_why() -> None:
    """It neither reached nor missed its target."""
    row = Row("daemon", "rate", "/s", None, "bare", target=Target("time", 1), absent="not measured: no compiler")
    assert row.cells() == ("daemon: rate", "not measured: no compiler", "bare", "", "≤ 1 /s", "")
    assert (row.as_json()["ours"], row.as_json()["reached"]) == (None, None)
