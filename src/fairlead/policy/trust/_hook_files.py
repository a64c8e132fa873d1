"""Compares the hook files of policies, and the modules that they import, with what a person has trusted."""

from __future__ import annotations

import os
from time import time_ns

from fairlead.policy.config._disk_cache import MIN_AGE
from fairlead.policy.trust._store import entry_path, read_trusted
from fairlead.structs import Struct, ValidationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.policy.config._types import Layer
    from fairlead.policy.trust._store import TrustedFile

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
    """Return the trusted hook files of policies in groups, and the hook files that are not trusted, in their order.

    From a policy that is not trusted, only hook files that a person has trusted count: a change of the policy must not
    switch a guard off, and its list alone must not have anything run.
    """
    groups: dict[tuple[str, str], list[HookFile]] = {}
    refused: list[HookFile] = []
    seen: set[str] = set()
    for layer, path in _listed_files(layers):
        if path in seen:
            continue
        seen.add(path)
        hook_file = read_hook_file(path)
        if hook_file.problem:
            refused.append(hook_file)
        else:
            groups.setdefault((layer.file, hook_file.interpreter), []).append(hook_file)
    return tuple(HookGroup(*key, tuple(files)) for key, files in groups.items()), tuple(refused)


def _listed_files(layers: Sequence[Layer]) -> Iterator[tuple[Layer, str]]:
    """Yield the hook files that may be loaded if they are trusted, each with a layer that lists it."""
    listed = [
        (layer, hook_path(layer.file, name))
        for layer in layers
        if not layer.trusted or _contributes(layer, layers)
        for name in layer.policy.hooks
    ]
    by_trusted = {os.path.realpath(path) for layer, path in listed if layer.trusted}
    for layer, path in listed:
        if layer.trusted:
            yield layer, path
        elif (real := os.path.realpath(path)) not in by_trusted and runs_if_listed(layer.file, path):
            yield layer, real  # the modules beside this file are those that a person has trusted


def _contributes(layer: Layer, layers: Sequence[Layer]) -> bool:
    """Return whether the hooks of a trusted layer may run. Those of a worktree and its main checkout run only once."""
    if layer.runs_commands:
        return True
    return any(other.runs_commands and not other.trusted and other.folder == layer.folder for other in layers)


def runs_if_listed(policy_file: str, path: str) -> bool:
    """Return whether the hooks of a file run even if the policy that lists it has changed since it was trusted.

    They do if a person has trusted the hook file, and if it is in the folder of the policy, which is the working
    directory of its hooks, or was listed by the policy as a person trusted it. Otherwise a cloned repository could have
    a hook of another project run in its own folder.
    """
    real = os.path.realpath(path)
    if read_trusted(real) is None:
        return False
    folder = os.path.realpath(os.path.dirname(policy_file))
    if real.startswith(f"{folder.rstrip('/')}/") and _is_by_the_owner(policy_file, real):
        return True
    entry = None if os.path.islink(policy_file) else read_trusted(policy_file)
    return entry is not None and path in _listed_when_trusted(policy_file, entry)


def _is_by_the_owner(policy_file: str, path: str) -> bool:
    """Return whether a policy belongs to this user, to root or to the owner of a hook file; `True` if one was deleted.

    In `/tmp`, a policy may belong to another user.
    """
    try:
        return os.lstat(policy_file).st_uid in {os.geteuid(), 0, os.stat(path).st_uid}
    except OSError:
        return True  # one of them was deleted


_trusted_lists: dict[tuple[str, str], tuple[str, ...]] = {}
"""Policy file and digest → the hook files that it lists."""


def _listed_when_trusted(policy_file: str, entry: TrustedFile) -> tuple[str, ...]:
    from fairlead.policy.config._errors import PolicyError
    from fairlead.policy.config._files import parse_layer

    key = policy_file, entry.digest
    known = _trusted_lists.get(key)
    if known is None:
        try:
            names = parse_layer(entry.text, policy_file).policy.hooks
        except (PolicyError, ValidationError):  # written for another version
            names = []
        if len(_trusted_lists) >= _MAX_STATES:
            _trusted_lists.clear()
        known = _trusted_lists[key] = tuple(hook_path(policy_file, name) for name in names)
    return known


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
