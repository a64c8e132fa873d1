"""Reports for people: which policy and hook files are trusted, where merged policies differ from the nearest alone."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import msgspec

from fairlead.policy.config._errors import PolicyError
from fairlead.policy.config._files import find_policy_files, read_policy_text, user_wide_file
from fairlead.policy.trust._hook_files import hook_path, read_hook_file
from fairlead.policy.trust._session_snapshots import snapshots_of_running_sessions
from fairlead.policy.trust._store import read_trusted
from fairlead.policy.trust._withheld import withheld_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.policy.config._types import Layer
    from fairlead.policy.trust._hook_files import HookFile


TrustState = Literal["session", "person", "changed"]
"""`session`: trusted by sessions that begin here. `person`: trusted by a person. `changed`: a person trusted another
version."""
HookTrust = Literal["trusted", "untrusted", "changed", "missing"]
"""
untrusted  nobody has trusted it
changed    it, a module that it imports, or the Python that runs it is not as it was trusted
missing    it cannot be read; or it is as it was trusted, and a module that it imports is missing
"""


class FileTrust(msgspec.Struct, frozen=True):
    """Whether a policy file is trusted."""

    file: str
    state: TrustState
    changed_sessions: int = 0
    """The number of running sessions that began with another version of it."""


def trust_states(cwd: str) -> tuple[FileTrust, ...]:
    """Return the policy files that apply in a folder, without the user-wide one, and whether they are trusted."""
    user_wide = user_wide_file()
    files = dict.fromkeys(policy_file.file for policy_file in find_policy_files(cwd) if policy_file.file != user_wide)
    return tuple(_state_of(file) for file in files)


def _state_of(file: str) -> FileTrust:
    from hashlib import sha256

    entry = read_trusted(file)
    try:
        digest = sha256(read_policy_text(file)).hexdigest()
    except PolicyError:
        return FileTrust(file, "session")
    recorded = (session.files.get(file) for session in snapshots_of_running_sessions())
    changed = sum(snapshot is not None and snapshot.digest != digest for snapshot in recorded)
    state: TrustState = "session" if entry is None else "person" if entry.digest == digest else "changed"
    return FileTrust(file, state, 0 if state == "person" else changed)


def changed_meanings(layers: Sequence[Layer]) -> Iterator[str]:
    """Yield messages about layers that apply now, although earlier versions of Fairlead ignored them.

    `layers` are in their order, nearest first.
    """
    user_wide = user_wide_file()
    own = [layer for layer in layers if layer.file != user_wide]
    for near, far in pairwise(own):
        if near.file == far.file:
            continue
        yield (
            f"{far.file}: it applies here too, its rules and its commands; earlier versions read the nearest file "
            f"alone, {near.file}"
        )
        if (withheld := withheld_settings(near, own[own.index(far) :])) and not _is_trusted(near):
            yield (
                f"{near.file}: in a session that begins above {near.folder} it is not trusted, so this does not apply: "
                f"{', '.join(withheld)}. To allow it: fairlead trust {near.file}"
            )


def _is_trusted(layer: Layer) -> bool:
    entry = read_trusted(layer.file)
    return entry is not None and entry.digest == layer.digest


class HookFileState(msgspec.Struct, frozen=True):
    """A hook file that a policy lists, and whether its hooks run."""

    policy: str
    setting: str
    """Its entry in the policy, such as `hooks[0]`."""
    name: str
    """The file as the policy lists it."""
    file: str
    state: HookTrust
    problem: str = ""
    """Why its hooks do not run, and what to do; empty if it is trusted."""


def hook_file_states(layers: Sequence[Layer]) -> tuple[HookFileState, ...]:
    """Return the hook files of trusted policies in their order, each once.

    Policies whose commands and hooks another file runs are left out.
    """
    states: dict[str, HookFileState] = {}
    for layer in layers:
        for index, name in enumerate(layer.policy.hooks if layer.trusted and layer.runs_commands else ()):
            path = os.path.abspath(hook_path(layer.file, name))
            if path not in states:
                hook_file = read_hook_file(path)
                states[path] = HookFileState(
                    layer.file, f"hooks[{index}]", name, path, _trust(hook_file), hook_file.problem
                )
    return tuple(states.values())


def _trust(hook_file: HookFile) -> HookTrust:
    if not hook_file.problem:
        return "trusted"
    entry = read_trusted(hook_file.file)
    try:
        with open(hook_file.file, "rb") as file:
            is_same = entry is not None and file.read() == entry.text
    except OSError:
        return "missing"
    if entry is None:
        return "untrusted"
    return "missing" if is_same and not all(map(os.path.isfile, entry.modules)) else "changed"
