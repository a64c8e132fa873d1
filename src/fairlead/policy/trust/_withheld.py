"""Finds the settings of an untrusted policy file that do not apply until it is trusted."""

from __future__ import annotations

from fairlead.policy.config._merge import given_values, loosened_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fairlead.policy.config._types import Layer

_RULES = frozenset(
    {"preToolUse", "permissionRequest", "subagentStart", "attention", "journal", "leases", "team", "tests"}
)
"""Sections that are checked setting by setting, and sections that never apply here, such as user-wide ones."""


def withheld_settings(layer: Layer, trusted: Sequence[Layer]) -> tuple[str, ...]:
    """Return the settings of a file that apply only once it is trusted. `trusted` are the other, trusted layers."""
    given = given_values(layer)
    names = [name for name, value in given.items() if name not in _RULES and value]
    names += [f"subagentStart.{name}" for name in ("commands", "context") if _section(given, "subagentStart").get(name)]
    if _grants(_section(given, "permissionRequest")):
        names.append("permissionRequest")
    return (*names, *loosened_settings(layer, trusted))


def _grants(section: Mapping[str, Any]) -> bool:
    return bool(section.get("allow")) or str(section.get("default", "")).lower() == "allow"


def _section(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return given.get(name) or {}
