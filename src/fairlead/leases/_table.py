"""All current leases as one immutable value, which finds leases that cover a file or conflict with a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairlead.leases._types import Lease, LeaseError, TeamGrant
from fairlead.policy import (
    BaseFolder,
    Pattern,
    PatternError,
    PatternSet,
    TooManyFiles,
    files_below,
    is_at_or_above,
    resolve,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from fairlead.leases._types import Holder
    from fairlead.policy import ResolvedPath

MAX_LEASES = 2000
"""The maximum number of leases of all holders together. A lease is meant for files that are being changed now."""


class WantedLease(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that `LeaseTable.take` can add for a holder. The fields are those of `Lease`."""

    path: str
    folder: str = ""
    shared: bool = False
    why: str = ""
    until: float
    grant: TeamGrant | None = None


class LeaseTable:
    """An immutable table of leases. A change returns a new table, so that a reader needs no lock."""

    __slots__ = ("_by_path", "_pattern_set", "_patterns", "leases")

    def __init__(self, leases: Iterable[Lease] = ()) -> None:
        """Raises `LeaseError` if the pattern of a lease is not valid."""
        self.leases = tuple(leases)
        self._by_path: dict[str, tuple[Lease, ...]] = {}
        self._patterns: list[tuple[Pattern, Lease]] = []
        for lease in self.leases:
            if lease.folder:
                self._patterns.append((compile_pattern(lease.path, lease.folder), lease))
                continue
            for name in resolve(lease.path, "/").names:
                self._by_path[name] = (*self._by_path.get(name, ()), lease)
        self._pattern_set = PatternSet(pattern for pattern, _ in self._patterns)

    def __bool__(self) -> bool:
        return bool(self.leases)

    # -- questions -------------------------------------------------------------------------------------

    def covering(self, target: ResolvedPath) -> list[Lease]:
        """Return the leases whose path or pattern covers a file by any of its names, such as that of a link."""
        matching: dict[int, Lease] = {}
        if self._by_path:
            for name in target.names:
                path = name
                while path:
                    for lease in self._by_path.get(path, ()):
                        matching[lease.id] = lease
                    path = path[: path.rfind("/")]
                for lease in self._by_path.get("/", ()):
                    matching[lease.id] = lease
        if self._patterns and self._pattern_set.may_match(target):
            matching |= {lease.id: lease for pattern, lease in self._patterns if pattern.matches(target)}
        return list(matching.values())

    def below(self, folder: ResolvedPath) -> list[Lease]:
        """Return the leases on files below a folder.

        A pattern is compared with the files that exist; if they are too many to check, the pattern counts as a match.
        """
        above = tuple(f"{name.rstrip('/')}/" for name in folder.names)
        matching = {
            lease.id: lease for path, leases in self._by_path.items() if path.startswith(above) for lease in leases
        }
        for pattern, lease in self._patterns:
            if _may_overlap(pattern.base, folder) and _matches_below(pattern, folder):
                matching[lease.id] = lease
        return list(matching.values())

    def covers(self, target: ResolvedPath) -> bool:
        """Return whether a lease covers a file."""
        return bool(self.covering(target))

    def conflicting_with(self, wanted: WantedLease, holder: Holder) -> list[Lease]:
        """Return the leases of other sessions that conflict with a wanted lease. Two shared leases never conflict."""
        others = [
            lease
            for lease in self.leases
            if (lease.holder.session != holder.session or lease.holder.host) and not (lease.shared and wanted.shared)
        ]
        return [lease for lease in others if _overlap(wanted, lease)]

    # -- changes ---------------------------------------------------------------------------------------

    def take(self, wanted: Iterable[WantedLease], holder: Holder, now: float) -> tuple[LeaseTable, list[Lease]]:
        """Return a table with the wanted leases added for a holder, and the added leases.

        They replace leases of the same session on the same path or pattern. Conflicts are not checked: call
        `conflicting_with` before. Raises `LeaseError` if a pattern is not valid, or for more than `MAX_LEASES` leases.
        """
        number = max((lease.id for lease in self.leases), default=0)
        taken = [
            Lease(
                id=number + index,
                path=new.path,
                folder=new.folder,
                holder=holder,
                shared=new.shared,
                why=new.why,
                since=now,
                until=new.until,
                grant=new.grant,
            )
            for index, new in enumerate(dict.fromkeys(wanted), 1)
        ]
        same = {(lease.path, lease.folder) for lease in taken}
        kept = [
            lease
            for lease in self.leases
            if lease.holder.session != holder.session or (lease.path, lease.folder) not in same
        ]
        if len(kept) + len(taken) > MAX_LEASES:
            raise LeaseError(f"there are {MAX_LEASES} leases already; release some, or lease a folder instead of files")
        return LeaseTable((*kept, *taken)), taken

    def without(self, numbers: Collection[int]) -> LeaseTable:
        """Return a table without the leases that have these numbers (`Lease.id`)."""
        return LeaseTable(lease for lease in self.leases if lease.id not in numbers)

    def moved(self, old_session: str, new_session: str) -> LeaseTable:
        """Return a table in which the new session holds the leases of the old one, as after /clear."""
        return LeaseTable(
            msgspec.structs.replace(lease, holder=msgspec.structs.replace(lease.holder, session=new_session))
            if lease.holder.session == old_session
            else lease
            for lease in self.leases
        )


def compile_pattern(text: str, folder: str) -> Pattern:
    """Return a pattern relative to a folder. Raises `LeaseError` if it is not valid."""
    try:
        pattern = Pattern(text, BaseFolder.at(folder))
    except PatternError as error:
        raise LeaseError(f"{text}: {error}") from None
    return pattern


def _overlap(wanted: WantedLease, lease: Lease) -> bool:
    """Return whether two leases cover the same file; `True` if there are too many files to check.

    Different patterns are compared with the files that exist.
    """
    if not wanted.folder and not lease.folder:
        names, others = resolve(wanted.path, "/").names, resolve(lease.path, "/").names
        return any(is_at_or_above(name, other) or is_at_or_above(other, name) for name in names for other in others)
    if wanted.folder and lease.folder:
        if (wanted.path, wanted.folder) == (lease.path, lease.folder):
            return True
        return _patterns_overlap(compile_pattern(wanted.path, wanted.folder), compile_pattern(lease.path, lease.folder))
    path, text, folder = (
        (lease.path, wanted.path, wanted.folder) if wanted.folder else (wanted.path, lease.path, lease.folder)
    )
    pattern, target = compile_pattern(text, folder), resolve(path, "/")
    if pattern.matches(target):
        return True
    return target.is_folder and _may_overlap(pattern.base, target) and _matches_below(pattern, target)


def _patterns_overlap(pattern: Pattern, other: Pattern) -> bool:
    """Return whether an existing file matches both patterns; `True` if there are too many files to check."""
    deeper = max((pattern.base, other.base), key=lambda base: len(base.folder))
    folder = resolve(deeper.folder, "/")
    if not (_may_overlap(pattern.base, folder) and _may_overlap(other.base, folder)):
        return False
    try:
        return any(pattern.matches(file) and other.matches(file) for file in files_below(folder))
    except TooManyFiles:
        return True


def _matches_below(pattern: Pattern, folder: ResolvedPath) -> bool:
    """Return whether a pattern matches a file below a folder; `True` if there are too many files to check."""
    try:
        return any(pattern.matches(file) for file in files_below(folder))
    except TooManyFiles:
        return True


def _may_overlap(base: BaseFolder, folder: ResolvedPath) -> bool:
    """Return whether a folder is the folder of a pattern, above it, or below it."""
    above = tuple(f"{name.rstrip('/')}/" for name in folder.names)
    return any(prefix.startswith(above) for prefix in base.prefixes) or any(
        name.startswith(base.prefixes) for name in above
    )
