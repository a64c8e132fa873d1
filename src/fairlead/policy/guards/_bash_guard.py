"""The guard on shell commands: tool rules on each command in it, file rules on each file that it accesses."""

from __future__ import annotations

from fairlead.policy.bash.programs._calls import basename
from fairlead.policy.bash.programs._common_programs import FORMATTERS
from fairlead.policy.guards._command_text import CommandText
from fairlead.policy.guards._evaluation import FileChange
from fairlead.policy.guards._mentions import add_mentions
from fairlead.policy.paths._search import TooManyFiles, expand
from fairlead.structs import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.policy.bash._analysis import Analysis, FileAccess
    from fairlead.policy.guards._evaluation import Evaluation
    from fairlead.policy.guards._file_rules import FileRules
    from fairlead.policy.guards._git_guard import GitGuard
    from fairlead.policy.guards._tool_rules import ToolRules
    from fairlead.policy.guards.self_protection._files import ProtectedOwnFiles
    from fairlead.policy.paths._resolve import PathResolver, ResolvedPath
    from fairlead.policy.paths._selection import Selection

_MAX_SHOWN = 3
"""The maximum number of patterns of a list that a question names."""
_MAKES_FILES = frozenset({"mkfifo", "mknod"})
"""Programs that have the access mode `create`, but create no folder."""
_LEAVE_OUT = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "rgrep"), "--exclude='{}'"),
    **dict.fromkeys(("rg", "ripgrep"), "-g '!{}'"),
    "ag": "--ignore '{}'",
    "tar": "--exclude='{}'",
    "rsync": "--exclude='{}'",
    "zip": "-x '*{}'",
}
"""Program → the option with which its search leaves a file out. `{}` stands for the file's name."""
_SETS_VARIABLES = frozenset({"source", "."})
"""Programs that load variables from a file. Allowed in scripts of the project, because they do not show the file."""


class BashGuard:
    """Analyses a command, and applies the rules on tools, files and git to its parts."""

    def __init__(
        self, tools: ToolRules, files: FileRules, own: ProtectedOwnFiles | None, git: GitGuard, *, has_policy: bool
    ) -> None:
        self._has_policy = has_policy
        self._tools = tools
        self._files = files
        self._own = own
        self._file_rules_text = _file_rules_text(files, own)
        self.git = git

    def check(self, evaluation: Evaluation, command: str) -> str | None:
        """Return why a command is blocked; `None` if it is not.

        Parts that are only known at run time are added to `evaluation.unknowns`.
        """
        from fairlead.policy.bash._analysis import analyse
        from fairlead.policy.bash._context import AnalysisContext

        analysis = analyse(command, AnalysisContext(evaluation.cwd, may_wait=evaluation.may_wait))
        if analysis.git:
            analysis = self.git.expand(evaluation, analysis)
        commands = [
            CommandText(simple.text, simple.words, simple.program, implied=simple.implied, variables=simple.variables)
            for simple in analysis.commands
        ]
        blocked = self._tools.check_commands(evaluation, commands, command, _redirected(analysis))
        if blocked is None:
            blocked = self._check_files(evaluation, analysis)
        if blocked is None and analysis.git:
            blocked = self.git.check(evaluation, analysis)
        if blocked is None and analysis.mentions:
            add_mentions(evaluation, analysis.mentions, self._files, self._own)
        if blocked is None and self._may_bypass_rules(evaluation, analysis, command):
            evaluation.unknowns += analysis.unknown
            evaluation.unknowns += analysis.unknown_reads if self._files.unreadable else ()
            evaluation.rules_at_risk += self._file_rules_text
        elif blocked is not None:
            evaluation.unknowns.clear()
        if blocked is None and self._own is not None:
            blocked = self._own.commands.check(evaluation, analysis, command)
        return blocked

    def _may_bypass_rules(self, evaluation: Evaluation, analysis: Analysis, command: str) -> bool:
        """Return whether the unknown parts of a command may bypass a rule.

        With a policy they may: the policy itself must not be changed. Without one, a question is only needed if the
        command, or a file that it runs, mentions the files that are always protected.
        """
        own = self._own
        if self._has_policy or own is None or own.is_mentioned(command):
            return self._has_policy or own is not None
        if not analysis.runs_unknown:
            return False
        from fairlead.policy.guards.self_protection._read_files import read_texts

        return any(map(own.is_mentioned, read_texts(analysis, evaluation.cwd, may_wait=evaluation.may_wait)))

    # -- files -----------------------------------------------------------------------------------------

    def _check_files(self, evaluation: Evaluation, analysis: Analysis) -> str | None:
        made = {access.path for access in analysis.files if access.mode == "create"}
        filled = {access.if_folder for access in analysis.files}
        by_file = self._tools.apply_to_files(evaluation)
        reads_matter = by_file or bool(self._files.unreadable)
        for access in analysis.files:
            if (
                self._own is not None
                and access.mode in {"read", "move"}
                and (blocked := self._own.check_read(evaluation, access.path, below=access.below or access.glob))
            ):
                return blocked
            if (not reads_matter and access.mode == "read") or (not by_file and access.mode == "list"):
                evaluation.paths.touch(access.path, whole=access.below and access.mode == "read")
                continue
            if access.folder is None and not access.is_located:
                self._add_unlocated(evaluation, access)
                continue
            depends = access.if_folder is not None or access.unless_folder is not None
            if depends and not _happens(access, evaluation.paths, made):
                continue
            if access.path in filled and evaluation.paths.resolve(access.path).is_folder:
                continue  # a file that is put into a folder is an access of its own
            try:
                blocked = self._check_access(evaluation, access, by_file=by_file)
            except TooManyFiles as error:
                evaluation.unknowns += [] if access.tracked else [str(error)]
                continue
            if blocked is not None:
                return blocked if access.script is None else f"{blocked} Script: {access.script}"
        return None

    def _add_unlocated(self, evaluation: Evaluation, access: FileAccess) -> None:
        """Add a question about a file in an unknown folder; in a script of the project, only about a protected file."""
        if access.tracked:
            mention = replace(access, mode="any", below=False)
            add_mentions(evaluation, [mention], self._files, self._own)
        else:
            evaluation.unknowns.append(f"in which folder {access.path} is")

    def _check_access(self, evaluation: Evaluation, access: FileAccess, *, by_file: bool) -> str | None:
        if access.tracked and access.program in _SETS_VARIABLES:
            return None
        check = self._check_read if access.mode in {"read", "list"} else self._check_edit
        target = evaluation.paths.resolve(access.path)
        targets = [target, *expand(access.path, evaluation.paths)] if access.glob else [target]
        if access.if_exists and not access.glob and not target.exists:
            return None
        if by_file and (blocked := self._tools.check_files(evaluation, targets, is_command=True)):
            return blocked
        for target in targets:
            if blocked := check(evaluation, access, target):
                return blocked
        return None

    def _check_read(self, evaluation: Evaluation, access: FileAccess, target: ResolvedPath) -> str | None:
        if access.mode == "list":
            return None
        blocked = self._files.check_contents(evaluation, target)
        if blocked is None and target.is_folder and (access.below or access.mode == "move"):
            blocked = self._files.unreadable.check_below(evaluation, target, access.selection)
            how = _LEAVE_OUT.get(access.program)
            if blocked is not None and access.program == "rg" and access.script is None and _is_plain(access.selection):
                globs = self._files.unreadable.globs_below(evaluation, target)
                evaluation.may_leave_out.update(dict.fromkeys(globs or ()))
            if blocked is not None and how is not None:
                return f"{blocked} To leave it out of the search: {how.format(basename(evaluation.subjects[-1][1]))}"
        return blocked

    def _check_edit(self, evaluation: Evaluation, access: FileAccess, target: ResolvedPath) -> str | None:
        if target.is_folder:
            evaluation.changed_folders[target.real] = None
        whole = access.below or access.mode in {"delete", "move"}
        evaluation.changes.append(FileChange(target, whole))
        # a formatter does not change what our files say
        own_whole = whole and access.program not in FORMATTERS
        if access.mode != "delete":
            self.git.check_written(evaluation, target)
        if self._own and (
            blocked := self._own.check(evaluation, target, whole=own_whole, among=access.selection.among)
        ):
            return blocked
        writes = access.mode in {"write", "create"}
        adds = writes and not self._makes_folder(evaluation, access)
        if access.tracked or access.literal:  # a build writes new files, and most literals are no files
            blocked = self._files.uneditable.check(evaluation, target)
        else:
            blocked = self._files.check_edit(evaluation, target, adds=adds, writes=writes)
        if blocked is None and target.is_folder and whole:
            blocked = self._files.uneditable.check_below(evaluation, target, access.selection)
        if blocked is None and access.mode == "move":
            return self._check_read(evaluation, access, target)
        return blocked

    def _makes_folder(self, evaluation: Evaluation, access: FileAccess) -> bool:
        """Return whether an access creates a folder, which does not count as a new file."""
        if access.makes_folder or (access.mode == "create" and access.program not in _MAKES_FILES):
            return True
        return access.copy_of is not None and evaluation.paths.resolve(access.copy_of).is_folder


def _file_rules_text(files: FileRules, own: ProtectedOwnFiles | None) -> list[str]:
    """Return the lists of file rules, each as text with its first patterns; without rules, `protectOwnFiles` if set."""
    lists = {"uneditableFiles": files.uneditable, "unreadableFiles": files.unreadable}
    texts = []
    for setting, entries in lists.items():
        patterns = list(dict.fromkeys(rule.missed.rule for rule in entries.rules))
        if patterns:
            more = ", …" if len(patterns) > _MAX_SHOWN else ""
            texts.append(f"preToolUse.{setting} ({', '.join(patterns[:_MAX_SHOWN])}{more})")
    return texts or ([] if own is None else ["preToolUse.protectOwnFiles"])


def _redirected(analysis: Analysis) -> list[str]:
    """Return the files that redirections of the command itself write."""
    return [access.path for access in analysis.files if access.program == ">" and access.script is None]


def _is_plain(selection: Selection) -> bool:
    """Return whether a search leaves out hidden and ignored files, as ripgrep does by default."""
    return {"hidden", "ignored"} <= {*selection.skips}


def _happens(access: FileAccess, paths: PathResolver, made: set[str]) -> bool:
    """Return whether an access that depends on a folder happens. `made` are the folders that the command creates."""
    if access.if_folder is not None and access.if_folder not in made and not paths.resolve(access.if_folder).is_folder:
        return False
    return access.unless_folder is None or not paths.resolve(access.unless_folder).is_folder
