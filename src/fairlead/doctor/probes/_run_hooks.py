"""Runs hooks as the client does, with a payload that was recorded from it, and measures how long each takes.

What is run must not do anything: no command of a policy, no note to a person, no policy that comes into force by it.
So an event is run in this home and folder only if the policy that holds has nothing to do for it and was in use
before. All others are run apart: in an empty folder, with an empty home, without a daemon. Hooks of others, and ours
with `--hooks` or `--rules` of somebody's own, are run only if that is asked for: nobody knows what they do.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from time import monotonic, perf_counter, sleep
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from fairlead.clients import DEFAULT_CLIENT, client_named
from fairlead.daemon import NO_DAEMON_VARIABLE
from fairlead.doctor._facts import SLOW, Played, Road, Run
from fairlead.doctor.probes._daemon import status_of
from fairlead.doctor.probes._policy import sets_off
from fairlead.errors import FairleadError
from fairlead.journal import EventRecord, Reader, journal_folder
from fairlead.paths import socket_file
from fairlead.testing import make_payload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fairlead.clients import InstalledHook
    from fairlead.journal import Position
    from fairlead.policy import Layer

SESSION = "fairlead-doctor"

_LONGEST = 15.0
_ALTOGETHER = 45.0
"""Seconds for all of them: with a daemon that hangs, each takes two seconds longer."""
_FOR_A_DAEMON = 10.0
_MOST = 1 << 20
_ONLY_BY_COMMAND = frozenset({"WorktreeCreate", "WorktreeRemove"})
_NOT_THIS_SESSION = ("TMUX", "TMUX_PANE")


class Stage(msgspec.Struct, frozen=True):
    """Where hooks are run, and what is known of it."""

    cwd: str
    environ: dict[str, str]
    """This process's, with what the settings add."""
    layers: tuple[Layer, ...] = ()
    may_run_here: bool = True
    """The home is that of the hooks, and its policy is in use already."""
    run_foreign: bool = False
    client: str = DEFAULT_CLIENT
    daemon_hangs: bool = False
    """Each event here takes seconds then, so one has to do."""


def play(hooks: Iterable[InstalledHook], stage: Stage) -> Played:
    """Run each hook once: of those with the same command line the client runs one."""
    chosen = list({hook.identity: hook for hook in hooks if not hook.only_wakes}.values())  # that one only waits
    chosen.sort(key=lambda hook: (not hook.is_ours, hook.event == "SessionEnd"))  # a session ends at its end
    scratch = tempfile.mkdtemp(prefix="fairlead-doctor-")
    try:
        player = _Player(stage, scratch)
        runs = tuple(map(player.run, chosen))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Played(runs, player.awaited, player.came)


def sample(event: str, cwd: str, transcript: str, client: str = DEFAULT_CLIENT) -> dict[str, Any]:
    """Make a payload: one that the client sent, but of a session, a folder and a call that harm nobody."""
    here = {"session_id": SESSION, "cwd": cwd, "transcript_path": transcript}
    more = client_named(client).installer.harmless_payload(event)
    try:
        return make_payload(event, **here, **more)
    except (FairleadError, StopIteration):
        return {**here, "hook_event_name": event}


class _Player:
    """Runs hooks one after the other, and remembers what the daemon did meanwhile."""

    def __init__(self, stage: Stage, scratch: str) -> None:
        self._stage = stage
        self._scratch = scratch
        self._due = monotonic() + _ALTOGETHER
        self._socket = socket_file()
        self._journal = Reader(journal_folder())
        self.awaited = False
        self.came = True

    def run(self, hook: InstalledHook) -> Run:
        told = Run(hook.event, hook.scope, hook.program, hook.is_ours)
        if reason := _reason_not_to(hook, run_foreign=self._stage.run_foreign):
            return msgspec.structs.replace(told, trouble=reason)
        if monotonic() > self._due:
            return msgspec.structs.replace(told, trouble="the hooks before it took too long")
        if not self._may_run_here(hook):
            return self._once(hook, told, "apart")
        if not hook.is_ours:
            return self._once(hook, told, "cold")
        before = self._end_of_journal()
        run = self._once(hook, told, "cold")
        if self._is_by_daemon(before):
            run = msgspec.structs.replace(run, road="daemon")
            again = self._once(hook, told, "daemon") if run.seconds > SLOW else run
            return min(run, again, key=lambda one: one.seconds)  # once may be the machine's fault
        if self._is_daemon_wanted() and not self.awaited and status_of(self._socket) is None:
            self.awaited, self.came = True, self._comes()
        return run

    def _may_run_here(self, hook: InstalledHook) -> bool:
        if not hook.is_ours:
            return True
        if not self._stage.may_run_here or (self._stage.daemon_hangs and hook.event != "PreToolUse"):
            return False
        payload = sample(hook.event, self._stage.cwd, self._transcript(), self._stage.client)
        return not sets_off(payload, self._stage.layers)

    def _transcript(self) -> str:
        return f"{self._scratch}/transcript.jsonl"

    def _once(self, hook: InstalledHook, told: Run, road: Road) -> Run:
        cwd = self._scratch if road == "apart" else self._stage.cwd
        payload = msgspec.json.encode(sample(hook.event, cwd, self._transcript(), self._stage.client))
        seconds = min(hook.timeout or _LONGEST, _LONGEST)
        outcome = run_program(hook.argv, payload, cwd, self._environment(road), seconds)
        return msgspec.structs.replace(told, road=road, **outcome)

    def _environment(self, road: Road) -> dict[str, str]:
        """Give what the client gives, but nothing that belongs to a session that may be running here."""
        env = {name: value for name, value in self._stage.environ.items() if name not in _NOT_THIS_SESSION}
        env = client_named(self._stage.client).installer.hook_environment(env, SESSION, self._stage.cwd)
        return env | ({"FAIRLEAD_HOME": f"{self._scratch}/home", NO_DAEMON_VARIABLE: "1"} if road == "apart" else {})

    # -- the daemon meanwhile ----------------------------------------------------------------------------

    def _end_of_journal(self) -> Position | None:
        try:
            return self._journal.end()
        except OSError:
            return None

    def _is_by_daemon(self, before: Position | None) -> bool:
        """Tell whether the daemon decided it: then it stands in the journal, written before it was answered."""
        return before is not None and any(
            isinstance(record, EventRecord) and record.session == SESSION and record.road == "daemon"
            for _, record in self._journal.read(before)
        )

    def _is_daemon_wanted(self) -> bool:
        return not self._stage.environ.get(NO_DAEMON_VARIABLE)

    def _comes(self) -> bool:
        """Wait for the daemon that the first event has begun."""
        deadline = monotonic() + _FOR_A_DAEMON
        while monotonic() < deadline:
            if status_of(self._socket) is not None:
                return True
            sleep(0.02)
        return False


def _reason_not_to(hook: InstalledHook, *, run_foreign: bool) -> str:
    if not hook.argv:
        return "only the client can run it"
    if hook.event in _ONLY_BY_COMMAND and not (run_foreign and not hook.is_ours):
        return "it makes or removes a worktree"
    if run_foreign:
        return ""
    if not hook.is_ours:
        return "it is not ours, and may do anything"
    if own := _own_options(hook.words):
        return f"{own[0]} runs hooks of your own, which may do anything"
    return ""


def _own_options(words: Sequence[str]) -> list[str]:
    rest = iter(words[2:])
    return [word for word in rest if word not in {"--python", "--client"} or not next(rest, "")]


def run_program(
    command: Sequence[str], payload: bytes, cwd: str, env: Mapping[str, str], seconds: float
) -> dict[str, Any]:
    """Run a program with a payload on its stdin; it and its children are ended if it takes too long."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:  # no pipes: a child may keep one open
        begun = perf_counter()
        try:
            process = subprocess.Popen(  # noqa: S603 - the person's own hook
                command, stdin=subprocess.PIPE, stdout=out, stderr=err, cwd=cwd, env=env, start_new_session=True
            )
        except OSError as error:
            return {"trouble": f"it cannot be started: {error.strerror}"}
        try:
            with suppress(BrokenPipeError):
                process.stdin and process.stdin.write(payload)
            with suppress(BrokenPipeError):
                process.stdin and process.stdin.close()
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            _end(process)
            return {"trouble": f"it did not end within {seconds:g} s", "seconds": perf_counter() - begun}
        taken = perf_counter() - begun
        return {"exit_code": code, "seconds": taken, "stdout": _read(out), "stderr": _read(err)}


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(file: BinaryIO | Any) -> bytes:
    file.seek(0)
    content: bytes = file.read(_MOST)
    return content


def own_and_foreign(hooks: Iterable[InstalledHook], scopes: Sequence[str]) -> Iterator[InstalledHook]:
    """Choose what is run or listed: ours in the scopes that were asked about, and all of others."""
    yield from (hook for hook in hooks if not hook.is_ours or hook.scope in scopes or hook.scope == "managed")
