"""`fairlead doctor`: finds what is wrong with an install, runs each hook as the client does, and says what to do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead import __version__
from fairlead.clients.claude._install import SCOPES
from fairlead.clients.claude._install_events import read_version, show_version
from fairlead.doctor import Options as Probing
from fairlead.doctor import gather
from fairlead.doctor.checks import _daemon as _check_daemon
from fairlead.doctor.checks import _programs as _check_programs
from fairlead.doctor.checks import _runs as _check_runs
from fairlead.doctor.checks import _settings as _check_settings
from fairlead.doctor.checks import _state as _check_state
from fairlead.errors import UsageError
from fairlead.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.doctor import Facts, Finding, Level

USAGE = """\
usage: fairlead doctor [--scope user|project|local] [--run-foreign] [--json]

Looks at the client and its settings, the launcher, the daemon, the policy that holds in this folder and what is kept;
then runs each installed hook as the client does, and shows how long it took.

Nothing is changed, and none of your commands is run: a hook is run with a recorded payload of the session
fairlead-doctor, and in an empty home wherever the policy has something to do for it. As any event, it starts a daemon
if there is none.

  --scope SCOPE         look at the hooks of that scope (default: all three); files that overrule it are looked at too
  --run-foreign         run the hooks of other programs too; they may do anything, so they are only listed otherwise
  --client-version V    the client is of that version, as 2.1.325 (default: what `claude --version` says)
  --client claude       whose hooks they are (default: claude)
  --json                print everything as JSON

example:
  fairlead doctor --scope user

signs: ok well; ?? works, but look at it; !! wrong; -- not looked at
exit codes: 0 nothing is wrong; 1 something is, or the command line is
"""

_SIGNS: dict[Level, str] = {"ok": "ok", "warning": "??", "wrong": "!!", "skipped": "--"}


class Options(msgspec.Struct, frozen=True):
    """What the command line asked for."""

    wish: Probing
    json: bool = False


def run(args: Sequence[str]) -> int:
    """Look at everything, say what was found, and return the exit code."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    options = _options(args)
    facts = gather(options.wish, __version__)
    groups = examine(facts)
    findings = [finding for _, found in groups for finding in found]
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(_document(facts, findings)), indent=2).decode())
    else:
        for line in _shown(facts, groups):
            _say(line)
    return 1 if any(finding.level == "wrong" for finding in findings) else 0


def examine(facts: Facts) -> list[tuple[str, list[Finding]]]:
    """Judge the facts, in the order of the route that an event takes."""
    settings = _check_settings
    found: list[tuple[str, list[Finding]]] = [
        ("client", [*settings.check_client(facts.client)]),
        ("install", [*settings.check_install(facts), *settings.check_double(facts), *settings.check_rivals(facts)]),
        ("status line", [*settings.check_status_line(facts)]),
        ("settings", [*settings.check_files(facts), *settings.check_gate(facts)]),
        ("programs", [*_check_programs.check_programs(facts), *_check_programs.check_path(facts)]),
        ("daemon", [*_check_daemon.check_daemon(facts)]),
        ("hooks, run as the client does", [*_check_runs.check_runs(facts)]),
        ("hooks of others", [*_check_runs.check_foreign(facts)]),
        ("policy", [*_check_state.check_policy(facts.policy)]),
        ("state", [*_check_state.check_state(facts)]),
    ]
    return [(title, findings) for title, findings in found if findings]


# -- the command line ------------------------------------------------------------------------------------


def _options(args: Sequence[str]) -> Options:
    given: dict[str, str] = {}
    words = list(args)
    while words:
        name, equals, value = words.pop(0).partition("=")
        if name in {"--run-foreign", "--json"}:
            given[name] = ""
        elif name not in {"--scope", "--client-version", "--client"}:
            raise UsageError(f"unknown option {name!r}; see fairlead doctor --help")
        elif equals or words:
            given[name] = value if equals else words.pop(0)
        else:
            raise UsageError(f"{name} needs a value")
    scope, version = given.get("--scope"), given.get("--client-version")
    if scope is not None and scope not in SCOPES:
        raise UsageError(f"--scope: expected one of {', '.join(SCOPES)}, got {scope!r}")
    if given.get("--client", "claude") != "claude":
        raise UsageError(f"--client: expected one of claude, got {given['--client']!r}")
    wish = Probing(scope, "--run-foreign" in given, read_version(version) if version is not None else None)
    return Options(wish, "--json" in given)


# -- what is shown ---------------------------------------------------------------------------------------


def _shown(facts: Facts, groups: Sequence[tuple[str, Sequence[Finding]]]) -> Iterator[str]:
    yield printable(f"Fairlead {facts.version}, in {facts.cwd}")
    for title, findings in groups:
        yield ""
        yield title
        for finding in findings:
            yield f"  {_SIGNS[finding.level]}  {finding.found}"
            if finding.advice:
                yield f"        {finding.advice}"
    yield ""
    yield _closing(facts, [finding for _, found in groups for finding in found])


def _closing(facts: Facts, findings: Sequence[Finding]) -> str:
    """Say in one line how it is, and what to do first."""
    faults = [finding for finding in findings if finding.level == "wrong"]
    doubts = [finding for finding in findings if finding.level == "warning"]
    runs = [run for run in facts.hook_runs.runs if run.is_ours and run.route is not None]
    ran = f"{len(runs)} {'hook' if len(runs) == 1 else 'hooks'} ran" if runs else "no hook ran"
    if not faults:
        return f"nothing is wrong: {ran}, {len(doubts)} to look at"
    return f"{len(faults)} wrong, {len(doubts)} to look at, {ran}; first: {faults[0].advice}"


def _say(line: str) -> None:
    encoding = sys.stdout.encoding or "ascii"
    print(line.encode(encoding, "backslashreplace").decode(encoding))


def _document(facts: Facts, findings: Sequence[Finding]) -> dict[str, Any]:
    """Give what `--json` prints. Keys stay; new ones may come."""
    levels = [finding.level for finding in findings]
    return {
        "version": facts.version,
        "client": "claude",
        "client_version": show_version(facts.client.version) if facts.client.version else None,
        "cwd": printable(facts.cwd),
        "scopes": facts.scopes,
        "healthy": "wrong" not in levels,
        "counts": {level: levels.count(level) for level in _SIGNS},
        "findings": findings,
        "runs": [
            {
                "event": printable(run.event),
                "scope": run.scope,
                "program": printable(run.program),
                "ours": run.is_ours,
                "level": _check_runs.level_of(run),
                "road": run.route,
                "ms": round(run.seconds * 1000, 3) if run.route is not None else None,
                "exit_code": run.exit_code,
            }
            for run in facts.hook_runs.runs
        ],
    }
