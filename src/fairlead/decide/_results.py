"""The results of commands, and the texts that describe them."""

from __future__ import annotations

from fairlead.structs import LIGHT, Struct

BLOCK_EXIT_CODE = 2
"""The exit code by which a command blocks."""
_UNCHECKED_EXIT_CODES = range(126, 193)
"""Exit codes of shells: 126 and 127 if a program cannot be started, 128 + N if signal N ended it."""

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:
    from typing import Literal, TypeAlias

    from fairlead.policy import Plan, Step

    StepStatus: TypeAlias = Literal["passed", "failed", "timed out", "not started", "skipped"]

_LABELS = {"SubagentStart": "Subagent start", "SubagentStop": "Subagent stop"}


class StepResult(Struct, frozen=True, kw_only=True):
    """The result of one command."""

    step: Step
    status: StepStatus
    exit_code: int | None = None
    """As a shell reports it: 128 plus the signal's number if a signal ended it."""
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0
    """How long it ran; the time limit if it timed out."""
    error: str = ""
    """Why it could not be started."""

    @property
    def failed(self) -> bool:
        """Whether the command failed: it was not skipped and did not pass."""
        return self.status not in {"passed", "skipped"}


def blocks(plan: Plan, result: StepResult) -> bool:
    """Return whether a result blocks the event, by the plan's rule for failures."""
    if not result.failed or result.step.observes or plan.on_failure == "never":
        return False
    if is_unchecked(result):
        return not result.step.passes_unchecked
    return plan.on_failure == "block-first" or result.exit_code == BLOCK_EXIT_CODE


def would_block(plan: Plan) -> bool:
    """Return whether the event is blocked if none of a plan's commands can be run."""
    blocking = (step for step in plan.steps if not (step.observes or step.passes_unchecked))
    return plan.on_failure != "never" and any(blocking)


def is_unchecked(result: StepResult) -> bool:
    """Return whether a command could not be run to its end, so that its result is unknown."""
    return result.status in {"not started", "timed out"} or result.exit_code in _UNCHECKED_EXIT_CODES


def failure(result: StepResult) -> str:
    """Describe in one line how a command failed."""
    command = _command(result.step)
    if result.status == "timed out":
        return f"Command timed out after {result.seconds:g} seconds{command}"
    if result.status == "not started":
        return f"Command could not be started ({result.error}){command}"
    return f"Command failed with exit code {result.exit_code}{command}"


def failure_log(plan: Plan, result: StepResult) -> str:
    """Describe a failure for the log, with the message that the policy has for it."""
    line = f"{_LABELS.get(plan.event_name, plan.event_name)} command failed: {failure(result)}"
    return f"{line}\nMessage: {result.step.message}" if result.step.message else line


def block_reason(plan: Plan, result: StepResult) -> str:
    """Return why a command blocks: the policy's message or the failure, then the output that is to be shown."""
    if is_unchecked(result):
        cause = f"This could not be checked, so it is blocked: {failure(result)}"
        return "\n".join((*filter(None, (result.step.message, cause)), *shown_streams(result)))
    if plan.on_failure == "block-first":
        cause = failure(result)
    elif plan.event_name == "UserPromptSubmit":
        cause = f"Slash command blocked by hook (exit code: {BLOCK_EXIT_CODE}){_command(result.step)}"
    else:
        cause = f"{plan.event_name} hook blocked by command"
    return "\n".join((result.step.message or cause, *shown_streams(result)))


def shown_streams(result: StepResult) -> tuple[str, ...]:
    """Return the streams of a command that are to be shown and are not empty."""
    step = result.step
    streams = (
        ("Stdout", step.show_stdout, result.stdout),
        ("Stderr", step.show_stderr, result.stderr),
    )
    return tuple(f"{name}: {text}" for name, wanted, text in streams if wanted and text.strip())


def _command(step: Step) -> str:
    """Return the first line of the command, unless it must not be shown."""
    if not step.show_command:
        return ""
    first, *more = step.run.strip().splitlines() or [""]
    return f": {first}{' …' if more else ''}"
