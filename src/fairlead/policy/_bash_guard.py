"""The guards on a shell command: each command in it by its words, each file it touches by the file guards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.policy._file_rules import first_match
from fairlead.policy._paths import target_of
from fairlead.policy._tool_rules import Spoken
from fairlead.policy._walk import TooMany, below, expand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.policy._bash import Analysis, FileUse
    from fairlead.policy._file_rules import FileRules, ListedRule
    from fairlead.policy._own_files import OwnFiles
    from fairlead.policy._paths import Target
    from fairlead.policy._tool_rules import ToolRules
    from fairlead.policy._verdict import Case

_MAKES_FOLDERS = frozenset({"mkdir"})
"""A folder is no new file."""


class BashGuard:
    """Takes a command apart, and sends its parts through the other guards."""

    def __init__(self, tools: ToolRules, files: FileRules, own: OwnFiles | None, *, has_policy: bool) -> None:
        self._has_policy = has_policy
        self._tools = tools
        self._files = files
        self._own = own

    def check(self, case: Case, command: str) -> str | None:
        """Check a command; what cannot be understood is noted as a doubt."""
        from fairlead.policy._bash import analyse  # noqa: PLC0415 - a parser is dear to import

        analysis = analyse(command)
        commands = [Spoken(simple.text, simple.words, simple.program) for simple in analysis.commands]
        blocked = self._tools.check_commands(case, commands, command)
        if blocked is None:
            blocked = self._check_files(case, analysis)
        if blocked is None and self._matters(command):
            case.doubts += analysis.unknown
            case.doubts += analysis.unknown_reads if self._files.unreadable else ()
        else:
            case.doubts.clear()
        return blocked

    def _matters(self, command: str) -> bool:
        """Tell whether there is a rule that something unknown may walk around.

        Where there is a policy there is one: the policy itself must not be changed. Without any, only a command that
        speaks of the files that are always protected is worth a question.
        """
        return self._has_policy or (self._own is not None and self._own.is_mentioned(command))

    # -- files -----------------------------------------------------------------------------------------

    def _check_files(self, case: Case, analysis: Analysis) -> str | None:
        made = {use.path for use in analysis.files if use.program in _MAKES_FOLDERS}
        filled = {use.if_folder for use in analysis.files}
        for use in analysis.files:
            if use.mode == "read" and not self._reads_matter(case):
                continue
            if not use.placed:
                case.doubts.append(f"in which folder {use.path} is")
                continue
            if not _happens(use, case.cwd, made) or (use.path in filled and _is_folder(use.path, case.cwd)):
                continue  # what is put into a folder is a use of its own
            try:
                blocked = self._check_use(case, use)
            except TooMany as error:
                case.doubts.append(str(error))
                continue
            if blocked is not None:
                return blocked
        return None

    def _reads_matter(self, case: Case) -> bool:
        return bool(self._files.unreadable) or self._tools.concern_files(case.tool, case.agent)

    def _check_use(self, case: Case, use: FileUse) -> str | None:
        targets = [target_of(use.path, case.cwd)]
        if use.if_exists and not use.glob and not targets[0].exists:
            return None
        if use.glob:
            targets += expand(use.path, case.cwd)
        if blocked := self._tools.check_files(case, targets, is_command=True):
            return blocked
        for target in targets:
            blocked = self._check_read(case, use, target) if use.mode == "read" else self._check_edit(case, use, target)
            if blocked is not None:
                return blocked
        return None

    def _check_read(self, case: Case, use: FileUse, target: Target) -> str | None:
        blocked = self._files.check_read(case, target)
        if blocked is None and target.is_folder and (use.below or use.mode == "move"):
            return _check_below(case, target, self._files.unreadable)
        return blocked

    def _check_edit(self, case: Case, use: FileUse, target: Target) -> str | None:
        whole = use.below or use.mode in {"delete", "move"}
        if self._own and (blocked := self._own.check(case, target, whole=whole)):
            return blocked
        writes = use.mode in {"write", "create"}
        adds = writes and use.program not in _MAKES_FOLDERS
        blocked = self._files.check_edit(case, target, adds=adds, writes=writes)
        if blocked is None and target.is_folder and whole:
            blocked = _check_below(case, target, self._files.uneditable)
        if blocked is None and use.mode == "move":
            return self._check_read(case, use, target)
        return blocked


def _happens(use: FileUse, cwd: str, made: set[str]) -> bool:
    """Tell whether a use that depends on a folder takes place. `made` are those that the command itself makes."""
    if use.if_folder is not None and use.if_folder not in made and not _is_folder(use.if_folder, cwd):
        return False
    return use.unless_folder is None or not _is_folder(use.unless_folder, cwd)


def _is_folder(path: str, cwd: str) -> bool:
    return target_of(path, cwd).is_folder


def _check_below(case: Case, folder: Target, rules: Sequence[ListedRule]) -> str | None:
    """Check what is below a folder, as far as any rule can reach there."""
    near = [rule for rule in rules if rule.is_for(case.agent) and _may_reach(rule, folder)]
    if not near:
        return None
    for entry in below(folder):
        if any(rule.matches(entry, case.agent) for rule in near):
            blocked = first_match(case, entry, near)
            if blocked is not None:
                return blocked
    return None


def _may_reach(rule: ListedRule, folder: Target) -> bool:
    if rule.pattern.loose:
        return True
    above = tuple(f"{name.rstrip('/')}/" for name in folder.names)
    prefixes = rule.pattern.base.prefixes
    return any(prefix.startswith(above) for prefix in prefixes) or any(name.startswith(prefixes) for name in above)
