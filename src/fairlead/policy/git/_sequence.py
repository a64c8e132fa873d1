"""What earlier calls of git in the same command did to the repository: the question about a later one is asked now.

A call that would change a protected file is held. So whatever the calls before did, the protected files on the disk are
as they are now; what may differ is which commit is checked out, the index, and the references.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.git._process import NotKnown

if TYPE_CHECKING:
    from fairlead.policy.git._repository import Repository

_OID: Final = re.compile(r"[0-9a-f]{7,64}(?:[~^].*)?")
_HEAD: Final = re.compile(r"(?:HEAD|@)(?P<steps>(?:\^|~\d*)*)")
_STEP: Final = re.compile(r"\^|~(\d*)")
_BASE: Final = re.compile(r"[^~^:@{]+")
_MAX_STEPS: Final = 20


class Sequence:
    """The state of one repository after the calls of git so far."""

    def __init__(self) -> None:
        self.head = "HEAD"
        """The commit that is checked out, as far as it exists by now."""
        self.commits = 0
        """The commits that were made on top of it."""
        self.changed = False
        """Whether the index may differ from what it is now."""
        self.index: list[str] = []
        """The trees from which the index got entries."""
        self.added: list[tuple[bool, tuple[str, ...]]] = []
        """The pathspecs that were added to the index, and whether ignored files were."""
        self.fetched = False
        """Whether the references of remotes may differ from what they are now."""
        self.is_opaque = False
        """Whether plumbing changed the index or the references."""
        self.printed: list[str] = []
        """The commits that earlier calls print, for substitutions."""
        self.initialized = False
        self._references: dict[str, str] = {}

    def point(self, name: str, revision: str | None = None) -> None:
        """Record that a branch or tag was created or moved."""
        self._references[name] = self.head if revision is None else self._renamed(revision)

    def move(self, oid: str) -> None:
        """Record that another commit is checked out."""
        self.head, self.commits = oid, 0

    def _renamed(self, revision: str) -> str:
        base = _BASE.match(revision)
        if base is not None and base[0] in self._references:
            return self._references[base[0]] + revision[base.end() :]
        return revision

    def candidates(self, revision: str) -> list[str]:
        """Return what a revision may mean by then, in terms of what exists now."""
        if self.is_opaque:
            raise NotKnown("an earlier part of the command changes the index or the references of git")
        revision = self._renamed("@{-1}" if revision == "-" else revision)
        head = _HEAD.fullmatch(revision)
        if head is None or (self.head == "HEAD" and not self.commits):
            return [revision]
        steps = sum(int(step or 1) for step in _STEP.findall(head["steps"]))
        if steps > _MAX_STEPS:
            raise NotKnown(f"which commit {revision} is after the commits of this command")
        return [f"{self.head}~{back}" for back in range(max(0, steps - self.commits), steps + 1)]

    def needs_network(self, repository: Repository, revision: str) -> bool:
        """Return whether a revision may be fetched by an earlier call."""
        base = _BASE.match(revision)
        if not self.fetched or _OID.fullmatch(revision) or _HEAD.fullmatch(revision) or revision == "-":
            return False
        name = base[0] if base is not None else ""
        return not name or repository.resolve([f"refs/heads/{name}"]) == [None]
