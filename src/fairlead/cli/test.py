"""`fairlead test`: runs the cases that stand beside the rules, `tests:` in the policy file."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from fairlead.cli.looking import event_of, explain
from fairlead.errors import FairleadError, UsageError
from fairlead.policy import PolicyError, find_layers, read_layer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.cli.looking import Explanation
    from fairlead.policy import Layer, PolicyTest


FOLDER = ".fairlead-tests"

USAGE = """\
usage: fairlead test [FILE | FOLDER]

Runs the cases under `tests:` in that policy file, or in those that hold in that folder (by default this one), and
in the YAML files of the folder .fairlead-tests beside it. A case is a payload and what must come of it; what the
payload leaves out is filled in: the event is PreToolUse then, the folder that of the policy. No command is run.

  FILE      run the cases of this file, judged by this file alone
  FOLDER    run the cases of the policies that hold in this folder

example:
  tests:
    - name: the lock file is safe
      payload: {tool_name: Bash, tool_input: {command: rm poetry.lock}}
      expect: block            # or allow, ask, warn
      reason: uneditableFiles  # must be part of what is told

exit codes: 0 all as expected; 1 not, or there is no test, or no policy, or it has mistakes
"""


def run(args: list[str]) -> int:
    """Run all cases; 1 if one comes out differently, or if there is none."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    unknown = next((arg for arg in args if arg.startswith("-")), None)
    if unknown is not None:
        raise UsageError(f"unknown option {unknown!r}; see fairlead test --help")
    if len(args) > 1:
        raise UsageError(f"test takes one file or folder, got {len(args)}")
    place = args[0] if args else "."
    if not os.path.exists(place):
        raise UsageError(f"{place}: no such file or folder")
    try:
        layers = find_layers(place) if os.path.isdir(place) else (read_layer(place),)
        cases = [(case, layer) for layer in layers for case in (*layer.policy.tests, *_beside(layer))]
    except PolicyError as error:
        print(error, file=sys.stderr)
        return 1
    if not layers:
        where = os.path.abspath(place)
        raise UsageError(f"{where}: no policy here or in the folders above; `fairlead init` writes one")
    outcomes = [_tried(case, layer, layers) for case, layer in cases]
    if not outcomes:
        files = " and ".join(layer.file for layer in layers)
        print(f"fairlead: there are no tests in {files}; write some under `tests:`", file=sys.stderr)
        return 1
    missed = sum(1 for outcome in outcomes if not outcome)
    print(f"{len(outcomes) - missed} passed, {missed} failed")
    return 1 if missed else 0


def _beside(layer: Layer) -> Iterator[PolicyTest]:
    """Read the cases that stand in a folder beside the policy, a file each or several in one."""
    folder = f"{layer.folder}/{FOLDER}"
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    for name in names:
        if name.endswith((".yaml", ".yml")):
            yield from read_layer(f"{folder}/{name}").policy.tests


def _tried(case: PolicyTest, layer: Layer, layers: tuple[Layer, ...]) -> bool:
    """Try one case, and say how it came out."""
    try:
        found = explain(event_of(case.payload, "test", layer.folder), layers)
    except FairleadError as error:
        return _missed(case, f"the payload cannot be read: {error}")
    except Exception as error:  # noqa: BLE001 - what a guard cannot check it denies, and a case should say so
        return _missed(case, f"it cannot be checked: {type(error).__name__}: {error}")
    verdict = _verdict(found)
    said = "\n".join(text for text in (found.told, found.message) if text)
    if verdict != case.expect:
        return _missed(case, f"expected {case.expect}, got {verdict}{f': {said}' if said else ''}")
    if case.reason is not None and case.reason not in said:
        return _missed(case, f"{verdict}, but what is told does not say {case.reason!r}: {said}")
    print(f"ok    {case.name}")
    return True


def _verdict(found: Explanation) -> str:
    if found.verdict in {"block", "ask"}:
        return found.verdict
    return "warn" if found.message else "allow"


def _missed(case: PolicyTest, why: str) -> bool:
    print(f"MISS  {case.name}: {why}")
    return False
