"""Reads the parts that concern hooks of all Claude Code settings files that apply in a folder. Writes nothing."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlead.clients import _settings_file as files
from fairlead.clients._install_types import InstalledHook, SettingsFile
from fairlead.clients._json_text import JsonTextError, parse
from fairlead.clients._programs import is_program
from fairlead.clients._settings_file import InstallError, SettingsError
from fairlead.clients.claude._environment import MANAGED_FOLDERS, PROJECT_DIR
from fairlead.clients.claude.settings._entries import find_hooks, is_blank
from fairlead.clients.claude.settings._install import SCOPES, settings_file
from fairlead.clients.claude.settings._ownership import REPLACEABLE, is_ours, is_wake
from fairlead.clients.claude.settings._rules import check
from fairlead.clients.claude.settings._status import OFF_SWITCH, is_set
from fairlead.clients.claude.settings._status_line import read_status_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlead.clients._json_text import Node

MANAGED = Path(MANAGED_FOLDERS["darwin" if sys.platform == "darwin" else "linux"])
"""The folder of an administrator's settings, which no other settings can override."""

_MANAGED_ONLY = "allowManagedHooksOnly"
_TEXT = re.compile(r"""the text ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
"""Quoted values in error messages, which may be secrets."""


def inspect(folder: Path, environ: Mapping[str, str]) -> tuple[SettingsFile, ...]:
    """Read all settings files that apply in a folder, in the client's order: later files override earlier ones."""
    own = [(scope, settings_file(scope, folder, environ)) for scope in SCOPES]
    return tuple(inspect_file(scope, file, folder) for scope, file in [*own, *_managed(MANAGED)])


def inspect_file(scope: str, file: Path, folder: Path) -> SettingsFile:
    """Read one settings file for a project folder. `problem` is the reason if the client would skip it."""
    try:
        snapshot = files.read(file)
        text = files.text_of(snapshot)
        if is_blank(text):
            return SettingsFile(scope, str(file), is_there=snapshot.content is not None)
        root = parse(text)
    except InstallError as error:
        problem = str(error).removesuffix("; nothing was changed")
        return SettingsFile(scope, str(file), is_there=True, problem=problem)
    except JsonTextError as error:
        return SettingsFile(scope, str(file), is_there=True, problem=f"{file}:{error}")
    line = read_status_line(root)
    return SettingsFile(
        scope=scope,
        file=str(file),
        is_there=True,
        problem=_problem(file, text, root),
        hooks=tuple(_hooks(scope, str(file), root, str(folder))),
        env=_env(root),
        off_switch=OFF_SWITCH if is_set(root, OFF_SWITCH) else "",
        managed_only=_MANAGED_ONLY if scope == "managed" and is_set(root, _MANAGED_ONLY) else "",
        status_line=line.hook,
        line_there=not line.is_ours or is_program(line.hook),
    )


def _managed(folder: Path) -> Iterator[tuple[str, Path]]:
    yield "managed", folder / "managed-settings.json"
    more = folder / "managed-settings.d"
    if os.access(more, os.R_OK | os.X_OK):
        yield from (("managed", file) for file in sorted(more.glob("*.json")))


def _problem(file: Path, text: str, root: Node) -> str:
    try:
        check(text, root)
    except (SettingsError, JsonTextError) as error:
        return f"{file}:{_TEXT.sub('a text', str(error))}"
    return ""


def _hooks(scope: str, file: str, root: Node, project: str) -> Iterator[InstalledHook]:
    for hook in find_hooks(root, lambda _: True):
        yield installed_hook(scope, file, hook.event, hook.value, project)


def installed_hook(scope: str, file: str, event: str, value: Mapping[str, Any], project: str = "") -> InstalledHook:
    """Return a hook of the settings in the form that all clients share.

    `value` is the hook's JSON object, and `project` the folder that its arguments name by a variable.
    """
    timeout = value.get("timeout")
    return InstalledHook(
        scope=scope,
        file=file,
        event=event,
        program=_program(value),
        identity=(event, *(repr(value.get(key)) for key in ("command", "args", "shell", "if"))),
        argv=tuple(_argv(value, project)),
        words=tuple(_words(value)),
        timeout=float(timeout) if isinstance(timeout, int | float) and timeout else None,
        is_ours=is_ours(value),
        rival=next((name for name, belongs in REPLACEABLE.items() if belongs(value)), ""),
        blocks_on_failure=value.get("onFailure") == "block",
        only_wakes=is_wake(value),
    )


def _program(value: Mapping[str, Any]) -> str:
    """Return the program of a hook without its arguments, for display."""
    kind = value.get("type")
    if kind != "command":
        return f"a hook of the type {kind!r}"
    command = str(value.get("command", ""))
    if isinstance(value.get("args"), list):
        return command
    first, _, rest = command.strip().partition(" ")
    name, equals, _ = first.partition("=")
    return f"{name}=…" if equals else f"{first} …" if rest else first


def _argv(value: Mapping[str, Any], project: str) -> list[str]:
    """Return the command line that the client starts: the program itself if there are `args`, else a shell."""
    command, args = str(value.get("command", "")), value.get("args")
    if value.get("type") != "command":
        return []
    if not isinstance(args, list):
        return ["/bin/sh", "-c", command]
    return [word.replace(f"${{{PROJECT_DIR}}}", project) for word in (command, *map(str, args))]


def _words(value: Mapping[str, Any]) -> list[str]:
    command, args = str(value.get("command", "")), value.get("args")
    if isinstance(args, list):
        return [command, *map(str, args)]
    try:
        return shlex.split(command)
    except ValueError:
        return [command]


def _env(root: Node) -> dict[str, str]:
    node = root.member("env")
    value = node.value() if node is not None and node.kind == "object" else {}
    return {name: given for name, given in value.items() if isinstance(given, str)}
