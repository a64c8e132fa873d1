"""Runs the commands of a plan, in turn or at once, and makes one answer of how they ended."""

from __future__ import annotations

import os
from math import inf
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING

from fairlead.errors import CommandFailed
from fairlead.events import HookOutput
from fairlead.execute import _stop_counter as _blocks
from fairlead.execute._git_changes import Changes
from fairlead.execute._results import BLOCKS, Outcome, StepResult, block_reason, failure_log, shown
from fairlead.policy import command_environment
from fairlead.process import CancellationToken, run_script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.policy import Plan, Step

    Do = Callable[[Step], StepResult]
    Watch = Callable[[Step, StepResult | None], None]
    """Is told of a command when it begins, without a result, and again when it has ended."""

_LONGEST_WAIT = 0.5  # seconds
_SHELLS = frozenset({"bash", "dash", "ksh", "sh", "zsh"})


def run(
    plan: Plan,
    payload: bytes,
    *,
    deadline: float | None = None,
    cancellation: CancellationToken | None = None,
    watch: Watch | None = None,
) -> Outcome:
    """Run the plan's commands with the payload on their stdin, and answer the event.

    `deadline` (`time.monotonic()`) is for all of them together. `watch` hears of each command that is run, in the
    thread that runs it; one that there is no time for is told once, as failed. Of commands that run at once, the
    first in order that blocks decides. A block's reason stands alone on stderr, where the client reads it: there is
    no log then, except at `Stop`, whose reason goes another way. Raises `HookCancelled` if nobody waits any more; no
    process is left behind.
    """
    due = inf if deadline is None else deadline
    attempt = _Attempt(plan, payload, due, cancellation or CancellationToken(), watch or _nobody)
    results = attempt.all_at_once() if plan.parallel else attempt.one_by_one()
    log = list(plan.log)
    log += [failure_log(plan, result) for result in results if result.failed]
    output = _answer(plan, results, log)
    if output.blocked and plan.event_name != "Stop":
        log = []
    return Outcome(
        output=output,
        stdout="\n".join(r.stdout for r in results if r.step.show_stdout and r.stdout.strip()),
        stderr="\n".join(log),
        results=results,
    )


class _Attempt:
    """One run of a plan."""

    def __init__(
        self, plan: Plan, payload: bytes, deadline: float, cancellation: CancellationToken, watch: Watch
    ) -> None:
        self._plan = plan
        self._payload = payload
        self._deadline = deadline
        self._cancellation = cancellation
        self._watch = watch
        self._changes = Changes(deadline, cancellation)

    def one_by_one(self) -> tuple[StepResult, ...]:
        """Run until one blocks."""
        results: list[StepResult] = []
        for step in self._plan.steps:
            results.append(self._run(step) if self._is_due(step) else StepResult(step=step, status="skipped"))
            if blocks(self._plan, results[-1]):
                break
        return tuple(results)

    def all_at_once(self) -> tuple[StepResult, ...]:
        """Run all, each in a thread of its own; the results are in the order of the plan."""
        skipped = [StepResult(step=step, status="skipped") for step in self._plan.steps]
        work = [result.step if self._is_due(result.step) else result for result in skipped]
        try:
            return _in_threads(self._run, work)
        except BaseException:  # Ctrl-C, while this thread waits for the others
            self._cancellation.cancel()
            raise

    def _is_due(self, step: Step) -> bool:
        return not step.when or self._changes.match(step.folder, step.when, loose=step.loose_when)

    def _run(self, step: Step) -> StepResult:
        result = self._ended(step)
        self._watch(step, result)
        return result

    def _ended(self, step: Step) -> StepResult:
        begun = monotonic()
        given = min(step.timeout or inf, self._deadline - begun)
        if given <= 0:
            return StepResult(step=step, status="not started", error="no time was left")
        self._watch(step, None)
        try:
            ended = run_script(
                script_argv(step),
                self._payload,
                cwd=step.cwd,
                env=command_environment(self._plan.env, os.environ, step.folder, self._payload),
                deadline=begun + given,
                cancellation=self._cancellation,
                max_lines=step.max_output_lines,
            )
        except CommandFailed as error:
            return StepResult(step=step, status="not started", error=str(error))
        code = ended.exit_code
        return StepResult(
            step=step,
            status="timed out" if code is None else "failed" if code else "passed",
            exit_code=128 - code if code is not None and code < 0 else code,
            stdout=ended.stdout,
            stderr=ended.stderr,
            seconds=round(given, 1) if code is None else monotonic() - begun,
        )


def _nobody(_step: Step, _result: StepResult | None) -> None:
    """Watch, and care for nothing."""


def script_argv(step: Step) -> list[str]:
    """Run the whole text as one script; of several lines, each must pass, and not only the last."""
    shell = step.shell.split()
    each_line_counts = "\n" in step.run.strip() and os.path.basename(shell[0]) in _SHELLS
    return [*shell, *(["-e"] if each_line_counts else []), "-c", step.run]


def _in_threads(do: Do, items: list[Step | StepResult]) -> tuple[StepResult, ...]:
    results: dict[int, StepResult] = {}
    errors: list[BaseException] = []

    def attempt(index: int, step: Step) -> None:
        try:
            results[index] = do(step)
        except BaseException as error:  # noqa: BLE001 - it is raised again where all have ended
            errors.append(error)

    threads = []
    for index, item in enumerate(items):
        if isinstance(item, StepResult):
            results[index] = item
        else:
            threads.append(Thread(target=attempt, args=(index, item)))
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():  # a signal that comes just before a wait does not end it, so that no wait may be long
            thread.join(_LONGEST_WAIT)
    if errors:
        raise errors[0]
    return tuple(results[index] for index in range(len(items)))


# -- the answer ----------------------------------------------------------------------------------------


def blocks(plan: Plan, result: StepResult) -> bool:
    """Tell whether a result blocks, by the plan's rule for failures."""
    if not result.failed or result.step.observes or plan.on_failure == "never":
        return False
    return plan.on_failure == "block-first" or result.exit_code == BLOCKS


def _answer(plan: Plan, results: tuple[StepResult, ...], log: list[str]) -> HookOutput:
    blocking = next((result for result in results if blocks(plan, result)), None)
    if plan.event_name == "Stop":
        log += _all_shown(result for result in results if result is not blocking)
        return _stop(plan, blocking, log)
    if blocking is not None:
        return HookOutput.block(block_reason(plan, blocking))
    return _worktree(results) if plan.gives_path else _passed(plan, results, log)


def _passed(plan: Plan, results: tuple[StepResult, ...], log: list[str]) -> HookOutput:
    """Hand on what is to be shown. How a subagent's commands failed is told the person, too."""
    texts = _all_shown(results)
    for_model = [plan.context] if plan.context else []
    for_person: list[str] = []
    if plan.event_name in {"SubagentStart", "SubagentStop"}:
        for_person += [failure_log(plan, result) for result in results if result.failed]
    {"model": for_model, "person": for_person, "log": log}[plan.shown] += texts
    return HookOutput(
        additional_context="\n\n".join(for_model) or None,
        system_message="\n".join(for_person) or None,
    )


def _all_shown(results: Iterable[StepResult]) -> list[str]:
    return [text for result in results for text in shown(result)]


def _stop(plan: Plan, blocking: StepResult | None, log: list[str]) -> HookOutput:
    """Keep the agent going while a check fails, within its budget; or, if asked for, when all is well.

    Going on for ever is what `infinite` asks for, so it has no budget.
    """
    session = plan.session_id
    if blocking is None:
        _blocks.forget(session)
        return HookOutput.block(plan.infinite) if plan.infinite is not None else HookOutput.allow()
    reason = block_reason(plan, blocking)
    so_far = 0 if plan.first_stop else _blocks.count(session)
    if plan.max_blocks and so_far >= plan.max_blocks:
        _blocks.forget(session)
        return HookOutput(
            system_message=f"Kept going {so_far} times in a row (stop.maxBlocks), the agent may stop now, "
            f"although a check still fails: {reason}"
        )
    if plan.max_blocks and (problem := _blocks.record(session, so_far + 1)):
        log.append(problem)
    return HookOutput.block(reason)


def _worktree(results: tuple[StepResult, ...]) -> HookOutput:
    """Take the worktree's path from the last line that its command printed."""
    (result,) = results
    lines = [line.strip() for line in result.stdout.splitlines() if line.strip()]
    if not lines:
        return HookOutput.block("WorktreeCreate command printed no path")
    return HookOutput(extra={"worktreePath": os.path.join(result.step.cwd, lines[-1])})
