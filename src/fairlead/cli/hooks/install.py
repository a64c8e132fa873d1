"""`fairlead hooks install` and `uninstall`: add Fairlead's hooks to a client's settings, and remove them again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead.cli.hooks import text
from fairlead.cli.support.command import Command
from fairlead.cli.support.param_types import OneOf, Text
from fairlead.cli.support.screen import print_lines
from fairlead.clients.claude import _install as installing
from fairlead.clients.claude import _programs as programs
from fairlead.clients.claude import _skill as skills
from fairlead.clients.claude._hook_entries import Asked
from fairlead.clients.claude._install_events import EVENTS, read_version
from fairlead.clients.claude._ownership import REPLACEABLE
from fairlead.clients.claude._stay_entries import STAYS
from fairlead.errors import UsageError
from fairlead.paths import state_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlead.clients.claude._hook_entries import Launcher, LineWish

_CLIENTS = ("claude",)
_EXIT_CODES = ((0, "done, or nothing to do"), (1, "nothing was changed; stderr says why"))


class InstallOptions(msgspec.Struct, frozen=True):
    """The options of `install`."""

    scope: str = "user"
    dry_run: bool = False
    replace: str = ""
    also: str = ""
    skill: bool = False
    status_line: bool = False
    no_status_line: bool = False
    stay: str | None = None
    persistent: bool = False
    client_version: str | None = None
    client: str = "claude"


def to_asked(options: InstallOptions, launcher: Launcher, version: tuple[int, int, int] | None) -> Asked:
    """Return what the install has to do. Raise `UsageError` if options contradict each other."""
    optional = [name for name, wanted in EVENTS.items() if wanted.can_be_asked]
    return Asked(
        launcher,
        version,
        _parse_names("--with", options.also, optional),
        _parse_names("--replace", options.replace, list(REPLACEABLE)),
        _status_line_mode(options),
        _stay_mode(options),
    )


def _stay_mode(options: InstallOptions) -> str | None:
    if options.persistent and options.stay not in {None, "always"}:
        raise UsageError(f"--persistent is --stay always, and contradicts --stay {options.stay}")
    return "always" if options.persistent else options.stay


def _status_line_mode(options: InstallOptions) -> LineWish:
    if options.status_line and options.no_status_line:
        raise UsageError("--status-line and --no-status-line contradict each other")
    if options.status_line and options.scope != "user":
        raise UsageError("--status-line is for the scope user: in a project it would replace everybody's own")
    return "show" if options.status_line else "leave" if options.no_status_line else "chain"


def _parse_names(option: str, value: str, allowed: Sequence[str]) -> frozenset[str]:
    names = [name.strip() for name in value.split(",") if name.strip()]
    for name in names:
        if name not in allowed:
            raise UsageError(f"{option}: expected {', '.join(allowed)}, got {name!r}")
    return frozenset(names)


def scope_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--scope` and `--client` to a command."""
    function = click.option(
        "--client", metavar="NAME", type=OneOf(_CLIENTS), default="claude", help="The client (default: claude)."
    )(function)
    return click.option(
        "--scope",
        metavar="SCOPE",
        type=OneOf(installing.SCOPES),
        help=(
            "user: ~/.claude/settings.json, or in $CLAUDE_CONFIG_DIR, for all your projects (default); project: "
            ".claude/settings.json in this folder, for everyone who has the project; local: "
            ".claude/settings.local.json in this folder, for you in this project."
        ),
    )(function)


@click.command(
    "install",
    cls=Command,
    examples=(
        "fairlead install --dry-run",
        "fairlead install --scope local --replace conclaude",
        "fairlead hooks install --skill",
    ),
    exit_codes=_EXIT_CODES,
)
@scope_options
@click.option("--dry-run", is_flag=True, help="Print the change as a diff, and change nothing.")
@click.option(
    "--replace",
    metavar="NAMES",
    default="",
    help="Remove the hooks of conclaude, substrate, or both with a comma; uninstall restores them.",
)
@click.option(
    "--with",
    "also",
    metavar="EVENTS",
    default="",
    help="Add events that are left out: MessageDisplay, WorktreeCreate, WorktreeRemove.",
)
@click.option(
    "--stay",
    metavar="MODE",
    type=OneOf(STAYS),
    help=(
        "What agents do at the end of a turn. always: they wait for mail of others; wake: they stop, and mail wakes "
        "them; no: they stop."
    ),
)
@click.option("--persistent", is_flag=True, help="The same as --stay always.")
@click.option(
    "--status-line",
    is_flag=True,
    help="Show a status line with model, context and cost if you have none. One of your own is kept, and read, too.",
)
@click.option(
    "--no-status-line", is_flag=True, help="Do not read your status line; the cost of sessions is then unknown."
)
@click.option("--skill", is_flag=True, help="Also install a skill that teaches agents to write to each other.")
@click.option(
    "--client-version",
    metavar="VERSION",
    type=Text(),
    help="Install for that version, such as 2.1.325 (default: what `claude --version` says).",
)
def install(*, scope: str | None, **given: Any) -> int:
    """Add Fairlead's hooks to the client's settings.

    It adds one hook per event to the settings of Claude Code. Everything else in the file keeps its bytes, and
    uninstall restores the file as it was.
    """
    options = InstallOptions(scope=scope or "user", **given)
    version = None if options.client_version is None else read_version(options.client_version)
    launcher = programs.find_launcher(programs.launcher_folders(), sys.executable)
    asked = to_asked(options, launcher, version or programs.client_version())
    file = installing.settings_file(options.scope, Path.cwd(), os.environ)
    return _preview_install(file, asked, options) if options.dry_run else _install(file, asked, options)


def _preview_install(file: Path, asked: Asked, options: InstallOptions) -> int:
    plan = installing.plan_install(file, asked, Path(state_folder()))
    print_lines(text.diff_lines(plan))
    sys.stdout.flush()
    for line in text.install_lines(plan, asked, options.scope, "would install"):
        print(line, file=sys.stderr)
    if options.skill:
        print(f"would write {skills.skill_file(file)}", file=sys.stderr)
    return 0


def _install(file: Path, asked: Asked, options: InstallOptions) -> int:
    state = Path(state_folder())
    with installing.locked(state):
        plan = installing.plan_install(file, asked, state)
        kept = installing.carry_out(plan, state)
        skill = skills.put_skill(skills.skill_file(file), state) if options.skill else None
    launcher = asked.launcher.hook
    remarks = [
        *text.launcher_lines(launcher, is_python=programs.is_python_launcher(launcher)),
        *text.skill_lines(skills.skill_file(file), skill),
    ]
    if not plan.changes:
        print(f"nothing to do: {file} already has all hooks of {text.client_name(asked.version)}")
        print_lines(remarks)
        return 0
    is_ignored = programs.is_ignored(plan.seen.file) if options.scope == "local" else None
    print_lines(text.install_lines(plan, asked, options.scope, "installed"))
    print_lines(text.kept_lines(kept))
    print_lines(text.warning_lines(plan, asked, options.scope, is_git_ignored=is_ignored))
    print_lines([*remarks, *text.next_lines(has_skill=skill is not None)])
    return 0


@click.command(
    "uninstall",
    cls=Command,
    examples=("fairlead uninstall --dry-run", "fairlead uninstall --scope local"),
    exit_codes=_EXIT_CODES,
)
@scope_options
@click.option("--dry-run", is_flag=True, help="Print the change as a diff, and change nothing.")
def uninstall(*, scope: str | None, dry_run: bool, client: str) -> int:
    """Remove Fairlead's hooks and restore the settings file.

    If nobody has changed the file since, it is restored byte for byte.
    """
    del client
    file = installing.settings_file(scope or "user", Path.cwd(), os.environ)
    state = Path(state_folder())
    if dry_run:
        plan = installing.plan_uninstall(file, state)
        print_lines(text.diff_lines(plan))
        sys.stdout.flush()
        print(text.uninstall_line(plan, "would remove"), file=sys.stderr)
        return 0
    with installing.locked(state):
        plan = installing.plan_uninstall(file, state)
        skill = skills.take_skill_away(skills.skill_file(file), state)  # first: its folder may be removed with the file
        installing.carry_out(plan, state)
    print_lines([text.uninstall_line(plan, "removed"), *text.skill_lines(skills.skill_file(file), skill)])
    return 0
