"""Inside the real client: what two hooks add to a tool call, one before it and one after.

All variants share one session, in random order, so that whatever drifts drifts for all of them: the client matches
each hook against the file that is read, and there is one file for each variant. Measured is the time from the end of
the model's answer, which asks for the file, to the next request, which brings it; the model is a script.
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
from bench.cold_road import PYTHON
from bench.policy import POLICY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from e2e.installed import Machine
    from e2e.model import Turn
    from e2e.sealed import Run

    from bench._harness import Effort

    Variants = Mapping[str, Sequence[Sequence[str]]]
    """Name → the command line before the call and the one after it; none at all for a call without hooks."""

WHAT = "a Read with 2 hooks, added by fairlead-hook"
NOTHING = "int main(void) { return 0; }\n"
BASELINES = {
    "nothing": "static C program that does nothing",
    "hcom": "hcom 0.7.31, native, no check",
    "python": "python -c pass",
}
ABSENT = {"nothing": NO_COMPILER, "hcom": NOT_INSTALLED, "python": NOT_INSTALLED}
TARGET = Target("ratio", 1.3)

_LONGEST = 900.0
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
        Row(
            "in the client", "a Read without hooks", "ms", again, "the same again: the noise", none, shows="difference"
        ),
    ]


def _row(name: str, ours: Timing | None, theirs: Timing | None, absent: str) -> Row:
    target = TARGET if name == "nothing" else None
    return Row("in the client", WHAT, "ms", ours, BASELINES[name], theirs, target=target, absent=absent)


def _variants(here: Machine) -> dict[str, list[list[str]]]:
    """Find what can be measured here."""
    hook = [str(here.launcher)]
    found: dict[str, list[list[str]]] = {
        "none": [],
        "none again": [],
        "ours": [[*hook, event, "--python", str(here.python)] for event in ("PreToolUse", "PostToolUse")],
        "python": [[PYTHON, "-c", "pass"]] * 2,
    }
    source, program = here.folder / "nothing.c", here.folder / "nothing"
    source.write_text(NOTHING)
    if compiled(source, program):
        found["nothing"] = [[str(program)]] * 2
    if hcom := which("hcom", path=str(Path(PYTHON).parent)):
        found["hcom"] = [[hcom, "pre"], [hcom, "post"]]
    return found


def _measured(here: Machine, variants: Variants, effort: Effort) -> dict[str, Timing]:
    """Play the session, and give how long a call takes with each variant."""
    for name in variants:
        (here.project / f"{name}.txt").write_text(f"{name}\n")
    (here.project / ".fairlead.yaml").write_text(POLICY)
    here.settings.parent.mkdir(parents=True)
    here.settings.write_text(json.dumps(_settings(here.project, variants)))
    order = _order(list(variants), effort.process_rounds)
    effort.tick(f"one session of {len(order)} calls")
    run = here.prompt(_script(here, order), timeout=_LONGEST)
    _check(here, run, order)
    samples: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(len(variants) + 1, len(order) + 1):  # one call to start the daemon, and a round to warm up
        samples[order[number - 1]].append(run.requests[number + 1].at - run.answered[number])
    return {name: Timing.of(taken) for name, taken in samples.items()}


def _order(names: list[str], rounds: int) -> list[str]:
    """Every round has each once, in another order; the first does not count."""
    shuffled = random.Random(2)  # noqa: S311 - an order, no secret; the same in every run
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
    begin = [call("Read", file_path=str(here.project / "ours.txt"))]
    return [begin, here.when_warm(reads[0]), *reads[1:], "Done."]


def _check(here: Machine, run: Run, order: Sequence[str]) -> None:
    """Count only a session in which every call was made, and ours were answered by the daemon."""
    asked = len(order) + 2
    if (run.exit_code, run.stderr, run.asked) != (0, "", ["main"] * asked):
        raise RuntimeError(f"the session went wrong: {run.exit_code} {run.stderr} {len(run.asked)} of {asked} requests")
    ours = here.happened()[2:]  # without the call that started the daemon
    roads = [event.route for event in ours]
    if roads != ["daemon"] * 2 * order.count("ours"):
        raise RuntimeError(f"the daemon answered {roads.count('daemon')} of {2 * order.count('ours')} events")
