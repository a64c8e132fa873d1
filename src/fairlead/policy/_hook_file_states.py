"""Reports the hook files that policies list, and whether they are trusted. For people."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

import msgspec

from fairlead.policy.trust._hook_files import hook_path, read_hook_file
from fairlead.policy.trust._store import read_trusted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.policy.config._types import Layer
    from fairlead.policy.trust._hook_files import HookFile

HookTrust = Literal["trusted", "untrusted", "changed", "missing"]
"""
untrusted  nobody has trusted it
changed    it, a module that it imports, or the Python that runs it is not as it was trusted
missing    it cannot be read; or it is as it was trusted, and a module that it imports is missing
"""


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
    """Return the hook files of policies in their order, each once, without those whose hooks another policy runs."""
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
