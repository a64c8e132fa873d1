"""The files that a policy protects from changes: where on the disk they can be, and which files match."""

from __future__ import annotations

import os
from stat import S_IFREG

from fairlead.policy.config._merge import merge_layers
from fairlead.policy.guards._evaluation import MAIN_AGENT
from fairlead.policy.guards._file_rules import FileRules
from fairlead.policy.paths._gitignore import PatternSet
from fairlead.policy.paths._resolve import ResolvedPath
from fairlead.policy.paths._roots import search_roots
from fairlead.policy.paths._spelling import is_case_insensitive, nfc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.policy.config._types import Layer
    from fairlead.policy.guards._file_rules import ListedRule

_OWN_FILE = "preToolUse.protectOwnFiles"


class ProtectedFiles:
    """The files that the rules of a policy keep agents from changing: `uneditableFiles`, and the policy itself."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        settings = merge_layers(layers).pre_tool_use
        rules = FileRules(layers).uneditable.rules
        self.mode = settings.integrity
        """What happens when a protected file was changed."""
        self.files = tuple(os.path.realpath(layer.file) for layer in layers) if settings.protect_own_files else ()
        """The files of the policy itself."""
        self._rules = tuple(rule for rule in rules if rule.action == "block")
        self._any = PatternSet(rule.pattern for rule in self._rules)
        self.roots = search_roots(rule.pattern for rule in self._rules)

    def rule_for(self, path: str, agent: str | None = None) -> str | None:
        """Return the rule, as text, that keeps an agent from changing a file; `None` if none does.

        Without `agent`, a rule counts whichever agent it is for.
        """
        if path in self.files:
            return _OWN_FILE
        rule = self._matching(path, agent)
        return None if rule is None else f"preToolUse.{rule.setting} '{rule.pattern.text}'"

    def contains(self, path: str) -> bool:
        """Return whether a rule keeps at least one agent from changing a file."""
        return self._matching(path, None) is not None

    def _matching(self, path: str, agent: str | None) -> ListedRule | None:
        ignores_case = is_case_insensitive(path.rpartition("/")[0] or "/")
        target = ResolvedPath(path, (nfc(path),), path, S_IFREG, case_insensitive=ignores_case)
        if not self._any.may_match(target):
            return None
        for rule in self._rules:
            if (agent is None or rule.is_for(agent)) and rule.matches(target, agent or MAIN_AGENT):
                return rule
        return None
