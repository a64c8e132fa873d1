"""Reads the settings files of Claude Code that apply in a folder, as far as they concern hooks. Writes nothing."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.clients import _settings_file as files
from fairlead.clients._json_text import JsonTextError, parse
from fairlead.clients._settings_file import InstallError
from fairlead.clients.claude._hook_entries import find, is_blank
from fairlead.clients.claude._install import SCOPES, settings_file
from fairlead.clients.claude._ownership import REPLACEABLE, is_ours
from fairlead.clients.claude._programs import is_program
from fairlead.clients.claude._settings_rules import SettingsError, check
from fairlead.clients.claude._status_line_entry import read_line
from fairlead.doctor._facts import Hook, SettingsFile
from fairlead.paths import FOLDER_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fairlead.clients._json_text import Node

MANAGED = Path("/Library/Application Support/ClaudeCode" if sys.platform == "darwin" else "/etc/claude-code")
"""Where those who administer a machine put settings that nobody can override."""

_TEXT = re.compile(r"""the text ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
"""A value that stands in the wrong place may be a secret."""


def probe_settings(folder: Path, environ: Mapping[str, str], managed: Path) -> tuple[SettingsFile, ...]:
    """Return all files that apply in a folder, in the client's order: of two definitions, the last one counts."""
    own = [(scope, settings_file(scope, folder, environ)) for scope in SCOPES]
    return tuple(read(scope, file) for scope, file in [*own, *_managed(managed)])


def read(scope: str, file: Path) -> SettingsFile:
    """Return one file, with the reason if the client would skip it."""
    try:
        seen = files.look(file)
        text = files.text_of(seen)
        if is_blank(text):
            return SettingsFile(scope, str(file), is_there=seen.content is not None)
        root = parse(text)
    except InstallError as error:
        problem = str(error).removesuffix("; nothing was changed")
        return SettingsFile(scope, str(file), is_there=True, problem=problem)
    except JsonTextError as error:
        return SettingsFile(scope, str(file), is_there=True, problem=f"{file}:{error}")
    return SettingsFile(
        scope=scope,
        file=str(file),
        is_there=True,
        problem=_problem(file, text, root),
        hooks=tuple(_hooks(scope, str(file), root)),
        env=_env(root),
        disables_hooks=_is_set(root, "disableAllHooks"),
        managed_only=scope == "managed" and _is_set(root, "allowManagedHooksOnly"),
        status_line=(line := read_line(root)).hook,
        line_there=not line.is_ours or is_program(line.hook),
    )


def environment(settings: Iterable[SettingsFile]) -> dict[str, str]:
    """Return the variables that the client sets for its hooks."""
    return {name: value for one in settings for name, value in one.env.items()}


def settles(settings: Iterable[SettingsFile], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Name the variables by which hooks find other folders than this process does."""
    given = environment(settings)
    return tuple(name for name in FOLDER_VARIABLES if name in given and given[name] != environ.get(name, ""))


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


def _hooks(scope: str, file: str, root: Node) -> Iterator[Hook]:
    for found in find(root, lambda _: True):
        rival = next((name for name, belongs in REPLACEABLE.items() if belongs(found.value)), "")
        yield Hook(scope, file, found.event, found.value, is_ours(found.value), rival)


def _env(root: Node) -> dict[str, str]:
    node = root.member("env")
    value = node.value() if node is not None and node.kind == "object" else {}
    return {name: given for name, given in value.items() if isinstance(given, str)}


def _is_set(root: Node, key: str) -> bool:
    node = root.member(key)
    return node is not None and node.plain is True
