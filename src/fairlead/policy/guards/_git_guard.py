"""The guard on git: what moves the working tree or shows contents is judged by what the repository says."""

from __future__ import annotations

import re
from stat import S_IFREG

from fairlead.policy.paths._resolve import ResolvedPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from fairlead.policy.bash._analysis import Analysis
    from fairlead.policy.git._check import Questions
    from fairlead.policy.guards._file_rules import FileRules
    from fairlead.policy.guards._verdict import Evaluation
    from fairlead.policy.guards.own._files import OwnFiles

_RUN_BY_GIT: Final = (
    r"/\.git/(?:.*/)?(?:hooks/[^/]+|config|config\.worktree|info/attributes|rebase-(?:merge|apply)/[^/]+)$"
)
"""Files from which git takes commands to run."""


class GitGuard:
    """Judges the calls of git in a command. Git is only asked about commands that change or show files."""

    def __init__(self, files: FileRules, own: OwnFiles | None) -> None:
        self.files = files
        self.own = own
        self._questions: Questions | None = None

    def expand(self, evaluation: Evaluation, analysis: Analysis) -> Analysis:
        """Return an analysis with what aliases stand for, and the files that calls outside of a repository name."""
        from fairlead.policy.git._check import expand

        return expand(evaluation, analysis)

    def check(self, evaluation: Evaluation, analysis: Analysis) -> str | None:
        """Return why a command is blocked for what its calls of git do."""
        from fairlead.policy.git._check import GitCheck, Questions

        if self._questions is None:
            self._questions = Questions(self)
        return GitCheck(self, evaluation, analysis, self._questions).run()

    def check_written(self, evaluation: Evaluation, target: ResolvedPath) -> None:
        """Add a question if a file is changed from which git takes commands to run."""
        if self.files.uneditable and any("/.git/" in name and re.search(_RUN_BY_GIT, name) for name in target.names):
            evaluation.unknowns.append(f"what git runs by {target.given} in later commands")

    # -- the files of interest -------------------------------------------------------------------------

    def is_protected(self, root: str, path: str) -> bool:
        """Return whether a rule may protect a file of a working tree from changes."""
        target = _inside(root, path)
        return self.files.uneditable.may_match(target) or (self.own is not None and self.own.contains(target))

    def is_unreadable(self, root: str, path: str) -> bool:
        """Return whether a rule may protect a file of a working tree from being read."""
        return self.files.unreadable.may_match(_inside(root, path))

    def check_change(self, evaluation: Evaluation, target: ResolvedPath) -> str | None:
        """Check a file that git would change."""
        if self.own and (blocked := self.own.check(evaluation, target, whole=False)):
            return blocked
        evaluation.start_subject(target.given)
        return self.files.uneditable.check(evaluation, target)

    def check_patch(self, evaluation: Evaluation, target: ResolvedPath) -> str | None:
        """Check a file that a patch would change or create."""
        if self.own and (blocked := self.own.check(evaluation, target, whole=False)):
            return blocked
        return self.files.check_edit(evaluation, target, adds=True, writes=True)


def _inside(root: str, path: str) -> ResolvedPath:
    """Return a file of a working tree without looking it up: there are thousands of them."""
    name = f"{root}/{path}"
    return ResolvedPath(path, (name,), name, S_IFREG)
