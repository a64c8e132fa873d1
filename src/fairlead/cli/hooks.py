"""`fairlead hooks`: puts Fairlead into a client's settings, says how far it is there, and takes it out again."""

from __future__ import annotations

import difflib
import os
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import msgspec

from fairlead.clients import _claude_install as installing
from fairlead.clients import _claude_programs as programs
from fairlead.clients._claude_events import EVENTS, events_for, read_version, show_version
from fairlead.clients._claude_hooks import REPLACEABLE, Asked, others, settings
from fairlead.clients._claude_status import Status, status
from fairlead.clients._settings_file import InstallError
from fairlead.errors import UsageError
from fairlead.places import state_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fairlead.clients._claude_events import Version
    from fairlead.clients._claude_hooks import Launcher
    from fairlead.clients._claude_install import Plan

USAGE = """\
usage: fairlead hooks install   [--scope user|project|local] [--dry-run] [--replace NAMES] [--with EVENTS]
       fairlead hooks status    [--scope user|project|local] [--json]
       fairlead hooks uninstall [--scope user|project|local] [--dry-run]

Puts one hook per event into the settings of Claude Code, says how far they are there, or takes them out again.
Everything else in the file keeps its bytes, and uninstall gives back the file as it was.

  --scope user          ~/.claude/settings.json, or in $CLAUDE_CONFIG_DIR: all your projects (default)
  --scope project       .claude/settings.json in this folder: everybody who has the project
  --scope local         .claude/settings.local.json in this folder: you, in this project
  --dry-run             print what would change as a diff, and change nothing
  --replace NAMES       take out the hooks of conclaude, substrate, or both with a comma; uninstall puts them back
  --with EVENTS         ask for events that are left out: MessageDisplay, WorktreeCreate, WorktreeRemove
  --client-version V    install for that version, as 2.1.325 (default: what `claude --version` says)
  --client claude       whose settings they are (default: claude)
  --json                print the status as JSON, on stdout; without --scope, of all three

examples:
  fairlead hooks install --dry-run
  fairlead hooks install --scope local --replace conclaude
  fairlead hooks status

exit codes of install and uninstall: 0 done, or nothing to do; 1 nothing was changed, and stderr says why
exit codes of status: 0 installed in that scope, or in one at least, and nothing is amiss; 1 otherwise
"""

_VERBS = ("install", "status", "uninstall")
_FLAGS = ("--dry-run", "--json")
_OF_VERB = {
    "install": {"--scope", "--dry-run", "--replace", "--with", "--client-version", "--client"},
    "status": {"--scope", "--json", "--client-version", "--client"},
    "uninstall": {"--scope", "--dry-run", "--client"},
}


class Options(msgspec.Struct, frozen=True):
    """What the command line asked for."""

    verb: str
    scope: str | None = None
    dry_run: bool = False
    json: bool = False
    replace: frozenset[str] = frozenset()
    also: frozenset[str] = frozenset()
    version: tuple[int, int, int] | None = None


def run(args: Sequence[str]) -> int:
    """Install, look or uninstall, and return the exit code."""
    if not args or "--help" in args or "-h" in args:
        print(USAGE, end="", file=sys.stdout if args else sys.stderr)
        return 0 if args else 1
    options = _options(args)
    if options.verb == "status":
        return _status(options)
    return _install(options) if options.verb == "install" else _uninstall(options)


# -- the command line ----------------------------------------------------------------------------------


def _options(args: Sequence[str]) -> Options:
    verb, given = args[0], _given(args)
    version = given.get("--client-version")
    if given.get("--client", "claude") != "claude":
        raise UsageError(f"--client: expected one of claude, got {given['--client']!r}")
    scope = given.get("--scope")
    if scope is not None and scope not in installing.SCOPES:
        raise UsageError(f"--scope: expected one of {', '.join(installing.SCOPES)}, got {scope!r}")
    optional = [name for name, wanted in EVENTS.items() if wanted.can_be_asked]
    return Options(
        verb=verb,
        scope=scope,
        dry_run="--dry-run" in given,
        json="--json" in given,
        replace=_names("--replace", given.get("--replace", ""), list(REPLACEABLE)),
        also=_names("--with", given.get("--with", ""), optional),
        version=read_version(version) if version is not None else None,
    )


def _given(args: Sequence[str]) -> dict[str, str]:
    """Read the options, as `--name value` or `--name=value`."""
    if args[0] not in _VERBS:
        raise UsageError(f"hooks takes one of {', '.join(_VERBS)}, got {args[0]!r}; see fairlead hooks --help")
    given: dict[str, str] = {}
    words = list(args[1:])
    while words:
        name, equals, value = words.pop(0).partition("=")
        if name not in _OF_VERB[args[0]]:
            raise UsageError(f"unknown option {name!r} of hooks {args[0]}; see fairlead hooks --help")
        if name in _FLAGS:
            given[name] = ""
        elif equals:
            given[name] = value
        elif words:
            given[name] = words.pop(0)
        else:
            raise UsageError(f"{name} needs a value")
    return given


def _names(option: str, text: str, allowed: Sequence[str]) -> frozenset[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in allowed:
            raise UsageError(f"{option}: expected {', '.join(allowed)}, got {name!r}")
    return frozenset(names)


# -- install and uninstall -----------------------------------------------------------------------------


def _install(options: Options) -> int:
    scope = options.scope or "user"
    file = installing.settings_file(scope, Path.cwd(), os.environ)
    version = options.version or programs.client_version()
    asked = Asked(_launcher(), version, options.also, options.replace)
    state = Path(state_folder())
    if options.dry_run:
        plan = installing.plan_install(file, asked, state)
        _show_diff(plan)
        _say(_installed(plan, asked, "would install"), sys.stderr)
        return 0
    with installing.locked(state):
        plan = installing.plan_install(file, asked, state)
        kept = installing.carry_out(plan, state)
    if not plan.changes:
        print(f"nothing to do: {file} has all hooks of {_client(version)} already")
        return 0
    _say([*_installed(plan, asked, "installed"), *_kept(kept), *_warnings(plan, scope, asked)], sys.stdout)
    _say(_next_steps(), sys.stdout)
    return 0


def _launcher() -> Launcher:
    return programs.find_launcher(programs.launcher_folders(), sys.executable)


def _uninstall(options: Options) -> int:
    file = installing.settings_file(options.scope or "user", Path.cwd(), os.environ)
    state = Path(state_folder())
    if options.dry_run:
        plan = installing.plan_uninstall(file, state)
        _show_diff(plan)
        _say([_removed(plan, "would remove")], sys.stderr)
        return 0
    with installing.locked(state):
        plan = installing.plan_uninstall(file, state)
        installing.carry_out(plan, state)
    _say([_removed(plan, "removed")], sys.stdout)
    return 0


def _client(version: Version | None) -> str:
    return f"Claude Code {show_version(version)}" if version else "Claude Code (version unknown, so the oldest events)"


def _installed(plan: Plan, asked: Asked, verb: str) -> Iterator[str]:
    events = events_for(asked.version, asked.also)
    yield f"{verb} in {plan.seen.target}: {len(events)} events of {_client(asked.version)}"
    done = plan.done
    for what, names in (("added", done.added), ("brought up to date", done.updated), ("taken out", done.dropped)):
        if names:
            yield _listed(what, names)
    if done.taken:
        yield f"  replaced: {_entries(done.taken)} of {', '.join(sorted(asked.replace))}, which uninstall gives back"
    for name, wanted in EVENTS.items():
        if wanted.left_out and name not in asked.also:
            yield f"  left out: {name}: {wanted.left_out}"


def _listed(what: str, names: Sequence[str]) -> str:
    return textwrap.fill(", ".join(names), 110, initial_indent=f"  {what}: ", subsequent_indent="    ")


def _entries(taken: Sequence[object]) -> str:
    return f"{len(taken)} {'entry' if len(taken) == 1 else 'entries'}"


def _kept(kept: Path | None) -> Iterator[str]:
    if kept is not None:
        yield f"  the file before is kept as {kept}"


def _warnings(plan: Plan, scope: str, asked: Asked) -> Iterator[str]:
    """Say what a person would want to know now, and not when it hurts."""
    root = settings(plan.done.text)
    off = root.member("disableAllHooks")
    if off is not None and off.plain is True:
        yield "warning: disableAllHooks is set in this file, so the client runs no hooks at all"
    if scope == "project":
        yield (
            f"warning: others get this file with the project, and are blocked at every tool call unless they have "
            f"{asked.launcher.hook}; --scope local is for you alone"
        )
    if scope == "local" and programs.is_ignored(plan.seen.file) is False:
        yield f"warning: git does not ignore {plan.seen.file}; add it to .gitignore, for its paths are of this machine"
    for name in others(root):
        yield f"warning: {name} has hooks here too, which decide the same events; see --replace"


def _next_steps() -> Iterator[str]:
    yield "next:"
    yield "  sessions that are running take it up within seconds; /hooks in the client lists it"
    yield "  fairlead hooks status"


def _removed(plan: Plan, verb: str) -> str:
    if not plan.done.dropped:
        return f"nothing to do: nothing of Fairlead's is in {plan.seen.target}"
    if plan.after is None:
        left = "the file is gone, as it was before"
    elif plan.is_exact:
        left = "the file is as it was before, byte for byte"
    else:
        back = f", and {_entries(plan.done.taken)} put back" if plan.done.taken else ""
        left = f"the file was changed since, so the hooks alone were taken out{back}"
    return f"{verb} from {plan.seen.target}: {len(plan.done.dropped)} events; {left}"


def _show_diff(plan: Plan) -> None:
    name = str(plan.seen.target)
    before, after = ((content or b"").decode().splitlines() for content in (plan.seen.content, plan.after))
    old = "/dev/null" if plan.seen.content is None else name
    new = "/dev/null" if plan.after is None else name
    for line in difflib.unified_diff(before, after, old, new, lineterm=""):
        print(line)
    sys.stdout.flush()


def _say(lines: Iterable[str], stream: TextIO) -> None:
    for line in lines:
        print(line, file=stream)


# -- status --------------------------------------------------------------------------------------------


def _status(options: Options) -> int:
    try:
        launcher, missing = _launcher(), None
    except InstallError as error:
        launcher, missing = None, str(error)
    version = options.version or programs.client_version()
    scopes = (options.scope,) if options.scope else installing.SCOPES
    found = [
        status(scope, installing.settings_file(scope, Path.cwd(), os.environ), launcher, version) for scope in scopes
    ]
    if options.json:
        document = {
            "client": "claude",
            "client_version": show_version(version) if version else None,
            "launcher": launcher.hook if launcher else None,
            "scopes": found,
        }
        print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    else:
        _say(_shown(found, version, launcher, missing), sys.stdout)
    states = {one.state for one in found}
    return 0 if launcher and "installed" in states and states <= {"installed", "not installed"} else 1


def _shown(
    found: Sequence[Status], version: Version | None, launcher: Launcher | None, missing: str | None
) -> Iterator[str]:
    yield f"client: {_client(version)}"
    yield f"launcher: {launcher.hook if launcher else missing}"
    for one in found:
        amount = f", {len(one.events)} events" if one.events else ""
        yield f"{one.scope}: {one.state}{amount}: {one.file}"
        if one.missing:
            yield _listed("missing", one.missing)
        yield from (f"  {line}" for line in (*one.differences, *one.notes))
    if any(one.state in {"partial", "outdated", "broken"} for one in found):
        yield "fairlead hooks install, with the scope, brings it up to date"
