"""`fairlead demo`: plays the events of a team through the real launcher and a real daemon, in a scratch home."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from statistics import median
from time import perf_counter, time
from typing import TYPE_CHECKING

import click
import msgspec

from fairlead.cli.demo.scratch_home import interrupted_by_signals, scratch_home, wait_for
from fairlead.cli.demo.screen import DemoScreen
from fairlead.cli.demo.team import EDITED_FILE, EXPECTED_FILE, FILES, POLICY, TEAM
from fairlead.cli.support.command import Command
from fairlead.clients import (
    COMPILE_LAUNCHER,
    DEFAULT_CLIENT,
    client_named,
    find_launcher,
    is_python_launcher,
    launcher_folders,
)
from fairlead.errors import FairleadError
from fairlead.journal import CommandsRecord, EventRecord, JournalReader

if TYPE_CHECKING:
    from fairlead.cli.demo.scratch_home import ScratchHome
    from fairlead.cli.demo.team import DemoEvent
    from fairlead.clients import Launcher


class DemoResult(msgspec.Struct, frozen=True):
    """The outcome of an event, as its client sees it."""

    verdict: str
    reason: str
    seconds: float
    """From the start of the launcher to its end."""


@click.command(
    "demo",
    cls=Command,
    examples=("fairlead demo",),
    exit_codes=(
        (0, "every outcome is as expected"),
        (1, "one is not, or the demo cannot run here"),
        (130, "interrupted; everything was removed"),
    ),
)
def demo() -> int:
    """Play a team of agents in a scratch home.

    Sends the events of a small team of agents one by one, as Claude Code does: through the real launcher and a real
    daemon, under a policy. Shows the answer to each event and how many milliseconds it took, from the start of the
    launcher to its end, and checks every outcome.

    It works in a home of its own in the folder for temporary files, touches nothing else, and at the end stops its
    daemon and removes that home. It needs no agent and no network.
    """
    launcher = find_launcher(launcher_folders(), sys.executable)
    with interrupted_by_signals(), scratch_home(FILES) as home:
        played = _Demo(home, launcher, DemoScreen())
        played.play()
    return 1 if played.unexpected else 0


class _Demo:
    """Plays the events, prints them, and counts unexpected outcomes."""

    def __init__(self, home: ScratchHome, launcher: Launcher, screen: DemoScreen) -> None:
        self._home = home
        self._launcher = launcher
        self._screen = screen
        self._outcomes: list[DemoResult] = []
        self.unexpected = 0

    def play(self) -> None:
        """Play the events in order, and print the summary."""
        screen = self._screen
        screen.title("A team of agents under a policy, decided by Fairlead")
        screen.text("Recorded events, the real launcher, a real daemon, in a scratch home.\n")
        screen.policy(POLICY)
        with chdir(self._home.project):
            self._warm_up()
            screen.head()
            for number, demo_event in enumerate(TEAM):
                self._play_event(demo_event)
                if number == 0:
                    self._wait_for_daemon()
            screen.text()
            self._summarize()
            self._show_journal()
        self._show_next_steps()

    def _warm_up(self) -> None:
        """Decide one event without measuring it: the first one after an install compiles Python's modules."""
        home = f"{self._home.folder}/warm"
        self._launch(TEAM[0], FAIRLEAD_HOME=home, FAIRLEAD_NO_DAEMON="1")

    def _play_event(self, demo_event: DemoEvent) -> None:
        at, outcome = time(), self._launch(demo_event)
        self._outcomes.append(outcome)
        self._screen.event(at, (demo_event.who, demo_event.event, demo_event.what), outcome.verdict, outcome.seconds)
        if outcome.reason:
            self._screen.reason(outcome.reason)
        self._expect(outcome.verdict == demo_event.verdict, f"expected the verdict {demo_event.verdict}")
        self._expect(demo_event.reason in outcome.reason, f"expected the reason: {demo_event.reason}")
        name, text = EDITED_FILE
        if demo_event.what == f"Edit {name}" and outcome.verdict == "none":
            Path(self._home.project, name).write_text(text, encoding="utf-8")

    def _launch(self, demo_event: DemoEvent, **more: str) -> DemoResult:
        """Start the launcher as the client starts an installed hook, wait for its end, and return the outcome.

        `more` are further environment variables. Raise `FairleadError` if the launcher cannot be started.
        """
        folder = Path(self._home.folder)
        stdin, stdout, stderr = (folder / name for name in ("payload.json", "stdout", "stderr"))
        stdin.write_text(json.dumps(demo_event.payload(self._home.project)), encoding="utf-8")
        new = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        files = [
            (os.POSIX_SPAWN_OPEN, 0, str(stdin), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(stdout), new, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, str(stderr), new, 0o600),
        ]
        command = [self._launcher.hook, demo_event.event, "--python", self._launcher.python]
        env = {**self._home.environment(), **more}
        started_at = perf_counter()
        try:
            pid = os.posix_spawn(self._launcher.hook, command, env, file_actions=files)
        except OSError as error:
            raise FairleadError(f"{self._launcher.hook}: cannot be started: {error.strerror}") from None
        _, status = os.waitpid(pid, 0)
        seconds = perf_counter() - started_at
        code = os.waitstatus_to_exitcode(status)
        verdict, reason = _read_answer(code, stdout.read_bytes(), stderr.read_bytes())
        return DemoResult(verdict, reason, seconds)

    def _wait_for_daemon(self) -> None:
        """Wait until the daemon that the first event started has opened its store. Report it if no daemon answers."""
        self._screen.between("no daemon was running; started one, which answers from here on")
        status = wait_for(lambda: (s := self._home.status()) and (s["stored"] or s["store_failures"]) and s)
        if status is None:
            log = Path(self._home.folder, "fairlead/daemon.log")
            last = log.read_text(errors="replace").strip().splitlines()[-1:] if log.exists() else []
            self._expect(False, f"no daemon started: {last[0] if last else 'its log is empty'}")  # noqa: FBT003 - it has failed

    def _summarize(self) -> None:
        first, *others = self._outcomes
        quick = [o.seconds for o, s in zip(others, TEAM[1:], strict=True) if not s.what.startswith("runs ")]
        self._check_journal()
        name, text = EXPECTED_FILE
        file = Path(self._home.project, name)
        self._expect(file.exists() and file.read_text("utf-8") == text, f"expected in {name}: {text}")
        count = f"{len(TEAM)} events"
        wrong = f"{self.unexpected} outcomes were UNEXPECTED; see above."
        self._screen.title(f"{count}: {wrong}" if self.unexpected else f"{count}, each as expected.")
        self._screen.figures(
            [
                (median(quick), "an event that the daemon decides (median)"),
                (first.seconds, "the first event, without a daemon"),
            ]
        )
        self._screen.text(f"{_launcher_kind(self._launcher.hook)}\n")

    def _check_journal(self) -> None:
        """Check that the journal contains every event once, with its verdict; if not, print and count the mistake."""
        wait_for(lambda: (status := self._home.status()) is None or not status["spool"])
        records: dict[str, list[str]] = {}
        for _, record in JournalReader(f"{self._home.folder}/fairlead/journal").read():
            if isinstance(record, EventRecord):
                records[record.id] = [record.event, record.verdict]
            elif isinstance(record, CommandsRecord) and record.id in records:
                records[record.id][1] = record.verdict
        recorded = [tuple(records[name]) for name in sorted(records)]
        played = [(s.event, o.verdict) for s, o in zip(TEAM, self._outcomes, strict=True)]
        self._expect(recorded == played, "expected these events in the journal")

    def _show_journal(self) -> None:
        self._screen.title("The journal has recorded them:")
        self._screen.shell("fairlead events --verdict blocked")
        command = [self._launcher.python, "-P", "-m", "fairlead", "events", "--verdict", "blocked"]
        sys.stdout.flush()
        done = subprocess.run(command, env=self._home.environment(), check=False)  # noqa: S603 - ourselves
        self._expect(done.returncode == 0, "expected the events to be shown")
        self._screen.text()

    def _show_next_steps(self) -> None:
        self._screen.title("For your own agents:")
        programs = os.path.dirname(self._launcher.hook)
        if not _is_on_path(programs):
            self._screen.shell(f'export PATH="{programs}:$PATH"   # for this shell; the README says how to install')
        self._screen.shell("fairlead init            # write a policy that suits the project")
        client = client_named(DEFAULT_CLIENT).title
        self._screen.shell(f"fairlead install         # have {client} ask Fairlead (first: --dry-run)")

    def _expect(self, holds: bool, text: str) -> None:  # noqa: FBT001 - like assert
        if not holds:
            self.unexpected += 1
            self._screen.wrong(text)


def _read_answer(code: int, stdout: bytes, stderr: bytes) -> tuple[str, str]:
    """Return the verdict of a hook, in a word of the journal, and its reason; "" if it has none.

    `code` is the exit code of the hook.
    """
    try:
        answer = json.loads(stdout or b"{}")
        special = answer.get("hookSpecificOutput", {})
    except (ValueError, AttributeError):
        return "failed", "the answer on stdout is no JSON object"
    permission = special.get("permissionDecision")
    reason = special.get("permissionDecisionReason") or answer.get("reason") or special.get("additionalContext") or ""
    if code == 2 or answer.get("decision") == "block":  # noqa: PLR2004 - the client's code
        return "blocked", str(reason or stderr.decode(errors="replace"))
    if code:
        return "failed", f"exit code {code}: {stderr.decode(errors='replace')}"
    verdicts = {"ask": "asked", "allow": "allowed", "deny": "blocked"}
    return verdicts.get(permission, "said" if answer else "none"), str(reason)


def _is_on_path(folder: str) -> bool:
    """Return whether a shell finds the program `fairlead` in this folder."""
    found = shutil.which("fairlead")
    return found is not None and os.path.realpath(os.path.dirname(found)) == os.path.realpath(folder)


def _launcher_kind(launcher: str) -> str:
    if not is_python_launcher(launcher):
        return "The launcher is the native one."
    return f"The launcher is written in Python, about 10 ms slower; {COMPILE_LAUNCHER}"
