"""Runs the commands of a plan, one after the other or in parallel. `decide.settle` interprets their results."""

from __future__ import annotations

import os
from math import inf
from threading import Semaphore, Thread
from time import monotonic
from typing import TYPE_CHECKING

from fairlead.decide import StepResult, blocks
from fairlead.errors import CommandFailed
from fairlead.execute._git_changes import FileChanges
from fairlead.policy import command_environment
from fairlead.process import DEFAULT_OUTPUT_LINES, CancellationToken, run_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.policy import Plan, Step

    RunStep = Callable[[Step], StepResult]
    Watch = Callable[[Step, StepResult | None], None]
    """Called when a command starts, with `None`, and again with its result when it has ended."""

_MAX_JOIN = 0.5  # seconds
_SHELLS = frozenset({"bash", "dash", "ksh", "sh", "zsh"})


def run_commands(
    plan: Plan,
    payload: bytes,
    *,
    deadline: float | None = None,
    cancellation: CancellationToken | None = None,
    watch: Watch | None = None,
) -> tuple[StepResult, ...]:
    """Run the plan's commands with the payload on their stdin. Returns their results in the order of the plan.

    `deadline` (`time.monotonic()`) applies to all commands together. `watch` is called in the thread that runs a
    command. A command for which no time is left is reported once, as failed. Raises `HookCancelled` if the caller no
    longer waits. When this returns or raises, all processes have ended.
    """
    due = inf if deadline is None else deadline
    run = _PlanRun(plan, payload, due, cancellation or CancellationToken(), watch or _ignore)
    return run.in_parallel() if plan.parallel else run.in_sequence()


class _PlanRun:
    """One run of a plan."""

    def __init__(
        self, plan: Plan, payload: bytes, deadline: float, cancellation: CancellationToken, watch: Watch
    ) -> None:
        self._plan = plan
        self._payload = payload
        self._deadline = deadline
        self._cancellation = cancellation
        self._watch = watch
        self._changes = FileChanges(deadline, cancellation)

    def in_sequence(self) -> tuple[StepResult, ...]:
        """Run one command after the other until one blocks."""
        results: list[StepResult] = []
        for step in self._plan.steps:
            results.append(self._run(step) if self._is_wanted(step) else StepResult(step=step, status="skipped"))
            if blocks(self._plan, results[-1]):
                break
        return tuple(results)

    def in_parallel(self) -> tuple[StepResult, ...]:
        """Run all commands, each in a thread of its own."""
        skipped = [StepResult(step=step, status="skipped") for step in self._plan.steps]
        work = [result.step if self._is_wanted(result.step) else result for result in skipped]
        try:
            return _in_threads(self._run, work)
        except BaseException:  # Ctrl-C while this thread waits for the others
            self._cancellation.cancel()
            raise

    def _is_wanted(self, step: Step) -> bool:
        return not step.when or self._changes.match(step.folder, step.when, loose=step.loose_when)

    def _run(self, step: Step) -> StepResult:
        result = self._result_of(step)
        self._watch(step, result)
        return result

    def _result_of(self, step: Step) -> StepResult:
        started = monotonic()
        limit = min(step.timeout or inf, self._deadline - started)
        if limit <= 0:
            return StepResult(step=step, status="not started", error="no time was left")
        self._watch(step, None)
        try:
            ended = run_process(
                script_argv(step),
                self._payload,
                cwd=step.cwd,
                env=command_environment(self._plan.env, os.environ, step.folder, self._payload),
                deadline=started + limit,
                cancellation=self._cancellation,
                max_lines=step.max_output_lines or DEFAULT_OUTPUT_LINES,
            )
        except CommandFailed as error:
            return StepResult(step=step, status="not started", error=str(error))
        code = ended.exit_code
        return StepResult(
            step=step,
            status="timed out" if code is None else "failed" if code else "passed",
            exit_code=128 - code if code is not None and code < 0 else code,
            stdout=ended.stdout.decode(errors="replace"),
            stderr=ended.stderr.decode(errors="replace"),
            seconds=round(limit, 1) if code is None else monotonic() - started,
        )


def _ignore(_step: Step, _result: StepResult | None) -> None:
    pass


def script_argv(step: Step) -> list[str]:
    """Return the argv that runs a step's text as one script. If it has several lines, each of them must pass."""
    shell = step.shell.split()
    stop_at_first_failure = "\n" in step.run.strip() and os.path.basename(shell[0]) in _SHELLS
    return [*shell, *(["-e"] if stop_at_first_failure else []), "-c", step.run]


def _in_threads(run_step: RunStep, items: list[Step | StepResult]) -> tuple[StepResult, ...]:
    results: dict[int, StepResult] = {}
    errors: list[BaseException] = []
    ended = Semaphore(0)

    def attempt(index: int, step: Step) -> None:
        try:
            results[index] = run_step(step)
        except BaseException as error:  # noqa: BLE001 - raised again when all threads have ended
            errors.append(error)
        finally:
            ended.release()

    threads = []
    for index, item in enumerate(items):
        if isinstance(item, StepResult):
            results[index] = item
        else:
            threads.append(Thread(target=attempt, args=(index, item)))
    for thread in threads:
        thread.start()
    # Not `join`: if Ctrl-C interrupts it, Python 3.11 takes the thread for ended and does not wait for it at exit, but
    # it has to kill its command. A signal that comes just before a wait does not end it, so no wait may be long.
    for _ in threads:
        while not ended.acquire(timeout=_MAX_JOIN):
            pass
    if errors:
        raise errors[0]
    return tuple(results[index] for index in range(len(items)))
