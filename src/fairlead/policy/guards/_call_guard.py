"""The guard on the normal form of a tool call: checks its command, its code, and how it accesses each path."""

from __future__ import annotations

import os
import re

from fairlead.policy.guards._evaluation import Evaluation, FileChange
from fairlead.policy.paths._search import TooManyFiles, expand
from fairlead.policy.paths._selection import Selection
from fairlead.structs import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

    from fairlead.clients import InlineCode, PathAccess, ToolCall
    from fairlead.policy.guards._file_rules import FileRules
    from fairlead.policy.guards._shell_guards import ShellGuards
    from fairlead.policy.guards._tool_rules import ToolRules
    from fairlead.policy.guards.self_protection._files import ProtectedOwnFiles
    from fairlead.policy.paths._resolve import ResolvedPath

    _Access = tuple[PathAccess, ResolvedPath]

_INTERPRETERS: Final = {
    "python": "python3 -c",
    "javascript": "node -e",
    "ruby": "ruby -e",
    "perl": "perl -e",
    "php": "php -r",
    "lua": "lua -e",
    "awk": "awk",
    "": "python3 -c",
}
"""Language → a command that runs its code, which is analysed like any other. `""` is an unknown language."""
_MENTIONING: Final = frozenset({"", "sql"})
"""Languages whose code is only searched for paths."""
_LITERAL: Final = r"'([^'\n]{1,4096})'|\"([^\"\n]{1,4096})\""
_VARIABLE: Final = r"\$\{?(HOME|PWD|\w*PROJECT_DIR)\b\}?|\$"
_MAX_SOURCES: Final = 100
_CHANGES: Final = frozenset({"write", "make_folder", "delete", "move"})


class CallGuard:
    """Applies the rules to the parts of a tool call."""

    def __init__(self, tools: ToolRules, files: FileRules, own: ProtectedOwnFiles | None, shell: ShellGuards) -> None:
        self._tools = tools
        self._files = files
        self._own = own
        self._shell = shell

    def check(self, evaluation: Evaluation, call: ToolCall) -> str | None:
        """Return why a call is blocked; `None` if it is not.

        Parts that are only known at run time are added to `evaluation.unknowns`.
        """
        blocked = None
        if call.command is not None:
            blocked = self._check_command(evaluation, call.command, call.folder)
        for code in call.code:
            blocked = blocked or self._check_code(evaluation, code)
        if blocked is None and (call.paths or call.command is None):
            blocked = self._check_paths(evaluation, call)
        if blocked is None and call.unknown and (self._files.uneditable or self._files.unreadable):
            evaluation.unknowns += call.unknown
        return blocked

    # -- commands and code -----------------------------------------------------------------------------

    def _check_command(self, evaluation: Evaluation, command: str, folder: str) -> str | None:
        if not folder:
            return self._shell.bash.check(evaluation, command)
        with evaluation.in_folder(folder):
            return self._shell.bash.check(evaluation, command)

    def _check_code(self, evaluation: Evaluation, code: InlineCode) -> str | None:
        if code.language in _MENTIONING:
            texts = (first or second for first, second in re.findall(_LITERAL, code.text))
            for text in texts:
                if not re.search(r"\s", text):
                    self._ask_about(evaluation, evaluation.paths.resolve(text))
        if code.language not in _INTERPRETERS:
            return None
        from shlex import quote

        return self._shell.bash.check(evaluation, f"{_INTERPRETERS[code.language]} {quote(code.text)}")

    # -- paths -----------------------------------------------------------------------------------------

    def _check_paths(self, evaluation: Evaluation, call: ToolCall) -> str | None:
        accesses = [(access, target) for access in call.paths for target in _targets(evaluation, access)]
        if len(accesses) > 1:
            accesses = _with_destinations(evaluation, accesses)
        if self._own:
            for access, target in accesses:
                whole = access.mode != "make_folder" and not access.below
                if access.mode in _CHANGES and (blocked := self._own.check(evaluation, target, whole=whole)):
                    return blocked
                if access.mode in {"read", "move"} and (
                    blocked := self._own.check_read(evaluation, target.given, below=access.below)
                ):
                    return blocked
        targets = [target for _, target in accesses]
        if blocked := self._tools.check_files(evaluation, targets, is_command=call.command is not None):
            return blocked
        for access, target in accesses:
            if blocked := self._check_path(evaluation, access, target):
                return blocked
        return None

    def _check_path(self, evaluation: Evaluation, access: PathAccess, target: ResolvedPath) -> str | None:
        mode = access.mode
        if mode == "read":
            return self._check_read(evaluation, access, target)
        if mode in _CHANGES:
            return self._check_change(evaluation, access, target)
        if mode == "any":
            self._ask_about(evaluation, target)
        return None

    def _check_read(self, evaluation: Evaluation, access: PathAccess, target: ResolvedPath) -> str | None:
        blocked = self._files.check_read(evaluation, target)
        if blocked is None and access.below and target.is_folder:
            return self._check_below(evaluation, access, target)
        return blocked

    def _check_below(self, evaluation: Evaluation, access: PathAccess, target: ResolvedPath) -> str | None:
        """Return why a search below a folder is blocked; `None` if it is not.

        A tool that can leave files out is not blocked: the globs of these files are added to `evaluation.leaves_out`.
        """
        known = len(evaluation.unknowns)
        blocked = self._files.unreadable.check_below(evaluation, target, Selection(access.among))
        if blocked is None and len(evaluation.unknowns) == known:
            return None
        globs = self._files.unreadable.globs_below(evaluation, target) if evaluation.leaves_out is not None else None
        if globs is None or evaluation.leaves_out is None:
            return blocked
        del evaluation.unknowns[known:]
        evaluation.leaves_out.update(dict.fromkeys(globs))
        return None

    def _check_change(self, evaluation: Evaluation, access: PathAccess, target: ResolvedPath) -> str | None:
        writes, moves = access.mode == "write", access.mode == "move"
        if target.is_folder:
            evaluation.changed_folders[target.real] = None
        evaluation.changes.append(FileChange(target, access.below or moves or access.mode == "delete"))
        if (writes or moves) and any("/.git/" in name for name in target.names):
            self._shell.git.check_written(evaluation, target)
        blocked = self._files.check_edit(evaluation, target, adds=writes and not access.below, writes=writes)
        if blocked is None and target.is_folder and (moves or access.mode == "delete"):
            blocked = self._files.uneditable.check_below(evaluation, target)
        elif blocked is None and target.is_folder and access.below:
            self._ask_below(evaluation, access, target)
        if blocked is None and moves:
            blocked = self._files.check_read(evaluation, target)
            if blocked is None and target.is_folder:
                return self._files.unreadable.check_below(evaluation, target)
        return blocked

    def _ask_about(self, evaluation: Evaluation, target: ResolvedPath) -> None:
        """Record an unknown if a rule protects a file that the call uses in a way that is not known."""
        probe = Evaluation(evaluation.tool, evaluation.agent, evaluation.cwd, evaluation.tool_alias)
        probe.paths = evaluation.paths
        if self._is_protected(probe, target):
            rule = next((check for check in reversed(probe.checks) if check.matched), None)
            by = f", which {rule.setting} protects" if rule else ""
            evaluation.unknowns.append(f"what {evaluation.tool} does with {target.given}{by}")
            evaluation.subjects.append((len(evaluation.checks), target.given))
            evaluation.checks += [rule] if rule else []
        evaluation.unknowns += probe.unknowns

    def _ask_below(self, evaluation: Evaluation, access: PathAccess, folder: ResolvedPath) -> None:
        """Record an unknown if a call writes below a folder that contains protected files: it may write these.

        Unknowns lead to a question or a denial, unless the policy allows them (`bash.unparsable`).
        """
        probe = Evaluation(evaluation.tool, evaluation.agent, evaluation.cwd, evaluation.tool_alias)
        probe.paths = evaluation.paths
        is_own = not access.among and self._own is not None and self._own.check(probe, folder, whole=True) is not None
        if is_own or self._files.uneditable.check_below(probe, folder, Selection(access.among)) is not None:
            where = f"{folder.given}, which contains protected ones"
            evaluation.unknowns.append(f"which files {evaluation.tool} writes below {where}")
        evaluation.unknowns += probe.unknowns

    def _is_protected(self, probe: Evaluation, target: ResolvedPath) -> bool:
        lists = (self._files.uneditable, self._files.unreadable)
        whole = target.is_folder and not f"{probe.cwd}/".startswith(f"{target.real.rstrip('/')}/")
        return (
            (self._own is not None and self._own.check(probe, target, whole=whole) is not None)
            or any(rules.check(probe, target) is not None for rules in lists)
            or (whole and any(rules.check_below(probe, target) is not None for rules in lists))
        )


def _targets(evaluation: Evaluation, access: PathAccess) -> Iterable[ResolvedPath]:
    """Return the path of an access, also with its variables expanded, and the files that it matches as a pattern.

    If these are too many, only the path is returned, and an unknown is recorded.
    """
    target = evaluation.paths.resolve(access.path)
    if "$" in access.path:
        expanded = re.sub(_VARIABLE, lambda name: _variable(name[1] or "", evaluation.cwd), access.path)
        return (target, *_targets(evaluation, replace(access, path=expanded)))
    if not access.glob:
        return (target,)
    try:
        return (target, *expand(access.path, evaluation.paths))
    except TooManyFiles as error:
        evaluation.unknowns.append(str(error))
        return (target,)


def _variable(name: str, cwd: str) -> str:
    """Return the folder that a tool may substitute for a variable: the home or `cwd`; "" if no name follows the `$`."""
    if not name:
        return ""
    return os.path.expanduser("~") if name == "HOME" else cwd


def _with_destinations(evaluation: Evaluation, accesses: list[_Access]) -> list[_Access]:
    """Return the accesses with the destinations that a copy or a move really writes.

    A destination that is a folder is replaced by one path in it for each source. Any other destination is created
    as a folder if a source is one.
    """
    sources = [target for access, target in accesses if access.mode in {"read", "move"}]
    if not sources:
        return accesses
    result = []
    for access, target in accesses:
        if access.mode != "write" or access.below:
            result.append((access, target))
        elif target.is_folder:
            result += [_inside(evaluation, access, source) for source in sources[:_MAX_SOURCES]]
        else:
            is_folder = any(source.is_folder for source in sources)
            result.append((replace(access, mode="make_folder") if is_folder else access, target))
    return result


def _inside(evaluation: Evaluation, folder: PathAccess, source: ResolvedPath) -> _Access:
    path = f"{folder.path.rstrip('/')}/{source.real.rpartition('/')[2]}"
    mode = "make_folder" if source.is_folder else "write"
    return replace(folder, path=path, mode=mode), evaluation.paths.resolve(path)
