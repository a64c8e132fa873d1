"""The state of a repository after the earlier calls of git in a command. All calls are checked before the first runs.

A command with a call that would change a protected file does not run. So the earlier calls leave the protected files on
the disk unchanged. The commit that is checked out, the index and the references may differ.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.git._process import NotKnown

if TYPE_CHECKING:
    from fairlead.policy.git._repository import Repository

_OID: Final = re.compile(r"[0-9a-f]{7,64}(?:[~^].*)?")
_STEPS: Final = re.compile(r"(?:\^|~\d*)*")
_STEP: Final = re.compile(r"\^|~(\d*)")
_BASE: Final = re.compile(r"[^~^:@{]+|@(?!\{)")
_MAX_STEPS: Final = 20
_MAX_CANDIDATES: Final = 40


class RepositoryState:
    """The state of one repository after the calls of git so far, any of which may have failed."""

    def __init__(self, branch: str | None = None) -> None:
        self.heads = ["HEAD"]
        """The existing commits that may be checked out."""
        self.commits = 0
        """The number of commits that may have been added on top of `heads`."""
        self.is_unborn = False
        """Whether a branch without a commit may be checked out."""
        self.changed = False
        """Whether the index may have changed."""
        self.index: list[str] = []
        """The trees from which entries were copied to the index."""
        self.added: list[tuple[bool, tuple[str, ...]]] = []
        """The additions to the index: whether they include ignored files, and their pathspecs."""
        self.fetched = False
        """Whether the references of remotes may have changed."""
        self.is_unpredictable = False
        """Whether the index or the references changed in a way that is not tracked here."""
        self.printed: list[str] = []
        """The commits that earlier calls print, for substitutions."""
        self.stashed = 0
        """The number of stashes that were added."""
        self.unstashed = 0
        """The number of stashes that were removed."""
        self.branches = {branch} if branch else set[str]()
        """The branches that may be checked out: they move with each commit."""
        self._references: dict[str, list[str]] = {}

    def set_reference(self, name: str, revision: str = "HEAD") -> None:
        """Record that a branch or tag was created or moved."""
        self._references.setdefault(name, []).extend(self.candidates(revision))

    def set_head(self, commits: list[str], branch: str | None = None) -> None:
        """Record that one of `commits` may be checked out now, on `branch`; `None` is the same branch as before."""
        self.heads += [commit for commit in commits if commit not in self.heads]
        if branch:
            self.branches.add(branch)

    @property
    def _is_untouched(self) -> bool:
        return self.heads == ["HEAD"] and not self.commits

    def candidates(self, revision: str) -> list[str]:
        """Return the existing revisions that a revision may refer to after the earlier calls.

        Raise `NotKnown` if they changed too much to tell.
        """
        if self.is_unpredictable:
            raise NotKnown("an earlier part of the command changes the index or the references of git")
        if revision == "-":
            return ["@{-1}"] if self._is_untouched else ["@{-1}", *self.heads, *self.branches]
        base = _BASE.match(revision)
        name = base[0] if base is not None else ""
        rest = revision[len(name) :]
        if name in {"HEAD", "@"}:
            revisions = [revision] if self._is_untouched else self._from_head(revision, rest)
        else:
            revisions = [revision, *(f"{reference}{rest}" for reference in self._references.get(name, ()))]
            if name.removeprefix("refs/").removeprefix("heads/") in self.branches and not self._is_untouched:
                revisions += self._from_head(revision, rest)
        if len(revisions) > _MAX_CANDIDATES:
            raise NotKnown(f"which commit {revision} is after the other parts of the command")
        return revisions

    def _from_head(self, revision: str, rest: str) -> list[str]:
        steps = sum(int(step or 1) for step in _STEP.findall(rest))
        if not _STEPS.fullmatch(rest) or steps > _MAX_STEPS:
            raise NotKnown(f"which commit {revision} is after the other parts of the command")
        first = max(0, steps - self.commits)
        return [f"{head}~{back}" for head in self.heads for back in range(first, steps + 1)]

    def stashes(self, word: str) -> list[str]:
        """Return the existing stashes that a name may refer to after the earlier calls.

        Raise `NotKnown` if they changed too much to tell.
        """
        if self.is_unpredictable:
            raise NotKnown("an earlier part of the command changes the stashes of git")
        number = word if word.isdigit() else word.removeprefix("stash@{").removesuffix("}")
        if not number.isdigit():
            return [word]
        first = max(0, int(number) - self.stashed)
        return [f"stash@{{{at}}}" for at in range(first, int(number) + self.unstashed + 1)]

    def needs_network(self, repository: Repository, revision: str) -> bool:
        """Return whether an earlier call may fetch a revision."""
        base = _BASE.match(revision)
        name = base[0] if base is not None else ""
        if not self.fetched or _OID.fullmatch(revision) or name in {"HEAD", "@"} or revision == "-":
            return False
        return not name or repository.resolve([f"refs/heads/{name}"]) == [None]
