"""Judges how the hooks did when they were run. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairlead.doctor._facts import SLOW
from fairlead.doctor._findings import ok, skipped, warning, wrong

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.doctor._facts import Facts, Run
    from fairlead.doctor._findings import Finding

SLOW_COLD = 2.0
"""Seconds without a daemon; Python alone takes a tenth."""

_BLOCKED = 2
_CANNOT = ("fairlead cannot ", "The policy cannot be read", "fairlead: internal error")
_ROADS = {"daemon": "daemon", "cold": "no daemon", "apart": "isolated, no daemon"}


def check_runs(facts: Facts) -> Iterator[Finding]:
    """Say of each hook of ours whether it answered, and how fast."""
    for run in facts.played.runs:
        if run.is_ours:
            yield _own(run)


def check_foreign(facts: Facts) -> Iterator[Finding]:
    """Say which hooks others have; how long they take, if they were run."""
    for run in facts.played.runs:
        if not run.is_ours:
            yield _foreign(run)


def level_of(run: Run) -> str:
    """Give the level of a run, for those who read JSON."""
    return (_own(run) if run.is_ours else _foreign(run)).level


def _own(run: Run) -> Finding:
    check, name = f"run.{run.event}", f"{run.event:<20}"
    if run.road is None:
        return skipped(check, f"{name}not run: {run.trouble}", _way_to_run(run))
    trouble = _trouble(run)
    if trouble:
        return wrong(check, f"{name}{trouble}", f"run it by hand: {run.program} {run.event} < payload.json")
    time = f"{run.seconds * 1000:>7.1f} ms  {_ROADS[run.road]}{'  blocked' if run.exit_code == _BLOCKED else ''}"
    if run.road == "daemon" and run.seconds > SLOW:
        return warning(check, f"{name}{time}: over {SLOW * 1000:.0f} ms", "see fairlead daemon status")
    if run.seconds > SLOW_COLD:
        return warning(check, f"{name}{time}: over {SLOW_COLD:g} s", "is the machine busy, or the disk far away?")
    return ok(check, f"{name}{time}")


def _way_to_run(run: Run) -> str:
    return "--run-foreign runs it" if "may do anything" in run.trouble else ""


def _trouble(run: Run) -> str:
    """Say what the client would not take for an answer."""
    if run.trouble:
        return run.trouble
    said = run.stderr.decode(errors="replace").strip()
    if run.exit_code not in {0, _BLOCKED} or said.startswith(_CANNOT):
        first = f": {said.splitlines()[0]}" if said else ""
        return f"it ends with exit code {run.exit_code}{first}"
    return "" if _is_answer(run.stdout) else "what it prints is no JSON, and would not be heard"


def _is_answer(stdout: bytes) -> bool:
    if not stdout.strip():
        return True
    try:
        return isinstance(msgspec.json.decode(stdout), dict)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def _foreign(run: Run) -> Finding:
    name = f"{run.event:<20}{run.program} ({run.scope})"
    if run.road is None:
        return skipped("foreign", f"{name}: not run: {run.trouble}", _way_to_run(run))
    if run.trouble:
        return warning("foreign", f"{name}: {run.trouble}", "each such event waits for it")
    time = f"{run.seconds * 1000:.1f} ms, exit code {run.exit_code}"
    if run.seconds > SLOW:
        return warning("foreign", f"{name}: {time}", "each such event waits for it")
    return ok("foreign", f"{name}: {time}")
