"""Looks at the policy that holds in a folder, and at what an event there would set off. Runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.doctor._facts import Policy
from fairlead.errors import FairleadError
from fairlead.events import parse
from fairlead.policy import (
    PolicyError,
    find_hints,
    find_layers,
    find_policy_files,
    has_decided_events,
    load_policy,
    plan_commands,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fairlead.policy import Diagnostic, Layer


def look_at_policy(cwd: str) -> tuple[Policy, tuple[Layer, ...]]:
    """Say how the policy is, and give the layers that hold: of a broken file, its last good version."""
    try:
        files = tuple(file for file, _ in find_policy_files(cwd, also_deleted=True))
    except PolicyError as error:
        return Policy(mistakes=tuple(map(_place, error.mistakes)), broken=True), ()
    mistakes = _mistakes(cwd)
    looked_at = () if mistakes else find_policy_files(cwd)
    hints = tuple(_place(hint) for file, _ in looked_at for hint in find_hints(file))
    try:
        loaded = load_policy(cwd, validating=True)
    except PolicyError as error:
        return Policy(files, mistakes or tuple(map(_place, error.mistakes)), broken=True), ()
    return Policy(files, mistakes, hints, loaded.warnings), loaded.layers


def _place(mistake: Diagnostic) -> str:
    """Say where a mistake is. What it says of a value may quote a secret, as the address of a channel."""
    if not mistake.line:
        return str(mistake)
    return f"{mistake.file}:{mistake.line}:{mistake.column}"


def _mistakes(cwd: str) -> tuple[str, ...]:
    try:
        find_layers(cwd)
    except PolicyError as error:
        return tuple(map(_place, error.mistakes))
    return ()


def is_in_use(files: Sequence[str]) -> bool:
    """Tell whether an event was decided by these files before. The first one to be makes them hold if they go."""
    return all(map(has_decided_events, files))


def sets_off(payload: Mapping[str, Any], layers: tuple[Layer, ...]) -> bool:
    """Tell whether an event would run a command, or tell a person something."""
    if any(layer.policy.notifications.enabled for layer in layers):
        return True
    try:
        return bool(plan_commands(parse(payload), layers).steps)
    except FairleadError:
        return True
