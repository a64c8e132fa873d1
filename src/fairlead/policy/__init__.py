"""What the user configured: the policy file, its errors, guards, and commands as plans.

Modules are loaded on first use: an event needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.policy.commands._environment import command_environment
    from fairlead.policy.commands._plan import Plan, Step
    from fairlead.policy.commands._planner import patterns_of, plan
    from fairlead.policy.commands._prompts import context_rule_applies
    from fairlead.policy.config._conclaude import conclaude_differences, conclaude_sections
    from fairlead.policy.config._disk_cache import CachedPolicy, recall_policy
    from fairlead.policy.config._errors import MAX_MISTAKES, Mistake, PolicyError
    from fairlead.policy.config._files import (
        Loaded,
        NotCached,
        find_files,
        find_layers,
        hints_on,
        load,
        load_user_wide,
        policy_cache_folder,
        read_layer,
    )
    from fairlead.policy.config._merge import merged
    from fairlead.policy.config._reader import read_document, read_policy
    from fairlead.policy.config._schema import schema_text
    from fairlead.policy.config._time_spans import is_within_hours
    from fairlead.policy.config._types import Attention, Command, Layer, Notifications, Policy, PolicyTest, Stay
    from fairlead.policy.config._yaml_nodes import MAX_POLICY_BYTES
    from fairlead.policy.guards._guards import Guards, RuleCheck, Verdict, register_guards
    from fairlead.policy.init._detect import DetectedCheck, detect_checks
    from fairlead.policy.init._template import new_policy, with_header

__all__ = [
    "MAX_MISTAKES",
    "MAX_POLICY_BYTES",
    "Attention",
    "CachedPolicy",
    "Command",
    "DetectedCheck",
    "Guards",
    "Layer",
    "Loaded",
    "Mistake",
    "NotCached",
    "Notifications",
    "Plan",
    "Policy",
    "PolicyError",
    "PolicyTest",
    "RuleCheck",
    "Stay",
    "Step",
    "Verdict",
    "command_environment",
    "conclaude_differences",
    "conclaude_sections",
    "context_rule_applies",
    "detect_checks",
    "find_files",
    "find_layers",
    "hints_on",
    "is_within_hours",
    "load",
    "load_user_wide",
    "merged",
    "new_policy",
    "patterns_of",
    "plan",
    "policy_cache_folder",
    "read_document",
    "read_layer",
    "read_policy",
    "recall_policy",
    "register_guards",
    "schema_text",
    "with_header",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "commands._environment": ("command_environment",),
        "commands._plan": (
            "Plan",
            "Step",
        ),
        "commands._planner": (
            "patterns_of",
            "plan",
        ),
        "commands._prompts": ("context_rule_applies",),
        "config._conclaude": (
            "conclaude_differences",
            "conclaude_sections",
        ),
        "config._disk_cache": (
            "CachedPolicy",
            "recall_policy",
        ),
        "config._errors": (
            "MAX_MISTAKES",
            "Mistake",
            "PolicyError",
        ),
        "config._files": (
            "Loaded",
            "NotCached",
            "find_files",
            "find_layers",
            "hints_on",
            "load",
            "load_user_wide",
            "policy_cache_folder",
            "read_layer",
        ),
        "config._merge": ("merged",),
        "config._reader": (
            "read_document",
            "read_policy",
        ),
        "config._schema": ("schema_text",),
        "config._time_spans": ("is_within_hours",),
        "config._types": (
            "Attention",
            "Command",
            "Layer",
            "Notifications",
            "Policy",
            "PolicyTest",
            "Stay",
        ),
        "config._yaml_nodes": ("MAX_POLICY_BYTES",),
        "guards._guards": (
            "Guards",
            "RuleCheck",
            "Verdict",
            "register_guards",
        ),
        "init._detect": (
            "DetectedCheck",
            "detect_checks",
        ),
        "init._template": (
            "new_policy",
            "with_header",
        ),
    },
)
