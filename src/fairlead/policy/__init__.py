"""The policy: its file, the guards on tool calls, and the commands that events run.

Modules are imported on first use, because an event needs few of them.
"""

from __future__ import annotations

from fairlead.lazy import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.policy._time_spans import is_quiet
    from fairlead.policy.commands._environment import ALL_VARIABLES, command_environment, plan_variables
    from fairlead.policy.commands._pattern_search import PatternSearch
    from fairlead.policy.commands._plan import Plan, Step
    from fairlead.policy.commands._planner import check_patterns, plan_commands, planned_events
    from fairlead.policy.commands._prompts import context_rule_applies
    from fairlead.policy.config._conclaude import conclaude_differences, conclaude_sections
    from fairlead.policy.config._disk_cache import CachedPolicy
    from fairlead.policy.config._errors import MAX_MISTAKES, Diagnostic, PolicyError
    from fairlead.policy.config._files import (
        LoadedPolicy,
        PolicyNotice,
        deleted_file_warning,
        find_hints,
        find_layers,
        find_layers_in_force,
        find_policy_files,
        has_decided_events,
        load_policy,
        load_user_wide,
        parse_layer,
        read_layer,
        read_policy_text,
        user_wide_file,
    )
    from fairlead.policy.config._lookup import is_at_or_above
    from fairlead.policy.config._memory_cache import shared_lookups, watch_folders
    from fairlead.policy.config._merge import merge_layers
    from fairlead.policy.config._messages import shorten
    from fairlead.policy.config._reader import read_document, read_policy
    from fairlead.policy.config._schema import SCHEMA_ID, schema_text
    from fairlead.policy.config._types import (
        Attention,
        Command,
        Layer,
        LeaseMode,
        Notifications,
        Policy,
        PolicyTest,
        StayMode,
        Team,
    )
    from fairlead.policy.config._yaml_nodes import MAX_POLICY_BYTES
    from fairlead.policy.guards._effects import CallEffects, call_effects
    from fairlead.policy.guards._evaluation import FileChange
    from fairlead.policy.guards._guards import GuardResult, Guards, RuleCheck
    from fairlead.policy.guards._hooks import register_guards
    from fairlead.policy.guards._protected_files import ProtectedFiles
    from fairlead.policy.init._detect import DetectedCheck, detect_checks
    from fairlead.policy.init._detect_files import DetectedFiles, detect_files
    from fairlead.policy.init._template import names_schema, render_policy, with_schema_line
    from fairlead.policy.layers._matched_files import PatternMatches, matched_files
    from fairlead.policy.paths._gitignore import Pattern, PatternList, PatternSet
    from fairlead.policy.paths._resolve import BaseFolder, ResolvedPath, resolve
    from fairlead.policy.paths._roots import SearchRoot
    from fairlead.policy.paths._search import TooManyFiles, files_below
    from fairlead.policy.paths._translate import PatternError
    from fairlead.policy.trust._hook_files import (
        HookFile,
        HookGroup,
        find_hook_groups,
        find_interpreter,
        hook_path,
        read_hook_file,
        runs_if_listed,
    )
    from fairlead.policy.trust._report import FileTrust, HookFileState, changed_meanings, hook_file_states, trust_states
    from fairlead.policy.trust._session_policy import load_session_policy
    from fairlead.policy.trust._session_snapshots import PolicySnapshot, SessionCaller, mark_notified, was_notified
    from fairlead.policy.trust._store import TrustedFile, list_trusted, read_trusted, remove_trusted, write_trusted
    from fairlead.policy.trust._withheld import withheld_settings

__all__ = [
    "ALL_VARIABLES",
    "MAX_MISTAKES",
    "MAX_POLICY_BYTES",
    "SCHEMA_ID",
    "Attention",
    "BaseFolder",
    "CachedPolicy",
    "CallEffects",
    "Command",
    "DetectedCheck",
    "DetectedFiles",
    "Diagnostic",
    "FileChange",
    "FileTrust",
    "GuardResult",
    "Guards",
    "HookFile",
    "HookFileState",
    "HookGroup",
    "Layer",
    "LeaseMode",
    "LoadedPolicy",
    "Notifications",
    "Pattern",
    "PatternError",
    "PatternList",
    "PatternMatches",
    "PatternSearch",
    "PatternSet",
    "Plan",
    "Policy",
    "PolicyError",
    "PolicyNotice",
    "PolicySnapshot",
    "PolicyTest",
    "ProtectedFiles",
    "ResolvedPath",
    "RuleCheck",
    "SearchRoot",
    "SessionCaller",
    "StayMode",
    "Step",
    "Team",
    "TooManyFiles",
    "TrustedFile",
    "call_effects",
    "changed_meanings",
    "check_patterns",
    "command_environment",
    "conclaude_differences",
    "conclaude_sections",
    "context_rule_applies",
    "deleted_file_warning",
    "detect_checks",
    "detect_files",
    "files_below",
    "find_hints",
    "find_hook_groups",
    "find_interpreter",
    "find_layers",
    "find_layers_in_force",
    "find_policy_files",
    "has_decided_events",
    "hook_file_states",
    "hook_path",
    "is_at_or_above",
    "is_quiet",
    "list_trusted",
    "load_policy",
    "load_session_policy",
    "load_user_wide",
    "mark_notified",
    "matched_files",
    "merge_layers",
    "names_schema",
    "parse_layer",
    "plan_commands",
    "plan_variables",
    "planned_events",
    "read_document",
    "read_hook_file",
    "read_layer",
    "read_policy",
    "read_policy_text",
    "read_trusted",
    "register_guards",
    "remove_trusted",
    "render_policy",
    "resolve",
    "runs_if_listed",
    "schema_text",
    "shared_lookups",
    "shorten",
    "trust_states",
    "user_wide_file",
    "was_notified",
    "watch_folders",
    "with_schema_line",
    "withheld_settings",
    "write_trusted",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "commands._environment": ("ALL_VARIABLES", "command_environment", "plan_variables"),
        "commands._plan": ("Plan", "Step"),
        "commands._planner": ("check_patterns", "plan_commands", "planned_events"),
        "commands._pattern_search": ("PatternSearch",),
        "commands._prompts": ("context_rule_applies",),
        "config._conclaude": ("conclaude_differences", "conclaude_sections"),
        "config._disk_cache": ("CachedPolicy",),
        "config._errors": ("Diagnostic", "MAX_MISTAKES", "PolicyError"),
        "config._files": (
            "LoadedPolicy",
            "PolicyNotice",
            "deleted_file_warning",
            "find_hints",
            "find_layers",
            "find_layers_in_force",
            "find_policy_files",
            "has_decided_events",
            "load_policy",
            "load_user_wide",
            "parse_layer",
            "read_layer",
            "read_policy_text",
            "user_wide_file",
        ),
        "config._lookup": ("is_at_or_above",),
        "config._memory_cache": ("shared_lookups", "watch_folders"),
        "config._merge": ("merge_layers",),
        "config._messages": ("shorten",),
        "config._reader": ("read_document", "read_policy"),
        "config._schema": ("SCHEMA_ID", "schema_text"),
        "_time_spans": ("is_quiet",),
        "config._types": (
            "Attention",
            "Command",
            "Layer",
            "LeaseMode",
            "Notifications",
            "Policy",
            "PolicyTest",
            "StayMode",
            "Team",
        ),
        "config._yaml_nodes": ("MAX_POLICY_BYTES",),
        "guards._effects": ("CallEffects", "call_effects"),
        "guards._guards": ("Guards", "RuleCheck", "GuardResult"),
        "guards._hooks": ("register_guards",),
        "guards._protected_files": ("ProtectedFiles",),
        "guards._evaluation": ("FileChange",),
        "init._detect": ("DetectedCheck", "detect_checks"),
        "init._detect_files": ("DetectedFiles", "detect_files"),
        "init._template": ("names_schema", "render_policy", "with_schema_line"),
        "layers._matched_files": ("PatternMatches", "matched_files"),
        "paths._gitignore": ("Pattern", "PatternList", "PatternSet"),
        "paths._resolve": ("BaseFolder", "ResolvedPath", "resolve"),
        "paths._search": ("TooManyFiles", "files_below"),
        "trust._report": ("FileTrust", "HookFileState", "changed_meanings", "hook_file_states", "trust_states"),
        "trust._session_snapshots": ("PolicySnapshot", "SessionCaller", "mark_notified", "was_notified"),
        "trust._hook_files": (
            "HookFile",
            "HookGroup",
            "find_hook_groups",
            "find_interpreter",
            "hook_path",
            "read_hook_file",
            "runs_if_listed",
        ),
        "trust._session_policy": ("load_session_policy",),
        "trust._store": ("TrustedFile", "list_trusted", "read_trusted", "remove_trusted", "write_trusted"),
        "trust._withheld": ("withheld_settings",),
        "paths._roots": ("SearchRoot",),
        "paths._translate": ("PatternError",),
    },
)
