"""Reads the policy that applies in a folder, and finds out whether an event there would run something. Runs nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fairlead.doctor._facts import PolicyFacts
from fairlead.errors import FairleadError
from fairlead.events import parse
from fairlead.policy import (
    PolicyError,
    find_hints,
    find_layers,
    find_policy_files,
    has_decided_events,
    hook_file_states,
    load_policy,
    load_user_wide,
    merge_layers,
    plan_commands,
    trust_states,
    user_wide_file,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fairlead.policy import Diagnostic, Layer


def probe_policy(cwd: str) -> tuple[PolicyFacts, tuple[Layer, ...]]:
    """Return the facts about the policy, and the layers that apply; no layers if the policy is unusable.

    The last good version of an invalid file applies.
    """
    try:
        files = tuple(dict.fromkeys(policy.file for policy in find_policy_files(cwd, also_deleted=True)))
    except PolicyError as error:
        return PolicyFacts(errors=tuple(map(_location, error.mistakes)), is_unusable=True), ()
    errors = _errors(cwd)
    current = [] if errors else [file for file in files if os.path.exists(file)]
    hints = tuple(_location(hint) for file in current for hint in find_hints(file))
    try:
        loaded = load_policy(cwd, validating=True)
    except PolicyError as error:
        return PolicyFacts(files, errors or tuple(map(_location, error.mistakes)), is_unusable=True), ()
    policy = PolicyFacts(
        files,
        errors,
        hints,
        loaded.warnings,
        integrity=_integrity(loaded.layers),
        trust=trust_states(cwd),
        hooks=hook_file_states(loaded.layers),
        user_wide=user_wide_file(),
        answer_seconds=_answer_seconds(),
    )
    return policy, loaded.layers


def _answer_seconds() -> int:
    settings = load_user_wide().attention  # cannot fail: it was read as one of the layers
    return settings.answer_timeout if settings.answer else 0


def _integrity(layers: tuple[Layer, ...]) -> str:
    settings = merge_layers(layers).pre_tool_use
    return settings.integrity if settings.uneditable_files else "off"


def _location(mistake: Diagnostic) -> str:
    """Return the position of a mistake as text; the mistake with its message if it has no line.

    Otherwise the message is left out: it may quote a secret such as a channel's URL.
    """
    if not mistake.line:
        return str(mistake)
    return f"{mistake.file}:{mistake.line}:{mistake.column}"


def _errors(cwd: str) -> tuple[str, ...]:
    try:
        find_layers(cwd)
    except PolicyError as error:
        return tuple(map(_location, error.mistakes))
    return ()


def have_decided_events(files: Sequence[str]) -> bool:
    """Return whether each of these files has decided an event before; `True` if there are none.

    From its first event on a file applies even if it is deleted. So a file that has decided none must not begin with
    an event of the doctor.
    """
    return all(map(has_decided_events, files))


def has_side_effects(payload: Mapping[str, Any], layers: tuple[Layer, ...]) -> bool:
    """Return whether an event would run a command or notify the user; `True` if that cannot be found out."""
    if any(layer.policy.notifications.enabled for layer in layers):
        return True
    try:
        return bool(plan_commands(parse(payload), layers).steps)
    except FairleadError:
        return True
