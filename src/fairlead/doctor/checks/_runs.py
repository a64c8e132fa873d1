"""Checks of the hooks that were run: whether each answered, and how fast."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairlead.doctor._facts import SLOW_SECONDS
from fairlead.doctor._findings import ok, skipped, warning, wrong

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.doctor._facts import Facts, HookRunFacts
    from fairlead.doctor._findings import Finding

SLOW_WITHOUT_DAEMON = 2.0
"""Seconds after which a hook is reported if no daemon answered it. It usually takes a tenth of a second."""

_BLOCKED = 2
_FAILURE_PREFIXES = ("fairlead cannot ", "The policy cannot be read", "fairlead: internal error")
_ROUTE_LABELS = {"daemon": "daemon", "no daemon": "no daemon", "isolated": "isolated, no daemon"}


def check_runs(facts: Facts) -> Iterator[Finding]:
    """Yield a finding for each of our hooks: whether it answered, and how fast."""
    for run in facts.hook_runs.runs:
        if run.is_ours:
            yield _check_our_hook(run)


def check_foreign(facts: Facts) -> Iterator[Finding]:
    """Yield findings about hooks of other programs, with their times if they were run."""
    for run in facts.hook_runs.runs:
        if not run.is_ours:
            yield _check_foreign_hook(run)


def level_of(run: HookRunFacts) -> str:
    """Return the level of the finding that `check_runs` or `check_foreign` yields for a run."""
    return (_check_our_hook(run) if run.is_ours else _check_foreign_hook(run)).level


def _check_our_hook(run: HookRunFacts) -> Finding:
    check, name = f"run.{run.event}", f"{run.event:<20}"
    if run.route is None:
        return skipped(check, f"{name}not run: {run.error}", _how_to_run(run))
    if problem := _problem(run):
        return wrong(check, f"{name}{problem}", f"run it by hand: {run.program} {run.event} < payload.json")
    blocked = "  blocked" if run.exit_code == _BLOCKED else ""
    time = f"{run.seconds * 1000:>7.1f} ms  {_ROUTE_LABELS[run.route]}{blocked}"
    if run.route == "daemon" and run.seconds > SLOW_SECONDS:
        return warning(check, f"{name}{time}: over {SLOW_SECONDS * 1000:.0f} ms", "see fairlead daemon status")
    if run.seconds > SLOW_WITHOUT_DAEMON:
        limit = f"over {SLOW_WITHOUT_DAEMON:g} s"
        return warning(check, f"{name}{time}: {limit}", "is the machine busy, or the disk slow?")
    return ok(check, f"{name}{time}")


def _how_to_run(run: HookRunFacts) -> str:
    return "--run-foreign runs it" if "may do anything" in run.error else ""


def _problem(run: HookRunFacts) -> str:
    """Return why the client would not accept the answer of a hook; "" if it would."""
    if run.error:
        return run.error
    message = run.stderr.decode(errors="replace").strip()
    if run.exit_code not in {0, _BLOCKED} or message.startswith(_FAILURE_PREFIXES):
        first = f": {message.splitlines()[0]}" if message else ""
        return f"it ended with exit code {run.exit_code}{first}"
    return "" if _is_answer(run.stdout) else "its output is not a JSON object, so the client ignores it"


def _is_answer(stdout: bytes) -> bool:
    if not stdout.strip():
        return True
    try:
        return isinstance(msgspec.json.decode(stdout), dict)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def _check_foreign_hook(run: HookRunFacts) -> Finding:
    name = f"{run.event:<20}{run.program} ({run.scope})"
    if run.route is None:
        return skipped("foreign", f"{name}: not run: {run.error}", _how_to_run(run))
    if run.error:
        return warning("foreign", f"{name}: {run.error}", "each such event waits for it")
    time = f"{run.seconds * 1000:.1f} ms, exit code {run.exit_code}"
    if run.seconds > SLOW_SECONDS:
        return warning("foreign", f"{name}: {time}", "each such event waits for it")
    return ok("foreign", f"{name}: {time}")
