"""Encodes plans for the launcher, and decodes its reports of the results. `launcher/plan.c` is the counterpart.

A plan is text in fields that each end with a NUL. A count precedes each list:

    1, s(equence) or p(arallel), bytes of the input (0: the payload), [variables to remove], [NAME=value …], [steps …]
    a step: when it ends a sequence, or skip; milliseconds or 0; its folder; [NAME=value …]; [argv …]

The input follows. A step with `skip` does not run. A step ends a sequence `never`; on any `failure`; if the command
`ran` and failed; on exit code `2`; or if it is `blocked`, which is exit code 2 or a command that could not be run.

A report is one line for the plan and one for each step, then the bytes whose sizes these lines give:

    1 done|cancelled STEPS DECISION PAYLOAD
    RESULT VALUE MILLISECONDS and, for stdout and stderr: FIRST LAST SKIPPED-LINES
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import msgspec

from fairlead.decide import Decision, StepResult
from fairlead.errors import FairleadError
from fairlead.execute._commands import script_argv
from fairlead.policy import ALL_VARIABLES, plan_variables
from fairlead.process import DEFAULT_OUTPUT_LINES, FirstAndLastLines, start_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlead.decide import StepStatus
    from fairlead.policy import Plan, Step

MAX_STEPS: Final = 64
_VERSION: Final = "1"
_ENDS_ON: Final = {
    ("block-first", False): "failure",
    ("block-first", True): "ran",
    ("block-on-2", False): "blocked",
    ("block-on-2", True): "2",
}
"""When a step ends a sequence, by `Plan.on_failure` and `Step.passes_unchecked`."""
_MAX_MILLISECONDS: Final = 2_000_000_000
_SIZES: Final = 6
"""How many numbers of a line are sizes of output."""


class BadReport(FairleadError):
    """The report is invalid: no launcher of this version has written it."""


class Report(msgspec.Struct, frozen=True):
    """The results of a plan, with the decision that contains the plan, and the payload of the event."""

    cancelled: bool
    results: tuple[StepResult, ...]
    decision: Decision
    payload: bytes


# -- plans ---------------------------------------------------------------------------------------------


def encode_steps(
    plan: Plan, payload: bytes, input_: bytes, is_wanted: Callable[[Step], bool] | None = None
) -> bytes | None:
    """Return a plan for the launcher; `None` if only Python can run it. `input_` is the stdin of its steps.

    `is_wanted` returns whether a step runs; without it, no step is skipped.
    """
    if not 0 < len(plan.steps) <= MAX_STEPS or any(step.notify for step in plan.steps):
        return None
    own_input = b"" if input_ == payload else input_
    fields = [_VERSION, "p" if plan.parallel else "s", str(len(own_input))]
    fields += _with_count(sorted(ALL_VARIABLES))
    shared, own = plan_variables(plan, input_)
    fields += _with_count(_assignments(shared))
    fields.append(str(len(plan.steps)))
    for step, variables in zip(plan.steps, own, strict=True):
        fields += _step_fields(plan, step, variables, is_wanted=is_wanted is None or is_wanted(step))
    try:
        text = "\0".join([*fields, ""]).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return None
    is_split = text.count(b"\0") != len(fields)  # a NUL in a command, which no program accepts
    return None if is_split else text + own_input


def _step_fields(plan: Plan, step: Step, variables: dict[str, str], *, is_wanted: bool) -> list[str]:
    ends_on = "never" if step.observes else _ENDS_ON.get((plan.on_failure, step.passes_unchecked), "never")
    milliseconds = min(round((step.timeout or 0) * 1000), _MAX_MILLISECONDS)
    return [
        ends_on if is_wanted else "skip",
        str(milliseconds),
        step.cwd,
        *_with_count(_assignments(variables)),
        *_with_count(script_argv(step)),
    ]


def _with_count(items: Sequence[str]) -> list[str]:
    return [str(len(items)), *items]


def _assignments(variables: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in variables.items()]


# -- reports -------------------------------------------------------------------------------------------


class _ResultLine(msgspec.Struct, frozen=True):
    """One line of a report: the result of a step, and how much of its output was kept."""

    result: str
    value: int
    """The exit code, the signal or the `errno`, depending on `result`."""
    milliseconds: int
    stdout: tuple[int, int, int]
    """Bytes of the first part, bytes of the last part, lines between them."""
    stderr: tuple[int, int, int]


class _OutputReader:
    """Reads the output of all steps, one part after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes. Raises `ValueError` if fewer are left."""
        part = self._data[self._at : self._at + size]
        if size < 0 or len(part) < size:
            raise ValueError("it is cut off")
        self._at += size
        return part

    def take_stream(self, sizes: tuple[int, int, int], max_lines: int) -> str:
        """Return the output of one stream, in the form that `run_process` returns."""
        first, last, skipped = sizes
        if not first and not last and not skipped:
            return ""
        kept = FirstAndLastLines(max_lines)
        kept.add(self.take(first))
        kept.skip(skipped)
        kept.add(self.take(last))
        return kept.getvalue().decode(errors="replace")

    @property
    def is_empty(self) -> bool:
        return self._at == len(self._data)


def read_report(data: bytes) -> Report:
    """Parse a report. Raises `BadReport` if it is invalid."""
    try:
        return _read_report(data)
    except (ValueError, TypeError, msgspec.DecodeError) as error:
        raise BadReport(f"the results of the policy's commands cannot be read: {error}") from None


def _read_report(data: bytes) -> Report:
    head, _, rest = data.partition(b"\n")
    version, state, *sizes = head.decode("ascii").split(" ")
    count, decision_size, payload_size = map(int, sizes)
    if version != _VERSION or state not in {"done", "cancelled"} or not 0 < count <= MAX_STEPS:
        raise ValueError(f"{head!r}")
    *lines, content = rest.split(b"\n", count)
    rows = [_read_line(line) for line in lines]
    size = sum(sum(row.stdout[:2]) + sum(row.stderr[:2]) for row in rows)
    decision = msgspec.json.decode(content[size : size + decision_size], type=Decision)
    if decision.plan is None or len(decision.plan.steps) != len(rows):
        raise ValueError("its parts do not match")
    output = _OutputReader(content[:size])
    results = [_result(step, row, output) for step, row in zip(decision.plan.steps, rows, strict=True)]
    payload = content[size + decision_size :]
    if len(payload) != payload_size:
        raise ValueError("it is cut off")
    return Report(state == "cancelled", tuple(result for result in results if result is not None), decision, payload)


def _read_line(line: bytes) -> _ResultLine:
    result, *fields = line.decode("ascii").split(" ")
    value, milliseconds, *sizes = map(int, fields)
    if len(sizes) != _SIZES or min(sizes) < 0:
        raise ValueError(f"{line!r}")
    return _ResultLine(result, value, milliseconds, (sizes[0], sizes[1], sizes[2]), (sizes[3], sizes[4], sizes[5]))


def _result(step: Step, line: _ResultLine, output: _OutputReader) -> StepResult | None:
    """Return a step's result; `None` if the sequence ended before it. Raises `ValueError` for an unknown result."""
    max_lines = step.max_output_lines or DEFAULT_OUTPUT_LINES
    stdout, stderr = output.take_stream(line.stdout, max_lines), output.take_stream(line.stderr, max_lines)
    seconds = line.milliseconds / 1000
    match line.result:
        case "not-run":
            return None
        case "skipped":
            return StepResult(step=step, status="skipped")
        case "exited" | "signaled":
            code = line.value if line.result == "exited" else 128 + line.value
            status: StepStatus = "failed" if code else "passed"
            return StepResult(step=step, status=status, exit_code=code, stdout=stdout, stderr=stderr, seconds=seconds)
        case "timed-out":
            seconds = round(step.timeout or seconds, 1)
            return StepResult(step=step, status="timed out", stdout=stdout, stderr=stderr, seconds=seconds)
        case "no-program" | "no-folder":
            return StepResult(step=step, status="not started", error=_start_error(step, line))
        case other:
            raise ValueError(f"unknown result {other!r}")


def _start_error(step: Step, line: _ResultLine) -> str:
    """Describe why a step could not be started, as `run_process` does."""
    program = script_argv(step)[0]
    name = step.cwd if line.result == "no-folder" else program
    return start_error(program, step.cwd, OSError(line.value, os.strerror(line.value), name))
