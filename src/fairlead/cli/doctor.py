"""`fairlead doctor`: diagnoses an installation, runs each hook as the client does, and says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead import __version__
from fairlead.cli.support.client_options import (
    client_option,
    find_client,
    parse_version,
    scope_option,
    version_option,
)
from fairlead.cli.support.command import Command
from fairlead.cli.support.invocation import Screen, print_lines, stdout_screen
from fairlead.clients import format_version
from fairlead.doctor import DoctorOptions, examine, gather, level_of
from fairlead.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.doctor import Facts, Finding, Level, RunRoute

    Groups = Sequence[tuple[str, Sequence[Finding]]]

_WORDS: dict[Level, str] = {"ok": "ok", "warning": "warning", "wrong": "error", "skipped": "skipped"}
_STYLES: dict[Level, str] = {"ok": "32", "warning": "33", "wrong": "31", "skipped": "2"}
_ROADS: dict[RunRoute | None, str | None] = {"daemon": "daemon", "no daemon": "cold", "isolated": "apart", None: None}
"""How a hook was run → the word for it in the JSON document."""
_WORD_WIDTH = max(map(len, _WORDS.values()))


# -- text ----------------------------------------------------------------------------------------------


def to_text(facts: Facts, groups: Groups, screen: Screen) -> Iterator[str]:
    """Yield the lines of the report: the findings below the title of their group, then a summary."""
    yield printable(f"Fairlead {facts.version}, in {facts.cwd}")
    for title, findings in groups:
        yield ""
        yield title
        for finding in findings:
            word = screen.paint(_STYLES[finding.level], f"{_WORDS[finding.level]:<{_WORD_WIDTH}}")
            yield f"  {word}  {finding.found}"
            if finding.advice:
                yield f"  {'':<{_WORD_WIDTH}}    {finding.advice}"
    yield ""
    yield _summary(facts, _all_findings(groups))


def _summary(facts: Facts, findings: Sequence[Finding]) -> str:
    """Return one line with the outcome and, if there are errors, what to do first."""
    errors = [finding for finding in findings if finding.level == "wrong"]
    warnings = _count([finding for finding in findings if finding.level == "warning"], "warning")
    runs = [run for run in facts.hook_runs.runs if run.is_ours and run.route is not None]
    ran = f"{_count(runs, 'hook')} ran" if runs else "no hook ran"
    if not errors:
        return f"no errors: {ran}, {warnings}"
    return f"{_count(errors, 'error')}, {warnings}, {ran}; first: {errors[0].advice}"


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def to_document(facts: Facts, groups: Groups) -> dict[str, Any]:
    """Return the document that `--json` prints. Its keys are stable; new ones may be added."""
    findings = _all_findings(groups)
    levels = [finding.level for finding in findings]
    return {
        "version": facts.version,
        "client": facts.client.name,
        "client_version": format_version(facts.client.version) if facts.client.version else None,
        "cwd": printable(facts.cwd),
        "scopes": facts.scopes,
        "healthy": "wrong" not in levels,
        "counts": {level: levels.count(level) for level in _WORDS},
        "findings": findings,
        "runs": [
            {
                "event": printable(run.event),
                "scope": run.scope,
                "program": printable(run.program),
                "ours": run.is_ours,
                "level": level_of(run),
                "road": _ROADS[run.route],
                "ms": round(run.seconds * 1000, 3) if run.route is not None else None,
                "exit_code": run.exit_code,
            }
            for run in facts.hook_runs.runs
        ],
    }


def _all_findings(groups: Groups) -> list[Finding]:
    return [finding for _, findings in groups for finding in findings]


# -- the command ---------------------------------------------------------------------------------------


@click.command(
    "doctor",
    cls=Command,
    examples=("fairlead doctor", "fairlead doctor --scope user --json"),
    exit_codes=((0, "no errors"), (1, "something is wrong, or the command line is")),
)
@scope_option("Check the hooks of user, project or local (default: all three), and the files that override them.")
@click.option(
    "--run-foreign", is_flag=True, help="Also run the hooks of other programs, which may do anything; else list them."
)
@version_option("The client has")
@client_option
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def doctor(*, scope: str | None, run_foreign: bool, client_version: str | None, client: str, as_json: bool) -> int:
    """Diagnose the installation and say what to do.

    Checks the client and its settings, the launcher, the daemon, the policy that applies in this folder, and the stored
    state. Then it runs each installed hook as the client does, and shows how long it took. Each finding is ok, a
    warning (it works, but could be better), an error, or skipped.

    Nothing is changed, and none of your commands is run: a hook gets a recorded payload of the session fairlead-doctor,
    and an empty home wherever the policy would run something. Like any event, it starts a daemon if there is none.
    """
    version = parse_version(find_client(client, scope), client_version)
    facts = gather(DoctorOptions(scope, run_foreign, version, client), __version__)
    groups = examine(facts)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(to_document(facts, groups)), indent=2).decode())
    else:
        print_lines(to_text(facts, groups, stdout_screen()))
    return 1 if any(finding.level == "wrong" for finding in _all_findings(groups)) else 0
