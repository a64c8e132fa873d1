"""Installs and uninstalls our hooks, status line, variables and permission rules in Claude Code's settings files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.clients import _installs
from fairlead.clients._json_text import parse
from fairlead.clients.claude._environment import CONFIG_DIR, CONFIG_FOLDER, SETTINGS
from fairlead.clients.claude.settings._entries import add_hooks, remove_hooks
from fairlead.clients.claude.settings._mail_rules import RULES, add_rules, has_rules, remove_rules
from fairlead.clients.claude.settings._status_line import add_status_line, read_status_line, remove_status_line
from fairlead.clients.claude.settings._stay import add_stay, read_stay, remove_stay
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlead.clients._install_types import (
        InstallPlan,
        InstallRequest,
        InstallResult,
        RemovedEntry,
        StatusLineKind,
        Version,
    )

CLIENT = "claude"
PROGRAM = "claude"
SCOPES = {
    "user": f"~/{CONFIG_FOLDER}/{SETTINGS[0]}, or in ${CONFIG_DIR}: all your projects (default)",
    "project": f"{CONFIG_FOLDER}/{SETTINGS[0]} in this folder: everybody who has the project",
    "local": f"{CONFIG_FOLDER}/{SETTINGS[1]} in this folder: you, in this project",
}
"""Name of each scope → a line of help about its file."""


def settings_file(scope: str, folder: Path, environ: Mapping[str, str]) -> Path:
    """Return the settings file of a scope. Raise `UsageError` for an unknown scope."""
    if scope == "user":
        moved = environ.get(CONFIG_DIR)
        return Path(moved or Path(environ.get("HOME") or Path.home(), CONFIG_FOLDER), SETTINGS[0]).absolute()
    if scope in SCOPES:
        return folder.absolute() / CONFIG_FOLDER / SETTINGS[scope == "local"]
    raise UsageError(f"--scope: expected one of {', '.join(SCOPES)}, got {scope!r}")


def skill_file(settings: Path) -> Path:
    """Return the file of the mail skill for the scope of a settings file."""
    return settings.parent / "skills/fairlead-mail/SKILL.md"


class _Editor:
    """Edits hooks, status line, variables and permission rules in the text of the settings."""

    def install(self, text: str, request: InstallRequest, original: str | None) -> InstallResult:
        """Add or update our hooks and settings, as requested. `original` is the text before the first install."""
        result = add_hooks(text, request)
        text, line = add_status_line(result.text, request.launcher, request.status_line)
        text, stay = add_stay(text, request.launcher, request.stay, original)
        text, rules = add_rules(text) if request.allows_mail else (text, ())
        return replace(result, text=text, status_line=line, stay=stay, rules=rules)

    def uninstall(self, text: str, original: str | None, taken: Sequence[RemovedEntry]) -> InstallResult:
        """Remove everything of ours, and restore from `original` and `taken` what an install replaced or removed."""
        result = remove_hooks(text, original, taken)
        text, line = remove_status_line(result.text, original)
        text, stay = remove_stay(text, original)
        text, rules = remove_rules(text, original)
        return replace(result, text=text, status_line=line, stay=stay, rules=rules)

    def is_empty(self, text: str) -> bool:
        """Return whether the settings have no key."""
        return not parse(text).items


_EDITOR = _Editor()


def plan_install(file: Path, request: InstallRequest, state: Path) -> InstallPlan:
    """Return the plan of an install in a settings file."""
    return _installs.plan_install(CLIENT, _EDITOR, file, request, state)


def plan_uninstall(file: Path, state: Path) -> InstallPlan:
    """Return the plan of an uninstall from a settings file."""
    return _installs.plan_uninstall(CLIENT, _EDITOR, file, state)


def carry_out(plan: InstallPlan, state: Path) -> Path | None:
    """Carry out a plan completely, or not at all. Return a copy of the previous file; `None` if none was made."""
    return _installs.carry_out(CLIENT, plan, state)


def stay_of(text: str) -> str:
    """Return the `--stay` value of the settings; "" if they have none."""
    return read_stay(parse(text))


def mail_rules_of(text: str) -> tuple[str, ...]:
    """Return the permission rules for the mail commands if the settings have all of them, else an empty tuple."""
    return RULES if has_rules(text) else ()


def status_line_of(text: str) -> StatusLineKind:
    """Return the kind of the status line in the settings."""
    return read_status_line(parse(text)).kind


def client_version(path: str | None = None) -> Version | None:
    """Return the version of the client on `path`, by default the PATH; `None` if there is none or it prints none."""
    from fairlead.clients._programs import output_of
    from fairlead.clients.claude.settings._events import VersionError, parse_version

    try:
        return parse_version(output_of(PROGRAM, "--version", env={"DISABLE_AUTOUPDATER": "1"}, path=path))
    except VersionError:
        return None
