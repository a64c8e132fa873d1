"""The guard on shell commands: tool rules on each command in it, file rules on each file that it accesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.policy.guards._tool_rules import Spoken
from fairlead.policy.paths._search import TooManyFiles, expand

if TYPE_CHECKING:
    from fairlead.policy.bash._analysis import Analysis, FileAccess
    from fairlead.policy.guards._file_rules import FileRules
    from fairlead.policy.guards._own_files import OwnFiles
    from fairlead.policy.guards._tool_rules import ToolRules
    from fairlead.policy.guards._verdict import Evaluation
    from fairlead.policy.paths._resolve import PathResolver, Target

_MAKES_FOLDERS = frozenset({"mkdir"})
"""Programs that create folders, which are not new files."""


class BashGuard:
    """Analyses a command, and applies the other rules to its parts."""

    def __init__(self, tools: ToolRules, files: FileRules, own: OwnFiles | None, *, has_policy: bool) -> None:
        self._has_policy = has_policy
        self._tools = tools
        self._files = files
        self._own = own

    def check(self, case: Evaluation, command: str) -> str | None:
        """Check a command; what is not known before it runs is added to the evaluation."""
        from fairlead.policy.bash._analysis import analyse

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
        """Return whether what is not known may bypass a rule.

        With a policy it may: the policy itself must not be changed. Without one, only a command that mentions the
        files that are always protected needs a question.
        """
        return self._has_policy or (self._own is not None and self._own.is_mentioned(command))

    # -- files -----------------------------------------------------------------------------------------

    def _check_files(self, case: Evaluation, analysis: Analysis) -> str | None:
        made = {use.path for use in analysis.files if use.program in _MAKES_FOLDERS}
        filled = {use.if_folder for use in analysis.files}
        by_file = self._tools.concern_files(case)
        reads_matter = by_file or bool(self._files.unreadable)
        for use in analysis.files:
            if not reads_matter and use.mode == "read":
                continue
            if use.folder is None and not use.is_located:
                case.doubts.append(f"in which folder {use.path} is")
                continue
            depends = use.if_folder is not None or use.unless_folder is not None
            if depends and not _happens(use, case.disk, made):
                continue
            if use.path in filled and case.disk.target(use.path).is_folder:
                continue  # a file that is put into a folder is an access of its own
            try:
                blocked = self._check_use(case, use, by_file=by_file)
            except TooManyFiles as error:
                case.doubts.append(str(error))
                continue
            if blocked is not None:
                return blocked
        return None

    def _check_use(self, case: Evaluation, use: FileAccess, *, by_file: bool) -> str | None:
        check = self._check_read if use.mode == "read" else self._check_edit
        target = case.disk.target(use.path)
        targets = [target, *expand(use.path, case.disk)] if use.glob else [target]
        if use.if_exists and not use.glob and not target.exists:
            return None
        if by_file and (blocked := self._tools.check_files(case, targets, is_command=True)):
            return blocked
        for target in targets:
            if blocked := check(case, use, target):
                return blocked
        return None

    def _check_read(self, case: Evaluation, use: FileAccess, target: Target) -> str | None:
        blocked = self._files.unreadable.check(case, target)
        if blocked is None and target.is_folder and (use.below or use.mode == "move"):
            return self._files.unreadable.check_below(case, target)
        return blocked

    def _check_edit(self, case: Evaluation, use: FileAccess, target: Target) -> str | None:
        whole = use.below or use.mode in {"delete", "move"}
        if self._own and (blocked := self._own.check(case, target, whole=whole)):
            return blocked
        writes = use.mode in {"write", "create"}
        adds = writes and use.program not in _MAKES_FOLDERS
        blocked = self._files.check_edit(case, target, adds=adds, writes=writes)
        if blocked is None and target.is_folder and whole:
            blocked = self._files.uneditable.check_below(case, target)
        if blocked is None and use.mode == "move":
            return self._check_read(case, use, target)
        return blocked


def _happens(use: FileAccess, disk: PathResolver, made: set[str]) -> bool:
    """Return whether an access that depends on a folder happens. `made` are those that the command itself creates."""
    if use.if_folder is not None and use.if_folder not in made and not disk.target(use.if_folder).is_folder:
        return False
    return use.unless_folder is None or not disk.target(use.unless_folder).is_folder
