"""`fairlead demo`: a team of agents through the real launcher and a real daemon, in a home that is thrown away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from statistics import median
from time import perf_counter, time
from typing import TYPE_CHECKING

import msgspec

from fairlead.cli.demoscreen import Screen
from fairlead.cli.demostage import ended_by_signals, scratch, wait
from fairlead.cli.demoteam import DONE_MEANWHILE, FILES, LEFT_BEHIND, POLICY, TEAM
from fairlead.clients.claude._programs import find_launcher, launcher_folders
from fairlead.errors import FairleadError, UsageError
from fairlead.journal import CommandsRecord, EventRecord, JournalReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.cli.demostage import Stage
    from fairlead.cli.demoteam import Scene
    from fairlead.clients.claude._hook_entries import Launcher

USAGE = """\
usage: fairlead demo

Plays the events of a small team of agents, one by one, as Claude Code would send them: through the real launcher
and a real daemon, under a policy. Shows what each event was answered and how many milliseconds that took, from the
start of the launcher to its end. Checks all that it shows.

It works in a home of its own in the folder for temporary files, touches nothing else, stops its daemon and removes
that home at the end. No agent and no network are needed.

example:
  fairlead demo

exit codes: 0 all came out as it should; 1 something came out differently, or the demo cannot run here
"""


class Ending(msgspec.Struct, frozen=True):
    """What came of an event, as its client sees it."""

    verdict: str
    said: str
    seconds: float


def run(args: Sequence[str]) -> int:
    """Play the team and return the exit code."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    if args:
        raise UsageError(f"unknown option {args[0]!r}; see fairlead demo --help")
    launcher = find_launcher(launcher_folders(), sys.executable)
    screen = Screen()
    with ended_by_signals(), scratch(FILES) as stage:
        demo = _Demo(stage, launcher, screen)
        try:
            demo.play()
        except KeyboardInterrupt:
            screen.text("\nended early")
            return 1
    return 1 if demo.different else 0


class _Demo:
    """Plays the scenes, shows them, and counts what came out differently."""

    def __init__(self, stage: Stage, launcher: Launcher, screen: Screen) -> None:
        self._stage = stage
        self._launcher = launcher
        self._screen = screen
        self._endings: list[Ending] = []
        self.different = 0

    def play(self) -> None:
        """Show everything, in the order of a session."""
        screen = self._screen
        screen.title("A team of agents under a policy, decided by Fairlead")
        screen.text("Recorded events, the real launcher, a real daemon; the home is thrown away.\n")
        screen.policy(POLICY)
        with chdir(self._stage.project):
            self._warm_up()
            screen.head()
            for number, scene in enumerate(TEAM):
                self._scene(scene)
                if number == 0:
                    self._await_daemon()
            screen.text()
            self._sum_up()
            self._show_journal()
        self._say_what_next()

    def _warm_up(self) -> None:
        """Decide one event elsewhere: the first after an install compiles Python's modules, which is no measure."""
        home = f"{self._stage.folder}/warm"
        self._launch(TEAM[0], FAIRLEAD_HOME=home, FAIRLEAD_NO_DAEMON="1")

    def _scene(self, scene: Scene) -> None:
        at, ending = time(), self._launch(scene)
        self._endings.append(ending)
        self._screen.event(at, (scene.who, scene.event, scene.what), ending.verdict, ending.seconds)
        if ending.said:
            self._screen.reason(ending.said)
        self._expect(ending.verdict == scene.verdict, f"expected the verdict {scene.verdict}")
        self._expect(scene.says in ending.said, f"expected to be told: {scene.says}")
        name, text = DONE_MEANWHILE
        if scene.what == f"Edit {name}" and ending.verdict == "none":
            Path(self._stage.project, name).write_text(text, encoding="utf-8")

    def _launch(self, scene: Scene, **more: str) -> Ending:
        """Call the launcher as an installed hook is called, and take the time until it has ended."""
        folder = Path(self._stage.folder)
        stdin, stdout, stderr = (folder / name for name in ("payload.json", "stdout", "stderr"))
        stdin.write_text(json.dumps(scene.payload(self._stage.project)), encoding="utf-8")
        new = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        files = [
            (os.POSIX_SPAWN_OPEN, 0, str(stdin), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(stdout), new, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, str(stderr), new, 0o600),
        ]
        command = [self._launcher.hook, scene.event, "--python", self._launcher.python]
        env = {**self._stage.environment(), **more}
        begun = perf_counter()
        try:
            pid = os.posix_spawn(self._launcher.hook, command, env, file_actions=files)
        except OSError as error:
            raise FairleadError(f"{self._launcher.hook}: cannot be started: {error.strerror}") from None
        _, status = os.waitpid(pid, 0)
        seconds = perf_counter() - begun
        code = os.waitstatus_to_exitcode(status)
        verdict, said = _read_answer(code, stdout.read_bytes(), stderr.read_bytes())
        return Ending(verdict, said, seconds)

    def _await_daemon(self) -> None:
        """Wait for the daemon that the first event has begun, until it has all its wits about it."""
        self._screen.between("that was without a daemon, and has begun one; from here on it answers")
        status = wait(lambda: (s := self._stage.status()) and (s["stored"] or s["store_failures"]) and s)
        if status is None:
            log = Path(self._stage.folder, "fairlead/daemon.log")
            last = log.read_text(errors="replace").strip().splitlines()[-1:] if log.exists() else []
            self._expect(False, f"no daemon came: {last[0] if last else 'it left no word'}")  # noqa: FBT003 - the fact

    def _sum_up(self) -> None:
        first, *others = self._endings
        quick = [e.seconds for e, s in zip(others, TEAM[1:], strict=True) if not s.what.startswith("runs ")]
        self._check_journal()
        name, text = LEFT_BEHIND
        file = Path(self._stage.project, name)
        self._expect(file.exists() and file.read_text("utf-8") == text, f"expected in {name}: {text}")
        count = f"{len(TEAM)} events"
        wrong = f"{self.different} things came out DIFFERENTLY; see above."
        self._screen.title(f"{count}: {wrong}" if self.different else f"{count}, all as they should be.")
        self._screen.figures(
            [
                (median(quick), "an event that the daemon decides (median)"),
                (first.seconds, "the first event, without a daemon"),
            ]
        )
        self._screen.text(f"{_kind(self._launcher.hook)}\n")

    def _check_journal(self) -> None:
        """Hold what was written down against what was played: every event, once, with its verdict."""
        wait(lambda: (status := self._stage.status()) is None or not status["spool"])
        found: dict[str, list[str]] = {}
        for _, record in JournalReader(f"{self._stage.folder}/fairlead/journal").read():
            if isinstance(record, EventRecord):
                found[record.id] = [record.event, record.verdict]
            elif isinstance(record, CommandsRecord) and record.id in found:
                found[record.id][1] = record.verdict
        written = [tuple(found[name]) for name in sorted(found)]
        played = [(s.event, e.verdict) for s, e in zip(TEAM, self._endings, strict=True)]
        self._expect(written == played, "expected to find in the journal what was played")

    def _show_journal(self) -> None:
        self._screen.title("All of it is written down:")
        self._screen.shell("fairlead events --verdict blocked")
        command = [self._launcher.python, "-P", "-m", "fairlead", "events", "--verdict", "blocked"]
        sys.stdout.flush()
        done = subprocess.run(command, env=self._stage.environment(), check=False)  # noqa: S603 - ourselves
        self._expect(done.returncode == 0, "expected the events to be shown")
        self._screen.text()

    def _say_what_next(self) -> None:
        self._screen.title("For your own agents:")
        self._screen.shell("fairlead init            # write a policy that suits the project")
        self._screen.shell("fairlead hooks install   # have Claude Code ask Fairlead (first: --dry-run)")

    def _expect(self, holds: bool, text: str) -> None:  # noqa: FBT001 - it is the subject
        if not holds:
            self.different += 1
            self._screen.wrong(text)


def _read_answer(code: int, stdout: bytes, stderr: bytes) -> tuple[str, str]:
    """Read an answer as the client does: the verdict in the words of the journal, and what was said."""
    try:
        answer = json.loads(stdout or b"{}")
        special = answer.get("hookSpecificOutput", {})
    except (ValueError, AttributeError):
        return "failed", "the answer on stdout is no JSON object"
    permission = special.get("permissionDecision")
    told = special.get("permissionDecisionReason") or answer.get("reason") or special.get("additionalContext") or ""
    if code == 2 or answer.get("decision") == "block":  # noqa: PLR2004 - the client's code
        return "blocked", str(told or stderr.decode(errors="replace"))
    if code:
        return "failed", f"exit code {code}: {stderr.decode(errors='replace')}"
    words = {"ask": "asked", "allow": "allowed", "deny": "blocked"}
    return words.get(permission, "said" if answer else "none"), str(told)


def _kind(launcher: str) -> str:
    """Say which of the two launchers it is."""
    with open(launcher, "rb") as file:
        is_script = file.read(2) == b"#!"
    if not is_script:
        return "The launcher is the native one."
    return "The launcher is the one in Python, 10 ms slower: install again where there is a C compiler."
