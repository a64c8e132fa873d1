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


# -- in the traced daemon --------------------------------------------------------------------------------


ENTRIES = ("daemon.events.", "daemon.commands.", "daemon.http.")
"""The packages whose functions are called for a request. What is called from elsewhere is a background task."""
LOOPS = {"run", "main"}
"""The functions that the event loop is called from."""
QUIET_SECONDS = 0.1
"""Seconds without a step after which a walk is over."""


class Calls(threading.local):
    """The functions of Fairlead that are running in this thread."""

    def __init__(self) -> None:
        self.modules: list[str] = []
        """Their modules, the outermost first."""
        self.imports = 0
        """How many of them are modules that are being imported."""


class Tracer:
    """Records the modules of Fairlead whose code runs, in their order.

    It does little at each call: an event that takes long is handled in another way.
    """

    def __init__(self, root: str) -> None:
        self._root = root + os.sep
        self._names: dict[str, str | None] = {}
        self._calls = Calls()
        self._steps: list[str] = []

    def install(self) -> None:
        """Trace this thread and all that are started from now on."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def take(self) -> list[str]:
        """Return and remove the steps, once the last one is over: a reply is sent before everything is done."""
        count = -1
        while count != len(self._steps):
            count = len(self._steps)
            sleep(QUIET_SECONDS)
        steps, self._steps = self._steps, []
        return steps

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        if event not in {"call", "return"}:
            return
        code = frame.f_code
        module = self._names.get(code.co_filename, "")
        if module == "":
            module = self._find_module(code.co_filename)
        if module is None or code.co_name in LOOPS:
            return
        calls = self._calls
        modules = calls.modules
        is_call = event == "call"
        if code.co_name == "<module>":
            calls.imports += 1 if is_call else -1
        if is_call:
            modules.append(module)
        elif modules:
            modules.pop()
        if modules and not calls.imports and modules[0].startswith(ENTRIES):
            steps, at_work = self._steps, modules[-1]
            if not steps or steps[-1] != at_work:
                steps.append(at_work)

    def _find_module(self, file: str) -> str | None:
        name = file[len(self._root) : -3].replace(os.sep, ".")
        inside = file.startswith(self._root) and "migrations" not in name
        self._names[file] = name if inside else None
        return self._names[file]


def traced_daemon(dump: str) -> None:
    """Run a daemon; each SIGUSR1 writes the steps since the last one to a file."""
    import fairlead
    from fairlead.daemon.command import main

    tracer = Tracer(str(Path(fairlead.__file__).parent))

    def write() -> None:
        beside = f"{dump}.new"
        Path(beside).write_text(json.dumps(tracer.take()), encoding="utf-8")
        Path(beside).replace(dump)

    signal.signal(signal.SIGUSR1, lambda *_: threading.Thread(target=write).start())
    tracer.install()
    sys.exit(main([]))


# -- the events ------------------------------------------------------------------------------------------


class TracedHome:
    """A scratch home with a traced daemon, which the launchers of this installation ask."""

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
        self._dump = folder / "daemon.json"
        command = [sys.executable, str(Path(__file__).resolve()), "--traced", str(self._dump)]
        self.daemon = subprocess.Popen(command, env=self.env, cwd=self.project)
        self._wait(self._is_listening)

    def _is_listening(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            return connection.connect_ex(str(self.folder / "state/run/daemon.sock")) == 0

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

    def event(self, name: str, **fields: Any) -> None:
        """Start the launcher for an event, as a client does."""
        base = {"session_id": SESSION, "cwd": str(self.project), "hook_event_name": name, "transcript_path": "/t"}
        self.launch("fairlead-hook", name, stdin=json.dumps(base | fields).encode())

    def launch(self, program: str, *words: str, stdin: bytes = b"") -> bytes:
        """Run a launcher to its end, and return what it has printed."""
        command = [str(Path(sys.executable).with_name(program)), *words]
        result = subprocess.run(command, input=stdin, env=self.env, cwd=self.project, capture_output=True, check=False)
        if result.returncode:
            raise SystemExit(f"{program} {words[0]} has failed: {result.stderr.decode(errors='replace')}")
        return result.stdout

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
    """Play the four events, each more than once, and yield the steps of the last."""
    home.event("SessionStart", source="startup")
    sleep(SETTLED)
    yield "PreToolUse Edit", _steps_of_last(home, lambda: home.event("PreToolUse", **EDIT))
    yield "Stop with one command", _steps_of_last(home, lambda: home.event("Stop", stop_hook_active=False))
    home.event("UserPromptSubmit", prompt="go on")
    agents = json.loads(home.launch("fairlead", "agents", "--json"))["agents"]
    name = next(str(agent["name"]) for agent in agents if agent["session"] == SESSION)
    yield "send", _steps_of_last(home, lambda: home.launch("fairlead", "send", name, "hello"))
    home.event("PostToolUse", **EDIT)
    home.steps()
    home.event("UserPromptSubmit", prompt="go on")
    yield "the event that shows it", home.steps()


def _steps_of_last(home: TracedHome, play: Callable[[], object]) -> list[str]:
    """Play an event until it is handled in the event loop with everything cached, and return the steps of the last."""
    for _ in range(3):
        play()
    home.steps()
    play()
    return home.steps()


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
        traced_daemon(sys.argv[2])
    sys.exit(main())
