"""Merges several policy files into one policy."""

from __future__ import annotations

from fairlead.policy.config._types import Policy
from fairlead.structs import convert, to_builtins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fairlead.policy.config._types import Layer


_GUARDS = ("preventRootAdditions", "preventUpdateGitIgnored", "preventGeneratedFileEdits", "protectOwnFiles")
"""Settings of `preToolUse` that are stricter if they are true."""
_LISTS = ("uneditableFiles", "unreadableFiles", "preventAdditions")
_UNPARSABLE = ("allow", "ask", "deny")
_LEASES = ("off", "warn", "block")


def merge_layers(layers: Sequence[Layer]) -> Policy:
    """Merge layers, which come nearest first, into one policy.

    Lists are concatenated, and mappings are merged key by key. For any other value the nearest file that sets it wins:
    a default never replaces a value that a farther file sets. A file that is not trusted only makes the rules of
    `preToolUse` stricter.
    """
    if len(layers) == 1 and layers[0].trusted:
        return layers[0].policy
    document: dict[str, Any] = {}
    for layer in layers:
        if layer.trusted:
            document = _merge_mappings(document, given_values(layer))
    for layer in layers:
        if not layer.trusted:
            document = _tightened(document, given_values(layer))
    return convert(document, Policy)


def loosened_settings(layer: Layer, others: Sequence[Layer]) -> tuple[str, ...]:
    """Return the settings that a file would loosen if it were trusted, compared with the other files."""
    before = merge_layers(others)
    names = [f"preToolUse.{name}" for name in _GUARDS if _loosens(layer, before, name)]
    unparsable = (_pre_tool_use(given_values(layer)).get("bash") or {}).get("unparsable")
    if unparsable and _UNPARSABLE.index(unparsable) < _UNPARSABLE.index(before.pre_tool_use.bash.unparsable):
        names.append("preToolUse.bash.unparsable")
    if _pre_tool_use(given_values(layer)).get("integrity") in {"off", "restore"} - {before.pre_tool_use.integrity}:
        names.append("preToolUse.integrity")
    leases = given_values(layer).get("leases")
    if leases and _LEASES.index(leases) < _LEASES.index(before.leases):
        names.append("leases")
    return tuple(names)


def _loosens(layer: Layer, before: Policy, name: str) -> bool:
    current = to_builtins(before.pre_tool_use)[name]
    return current is True and _pre_tool_use(given_values(layer)).get(name) is False


def _tightened(document: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of `document` with those rules of `given` that are stricter or additional."""
    ours, theirs = _pre_tool_use(document), _pre_tool_use(given)
    section: dict[str, Any] = dict(ours)
    for name in _GUARDS:
        if theirs.get(name) is True:
            section[name] = True
    for name in _LISTS:
        if theirs.get(name):
            section[name] = [*ours.get(name, ()), *theirs[name]]
    if ours.get("integrity") == "off" and theirs.get("integrity", "off") != "off":
        section["integrity"] = "report"  # restoring files is an action, which needs a trusted file
    unparsable = (theirs.get("bash") or {}).get("unparsable")
    if unparsable is not None:
        bash = ours.get("bash") or {}
        stricter = max(bash.get("unparsable", "ask"), unparsable, key=_UNPARSABLE.index)
        section["bash"] = {**bash, "unparsable": stricter}
    tightened = {**document, "preToolUse": section} if section else dict(document)
    if "leases" in given:
        tightened["leases"] = max(document.get("leases", "warn"), given["leases"], key=_LEASES.index)
    return tightened


def _pre_tool_use(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return document.get("preToolUse") or {}


def _merge_mappings(near: Mapping[str, Any], far: Mapping[str, Any]) -> dict[str, Any]:
    both = {key: _merge_values(near[key], far[key]) for key in near if key in far}
    return {**near, **both, **{key: far[key] for key in far if key not in near}}


def _merge_values(near: Any, far: Any) -> Any:
    if isinstance(near, dict) and isinstance(far, dict):
        return _merge_mappings(near, far)
    if isinstance(near, list) and isinstance(far, list):
        return near + far
    return near


def given_values(layer: Layer) -> Mapping[str, Any]:
    """Return the values that a file sets."""
    if layer.given is not None:
        return layer.given
    return _difference(to_builtins(layer.policy), to_builtins(Policy()))


def _difference(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    different = {}
    for key, value in values.items():
        default = defaults.get(key)
        if value != default:
            different[key] = _difference(value, default) if isinstance(value, dict) and default else value
    return different
