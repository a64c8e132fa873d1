"""`fairlead hooks install` and `uninstall`: add Fairlead's hooks to a client's settings, and remove them again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead.cli.hooks import text
from fairlead.cli.support.client_options import (
    client_option,
    find_client,
    parse_version,
    scope_option,
    version_option,
)
from fairlead.cli.support.command import Command
from fairlead.cli.support.invocation import print_lines
from fairlead.cli.support.param_types import OneOf
from fairlead.cli.support.person import refuse_below_session, require_person, yes_option
from fairlead.clients import (
    DEFAULT_CLIENT,
    InstallRequest,
    client_named,
    find_launcher,
    install_lock,
    is_git_ignored,
    is_python_launcher,
    launcher_folders,
    put_skill,
    remove_skill,
)
from fairlead.errors import UsageError
from fairlead.paths import state_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.clients import Client, Installer, InstallPlan, Launcher, StatusLineChoice, Version

_DEFAULT = client_named(DEFAULT_CLIENT)
_EXIT_CODES = ((0, "done, or nothing to do"), (1, "nothing was changed; stderr says why"))


class InstallOptions(msgspec.Struct, frozen=True):
    """The options of `install`."""

    scope: str = "user"
    dry_run: bool = False
    replace: str = ""
    """Names of programs whose hooks are replaced, separated by commas."""
    also: str = ""
    """The value of `--with`: names of events, separated by commas."""
    skill: bool = False
    status_line: bool = False
    no_status_line: bool = False
    stay: str | None = None
    """`None` leaves the setting unchanged."""
    persistent: bool = False
    """The same as `always` for `stay`."""
    answer: bool | None = None
    """`None` leaves the setting unchanged."""
    yes: bool = False


def to_request(
    options: InstallOptions, installer: Installer, launcher: Launcher, version: Version | None
) -> InstallRequest:
    """Return the request for the installer. Raise `UsageError` if options contradict each other or are not valid."""
    optional = [name for name, setting in installer.EVENTS.items() if setting.is_optional]
    return InstallRequest(
        launcher,
        version,
        _parse_names("--with", options.also, optional),
        _parse_names("--replace", options.replace, list(installer.REPLACEABLE)),
        _status_line_choice(options),
        _stay_mode(options),
        allows_mail=options.skill or _stay_mode(options) in {"always", "wake"},
        answer=options.answer,
    )


def _stay_mode(options: InstallOptions) -> str | None:
    if options.persistent and options.stay not in {None, "always"}:
        raise UsageError(f"--persistent is --stay always, and contradicts --stay {options.stay}")
    return "always" if options.persistent else options.stay


def _status_line_choice(options: InstallOptions) -> StatusLineChoice:
    if options.status_line and options.no_status_line:
        raise UsageError("--status-line and --no-status-line contradict each other")
    if options.status_line and options.scope != "user":
        raise UsageError(
            "--status-line needs --scope user: in a project it would replace the status lines of all users"
        )
    return "show" if options.status_line else "leave" if options.no_status_line else "chain"


def _parse_names(option: str, value: str, allowed: Sequence[str]) -> frozenset[str]:
    names = [name.strip() for name in value.split(",") if name.strip()]
    for name in names:
        if name not in allowed:
            raise UsageError(f"{option}: expected {', '.join(allowed)}, got {name!r}")
    return frozenset(names)


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
@scope_option()
@client_option
@version_option("Install for")
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
    type=OneOf(_DEFAULT.installer.STAYS),
    help=(
        "What agents do at the end of a turn. always: they wait for mail of others; wake: they stop, and mail wakes "
        "them; no: they stop."
    ),
)
@click.option("--persistent", is_flag=True, help="The same as --stay always.")
@click.option(
    "--answer/--no-answer",
    default=None,
    help="Let questions be answered with `fairlead answer` and in `fairlead watch` for an hour, not for a minute.",
)
@click.option(
    "--status-line",
    is_flag=True,
    help="Show a status line with model, context and cost if you have none. If you have one, it is kept and read.",
)
@click.option(
    "--no-status-line", is_flag=True, help="Do not read your status line; the cost of sessions is then unknown."
)
@click.option(
    "--skill",
    is_flag=True,
    help="Also install a skill that teaches agents to write to each other, and let them run the mail commands.",
)
@yes_option
def install(*, scope: str | None, client: str, client_version: str | None, **given: Any) -> int:
    """Add Fairlead's hooks to the client's settings.

    It adds one hook per event. Everything else in the file keeps its bytes, and uninstall restores the original file.
    """
    options = InstallOptions(scope=scope or "user", **given)
    selected = find_client(client, scope)
    version = parse_version(selected, client_version) or selected.installer.client_version()
    launcher = find_launcher(launcher_folders(), sys.executable)
    request = to_request(options, selected.installer, launcher, version)
    if options.dry_run:
        return _preview(selected, request, options)
    return _install(selected, offer_status_line(selected, request, options), options)


def offer_status_line(client: Client, request: InstallRequest, options: InstallOptions) -> InstallRequest:
    """Offer Fairlead's status line to a user who has none. Return the request with the user's choice.

    Without a status line, neither context nor cost of a session is known. Only a person at a terminal is asked.
    """
    is_asked = request.status_line == "chain" and options.scope == "user" and not options.yes
    if not is_asked or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return request
    file = client.installer.settings_file(options.scope, Path.cwd(), os.environ)
    plan = client.installer.plan_install(file, request, Path(state_folder()))
    if client.installer.status_line_of(plan.result.text) != "none":
        return request
    print(text.STATUS_LINE_OFFER, end="", file=sys.stderr, flush=True)
    key = click.getchar()
    print(key if key.isprintable() else "", file=sys.stderr)
    return msgspec.structs.replace(request, status_line="show") if key in {"y", "Y"} else request


def _preview(client: Client, request: InstallRequest, options: InstallOptions) -> int:
    file = client.installer.settings_file(options.scope, Path.cwd(), os.environ)
    plan = client.installer.plan_install(file, request, Path(state_folder()))
    print_lines(text.diff_lines(plan))
    sys.stdout.flush()
    for line in text.install_lines(client, plan, request, options.scope, "would install"):
        print(line, file=sys.stderr)
    if options.skill:
        print(f"would write {client.installer.skill_file(file)}", file=sys.stderr)
    return 0


def _install(client: Client, request: InstallRequest, options: InstallOptions) -> int:
    installer, state = client.installer, Path(state_folder())
    file = installer.settings_file(options.scope, Path.cwd(), os.environ)
    skill_file = installer.skill_file(file)
    with install_lock(state):
        plan = installer.plan_install(file, request, state)
        _require_person(plan, options)
        kept = installer.carry_out(plan, state)
        skill = put_skill(skill_file, state) if options.skill else None
    hook = request.launcher.hook
    remarks = [
        *text.launcher_lines(hook, is_python=is_python_launcher(hook)),
        *text.skill_lines(skill_file, skill),
    ]
    if not plan.changes:
        print(f"nothing to do: {file} already has all hooks of {text.client_name(client, request.version)}")
        print_lines(remarks)
        return 0
    is_ignored = is_git_ignored(plan.before.file) if options.scope == "local" else None
    print_lines(text.install_lines(client, plan, request, options.scope, "installed"))
    print_lines(text.kept_lines(kept))
    print_lines(text.warning_lines(client, plan, request, options.scope, is_ignored=is_ignored))
    print_lines([*remarks, *text.next_lines(has_skill=skill is not None)])
    return 0


def _require_person(plan: InstallPlan, options: InstallOptions) -> None:
    """Raise `PersonRequired` if the install changes existing hooks or adds permission rules, and no person runs it.

    An install that removes hooks also needs a confirmation. A first install does not, because it removes nothing.
    """
    result = plan.result
    if plan.changes and (result.updated or result.dropped or result.taken):
        refuse_below_session(f"change the hooks in {plan.before.file}")
    if plan.changes and result.rules:
        refuse_below_session(f"let agents run commands by rules in {plan.before.file}")
    if plan.changes and result.dropped:
        require_person(f"remove hooks from {plan.before.file}: {', '.join(result.dropped)}", assume_yes=options.yes)


@click.command(
    "uninstall",
    cls=Command,
    examples=("fairlead uninstall --dry-run", "fairlead uninstall --scope local"),
    exit_codes=_EXIT_CODES,
)
@scope_option()
@client_option
@click.option("--dry-run", is_flag=True, help="Print the change as a diff, and change nothing.")
@yes_option
def uninstall(*, scope: str | None, client: str, dry_run: bool, yes: bool) -> int:
    """Remove Fairlead's hooks and restore the settings file.

    If the file has not changed since the install, it is restored byte for byte. Asks for a confirmation, and refuses
    below an agent's session.
    """
    installer = find_client(client, scope).installer
    file = installer.settings_file(scope or "user", Path.cwd(), os.environ)
    skill_file, state = installer.skill_file(file), Path(state_folder())
    if dry_run:
        plan = installer.plan_uninstall(file, state)
        print_lines(text.diff_lines(plan))
        sys.stdout.flush()
        print(text.uninstall_line(plan, "would remove"), file=sys.stderr)
        return 0
    with install_lock(state):
        plan = installer.plan_uninstall(file, state)
        if plan.changes:
            require_person(f"remove Fairlead's hooks from {file}", assume_yes=yes)
        skill = remove_skill(skill_file, state)  # first: its folder may be removed with the file
        installer.carry_out(plan, state)
    print_lines([text.uninstall_line(plan, "removed"), *text.skill_lines(skill_file, skill)])
    return 0
