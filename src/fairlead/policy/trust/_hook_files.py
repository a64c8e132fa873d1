"""Compares the hook files of policies, and the modules that they import, with what a person has trusted."""

from __future__ import annotations

import os
from time import time_ns

from fairlead.policy.config._disk_cache import MIN_AGE
from fairlead.policy.trust._store import entry_path, read_trusted
from fairlead.structs import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.policy.config._types import Layer

    Stamp = tuple[int, int, int] | None

_MAX_STATES = 256
_PROJECT_MARKS = (".git", ".fairlead.yaml", ".fairlead.yml", ".conclaude.yaml", ".conclaude.yml", "config.yaml")
"""Names that mark the folder of a project, or of the user-wide policy."""


class HookFile(Struct, frozen=True):
    """A hook file and what is wrong with it."""

    file: str
    problem: str = ""
    """Why it must not be loaded, and what to do; empty if it is trusted."""
    digests: dict[str, str] = {}
    """SHA-256 of the file and of the project's modules that it imports, by their paths."""
    interpreter: str = ""
    """The Python that loads it; empty is Fairlead's own."""


class HookGroup(Struct, frozen=True):
    """The hook files of one policy that one interpreter loads. Each group has a worker."""

    policy_file: str
    interpreter: str
    files: tuple[HookFile, ...]

    @property
    def folder(self) -> str:
        """The folder that the hooks run in: that of the policy."""
        return os.path.dirname(self.policy_file)


def find_hook_groups(layers: Sequence[Layer]) -> tuple[tuple[HookGroup, ...], tuple[HookFile, ...]]:
    """Return the hook files of policies in their order, the trusted ones in groups, and those that are not trusted."""
    groups: dict[tuple[str, str], list[HookFile]] = {}
    refused: list[HookFile] = []
    seen: set[str] = set()
    for layer in layers:
        for name in layer.policy.hooks:
            path = hook_path(layer.file, name)
            if path in seen:
                continue
            seen.add(path)
            found = read_hook_file(path)
            if found.problem:
                refused.append(found)
            else:
                groups.setdefault((layer.file, found.interpreter), []).append(found)
    return tuple(HookGroup(*key, tuple(files)) for key, files in groups.items()), tuple(refused)


def hook_path(policy_file: str, name: str) -> str:
    """Return the path of a hook file as a policy lists it: relative to the folder of the policy, or below `~`."""
    return os.path.normpath(os.path.join(os.path.dirname(policy_file), os.path.expanduser(name)))


_states: dict[str, tuple[tuple[tuple[str, Stamp], ...], HookFile]] = {}
"""Path → the files that its state depends on, with their stamps, and its state."""


def read_hook_file(path: str) -> HookFile:
    """Return the current state of a hook file. Reads it again only if something has changed."""
    known = _states.get(path)
    if known is not None and all(_stamp(name) == stamp for name, stamp in known[0]):
        return known[1]
    entry = read_trusted(path)
    modules = entry.modules if entry is not None else {}
    names = dict.fromkeys((path, entry_path(path), *modules, *(() if not entry else (entry.interpreter,))))
    stamps = tuple((name, _stamp(name)) for name in names if name)
    state = _read(path)
    newest = max((stamp[0] for _, stamp in stamps if stamp is not None), default=0)
    if time_ns() - newest > MIN_AGE:
        if len(_states) >= _MAX_STATES:
            _states.clear()
        _states[path] = stamps, state
    return state


def _read(path: str) -> HookFile:
    from hashlib import sha256

    advice = f"Read it, and if its hooks may run: fairlead trust {path}"
    entry = read_trusted(path)
    digests: dict[str, str] = {}
    real = os.path.realpath(path)
    for name in (real, *(entry.modules if entry is not None else ())):
        try:
            with open(name, "rb") as file:
                digests[name] = sha256(file.read()).hexdigest()
        except OSError as error:
            why = f"{name} cannot be read: {error.strerror or error}"
            return HookFile(path, f"{why}. Restore it, or take {path} out of `hooks` in the policy")
    if entry is None:
        return HookFile(path, f"{path} is not trusted, so its hooks do not run. {advice}")
    changed = [name for name, digest in digests.items() if {real: entry.digest, **entry.modules}[name] != digest]
    if changed:
        what = path if real in changed else f"{changed[0]}, which {path} imports,"
        return HookFile(path, f"{what} has changed since it was trusted, so its hooks do not run. {advice}")
    if entry.interpreter and not os.access(entry.interpreter, os.X_OK):
        return HookFile(path, f"{entry.interpreter}, which runs {path}, is missing. {advice}")
    return HookFile(path, digests=digests, interpreter=entry.interpreter)


def find_interpreter(file: str) -> str:
    """Return the Python of the virtual environment of a hook file's project; empty if it has none."""
    folder, home = os.path.dirname(os.path.abspath(file)), os.path.expanduser("~")
    while True:
        python = f"{folder}/.venv/bin/python"
        if os.access(python, os.X_OK):
            return python
        above = os.path.dirname(folder)
        if folder in {home, above} or any(os.path.lexists(f"{folder}/{mark}") for mark in _PROJECT_MARKS):
            return ""
        folder = above


def _stamp(path: str) -> Stamp:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_ctime_ns, status.st_ino, status.st_size
