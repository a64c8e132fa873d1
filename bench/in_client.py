"""Inside the real client: the time that two hooks add to a tool call, one before it and one after.

All variants share one session, in random order, so that any drift affects all of them: the client matches each hook
against the file that is read, and each variant has its own file. The time is measured from the end of the model's
answer, which requests the file, to the next request, which contains it; the model is scripted.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

from bench._data import ROOT
from bench._harness import Timing
from bench._home import NO_COMPILER, compiled
from bench._table import NOT_INSTALLED, Row, Target
from bench.policy import POLICY
from bench.without_daemon import PYTHON

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from e2e.installed import Machine
    from e2e.model import Turn
    from e2e.sealed import Run

    from bench._harness import Effort

    Variants = Mapping[str, Sequence[Sequence[str]]]
    """Name → the command lines before and after the call; empty for a call without hooks."""

WHAT = "a Read with 2 hooks, added by fairlead-hook"
NOTHING = "int main(void) { return 0; }\n"
BASELINES = {
    "nothing": "static C program that does nothing",
    "hcom": "hcom 0.7.31, native, no check",
    "python": "python -c pass",
}
ABSENT = {"nothing": NO_COMPILER, "hcom": NOT_INSTALLED, "python": NOT_INSTALLED}
TARGET = Target("ratio", 1.3)

_TIMEOUT = 900.0
"""Seconds for the whole session."""


def rows(effort: Effort) -> list[Row]:
    sys.path.append(str(ROOT / "tests"))
    from e2e.clients import Unavailable, newest
    from e2e.installed import machine

    try:
        client = newest()
    except Unavailable as reason:
        return [_row(name, None, None, f"not measured: {reason}") for name in BASELINES]
    with machine(client) as here:
        times = _measured(here, _variants(here), effort)
    none, again = times["none"], times["none again"]
    added = {name: timing.above(none) for name, timing in times.items()}
    return [
        *(_row(name, added["ours"], added.get(name), ABSENT[name]) for name in BASELINES),
        Row("in the client", "a Read without hooks", "ms", again, "the same again (noise)", none, shows="difference"),
    ]


def _row(name: str, ours: Timing | None, theirs: Timing | None, absent: str) -> Row:
    target = TARGET if name == "nothing" else None
    return Row("in the client", WHAT, "ms", ours, BASELINES[name], theirs, target=target, absent=absent)


def _variants(here: Machine) -> dict[str, list[list[str]]]:
    """Return the variants that can be measured on this machine."""
    hook = [str(here.launcher)]
    variants: dict[str, list[list[str]]] = {
        "none": [],
        "none again": [],
        "ours": [[*hook, event, "--python", str(here.python)] for event in ("PreToolUse", "PostToolUse")],
        "python": [[PYTHON, "-c", "pass"]] * 2,
    }
    source, program = here.folder / "nothing.c", here.folder / "nothing"
    source.write_text(NOTHING)
    if compiled(source, program):
        variants["nothing"] = [[str(program)]] * 2
    if hcom := which("hcom", path=str(Path(PYTHON).parent)):
        variants["hcom"] = [[hcom, "pre"], [hcom, "post"]]
    return variants


def _measured(here: Machine, variants: Variants, effort: Effort) -> dict[str, Timing]:
    """Run the session, and return the time of a call with each variant."""
    for name in variants:
        (here.project / f"{name}.txt").write_text(f"{name}\n")
    (here.project / ".fairlead.yaml").write_text(POLICY)
    here.settings.parent.mkdir(parents=True)
    here.settings.write_text(json.dumps(_settings(here.project, variants)))
    order = _order(list(variants), effort.process_rounds)
    effort.tick(f"one session of {len(order)} calls")
    run = here.prompt(_script(here, order), timeout=_TIMEOUT)
    _check(here, run, order)
    samples: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(
        len(variants) + 1, len(order) + 1
    ):  # without the call that starts the daemon, and a warm-up round
        samples[order[number - 1]].append(run.requests[number + 1].at - run.answered[number])
    return {name: Timing.of(taken) for name, taken in samples.items()}


def _order(names: list[str], rounds: int) -> list[str]:
    """Return the variants of all rounds, each in another order; the first round is not counted."""
    shuffled = random.Random(2)
    return [name for _ in range(rounds + 1) for name in shuffled.sample(names, len(names))]


def _settings(project: Path, variants: Variants) -> dict[str, Any]:
    hooks: dict[str, list[Any]] = {"PreToolUse": [], "PostToolUse": []}
    for name, commands in variants.items():
        for event, (program, *words) in zip(hooks, commands, strict=False):
            hook = {"type": "command", "command": program, "args": words, "if": f"Read(/{project}/{name}.txt)"}
            hooks[event].append({"matcher": "Read", "hooks": [hook]})
    return {"hooks": hooks}


def _script(here: Machine, order: Sequence[str]) -> list[Turn]:
    from e2e.model import call

    reads = [[call("Read", file_path=str(here.project / f"{name}.txt"))] for name in order]
    first = [call("Read", file_path=str(here.project / "ours.txt"))]
    return [first, here.when_warm(reads[0]), *reads[1:], "Done."]


def _check(here: Machine, run: Run, order: Sequence[str]) -> None:
    """Check that every call was made, and that the daemon answered ours."""
    asked = len(order) + 2
    if (run.exit_code, run.stderr, run.asked) != (0, "", ["main"] * asked):
        raise RuntimeError(f"the session failed: {run.exit_code} {run.stderr} {len(run.asked)} of {asked} requests")
    ours = here.happened()[2:]  # without the call that started the daemon
    paths = [event.route for event in ours]
    if paths != ["daemon"] * 2 * order.count("ours"):
        raise RuntimeError(f"the daemon answered {paths.count('daemon')} of {2 * order.count('ours')} events")
