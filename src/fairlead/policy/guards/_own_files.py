"""The files that the guards depend on: the policy, the client's settings, Fairlead's own. No agent may change them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import known_clients
from fairlead.policy.guards._own_commands import OwnCommands
from fairlead.policy.guards._verdict import RuleCheck
from fairlead.policy.paths._resolve import BaseFolder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fairlead.policy.config._types import Layer
    from fairlead.policy.guards._verdict import Evaluation
    from fairlead.policy.paths._resolve import ResolvedPath

_ANYWHERE = (
    *("/.fairlead.yaml", "/.fairlead.yml", "/.conclaude.yaml", "/.conclaude.yml"),
    *("/fairlead-hook", "/bin/fairlead"),  # what the client's settings run, in any folder
)
_HINTS = ("fairlead", "conclaude")
_RULE = RuleCheck("preToolUse.protectOwnFiles", "true", "", matched=False, why="it is not one of these files")


class OwnFiles:
    """The files that no agent may change, wherever they are."""

    def __init__(self, layers: Iterable[Layer], environ: Mapping[str, str] = os.environ) -> None:
        layers = tuple(layers)
        self.commands = OwnCommands(environ)
        clients = [client.own_files(environ) for client in known_clients()]
        self._project_files = tuple(name for own in clients for name in own.project_files)
        self._anywhere = (*_ANYWHERE, *(f"/{name}".lower() for name in self._project_files))
        self._hints = (*_HINTS, *(hint.lower() for own in clients for hint in own.hints))
        folders = tuple(prefix for folder in _folders(environ) for prefix in BaseFolder.at(folder).prefixes)
        files = (*(layer.file for layer in layers), *(file for own in clients for file in own.files), *_programs())
        exact = tuple(prefix for file in files for prefix in BaseFolder.at(file).prefixes)
        managed = (folder for own in clients for folder in own.folders)
        self._prefixes = tuple(prefix.lower() for prefix in (*exact, *folders, *managed))
        in_folders = (f"{layer.folder}/{name}" for layer in layers for name in self._project_files)
        self._in_use = (*files, *folders, *in_folders)

    def check(
        self, evaluation: Evaluation, target: ResolvedPath, *, whole: bool, among: Sequence[str] = ()
    ) -> str | None:
        """Return why a file may not be changed; with `whole`, also a folder that contains one of the files in use."""
        evaluation.start_subject(target.given)
        names = list(filter(self._contains, target.names))
        if not names and whole and target.is_folder:
            names = [name for name in self._below(target, evaluation.cwd) if not among or _is_named(name, among)]
        elif not names and target.links > 1:
            names = list(self._same(target, evaluation.cwd))
        if not names:
            evaluation.checks.append(_RULE)
            return None
        return evaluation.add_match(
            _RULE, f"{names[0]} is one of them", "block", _refusal(evaluation.tool, target.given)
        )

    def contains(self, target: ResolvedPath) -> bool:
        """Return whether a file is one of those that no agent may change."""
        return any(map(self._contains, target.names))

    def _contains(self, name: str) -> bool:
        lower = name.lower()  # on a evaluation-sensitive disk this protects a little more than needed
        return lower.endswith(self._anywhere) or f"{lower}/".startswith(self._prefixes)

    def is_mentioned(self, text: str) -> bool:
        """Return whether a command that cannot be parsed mentions such files."""
        lower = text.lower()
        return any(hint in lower for hint in self._hints)

    def _below(self, target: ResolvedPath, cwd: str) -> Iterable[str]:
        above = tuple(name.rstrip("/") + "/" for name in target.names)
        for file in self._near(cwd):
            if file.startswith(above) and os.path.lexists(file):
                yield file

    def _same(self, target: ResolvedPath, cwd: str) -> Iterable[str]:
        """Yield the files of which the target is a hard link."""
        for file in self._near(cwd):
            try:
                status = os.stat(file)
            except OSError:
                continue
            if (status.st_dev, status.st_ino) == target.version[:2]:
                yield file

    def _near(self, cwd: str) -> Iterable[str]:
        yield from self._in_use
        yield from (f"{folder}/{name}" for folder in _upward(cwd) for name in self._project_files)


def _is_named(path: str, patterns: Sequence[str]) -> bool:
    from fnmatch import fnmatchcase

    return any(fnmatchcase(path.rpartition("/")[2], pattern) for pattern in patterns)


def _refusal(tool: str, path: str) -> str:
    return (
        f"Blocked {tool} operation: preToolUse.protectOwnFiles protects the policy, the client's settings and "
        f"Fairlead's own files. Only the user may change them. File: {path}"
    )


def _upward(folder: str) -> Iterable[str]:
    while folder not in {"", "/"}:
        yield folder
        folder = folder.rpartition("/")[0]


def _folders(environ: Mapping[str, str]) -> Iterable[str]:
    """Yield the folders for config, state and sockets that Fairlead may use, on any system."""
    home = environ.get("HOME") or os.path.expanduser("~")
    if own := environ.get("FAIRLEAD_HOME"):
        yield own
    moved = (environ.get(name, "") for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"))
    yield from (f"{folder}/fairlead" for folder in moved if folder.startswith("/"))
    yield f"{home}/.config/fairlead"
    yield f"{home}/.local/state/fairlead"
    yield f"/run/user/{os.getuid()}/fairlead"
    yield f"{home}/Library/Application Support/fairlead"
    yield f"{home}/Library/Caches/TemporaryItems/fairlead"


def _programs() -> Iterable[str]:
    """Yield the programs that decide: this Python and the code. Whoever changes them controls the answers."""
    python = sys.executable
    if python:
        beside = os.path.dirname(python)
        yield from (python, os.path.realpath(python), f"{beside}/fairlead-hook", f"{beside}/fairlead")
    for module in (os, msgspec, sys.modules[__name__.partition(".")[0]]):
        yield os.path.dirname(module.__file__ or "")
