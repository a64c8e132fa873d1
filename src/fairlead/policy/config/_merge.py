"""Several files as one policy: lists add up, the nearest file's word counts for everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.policy.config._types import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlead.policy.config._types import Layer


def merged(layers: Sequence[Layer]) -> Policy:
    """Make one policy of layers that come nearest first.

    Lists are put one after the other, mappings are merged key by key, and of anything else the nearest file that
    says it is right: a default never hides what a file further away says.
    """
    if len(layers) == 1:
        return layers[0].policy
    document: dict[str, Any] = {}
    for layer in layers:
        document = _under(document, _given(layer))
    return msgspec.convert(document, Policy)


def _under(near: Mapping[str, Any], far: Mapping[str, Any]) -> dict[str, Any]:
    both = {key: _joined(near[key], far[key]) for key in near if key in far}
    return {**near, **both, **{key: far[key] for key in far if key not in near}}


def _joined(near: Any, far: Any) -> Any:
    if isinstance(near, dict) and isinstance(far, dict):
        return _under(near, far)
    if isinstance(near, list) and isinstance(far, list):
        return near + far
    return near


def _given(layer: Layer) -> Mapping[str, Any]:
    if layer.given is not None:
        return layer.given
    return _difference(msgspec.to_builtins(layer.policy), msgspec.to_builtins(Policy()))


def _difference(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for key, value in values.items():
        default = defaults.get(key)
        if value != default:
            found[key] = _difference(value, default) if isinstance(value, dict) and default else value
    return found
