"""The daemon decides, the caller acts: commands run in the process that the client started, and die with it."""

from __future__ import annotations

import os
import signal
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import LAUNCHER, PATIENCE, until

from fairlead.journal import CommandsRecord as Ended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome


def ended(home: DaemonHome) -> list[Ended]:
    return [record for record in home.journal() if isinstance(record, Ended)]


def stop(home: DaemonHome, **more: object) -> bytes:
    return home.payload(hook_event_name="Stop", stop_hook_active=False, **more)


def launch(home: DaemonHome, event: str, payload: bytes, **more: str) -> subprocess.Popen[bytes]:
    """Begin the launcher in a session of its own, as the client does."""
    process = subprocess.Popen(
        [str(LAUNCHER), event],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=home.project,
        env=home.environment(**more),
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(payload)
    process.stdin.close()
    process.stdin = None
    return process


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# -- what they answer ----------------------------------------------------------------------------------


def test_a_check_keeps_the_agent_going_until_it_passes(home: DaemonHome) -> None:
    home.policy('stop: {commands: [{run: "test -e done", message: "Not done yet."}]}\n')
    with home.daemon():
        kept = home.hook("Stop", stop(home))
        (home.project / "done").touch()
        let = home.hook("Stop", stop(home))
        until(lambda: len(ended(home)) == 2, "how the commands ended is written down")

    assert (kept.exit_code, kept.answer) == (0, {"decision": "block", "reason": "Not done yet."})
    assert (let.exit_code, let.stdout) == (0, "")
    assert [record.route for record in home.happened()] == ["daemon", "daemon"]
    assert [record.steps for record in home.happened()] == [1, 1]
    first, second = ended(home)
    assert [first.id, second.id] == [record.id for record in home.happened()]
    assert (first.verdict, first.reason, second.verdict) == ("blocked", "Not done yet.", "none")
    assert [(ran.run, ran.status, ran.exit) for ran in first.steps + second.steps] == [
        ("test -e done", "failed", 1),
        ("test -e done", "passed", 0),
    ]
    assert home.spooled() == []


def test_what_a_command_prints_is_shown_and_its_text_is_not_if_it_shall_not(home: DaemonHome) -> None:
    home.policy(
        "postToolUse:\n  commands:\n"
        '    Bash: [{run: "echo seen; echo odd >&2", showStdout: true, showStderr: true, showCommand: false}]\n'
    )
    payload = home.payload(
        hook_event_name="PostToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_response={}
    )
    with home.daemon():
        done = home.hook("PostToolUse", payload)
        until(lambda: len(ended(home)) == 1, "how the command ended is written down")

    assert "seen" in done.stdout
    assert "odd" in done.stdout
    assert ended(home)[0].steps[0].run == ""


def test_commands_run_at_once_if_asked(home: DaemonHome) -> None:
    """Each waits for the other."""
    meet = 'run: "touch {0}; until test -e {1}; do sleep 0.01; done", timeout: 20'
    home.policy(
        f"stop:\n  parallel: true\n  commands:\n    - {{{meet.format('a', 'b')}}}\n    - {{{meet.format('b', 'a')}}}\n"
    )
    with home.daemon():
        done = home.hook("Stop", stop(home))
        until(lambda: len(ended(home)) == 1, "how the commands ended is written down")

    assert (done.exit_code, done.stdout) == (0, "")
    assert [ran.status for ran in ended(home)[0].steps] == ["passed", "passed"]


# -- where they run ------------------------------------------------------------------------------------


def test_a_command_has_the_callers_folder_environment_and_process(home: DaemonHome) -> None:
    run = "env > env.txt; pwd > pwd.txt; echo $PPID > parent.txt; cat > payload.txt"
    home.policy(f'subagentStop: {{commands: {{"*": [{{run: "{run}"}}]}}}}\n')
    payload = home.payload(
        hook_event_name="SubagentStop", agent_id="a1", agent_type="coder", agent_transcript_path="/t/a1.jsonl"
    )
    with home.daemon():
        process = launch(home, "SubagentStop", payload, OF_THE_CALLER="yes")
        process.communicate(timeout=PATIENCE)

    seen = (home.project / "env.txt").read_text().splitlines()
    assert process.returncode == 0
    assert "OF_THE_CALLER=yes" in seen
    assert "FAIRLEAD_AGENT_TYPE=coder" in seen
    assert "CONCLAUDE_AGENT_ID=a1" in seen
    assert f"FAIRLEAD_CWD={home.project}" in seen
    assert (home.project / "pwd.txt").read_text() == f"{home.project}\n"
    assert (home.project / "parent.txt").read_text() == f"{process.pid}\n", "the launcher has become what runs it"
    assert (home.project / "payload.txt").read_bytes() == payload


@pytest.mark.parametrize("to", ["group", "launcher"])
def test_a_command_dies_with_its_caller(home: DaemonHome, to: str) -> None:
    home.policy('stop: {commands: [{run: "echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 600"}]}\n')
    with home.daemon():
        process = launch(home, "Stop", stop(home))
        until((home.project / "pid").exists, "the command has begun")
        command = int((home.project / "pid").read_text())

        os.killpg(process.pid, signal.SIGTERM) if to == "group" else process.terminate()

        process.communicate(timeout=PATIENCE)
        assert not is_alive(command)
        until(lambda: len(ended(home)) == 1, "that it ended is written down")


def test_a_daemon_that_goes_meanwhile_loses_nothing(home: DaemonHome) -> None:
    home.policy('stop: {commands: [{run: "touch begun; until test -e go; do sleep 0.01; done; exit 1"}]}\n')
    with home.daemon() as daemon:
        process = launch(home, "Stop", stop(home))
        until((home.project / "begun").exists, "the command has begun")
        daemon.terminate()
        assert daemon.wait(PATIENCE) == 0, "it does not wait for what is not its own"
    (home.project / "go").touch()
    stdout, _ = process.communicate(timeout=PATIENCE)
    assert b'"decision":"block"' in stdout

    with home.daemon():
        assert [record.verdict for record in ended(home)] == ["blocked"]
        assert home.spooled() == []


# -- notices -------------------------------------------------------------------------------------------


class Service(ThreadingHTTPServer):
    """Takes notes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taker)
        self.paths: list[str] = []


class _Taker(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.paths.append(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be silent."""


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as made:
        thread = Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_notes_are_sent_by_the_caller_with_its_environment(home: DaemonHome, service: Service) -> None:
    home.policy(
        "preToolUse: {uneditableFiles: [kept.txt]}\n"
        "notifications:\n  enabled: true\n  hooks: ['*']\n  showErrors: true\n"
        f"  channels: ['json://127.0.0.1:{service.server_port}/${{TOPIC}}']\n"
    )
    with home.daemon(TOPIC="of-the-daemon"):
        done = home.hook("PreToolUse", home.edit("kept.txt"), TOPIC="of-the-caller")
        until(lambda: service.paths, "the note has come")

        assert done.exit_code == 2
        assert "uneditableFiles" in done.stderr
        assert service.paths == ["/of-the-caller"]
        assert [record.verdict for record in home.happened()] == ["blocked"]
