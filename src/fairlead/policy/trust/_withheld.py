"""Finds the settings of an untrusted policy file that do not apply until it is trusted."""

from __future__ import annotations

from fairlead.policy.config._merge import given_values, loosened_settings
from fairlead.policy.trust._hook_files import hook_path, runs_if_listed

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
    if "hooks" in names and _all_hooks_run(layer):
        names.remove("hooks")
    names += [f"subagentStart.{name}" for name in ("commands", "context") if _section(given, "subagentStart").get(name)]
    if _grants(_section(given, "permissionRequest")):
        names.append("permissionRequest")
    return (*names, *loosened_settings(layer, trusted))


def only_adds_hooks(layer: Layer, earlier: Mapping[str, Any]) -> bool:
    """Return whether a file only lists more hook files than an earlier version, and all of them run.

    Then nothing of it is withheld.
    """
    now, before = dict(given_values(layer)), dict(earlier)
    listed, listed_before = now.pop("hooks", None) or [], before.pop("hooks", None) or []
    is_longer = len(listed) > len(listed_before) and set(listed) >= set(listed_before)
    return now == before and is_longer and _all_hooks_run(layer)


def _all_hooks_run(layer: Layer) -> bool:
    return all(runs_if_listed(layer.file, hook_path(layer.file, name)) for name in layer.policy.hooks)


def _grants(section: Mapping[str, Any]) -> bool:
    return bool(section.get("allow")) or str(section.get("default", "")).lower() == "allow"


def _section(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return given.get(name) or {}
