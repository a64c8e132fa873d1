"""What the user asked: the policy file, its errors, guards, and commands as plans.

The parts are loaded on first use: an event needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.policy._file import (
        Loaded,
        NotHeld,
        find_files,
        find_layers,
        hints_on,
        load,
        load_user_wide,
        read_layer,
    )
    from fairlead.policy._guards import Guards, Look, Verdict, register_guards
    from fairlead.policy._merge import merged
    from fairlead.policy._mistakes import Mistake, PolicyError
    from fairlead.policy._plan import plan
    from fairlead.policy._read import read_policy
    from fairlead.policy._steps import Plan, Step
    from fairlead.policy._types import Layer, Policy

__all__ = [
    "Guards",
    "Layer",
    "Loaded",
    "Look",
    "Mistake",
    "NotHeld",
    "Plan",
    "Policy",
    "PolicyError",
    "Step",
    "Verdict",
    "find_files",
    "find_layers",
    "hints_on",
    "load",
    "load_user_wide",
    "merged",
    "plan",
    "read_layer",
    "read_policy",
    "register_guards",
]

_HOMES = {
    "_file": {"Loaded", "NotHeld", "find_files", "find_layers", "hints_on", "load", "load_user_wide", "read_layer"},
    "_guards": {"Guards", "Look", "Verdict", "register_guards"},
    "_merge": {"merged"},
    "_mistakes": {"Mistake", "PolicyError"},
    "_plan": {"plan"},
    "_read": {"read_policy"},
    "_steps": {"Plan", "Step"},
    "_types": {"Layer", "Policy"},
}


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    from importlib import import_module  # noqa: PLC0415 - only the first use pays for it

    for home, names in _HOMES.items():
        if name in names:
            globals()[name] = value = getattr(import_module(f"fairlead.policy.{home}"), name)
            return value
    raise AttributeError(f"module 'fairlead.policy' has no attribute {name!r}")
