"""Combines the rules of `toolUsageValidation` of several files, so that no file can override the rules of another.

Within a group the first rule that matches decides, so an allow rule ends the search. Trusted files of the session are
one group. Every other file is a separate group: what it allows is still subject to the rules of all others.
"""

from __future__ import annotations

from fairlead.policy.guards._tool_rules import ToolRules
from fairlead.policy.paths._resolve import BaseFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.policy.config._types import Layer
    from fairlead.policy.guards._command_text import CommandText
    from fairlead.policy.guards._evaluation import Evaluation
    from fairlead.policy.paths._resolve import ResolvedPath


def tool_rules(layers: Sequence[Layer], path_layers: Sequence[Layer] = ()) -> ToolRules:
    """Return the rules of the session's layers, and of `path_layers`, the layers above files that a call touches."""
    trusted = [layer for layer in layers if layer.trusted]
    others = [layer for layer in layers if not layer.trusted and _has_rules(layer)]
    above_files = [layer for layer in path_layers if _has_rules(layer)]
    if not others and not above_files:
        return ToolRules(trusted)
    groups = [ToolRules(trusted), *(ToolRules((layer,)) for layer in others)]
    return _ToolGroups(groups, [_FileToolRules(layer) for layer in above_files])


class _ToolGroups(ToolRules):
    """Several groups of rules, each of which may block."""

    def __init__(self, groups: Sequence[ToolRules], above_files: Sequence[_FileToolRules]) -> None:
        super().__init__(())
        self._groups = (*groups, *above_files)

    def apply_to_files(self, evaluation: Evaluation) -> bool:
        return any(group.apply_to_files(evaluation) for group in self._groups)

    def check_files(
        self, evaluation: Evaluation, targets: Sequence[ResolvedPath], *, is_command: bool = False
    ) -> str | None:
        for group in self._groups:
            if blocked := group.check_files(evaluation, targets, is_command=is_command):
                return blocked
        return None

    def check_commands(
        self, evaluation: Evaluation, commands: Sequence[CommandText], whole: str, written: Sequence[str] = ()
    ) -> str | None:
        for group in self._groups:
            if blocked := group.check_commands(evaluation, commands, whole, written):
                return blocked
        return None


class _FileToolRules(ToolRules):
    """The rules of a policy above some files of a call. Those on files apply to the files below it alone."""

    def __init__(self, layer: Layer) -> None:
        super().__init__((layer,))
        self._base = BaseFolder.at(layer.folder)

    def check_files(
        self, evaluation: Evaluation, targets: Sequence[ResolvedPath], *, is_command: bool = False
    ) -> str | None:
        inside = [target for target in targets if target.below(self._base)]
        return super().check_files(evaluation, inside, is_command=is_command) if inside else None


def _has_rules(layer: Layer) -> bool:
    return bool(layer.policy.pre_tool_use.tool_usage_validation)
