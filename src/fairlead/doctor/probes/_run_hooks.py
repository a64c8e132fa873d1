"""Runs hooks as the client does, with recorded payloads of the client, and measures how long each takes.

A run must have no side effects: it runs no command of a policy, sends no notification, and does not make a policy take
effect. So a hook is run in this home and folder only if the policy has nothing to run for its event, and was in use
before. The other hooks of ours are run isolated: in an empty folder, with an empty home, without a daemon. Hooks of
other programs, and ours with the user's own `--hooks` or `--rules`, are run only on request, because their effects are
unknown.
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
from fairlead.doctor._facts import SLOW_SECONDS, HookRunFacts, HookRuns, RunRoute
from fairlead.doctor.probes._daemon import status_of
from fairlead.doctor.probes._policy import has_side_effects
from fairlead.errors import FairleadError
from fairlead.journal import DOCTOR_SESSION, EventRecord, JournalReader, journal_folder
from fairlead.paths import socket_file
from fairlead.testing import make_payload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fairlead.clients import InstalledHook
    from fairlead.journal import Position
    from fairlead.policy import Layer

_MAX_SECONDS = 15.0
_MAX_SECONDS_FOR_ALL = 45.0
"""Seconds after which no more hooks are started. If the daemon hangs, each hook takes two seconds longer."""
_DAEMON_TIMEOUT = 10.0
_MAX_OUTPUT = 1 << 20
_ONLY_BY_COMMAND = frozenset({"WorktreeCreate", "WorktreeRemove"})
_NOT_THIS_SESSION = ("TMUX", "TMUX_PANE")

_MORE_RUNS = 4
"""How many times a slow hook is run again at most. The fastest run counts."""


class RunContext(msgspec.Struct, frozen=True):
    """Where and how hooks are run."""

    cwd: str
    environ: dict[str, str]
    """The environment of this process, and the variables of the client's settings."""
    layers: tuple[Layer, ...] = ()
    """The layers of the policy that applies in `cwd`."""
    may_run_here: bool = True
    """Whether our hooks may be run in this home: they use it, and the policy has decided an event before."""
    run_foreign: bool = False
    """Whether to run hooks whose effects are unknown, too."""
    client: str = DEFAULT_CLIENT
    daemon_hangs: bool = False
    """Whether the daemon does not answer in time. If so, only the hooks for `PreToolUse` are run in this home."""


def run_hooks(hooks: Iterable[InstalledHook], context: RunContext) -> HookRuns:
    """Run hooks one after the other, and return the results.

    Like the client, run only one of several hooks with the same command line. Hooks that only wake a session are left
    out.
    """
    # A hook that only wakes a session would wait for mail.
    chosen = list({hook.identity: hook for hook in hooks if not hook.only_wakes}.values())
    chosen.sort(key=lambda hook: (not hook.is_ours, hook.event == "SessionEnd"))  # SessionEnd last
    scratch = tempfile.mkdtemp(prefix="fairlead-doctor-")
    try:
        runner = _HookRunner(context, scratch)
        runs = tuple(map(runner.run, chosen))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return HookRuns(runs, runner.started_daemon, runner.daemon_came_up)


def sample_payload(event: str, cwd: str, transcript: str, client: str = DEFAULT_CLIENT) -> dict[str, Any]:
    """Return a recorded payload of an event, with the doctor's session, this folder and a tool call without effects.

    If there is no recorded payload, it has only the required fields.
    """
    here = {"session_id": DOCTOR_SESSION, "cwd": cwd, "transcript_path": transcript}
    more = client_named(client).installer.harmless_payload(event)
    try:
        return make_payload(event, **here, **more)
    except FairleadError:
        return {**here, "hook_event_name": event}


class _HookRunner:
    """Runs hooks one after the other, and finds out whether the daemon answers them."""

    def __init__(self, context: RunContext, scratch: str) -> None:
        self._context = context
        self._scratch = scratch
        self._deadline = monotonic() + _MAX_SECONDS_FOR_ALL
        self._socket = socket_file()
        self._journal = JournalReader(journal_folder())
        self.started_daemon = False
        self.daemon_came_up = True

    def run(self, hook: InstalledHook) -> HookRunFacts:
        run = HookRunFacts(hook.event, hook.scope, hook.program, hook.is_ours)
        if reason := _skip_reason(hook, run_foreign=self._context.run_foreign):
            return msgspec.structs.replace(run, error=reason)
        if monotonic() > self._deadline:
            return msgspec.structs.replace(run, error="the hooks before it took too long")
        if not self._may_run_here(hook):
            return self._run_once(hook, run, "isolated")
        if not hook.is_ours:
            return self._run_once(hook, run, "no daemon")
        before = self._journal_end()
        run = self._run_once(hook, run, "no daemon")
        if self._was_answered_by_daemon(before):
            run = msgspec.structs.replace(run, route="daemon")
            for _ in range(_MORE_RUNS):  # a slow run may be chance, as on a busy machine
                if run.seconds <= SLOW_SECONDS:
                    break
                run = min(run, self._run_once(hook, run, "daemon"), key=lambda timed: timed.seconds)
            return run
        if self._may_start_daemon() and not self.started_daemon and status_of(self._socket) is None:
            self.started_daemon, self.daemon_came_up = True, self._wait_for_daemon()
        return run

    def _may_run_here(self, hook: InstalledHook) -> bool:
        if not hook.is_ours:
            return True
        if not self._context.may_run_here or (self._context.daemon_hangs and hook.event != "PreToolUse"):
            return False
        payload = sample_payload(hook.event, self._context.cwd, self._transcript(), self._context.client)
        return not has_side_effects(payload, self._context.layers)

    def _transcript(self) -> str:
        return f"{self._scratch}/transcript.jsonl"

    def _run_once(self, hook: InstalledHook, run: HookRunFacts, route: RunRoute) -> HookRunFacts:
        cwd = self._scratch if route == "isolated" else self._context.cwd
        payload = msgspec.json.encode(sample_payload(hook.event, cwd, self._transcript(), self._context.client))
        seconds = min(hook.timeout or _MAX_SECONDS, _MAX_SECONDS)
        outcome = run_program(hook.argv, payload, cwd, self._environment(route), seconds)
        return msgspec.structs.replace(run, route=route, **outcome)

    def _environment(self, route: RunRoute) -> dict[str, str]:
        """Return the environment that the client sets for a hook, without variables of a session above this process."""
        env = {name: value for name, value in self._context.environ.items() if name not in _NOT_THIS_SESSION}
        env = client_named(self._context.client).installer.hook_environment(env, DOCTOR_SESSION, self._context.cwd)
        return env | (
            {"FAIRLEAD_HOME": f"{self._scratch}/home", NO_DAEMON_VARIABLE: "1"} if route == "isolated" else {}
        )

    # -- the daemon --------------------------------------------------------------------------------------

    def _journal_end(self) -> Position | None:
        try:
            return self._journal.end()
        except OSError:
            return None

    def _was_answered_by_daemon(self, before: Position | None) -> bool:
        """Return whether the daemon recorded an event of the doctor after this position; `False` for `None`.

        The daemon writes an event to the journal before it answers.
        """
        return before is not None and any(
            isinstance(record, EventRecord) and record.session == DOCTOR_SESSION and record.route == "daemon"
            for _, record in self._journal.read(before)
        )

    def _may_start_daemon(self) -> bool:
        return not (self._context.daemon_hangs or self._context.environ.get(NO_DAEMON_VARIABLE))

    def _wait_for_daemon(self) -> bool:
        """Wait for the daemon that an event has started, and return whether it answers in time."""
        deadline = monotonic() + _DAEMON_TIMEOUT
        while monotonic() < deadline:
            if status_of(self._socket) is not None:
                return True
            sleep(0.02)
        return False


def _skip_reason(hook: InstalledHook, *, run_foreign: bool) -> str:
    if not hook.argv:
        return "only the client can run it"
    if hook.event in _ONLY_BY_COMMAND and not (run_foreign and not hook.is_ours):
        return "it creates or removes a worktree"
    if run_foreign:
        return ""
    if not hook.is_ours:
        return "it is not ours, and may do anything"
    if own := _user_hook_options(hook.words):
        return f"{own[0]} runs hooks of your own, which may do anything"
    return ""


def _user_hook_options(argv: Sequence[str]) -> list[str]:
    rest = iter(argv[2:])
    return [word for word in rest if word not in {"--python", "--client"} or not next(rest, "")]


def run_program(
    command: Sequence[str], payload: bytes, cwd: str, env: Mapping[str, str], seconds: float
) -> dict[str, Any]:
    """Run a program with a payload on its stdin, and return the result as fields of `HookRunFacts`.

    After `seconds` it is killed with its process group. `error` says that it was killed or cannot be started.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:  # no pipes: a child may keep one open
        started_at = perf_counter()
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's hook
                command, stdin=subprocess.PIPE, stdout=out, stderr=err, cwd=cwd, env=env, start_new_session=True
            )
        except OSError as error:
            return {"error": f"it cannot be started: {error.strerror}"}
        try:
            with suppress(BrokenPipeError):
                process.stdin and process.stdin.write(payload)
            with suppress(BrokenPipeError):
                process.stdin and process.stdin.close()
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            _kill(process)
            return {"error": f"it did not end within {seconds:g} s", "seconds": perf_counter() - started_at}
        taken = perf_counter() - started_at
        return {"exit_code": code, "seconds": taken, "stdout": _read(out), "stderr": _read(err)}


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(file: BinaryIO | Any) -> bytes:
    file.seek(0)
    content: bytes = file.read(_MAX_OUTPUT)
    return content


def select_hooks(hooks: Iterable[InstalledHook], scopes: Sequence[str]) -> Iterator[InstalledHook]:
    """Yield the hooks to run or list: ours in these scopes and in `managed`, and all hooks of other programs."""
    yield from (hook for hook in hooks if not hook.is_ours or hook.scope in scopes or hook.scope == "managed")
