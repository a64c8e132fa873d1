"""`fairlead test`: runs the tests of a policy, from `tests:` in the file and from a folder beside it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click
import msgspec

from fairlead.cli.policy.explanation import event_of, explain
from fairlead.cli.support.command import Command
from fairlead.cli.support.invocation import print_lines
from fairlead.errors import FairleadError, UsageError
from fairlead.policy import PolicyError, find_layers, find_layers_in_force, read_layer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.cli.policy.explanation import Explanation
    from fairlead.policy import Layer, PolicyTest

FOLDER = ".fairlead-tests"


class PolicyTestResult(msgspec.Struct, frozen=True):
    """The outcome of one test."""

    name: str
    passed: bool
    why: str = ""
    """Why it failed; "" if it passed."""


def run_test(test: PolicyTest, layer: Layer, layers: tuple[Layer, ...]) -> PolicyTestResult:
    """Evaluate the payload of a test under `layers`, and compare the verdict and its reason with what is expected.

    `layer` is the layer that has the test. A payload or a guard that raises an error makes the test fail.
    """
    try:
        explanation = explain(event_of(test.payload, "test", layer.folder), layers)
    except FairleadError as error:
        return PolicyTestResult(test.name, passed=False, why=f"the payload cannot be read: {error}")
    except Exception as error:  # noqa: BLE001 - a guard that raises denies the call, and the test should say so
        return PolicyTestResult(test.name, passed=False, why=f"the guard failed: {type(error).__name__}: {error}")
    verdict = _verdict(explanation)
    reason = "\n".join(text for text in (explanation.told, explanation.message) if text)
    if verdict != test.expect:
        why = f"expected {test.expect}, got {verdict}{f': {reason}' if reason else ''}"
        return PolicyTestResult(test.name, passed=False, why=why)
    if test.reason is not None and test.reason not in reason:
        why = f"{verdict}, but the reason does not contain {test.reason!r}: {reason}"
        return PolicyTestResult(test.name, passed=False, why=why)
    return PolicyTestResult(test.name, passed=True)


def _verdict(explanation: Explanation) -> str:
    if explanation.verdict in {"block", "ask"}:
        return explanation.verdict
    return "warn" if explanation.message else "allow"


def to_text(outcomes: Sequence[PolicyTestResult]) -> Iterator[str]:
    """Yield a line for each test, and the totals."""
    for outcome in outcomes:
        yield f"ok    {outcome.name}" if outcome.passed else f"FAIL  {outcome.name}: {outcome.why}"
    failed = sum(not outcome.passed for outcome in outcomes)
    yield f"{len(outcomes) - failed} passed, {failed} failed"


@click.command(
    "test",
    cls=Command,
    arguments=(
        ("FILE", "run the tests of this file, under this file alone"),
        ("FOLDER", "run the tests of the policies that apply in this folder (default: the current one)"),
    ),
    examples=(
        "tests:",
        "  - name: the lock file is protected",
        "    payload: {tool_name: Bash, tool_input: {command: rm poetry.lock}}",
        "    expect: block            # or allow, ask, warn",
        "    reason: uneditableFiles  # must be part of the reason",
        "",
        "fairlead test",
    ),
    exit_codes=((0, "all passed"), (1, "one failed, there is no test or no policy, or the policy has mistakes")),
)
@click.argument("target", metavar="[FILE | FOLDER]", default=".", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print the outcomes as JSON.")
def test(*, target: str, as_json: bool) -> int:
    """Run the tests of a policy file.

    They are under `tests:` in the policy, and in the YAML files of the folder .fairlead-tests beside it. A test is a
    payload and the verdict that it must get. Missing fields of the payload are filled in: PreToolUse as the event, the
    folder of the policy. No command is run. The tests are about the policy files as they are: of a file that was
    deleted there are none, though its last good version still applies to events, as a warning says.
    """
    if not os.path.exists(target):
        raise UsageError(f"{target}: no such file or folder")
    try:
        layers = _layers_in(target) if os.path.isdir(target) else (read_layer(target),)
        tests = [(test, layer) for layer in layers for test in (*layer.policy.tests, *_tests_beside(layer))]
    except PolicyError as error:
        print(error, file=sys.stderr)
        return 1
    if not layers:
        where = os.path.abspath(target)
        raise UsageError(f"{where}: no policy here or in the folders above; `fairlead init` writes one")
    if not tests:
        files = " and ".join(layer.file for layer in layers)
        raise UsageError(f"there are no tests in {files}; write some under `tests:`")
    outcomes = [run_test(test, layer, layers) for test, layer in tests]
    if as_json:
        print(msgspec.json.encode(outcomes).decode())
    else:
        print_lines(to_text(outcomes))
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def _layers_in(folder: str) -> tuple[Layer, ...]:
    """Return the layers of the files that apply in a folder. Warn on stderr of deleted files that apply to events."""
    for warning in find_layers_in_force(folder).warnings:
        print(warning, file=sys.stderr)
    return find_layers(folder)


def _tests_beside(layer: Layer) -> Iterator[PolicyTest]:
    """Yield the tests in the YAML files of `FOLDER` beside the policy. Raise `PolicyError` if one is not valid."""
    folder = f"{layer.folder}/{FOLDER}"
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    for name in names:
        if name.endswith((".yaml", ".yml")):
            yield from read_layer(f"{folder}/{name}").policy.tests
