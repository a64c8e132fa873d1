"""Traces the walk of four events through the packages, and prints it with counts: `make walk`.

Each process of an event is traced by a profile function that notes every call into Fairlead. A module is counted once;
a package change is a call or a return after which another package is at work.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from itertools import pairwise
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

TIMEOUT = 30.0
POLICY = """\
preToolUse:
  uneditableFiles: [".env", "*.lock", "secrets/**"]
stop:
  commands:
    - {run: "true", message: "The check must pass."}
"""
SESSION = "walk"
QUIET = "/var/tmp"  # noqa: S108 - the folder that is made in it is private
"""Where few files are created: the policy of a project is looked up again when a folder above it has changed."""
SETTLED = 0.3
"""Seconds after which a new file is old enough to be cached."""


# -- in the traced process -------------------------------------------------------------------------------


BACKGROUND = {
    *("server", "tracker", "attention", "token_usage", "store_writer", "recorder", "installed_code"),
    *("journal_settings", "user_notifier", "serve", "tokens", "feed"),
}
"""Modules with background tasks, whose calls are no part of a walk."""
BACKGROUND_FUNCTIONS = {
    *("run_forever", "_update", "_open_store", "_prune", "take_spool"),
    *("watch", "_tend", "_sweep"),  # their names in version 0.1.0
}


class Tracer:
    """Records the modules of Fairlead whose code runs, in their order."""

    def __init__(self, root: str) -> None:
        self._root = root + os.sep
        self._names: dict[str, str | None] = {}
        self._steps: list[str] = []

    def install(self) -> None:
        """Trace this thread and all that are started from now on."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def take(self) -> list[str]:
        """Return and remove the steps so far."""
        steps, self._steps = self._steps, []
        return steps

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            at_work: FrameType | None = frame
        elif event == "return":
            at_work = frame.f_back
        else:
            return
        if self._module(frame) is None or at_work is None:
            return
        module = self._module(at_work)
        if module is not None and self._is_part_of_walk(at_work) and not (self._steps and self._steps[-1] == module):
            self._steps.append(module)

    def _is_part_of_walk(self, frame: FrameType | None) -> bool:
        """Return whether a frame was not called by an import, nor by one of the background tasks."""
        outermost = ""
        while frame is not None:
            module = self._module(frame)
            if module is not None:
                if frame.f_code.co_name == "<module>":
                    return False
                if frame.f_code.co_name in BACKGROUND_FUNCTIONS:
                    return False
                if frame.f_code.co_name not in {"run", "main", "traced_daemon"}:  # the event loop is below them
                    outermost = module
            frame = frame.f_back
        return outermost.rpartition(".")[2].strip("_") not in BACKGROUND

    def _module(self, frame: FrameType) -> str | None:
        file = frame.f_code.co_filename
        if file not in self._names:
            name = file[len(self._root) : -3].replace(os.sep, ".")
            inside = file.startswith(self._root) and "migrations" not in name
            self._names[file] = name if inside else None
        return self._names[file]


def traced_daemon(dump: str) -> None:
    """Run a daemon; each SIGUSR1 writes the steps since the last one to a file."""
    import fairlead
    from fairlead.daemon.command import main

    tracer = Tracer(str(Path(fairlead.__file__).parent))

    def write(*_: object) -> None:
        beside = f"{dump}.new"
        Path(beside).write_text(json.dumps(tracer.take()), encoding="utf-8")
        Path(beside).replace(dump)

    signal.signal(signal.SIGUSR1, write)
    tracer.install()
    sys.exit(main([]))


def traced_program(dump: str, program: str, words: list[str]) -> None:
    """Run the command line, or what the launcher starts for a plan, and write the steps at its end."""
    import fairlead

    tracer = Tracer(str(Path(fairlead.__file__).parent))
    sys.argv = [program, *words]
    tracer.install()
    try:
        if program == "fairlead":
            from fairlead.cli.main import main

            sys.exit(main(words))
        from fairlead.act import main as act

        act()
    finally:
        sys.setprofile(None)
        Path(dump).write_text(json.dumps(tracer.take()), encoding="utf-8")


# -- the events ------------------------------------------------------------------------------------------


class TracedHome:
    """A scratch home with a traced daemon."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.project.mkdir()
        (self.project / ".fairlead.yaml").write_text(POLICY, encoding="utf-8")
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "FAIRLEAD_HOME": str(folder / "state"),
            "FAIRLEAD_NO_DAEMON": "1",
        }
        (folder / "dumps").mkdir()
        self._dump = folder / "dumps/daemon.json"
        self.daemon = self._start("daemon", str(self._dump))
        self._wait(lambda: self._connect() is not None)
        self._number = 0

    def _start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(Path(__file__).resolve()), "--traced", *words]
        return subprocess.Popen(command, env=self.env, cwd=self.project, **options)

    def _connect(self) -> socket.socket | None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(self.folder / "state/run/daemon.sock"))
        except OSError:
            connection.close()
            return None
        return connection

    @staticmethod
    def _wait(condition: Callable[[], bool]) -> None:
        deadline = monotonic() + TIMEOUT
        while not condition():
            if monotonic() > deadline:
                raise SystemExit("the daemon does not answer")
            sleep(0.01)

    def steps(self) -> list[str]:
        """Return the daemon's steps since the last call."""
        self._dump.unlink(missing_ok=True)
        self.daemon.send_signal(signal.SIGUSR1)
        self._wait(self._dump.exists)
        steps: list[str] = json.loads(self._dump.read_text(encoding="utf-8"))
        return steps

    def event(self, name: str, **fields: Any) -> tuple[bytes, bytes]:
        """Send an event as a launcher does. Returns the head and the body of the reply."""
        return self.post(f"/v1/events/{name}", self.payload(name, **fields))

    def post(self, path: str, payload: bytes) -> tuple[bytes, bytes]:
        """Send a request as a launcher does."""
        self._number += 1
        variables = ";".join(f"{key}={value}" for key, value in self.env.items() if key in {"HOME", "FAIRLEAD_HOME"})
        head = (
            f"POST {path}?client=claude HTTP/1.1\r\nhost: fairlead\r\nfairlead-steps: 1\r\nfairlead-cwd: {self.project}"
            f"\r\nfairlead-env: {variables}\r\nfairlead-id: {monotonic().hex()}-{self._number}\r\n"
            f"content-length: {len(payload)}\r\n\r\n"
        )
        connection = self._connect()
        assert connection is not None
        with connection:
            connection.sendall(head.encode() + payload)
            answer = b""
            while data := connection.recv(1 << 16):
                answer += data
        head_bytes, _, body = answer.partition(b"\r\n\r\n")
        return head_bytes, body

    def payload(self, name: str, **fields: Any) -> bytes:
        """Return the payload of an event."""
        base = {"session_id": SESSION, "cwd": str(self.project), "hook_event_name": name, "transcript_path": "/t"}
        return json.dumps(base | fields).encode()

    def program(self, program: str, *words: str, stdin: bytes = b"", **options: Any) -> list[str]:
        """Run a traced program to its end, and return its steps."""
        dump = self.folder / "dumps/program.json"
        dump.unlink(missing_ok=True)
        process = self._start(program, str(dump), *words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, **options)
        process.communicate(stdin, TIMEOUT)
        steps: list[str] = json.loads(dump.read_text(encoding="utf-8"))
        return steps

    def close(self) -> None:
        """Stop the daemon."""
        self.daemon.terminate()
        self.daemon.wait(TIMEOUT)


EDIT: dict[str, Any] = {
    "tool_name": "Edit",
    "tool_input": {"file_path": "src/main.py", "old_string": "a", "new_string": "b"},
    "tool_use_id": "t1",
}


def traced_events(home: TracedHome) -> Iterator[tuple[str, list[str]]]:
    """Play the four events, each once to warm up, and yield their steps."""
    home.event("SessionStart", source="startup")
    sleep(SETTLED)
    for _ in range(3):
        home.event("PreToolUse", **EDIT)
    home.steps()
    home.event("PreToolUse", **EDIT)
    yield "PreToolUse Edit", home.steps()
    for _ in range(2):
        home.steps()
        _settle(home, *home.event("Stop", stop_hook_active=False))
    yield "Stop with one command", home.steps()
    home.event("UserPromptSubmit", prompt="go on")
    home.program("fairlead", "agents", "--json")
    agent = _agent(home)
    home.steps()
    sent = home.program("fairlead", "send", agent, "hello")
    yield "send", sent + home.steps()
    home.event("PostToolUse", **EDIT)
    home.steps()
    home.event("UserPromptSubmit", prompt="go on")
    yield "the event that shows it", home.steps()


def _settle(home: TracedHome, head: bytes, body: bytes) -> None:
    """Report that the command of a plan has passed, as the launcher does after running it."""
    assert head.startswith(b"HTTP/1.1 202"), "the policy has a command"
    size = int(head.partition(b"fairlead-steps: ")[2].split()[0])
    decision, payload = body[size:], home.payload("Stop", stop_hook_active=False)
    lines = f"1 done 1 {len(decision)} {len(payload)}\nexited 0 1 0 0 0 0 0 0\n"
    home.post("/v1/plans/Stop", lines.encode() + decision + payload)


def _agent(home: TracedHome) -> str:
    command = [sys.executable, "-m", "fairlead", "agents", "--json"]
    answer = subprocess.run(command, env=home.env, cwd=home.project, capture_output=True, check=True, timeout=TIMEOUT)
    agents = json.loads(answer.stdout)["agents"]
    return next(str(agent["name"]) for agent in agents if agent["session"] == SESSION)


# -- the report ------------------------------------------------------------------------------------------


def package_of(module: str) -> str:
    """Return the package of a module: its first two parts, if it is inside a sub-package."""
    return module.rpartition(".")[0] or module


def counts(steps: Sequence[str]) -> tuple[int, int]:
    """Return the number of modules, and of package changes."""
    packages = [package_of(step).partition(".")[0] for step in steps]
    return len(set(steps)), sum(before != after for before, after in pairwise(packages))


def walk(steps: Sequence[str]) -> Iterator[str]:
    """Yield the modules in the order in which they are met first, a line for each package."""
    line: list[str] = []
    seen: set[str] = set()
    package = ""
    for step in steps:
        if step in seen:
            continue
        seen.add(step)
        if package_of(step) != package:
            if line:
                yield f"  {package}: {' '.join(line)}"
            package, line = package_of(step), []
        line.append(step.rpartition(".")[2].strip("_"))
    yield f"  {package}: {' '.join(line)}"


def main() -> int:
    """Print the four walks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", action="store_true", help="print the counts only")
    parser.add_argument("--steps", action="store_true", help="print every step")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=QUIET if Path(QUIET).is_dir() else None) as folder:
        home = TracedHome(Path(folder))
        try:
            for title, steps in traced_events(home):
                modules, changes = counts(steps)
                print(f"{title}: {modules} modules, {changes} package changes")
                if options.steps:
                    print(*steps, sep="\n")
                elif not options.counts:
                    print(*walk(steps), sep="\n")
        finally:
            home.close()
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--traced"]:
        kind, dump_file, *rest = sys.argv[2:]
        if kind == "daemon":
            traced_daemon(dump_file)
        else:
            traced_program(dump_file, kind, rest)
    sys.exit(main())
