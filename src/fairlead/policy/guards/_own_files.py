"""The files that hold the guards up: the policy, the client's settings, Fairlead's own. No agent may change them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import known_clients
from fairlead.policy.guards._verdict import RuleCheck
from fairlead.policy.paths._resolve import Base

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fairlead.policy.config._types import Layer
    from fairlead.policy.guards._verdict import Evaluation
    from fairlead.policy.paths._resolve import Target

_ANYWHERE = (
    *("/.fairlead.yaml", "/.fairlead.yml", "/.conclaude.yaml", "/.conclaude.yml"),
    *("/fairlead-hook", "/bin/fairlead"),  # what the client's settings start, wherever it is installed
)
_HINTS = ("fairlead", "conclaude")
_LOOK = RuleCheck("preToolUse.protectOwnFiles", "true", "", matched=False, why="it is no file of the policy")


class OwnFiles:
    """Knows which files are not the agent's to change, wherever they are."""

    def __init__(self, layers: Iterable[Layer], environ: Mapping[str, str] = os.environ) -> None:
        layers = tuple(layers)
        clients = [client.own_files(environ) for client in known_clients()]
        self._project_files = tuple(name for own in clients for name in own.project_files)
        self._anywhere = (*_ANYWHERE, *(f"/{name}".lower() for name in self._project_files))
        self._hints = (*_HINTS, *(hint.lower() for own in clients for hint in own.hints))
        folders = tuple(prefix for folder in _folders(environ) for prefix in Base.at(folder).prefixes)
        files = (*(layer.file for layer in layers), *(file for own in clients for file in own.files), *_programs())
        exact = tuple(prefix for file in files for prefix in Base.at(file).prefixes)
        managed = (folder for own in clients for folder in own.folders)
        self._prefixes = tuple(prefix.lower() for prefix in (*exact, *folders, *managed))
        in_folders = (f"{layer.folder}/{name}" for layer in layers for name in self._project_files)
        self._in_use = (*files, *folders, *in_folders)

    def check(self, case: Evaluation, target: Target, *, whole: bool) -> str | None:
        """Refuse to change such a file, or (`whole`) a folder with one of those in use below."""
        case.about(target.given)
        names = list(filter(self._holds, target.names))
        if not names and whole and target.is_folder:
            names = list(self._below(target, case.cwd))
        elif not names and target.links > 1:
            names = list(self._same(target, case.cwd))
        if not names:
            case.looked.append(_LOOK)
            return None
        return case.found(_LOOK, f"{names[0]} is one of them", "block", _refusal(case.tool, target.given))

    def _holds(self, name: str) -> bool:
        lower = name.lower()  # on a disk that minds the case this protects a little more than is there
        return lower.endswith(self._anywhere) or f"{lower}/".startswith(self._prefixes)

    def is_mentioned(self, text: str) -> bool:
        """Tell whether a text that cannot be understood speaks of such files."""
        lower = text.lower()
        return any(hint in lower for hint in self._hints)

    def _below(self, target: Target, cwd: str) -> Iterable[str]:
        above = tuple(name.rstrip("/") + "/" for name in target.names)
        for file in self._near(cwd):
            if file.startswith(above) and os.path.lexists(file):
                yield file

    def _same(self, target: Target, cwd: str) -> Iterable[str]:
        """Find the file of which a hard link is another name."""
        for file in self._near(cwd):
            try:
                there = os.stat(file)
            except OSError:
                continue
            if (there.st_dev, there.st_ino) == target.version[:2]:
                yield file

    def _near(self, cwd: str) -> Iterable[str]:
        yield from self._in_use
        yield from (f"{folder}/{name}" for folder in _upward(cwd) for name in self._project_files)


def _refusal(tool: str, path: str) -> str:
    return (
        f"Blocked {tool} operation: preToolUse.protectOwnFiles protects the policy, the client's settings and "
        f"Fairlead's own files. Only a person may change them. File: {path}"
    )


def _upward(folder: str) -> Iterable[str]:
    while folder not in {"", "/"}:
        yield folder
        folder = folder.rpartition("/")[0]


def _folders(environ: Mapping[str, str]) -> Iterable[str]:
    """Give the folders for config, state and sockets that Fairlead may use, on any system."""
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
    """Give what decides: this Python, what it is a link to, and the code. Who could change them could say yes."""
    python = sys.executable
    if python:
        beside = os.path.dirname(python)
        yield from (python, os.path.realpath(python), f"{beside}/fairlead-hook", f"{beside}/fairlead")
    for module in (os, msgspec, sys.modules[__name__.partition(".")[0]]):
        yield os.path.dirname(module.__file__ or "")
