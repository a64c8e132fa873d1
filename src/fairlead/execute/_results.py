"""How commands ended, and the words for it."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from fairlead.events import HookOutput
from fairlead.policy import Plan, Step

BLOCKS = 2
"""The exit code by which a command blocks."""

Status: TypeAlias = Literal["passed", "failed", "timed out", "not started", "skipped"]

_LABELS = {"SubagentStart": "Subagent start", "SubagentStop": "Subagent stop"}


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one command ended."""

    step: Step
    status: Status
    exit_code: int | None = None
    """As a shell gives it: 128 and the signal's number if a signal ended it."""
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0
    """How long it ran; if time was up, how long it was given."""
    error: str = ""
    """Why it could not be started."""

    @property
    def failed(self) -> bool:
        """Whether it was to run and did not pass."""
        return self.status not in {"passed", "skipped"}


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a plan."""

    output: HookOutput
    stdout: str = ""
    """What commands said on stdout and were asked to show. Not for a client's stdout, which is the answer's alone."""
    stderr: str = ""
    """Lines for stderr."""
    results: tuple[StepResult, ...] = ()
    cancelled: bool = False
    """Nobody waits any more; how far it came is not known."""


def failure(result: StepResult) -> str:
    """Say in one line how a command failed."""
    command = _command(result.step)
    if result.status == "timed out":
        return f"Command timed out after {result.seconds:g} seconds{command}"
    if result.status == "not started":
        return f"Command could not be started ({result.error}){command}"
    return f"Command failed with exit code {result.exit_code}{command}"


def failure_log(plan: Plan, result: StepResult) -> str:
    """Say for the log how a command failed, and what its writer has to say about that."""
    line = f"{_LABELS.get(plan.event_name, plan.event_name)} command failed: {failure(result)}"
    return f"{line}\nMessage: {result.step.message}" if result.step.message else line


def block_reason(plan: Plan, result: StepResult) -> str:
    """Say why a command blocks: its message, or what happened; then what it was asked to show."""
    if plan.on_failure == "block-first":
        happened = failure(result)
    elif plan.event_name == "UserPromptSubmit":
        happened = f"Slash command blocked by hook (exit code: {BLOCKS}){_command(result.step)}"
    else:
        happened = f"{plan.event_name} hook blocked by command"
    return "\n".join((result.step.message or happened, *shown(result)))


def shown(result: StepResult) -> tuple[str, ...]:
    """Give the streams that are to be shown and hold something."""
    step = result.step
    streams = (
        ("Stdout", step.show_stdout, result.stdout),
        ("Stderr", step.show_stderr, result.stderr),
    )
    return tuple(f"{name}: {text}" for name, wanted, text in streams if wanted and text.strip())


def _command(step: Step) -> str:
    """Name the command, by its first line if it has more, unless it shall not be shown."""
    if not step.show_command:
        return ""
    first, *more = step.run.strip().splitlines() or [""]
    return f": {first}{' …' if more else ''}"
