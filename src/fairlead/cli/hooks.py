"""`fairlead hooks`: puts Fairlead into a client's settings, says how far it is there, and takes it out again."""

from __future__ import annotations

import difflib
import os
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import msgspec

from fairlead.cli.hookstay import STAY_LINES, stay_lines, stay_wish
from fairlead.cli.statuslines import STATUS_LINES, status_line_lines
from fairlead.clients import (
    DEFAULT_CLIENT,
    InstallError,
    InstallRequest,
    UnknownClientError,
    client_named,
    find_launcher,
    format_version,
    install_lock,
    is_git_ignored,
    launcher_folders,
    put_skill,
    remove_skill,
)
from fairlead.errors import UsageError
from fairlead.paths import state_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fairlead.clients import (
        Client,
        InstallPlan,
        InstallStatus,
        Launcher,
        SkillChange,
        StatusLineChoice,
        Version,
    )

_DEFAULT = client_named(DEFAULT_CLIENT)
_SCOPES = "\n".join(f"  --scope {scope:<14}{text}" for scope, text in _DEFAULT.installer.SCOPES.items())

USAGE = f"""\
usage: fairlead hooks install   [--scope user|project|local] [--dry-run] [--replace NAMES] [--with EVENTS] [--skill]
                                [--stay always|wake|no | --persistent] [--status-line | --no-status-line]
       fairlead hooks status    [--scope user|project|local] [--json]
       fairlead hooks uninstall [--scope user|project|local] [--dry-run]

Puts one hook per event into the settings of {_DEFAULT.title}, says how far they are there, or takes them out again.
Everything else in the file keeps its bytes, and uninstall gives back the file as it was.

{_SCOPES}
  --dry-run             print what would change as a diff, and change nothing
  --replace NAMES       take out the hooks of conclaude, substrate, or both with a comma; uninstall puts them back
  --with EVENTS         ask for events that are left out: MessageDisplay, WorktreeCreate, WorktreeRemove
  --stay always         at the end of a turn, agents wait for mail of others (--persistent says the same)
  --stay wake           they stop, and mail wakes them; --stay no takes either back
  --status-line         show a status line with model, context and cost, if you have none; yours is only listened to
  --no-status-line      leave the status line alone; the cost of sessions is not known then
  --skill               also put a skill beside the settings that teaches agents to write to each other
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
_FLAGS = ("--dry-run", "--json", "--skill", "--persistent", "--status-line", "--no-status-line")
_OF_VERB = {
    "install": {"--scope", "--dry-run", "--replace", "--with", "--client-version", "--client", "--stay", *_FLAGS[2:]},
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
    skill: bool = False
    status_line: StatusLineChoice = "chain"
    stay: str | None = None
    version: tuple[int, int, int] | None = None
    client: str = DEFAULT_CLIENT

    @property
    def of(self) -> Client:
        """The client whose settings they are."""
        return client_named(self.client)


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
    client = given.get("--client", DEFAULT_CLIENT)
    try:
        installer = client_named(client).installer
    except UnknownClientError as error:
        raise UsageError(f"--client: {error}") from None
    scope = given.get("--scope")
    if scope is not None and scope not in installer.SCOPES:
        raise UsageError(f"--scope: expected one of {', '.join(installer.SCOPES)}, got {scope!r}")
    optional = [name for name, setting in installer.EVENTS.items() if setting.is_optional]
    return Options(
        verb=verb,
        scope=scope,
        dry_run="--dry-run" in given,
        json="--json" in given,
        replace=_names("--replace", given.get("--replace", ""), list(installer.REPLACEABLE)),
        also=_names("--with", given.get("--with", ""), optional),
        skill="--skill" in given,
        status_line=_line_wish(given),
        stay=stay_wish(given, installer),
        version=installer.parse_version(version) if version is not None else None,
        client=client,
    )


def _line_wish(given: Mapping[str, str]) -> StatusLineChoice:
    if "--status-line" in given and "--no-status-line" in given:
        raise UsageError("--status-line and --no-status-line cannot both be meant")
    if "--status-line" in given and given.get("--scope", "user") != "user":
        raise UsageError("--status-line is for the scope user: that of a project would take the place of yours")
    return "show" if "--status-line" in given else "leave" if "--no-status-line" in given else "chain"


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
    scope, client, installer = options.scope or "user", options.of, options.of.installer
    file = installer.settings_file(scope, Path.cwd(), os.environ)
    skill = installer.skill_file(file)
    version = options.version or installer.client_version()
    asked = InstallRequest(_launcher(), version, options.also, options.replace, options.status_line, options.stay)
    state = Path(state_folder())
    if options.dry_run:
        plan = installer.plan_install(file, asked, state)
        _show_diff(plan)
        _say(_installed(client, plan, asked, "would install", scope), sys.stderr)
        if options.skill:
            print(f"would write {skill}", file=sys.stderr)
        return 0
    with install_lock(state):
        plan = installer.plan_install(file, asked, state)
        kept = installer.carry_out(plan, state)
        taught = put_skill(skill, state) if options.skill else None
    if not plan.changes:
        print(f"nothing to do: {file} has all hooks of {_named(client, version)} already")
        _say(_taught(skill, taught), sys.stdout)
        return 0
    done = [*_installed(client, plan, asked, "installed", scope), *_kept(kept)]
    _say([*done, *_warnings(client, plan, scope, asked)], sys.stdout)
    _say([*_taught(skill, taught), *_next_steps(taught)], sys.stdout)
    return 0


def _launcher() -> Launcher:
    return find_launcher(launcher_folders(), sys.executable)


def _uninstall(options: Options) -> int:
    installer = options.of.installer
    file = installer.settings_file(options.scope or "user", Path.cwd(), os.environ)
    skill, state = installer.skill_file(file), Path(state_folder())
    if options.dry_run:
        plan = installer.plan_uninstall(file, state)
        _show_diff(plan)
        _say([_removed(plan, "would remove")], sys.stderr)
        return 0
    with install_lock(state):
        plan = installer.plan_uninstall(file, state)
        taught = remove_skill(skill, state)  # first: a folder that came with us may go
        installer.carry_out(plan, state)
    _say([_removed(plan, "removed"), *_taught(skill, taught)], sys.stdout)
    return 0


def _named(client: Client, version: Version | None) -> str:
    return f"{client.title} {format_version(version) if version else '(version unknown, so the oldest events)'}"


def _installed(client: Client, plan: InstallPlan, asked: InstallRequest, verb: str, scope: str) -> Iterator[str]:
    installer, done = client.installer, plan.result
    events = installer.events_for(asked.version, asked.also)
    yield f"{verb} in {plan.before.target}: {len(events)} events of {_named(client, asked.version)}"
    for what, names in (("added", done.added), ("brought up to date", done.updated), ("taken out", done.dropped)):
        if names:
            yield _listed(what, names)
    if done.taken:
        yield f"  replaced: {_entries(done.taken)} of {', '.join(sorted(asked.replace))}, which uninstall gives back"
    for name, setting in installer.EVENTS.items():
        if setting.left_out and name not in asked.also:
            yield f"  left out: {name}: {setting.left_out}"
    yield from stay_lines(plan, installer)
    yield from status_line_lines(plan, scope, installer)


def _listed(what: str, names: Sequence[str]) -> str:
    return textwrap.fill(", ".join(names), 110, initial_indent=f"  {what}: ", subsequent_indent="    ")


def _entries(taken: Sequence[object]) -> str:
    return f"{len(taken)} {'entry' if len(taken) == 1 else 'entries'}"


def _kept(kept: Path | None) -> Iterator[str]:
    if kept is not None:
        yield f"  the file before is kept as {kept}"


def _warnings(client: Client, plan: InstallPlan, scope: str, asked: InstallRequest) -> Iterator[str]:
    """Say what a person would want to know now, and not when it hurts."""
    if scope == "project":
        yield (
            f"warning: others get this file with the project, and are blocked at every tool call unless they have "
            f"{asked.launcher.hook}; --scope local is for you alone"
        )
    if scope == "local" and is_git_ignored(plan.before.file) is False:
        file = plan.before.file
        yield f"warning: git does not ignore {file}; add it to .gitignore, for its paths are of this machine"
    yield from (f"warning: {line}" for line in client.installer.warnings(plan.result.text))


def _taught(skill: Path, done: SkillChange | None) -> Iterator[str]:
    """Say what became of the skill."""
    if done == "kept":
        yield f"warning: {skill} was changed by somebody, so it is left as it is"
    elif done not in {None, "absent"}:
        yield f"skill {done}: {skill}"


def _next_steps(taught: SkillChange | None) -> Iterator[str]:
    yield "next:"
    yield "  sessions that are running take it up within seconds; /hooks in the client lists it"
    if taught is None:
        yield "  fairlead hooks install --skill    teaches agents to write to each other"
    yield "  fairlead hooks status"


def _removed(plan: InstallPlan, verb: str) -> str:
    if not plan.result.had_ours:
        return f"nothing to do: nothing of Fairlead's is in {plan.before.target}"
    if plan.after is None:
        left = "the file is gone, as it was before"
    elif plan.is_exact:
        left = "the file is as it was before, byte for byte"
    else:
        back = f", and {_entries(plan.result.taken)} put back" if plan.result.taken else ""
        left = f"the file was changed since, so the hooks alone were taken out{back}"
    line = " and the status line" if plan.result.status_line else ""
    return f"{verb} from {plan.before.target}: {len(plan.result.dropped)} events{line}; {left}"


def _show_diff(plan: InstallPlan) -> None:
    name = str(plan.before.target)
    before, after = ((content or b"").decode().splitlines() for content in (plan.before.content, plan.after))
    old = "/dev/null" if plan.before.content is None else name
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
    client, installer = options.of, options.of.installer
    version = options.version or installer.client_version()
    scopes = (options.scope,) if options.scope else installer.SCOPES
    files = {scope: installer.settings_file(scope, Path.cwd(), os.environ) for scope in scopes}
    found = [installer.status(scope, file, launcher, version) for scope, file in files.items()]
    if options.json:
        document = {
            "client": client.name,
            "client_version": format_version(version) if version else None,
            "launcher": launcher.hook if launcher else None,
            "scopes": found,
        }
        print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    else:
        _say(_shown(found, _named(client, version), launcher, missing), sys.stdout)
    states = {one.state for one in found}
    return 0 if launcher and "installed" in states and states <= {"installed", "not installed"} else 1


def _shown(
    found: Sequence[InstallStatus], client: str, launcher: Launcher | None, missing: str | None
) -> Iterator[str]:
    yield f"client: {client}"
    yield f"launcher: {launcher.hook if launcher else missing}"
    for one in found:
        amount = f", {len(one.events)} events" if one.events else ""
        yield f"{one.scope}: {one.state}{amount}: {one.file}"
        if one.missing:
            yield _listed("missing", one.missing)
        known = (*STAY_LINES[one.stay], *STATUS_LINES[one.status_line])
        yield from (f"  {line}" for line in (*one.differences, *known, *one.notes))
    if any(one.state in {"partial", "outdated", "broken"} for one in found):
        yield "fairlead hooks install, with the scope, brings it up to date"
