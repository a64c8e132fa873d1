"""The launcher runs the steps of a plan as Python does: the same results, and no process is left behind."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from daemon.daemon_home import until
from launcher.build import unavailable
from launcher.fakes import Launcher, answer_200, headers, program

from fairlead.decide import Decision, StepResult
from fairlead.execute import encode_steps, read_report, run_commands
from fairlead.policy import Plan, Step

if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket

    from launcher.fakes import Daemon

    from fairlead.execute import Report

PAYLOAD = b'{"session_id":"s"}'
ANSWER = answer_200(b"out\n", b"err\n", 2)
ORPHAN = "sleep 300 & echo $! > child; wait"
"""A step whose process has a child."""


@pytest.fixture(params=("compiled", "sanitized"))
def launcher(request: pytest.FixtureRequest, home: Path, programs: dict[str, Path | str]) -> Launcher:
    program = programs[request.param]
    if isinstance(program, str):
        unavailable(program)
    return Launcher(program, home)


def plan_of(folder: Path, *runs: str | dict[str, Any], **more: Any) -> Plan:
    options = [{"run": run} if isinstance(run, str) else run for run in runs]
    steps = tuple(Step(**{"folder": str(folder), "cwd": str(folder), **one}) for one in options)
    return Plan(event_name="Stop", session_id="s", steps=steps, **{"on_failure": "block-first", **more})


def answer(plan: Plan, steps: bytes | None = None) -> bytes:
    """Return the daemon's answer: the steps, then the decision."""
    steps = encode_steps(plan, PAYLOAD, PAYLOAD, lambda step: step.run != "skipped") if steps is None else steps
    assert steps is not None
    body = steps + msgspec.json.encode(Decision(plan=plan))
    head = f"HTTP/1.1 202 Accepted\r\nfairlead-steps: {len(steps)}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def play(launcher: Launcher, daemon: Daemon, plan: Plan, **env: str) -> Report:
    """Play a plan, and return what the launcher reports."""
    daemon.requests.clear()
    daemon.answers = [answer(plan), ANSWER]
    path = {"PATH": os.environ["PATH"]}
    done = launcher.run("Stop", stdin=PAYLOAD, env=launcher.env(**path, **env))
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 2)
    assert not launcher.record.exists(), "no Python was run"
    return report_in(daemon)


def report_in(daemon: Daemon) -> Report:
    head, _, body = daemon.requests[-1].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/plans/Stop?client=claude ")
    report = read_report(body)
    assert report.payload == PAYLOAD
    return report


def comparable(results: tuple[StepResult, ...]) -> list[dict[str, Any]]:
    return [
        {**msgspec.structs.asdict(one), "seconds": one.seconds if one.status == "timed out" else 0} for one in results
    ]


LONG_LINE = "head -c 100000 /dev/zero | tr '\\0' x"
PLANS: dict[str, tuple[list[str | dict[str, Any]], dict[str, Any]]] = {
    "passes": (["true"], {}),
    "fails": (["exit 7"], {}),
    "blocks": (["exit 2"], {"on_failure": "block-on-2"}),
    "the next one does not run": (["exit 1", "echo never"], {}),
    "what cannot be run ends it": (["no-such-program", "echo never"], {"on_failure": "block-on-2"}),
    "what is killed ends it": (["kill -9 $$", "echo never"], {"on_failure": "block-on-2"}),
    "it may be missing": (
        [{"run": "exit 126", "passes_unchecked": True}, "echo then"],
        {"on_failure": "block-on-2"},
    ),
    "it may be killed": ([{"run": "kill -9 $$", "passes_unchecked": True}, "echo then"], {}),
    "it may not fail": ([{"run": "exit 3", "passes_unchecked": True}, "echo never"], {}),
    "the next one runs": (["exit 1", "echo then"], {"on_failure": "block-on-2"}),
    "2 ends it": (["echo a", "exit 2", "echo never"], {"on_failure": "block-on-2"}),
    "an observer ends nothing": ([{"run": "exit 2", "observes": True}, "echo then"], {}),
    "a signal": (["kill -SEGV $$"], {}),
    "both streams": (["echo out; echo err >&2"], {}),
    "the input": (["cat; cat"], {}),
    "input that nobody reads": (["exec <&-; echo x"], {}),
    "several lines stop at the first failure": (["false\necho never"], {}),
    "variables": (
        ['echo $FAIRLEAD_CONFIG_DIR $CONCLAUDE_CONFIG_DIR $A; echo "$FAIRLEAD_PAYLOAD_JSON"'],
        {"env": {"A": "ä b"}},
    ),
    "variables of another event": (["echo $FAIRLEAD_TOOL_NAME.$KEPT"], {}),
    "another shell": ([{"run": "echo $0", "shell": "sh"}], {}),
    "a shell with options": ([{"run": "echo $-", "shell": "bash -u"}], {}),
    "no such shell": ([{"run": "x", "shell": "/no/such/shell"}], {}),
    "no such program": ([{"run": "x", "shell": "no-such-shell"}], {}),
    "a folder is no program": ([{"run": "x", "shell": "/etc"}], {}),
    "no such folder": ([{"run": "pwd", "cwd": "/no/such/folder"}], {}),
    "its folder": ([{"run": "pwd", "cwd": "/"}], {}),
    "skipped": (["skipped", "echo then"], {}),
    "no output": (["printf ''"], {}),
    "no newline": (["printf abc"], {}),
    "bytes": (["printf '\\377\\0x\\r\\ny'"], {}),
    "a long line": ([LONG_LINE], {}),
    "many long lines": ([f"for i in $(seq 200); do {LONG_LINE}; echo; done"], {}),
    "many lines": (["seq 200000"], {}),
    "few of many lines": ([{"run": "seq 300000; seq 7 >&2", "max_output_lines": 5}], {}),
    "one of many lines": ([{"run": "seq 300000", "max_output_lines": 1}], {}),
    "empty lines": (["yes '' | head -n 2000000"], {}),
    "a line that does not end after many": (["seq 200000; printf end"], {}),
    "it leaves something running": (["sleep 60 > /dev/null 2>&1 & echo $! > left; echo x"], {}),
    "in parallel": (["sleep 0.2; echo a", "echo b; exit 3", "echo c"], {"parallel": True, "on_failure": "never"}),
    "one that is too slow": ([{"run": "echo x; sleep 60", "timeout": 0.5}], {}),
    "one that will not end": ([{"run": "trap '' TERM; echo x; while :; do sleep 0.1; done", "timeout": 0.5}], {}),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_comes_to_the_same_as_in_python(
    launcher: Launcher, daemon: Daemon, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, more = PLANS[name]
    plan = plan_of(tmp_path, *runs, **more)
    variables = {"FAIRLEAD_TOOL_NAME": "old", "KEPT": "kept"}
    for variable, value in {**launcher.env(), **variables}.items():
        monkeypatch.setenv(variable, value)
    wanted = tuple(step for step in plan.steps if step.run != "skipped")
    expected = run_commands(msgspec.structs.replace(plan, steps=wanted), PAYLOAD)
    report = play(launcher, daemon, plan, **variables)
    assert not report.cancelled
    assert comparable(tuple(one for one in report.results if one.status != "skipped")) == comparable(expected)
    skipped = [one.step.run for one in report.results if one.status == "skipped"]
    assert skipped == [step.run for step in plan.steps if step.run == "skipped"]
    for left in tmp_path.glob("left"):
        os.kill(int(left.read_text()), signal.SIGKILL)


def test_the_launcher_says_that_it_can(launcher: Launcher, daemon: Daemon, tmp_path: Path) -> None:
    play(launcher, daemon, plan_of(tmp_path, "true"))
    assert headers(daemon.requests[0])["fairlead-steps"] == "1"


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False


def gone(pid: int) -> None:
    """Wait until a process has ended."""
    until(lambda: not is_alive(pid), f"process {pid} has ended")


def child_of(folder: Path) -> int:
    """Return the pid that a step has written down, once it has."""
    file = folder / "child"
    until(lambda: file.exists() and file.read_text().strip(), "the step runs")
    return int(file.read_text())


def test_what_is_too_slow_is_ended_with_all_that_it_started(launcher: Launcher, daemon: Daemon, tmp_path: Path) -> None:
    started = monotonic()
    report = play(launcher, daemon, plan_of(tmp_path, {"run": ORPHAN, "timeout": 0.3}))
    assert [(one.status, one.seconds) for one in report.results] == [("timed out", 0.3)]
    assert monotonic() - started < 30
    gone(child_of(tmp_path))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_steps_and_is_reported(
    launcher: Launcher, daemon: Daemon, tmp_path: Path, number: signal.Signals
) -> None:
    daemon.answers = [answer(plan_of(tmp_path, ORPHAN, "touch never")), ANSWER]
    process = start(launcher)
    child = child_of(tmp_path)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=50)
    assert (stdout, stderr, process.returncode) == (b"out\n", b"err\n", 2)
    assert report_in(daemon).cancelled
    gone(child)
    assert not (tmp_path / "never").exists()


def start(launcher: Launcher, **more: Any) -> subprocess.Popen[bytes]:
    env = launcher.env(PATH=os.environ["PATH"])
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(launcher.command("Stop"), env=env, **streams, **more)
    assert process.stdin is not None
    process.stdin.write(PAYLOAD)
    process.stdin.close()
    process.stdin = None
    return process


def test_nothing_is_left_when_the_launcher_is_killed(launcher: Launcher, daemon: Daemon, tmp_path: Path) -> None:
    daemon.answers = [answer(plan_of(tmp_path, ORPHAN))]
    process = start(launcher)
    child = child_of(tmp_path)
    process.kill()
    process.communicate(timeout=50)  # ends when nobody can write to its pipes
    gone(child)


def test_a_client_that_ignores_the_end_of_children_gets_the_result(
    launcher: Launcher, daemon: Daemon, tmp_path: Path
) -> None:
    daemon.answers = [answer(plan_of(tmp_path, "exit 3")), ANSWER]
    process = start(launcher, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    process.communicate(timeout=50)
    assert [one.exit_code for one in report_in(daemon).results] == [3]


def test_files_of_the_client_are_not_passed_on(launcher: Launcher, daemon: Daemon, tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "ls /proc/self/fd; readlink /proc/self/fd/0 | head -c 6")
    daemon.answers = [answer(plan), ANSWER]
    with (tmp_path / "secret").open("wb") as file:
        process = start(launcher, pass_fds=(file.fileno(),))
        process.communicate(timeout=50)
    (result,) = report_in(daemon).results
    assert result.stdout.split()[:4] == ["0", "1", "2", "3"], "its own three, and the folder that it lists"


def results_of(launcher: Launcher) -> list[tuple[str, int | None]]:
    """Return the results that Python was given in place of a daemon."""
    words = launcher.ran()["argv"]
    assert words[4] == program("from fairlead.execute import main", "main()")
    report = read_report(bytes.fromhex((launcher.home / "results").read_text()))
    return [(one.stdout, one.exit_code) for one in report.results]


READ_RESULTS = """
data = b""
while chunk := os.read(int(words[words.index("--results-fd") + 1]), 1 << 20):
    data += chunk
open(os.environ["FAIRLEAD_HOME"] + "/results", "w").write(data.hex())
"""


def hang_up(_: socket) -> None:
    pass


@pytest.mark.parametrize("reply", [hang_up, b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", b"nonsense"])
def test_if_the_daemon_goes_python_settles_and_nothing_runs_again(
    launcher: Launcher, daemon: Daemon, tmp_path: Path, reply: bytes | Callable[[socket], None]
) -> None:
    daemon.answers = [answer(plan_of(tmp_path, "echo x >> ran; echo seen; exit 3")), reply]
    env = launcher.env(PATH=os.environ["PATH"], DO=READ_RESULTS)
    launcher.run("Stop", stdin=PAYLOAD, env=env)
    assert results_of(launcher) == [("seen", 3)]
    assert json.loads(launcher.ran()["plan"])["plan"]["steps"][0]["run"].startswith("echo x")
    assert launcher.stdin() == PAYLOAD
    assert (tmp_path / "ran").read_text() == "x\n"


BAD_STEPS = {
    "another version": b"2\0s\x000\0",
    "no end": b"1\0s\x000\x000\x000\x001\0never\x000\0/\x000\x001\0true",
    "no step": b"1\0s\x000\x000\x000\x000\0",
    "no program": b"1\0s\x000\x000\x000\x001\0never\x000\0/\x000\x000\0",
    "a count without fields": b"1\0s\x000\x00999999\0",
    "a count that is no number": b"1\0s\x000\0x\0",
    "too many steps": b"1\0s\x000\x000\x000\x0065\0",
    "input that is not there": b"1\0s\x005\x000\x000\x001\0never\x000\0/\x000\x001\0true\0abc",
    "nothing": b"\0",
}


@pytest.mark.parametrize("name", BAD_STEPS)
def test_steps_that_are_not_understood_are_left_to_python(
    launcher: Launcher, daemon: Daemon, tmp_path: Path, name: str
) -> None:
    daemon.answers = [answer(plan_of(tmp_path, "touch ran"), BAD_STEPS[name])]
    launcher.run("Stop", stdin=PAYLOAD)
    words = launcher.ran()["argv"]
    assert "--plan-fd" in words
    assert "--results-fd" not in words
    assert not (tmp_path / "ran").exists()


def test_no_mutation_of_the_steps_breaks_the_launcher(launcher: Launcher, daemon: Daemon, tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {"run": "true", "timeout": 20}, "true", env={"A": "b"})
    good = encode_steps(plan, PAYLOAD, b"{}", lambda _: True)
    assert good is not None
    rng = random.Random(11)
    pieces = [b"\0", b"", b"0\0", b"1\0", b"99999999999\0", b"s\0", b"\xff", b"-1\0", b"x"]
    for _ in range(60):
        steps = good
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(max(0, len(steps) - 120), len(steps) + 1) if rng.random() < 0.7 else rng.randrange(30)
            steps = steps[:at] + rng.choice(pieces) + steps[at + rng.choice([0, 1, 2]) :]
        daemon.answers = [answer(plan, steps), ANSWER]
        done = launcher.run("Stop", stdin=PAYLOAD, env=launcher.env(PATH=os.environ["PATH"]))
        assert done.returncode in {0, 2}, (steps, done.stderr)  # Python's, or the daemon's


def test_the_steps_have_an_input_of_their_own_if_the_client_has_another_form(
    launcher: Launcher, daemon: Daemon, tmp_path: Path
) -> None:
    plan = plan_of(tmp_path, "cat", "cat")
    steps = encode_steps(plan, PAYLOAD, b'{"ours":1}', lambda _: True)
    daemon.answers = [answer(plan, steps), ANSWER]
    launcher.run("Stop", stdin=PAYLOAD, env=launcher.env(PATH=os.environ["PATH"]))
    assert [one.stdout for one in report_in(daemon).results] == ['{"ours":1}'] * 2


def test_what_only_python_can_run_is_not_encoded(tmp_path: Path) -> None:
    def encoded(plan: Plan) -> bytes | None:
        return encode_steps(plan, PAYLOAD, PAYLOAD, lambda _: True)

    assert encoded(plan_of(tmp_path, {"run": "true", "notify": True})) is None
    assert encoded(plan_of(tmp_path, "a\0b")) is None
    assert encoded(plan_of(tmp_path, *["true"] * 65)) is None
    assert encoded(plan_of(tmp_path, *["true"] * 64)) is not None
