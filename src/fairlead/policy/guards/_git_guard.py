"""The guard on git: checks commands that move the working tree or show contents, by the state of the repository."""

from __future__ import annotations

import re
from stat import S_IFREG

from fairlead.policy.guards._evaluation import FileChange
from fairlead.policy.paths._resolve import ResolvedPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, Protocol

    from fairlead.policy.bash._analysis import Analysis
    from fairlead.policy.git._check import FileChecks
    from fairlead.policy.guards._evaluation import Evaluation
    from fairlead.policy.guards._file_rules import FileRules
    from fairlead.policy.guards.self_protection._files import ProtectedOwnFiles

    class WatchedFiles(Protocol):
        """Files whose changes by git are reported, in addition to those of the rules."""

        @property
        def version(self) -> int:
            """A number that changes whenever the set of watched files changes."""

        def __bool__(self) -> bool: ...

        def covers(self, target: ResolvedPath) -> bool: ...


_RUN_BY_GIT: Final = (
    r"/\.git/(?:.*/)?(?:hooks/[^/]+|config|config\.worktree|info/attributes|rebase-(?:merge|apply)/[^/]+)$"
)
"""Files from which git takes commands to run."""


class GitGuard:
    """Checks the calls of git in a command. Git is only asked about commands that change or show files."""

    def __init__(self, files: FileRules, own: ProtectedOwnFiles | None, watched: WatchedFiles | None = None) -> None:
        self.files = files
        self.own = own
        self._watched = watched
        self._version = 0
        self._file_checks: FileChecks | None = None

    def expand(self, evaluation: Evaluation, analysis: Analysis) -> Analysis:
        """Return an analysis with git's aliases expanded, and with the files of calls outside of a repository."""
        from fairlead.policy.git._check import expand

        return expand(evaluation, analysis)

    def check(self, evaluation: Evaluation, analysis: Analysis) -> str | None:
        """Return why a command is blocked because of its calls of git; `None` if it is not."""
        from fairlead.policy.git._check import FileChecks, GitCheck

        version = self._watched.version if self._watched is not None else 0
        if self._file_checks is None or version != self._version:  # what git answered before is about other files
            self._file_checks, self._version = FileChecks(self), version
        return GitCheck(self, evaluation, analysis, self._file_checks).run()

    def check_written(self, evaluation: Evaluation, target: ResolvedPath) -> None:
        """Add a question if rules protect files, and a written file contains commands that git runs, such as a hook."""
        for name in target.names:
            if "/.git/" in name and self.files.uneditable and re.search(_RUN_BY_GIT, name):
                evaluation.unknowns.append(f"what git runs by {target.given} in later commands")
                return

    # -- the files of interest -------------------------------------------------------------------------

    def is_protected(self, root: str, path: str) -> bool:
        """Return whether a rule may protect a file of a working tree from changes."""
        target = _inside(root, path)
        return (
            self.files.uneditable.may_match(target)
            or (self.own is not None and self.own.contains(target))
            or (self._watched is not None and self._watched.covers(target))
        )

    @property
    def has_files(self) -> bool:
        """Whether any files are protected or watched, so that changes by git must be checked."""
        return bool(self.files.uneditable or self.own or self._watched)

    def is_unreadable(self, root: str, path: str) -> bool:
        """Return whether a rule may protect a file of a working tree from being read."""
        return self.files.unreadable.may_match(_inside(root, path))

    def check_change(self, evaluation: Evaluation, target: ResolvedPath) -> str | None:
        """Return why git may not change a file; `None` if it may. Records the change in the evaluation."""
        evaluation.changes.append(FileChange(target))
        if self.own and (blocked := self.own.check(evaluation, target, whole=False)):
            return blocked
        evaluation.start_subject(target.given)
        return self.files.uneditable.check(evaluation, target)

    def check_patch(self, evaluation: Evaluation, target: ResolvedPath) -> str | None:
        """Return why a patch may not write a file; `None` if it may. Records the change in the evaluation."""
        evaluation.changes.append(FileChange(target))
        if self.own and (blocked := self.own.check(evaluation, target, whole=False)):
            return blocked
        return self.files.check_edit(evaluation, target, adds=True, writes=True)


def _inside(root: str, path: str) -> ResolvedPath:
    """Return a file of a working tree. Does not look at the disk, because there may be thousands of files."""
    name = f"{root}/{path}"
    return ResolvedPath(path, (name,), name, S_IFREG)
