"""Merges several policy files into one policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.policy.config._types import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlead.policy.config._types import Layer


def merge_layers(layers: Sequence[Layer]) -> Policy:
    """Merge layers, which come nearest first, into one policy.

    Lists are concatenated and mappings merged key by key. Of any other value the nearest file that sets it wins: a
    default never hides a value that a file further away sets.
    """
    if len(layers) == 1:
        return layers[0].policy
    document: dict[str, Any] = {}
    for layer in layers:
        document = _merge_mappings(document, _set_values(layer))
    return msgspec.convert(document, Policy)


def _merge_mappings(near: Mapping[str, Any], far: Mapping[str, Any]) -> dict[str, Any]:
    both = {key: _merge_values(near[key], far[key]) for key in near if key in far}
    return {**near, **both, **{key: far[key] for key in far if key not in near}}


def _merge_values(near: Any, far: Any) -> Any:
    if isinstance(near, dict) and isinstance(far, dict):
        return _merge_mappings(near, far)
    if isinstance(near, list) and isinstance(far, list):
        return near + far
    return near


def _set_values(layer: Layer) -> Mapping[str, Any]:
    """Return the values that a file sets."""
    if layer.given is not None:
        return layer.given
    return _difference(msgspec.to_builtins(layer.policy), msgspec.to_builtins(Policy()))


def _difference(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    different = {}
    for key, value in values.items():
        default = defaults.get(key)
        if value != default:
            different[key] = _difference(value, default) if isinstance(value, dict) and default else value
    return different
