"""The leases of other hosts in memory, as leases on files in the checkouts of this host.

The caller of `RemoteLeases.replace` has verified them. A lease names the identity of its repository and a path in it.
The checkout of a folder is cached for a minute. If it is not cached, an event raises `NeedsThread` and is handled again
in a thread.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import msgspec

from fairlead.daemon.leases._repository import Checkout, find_checkout
from fairlead.errors import NeedsThread
from fairlead.leases import Holder, Lease, LeaseError, LeaseTable, TeamGrant
from fairlead.sessions import find_git_folders

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlead.policy import ResolvedPath

    _FolderTable = tuple[float, int, LeaseTable | None]
    """The time at which the entry expires, the version of the leases, and their table; `None` without leases."""

_LIFETIME: Final = 60.0
"""Seconds for which the checkout of a folder is cached."""
_MAX_FOLDERS: Final = 4096
_MAX_ROOTS: Final = 200
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that runs while the machine sleeps, and does not jump when the system time is set."""


def now() -> float:
    """Return the time by the clock that determines when other hosts' leases end. Nobody can set this clock."""
    return time.clock_gettime(_CLOCK)


class RemoteLease(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that another host has signed."""

    grant: TeamGrant
    host: str
    """The name of the host."""
    holder: str
    """The name of the agent on that host."""
    shared: bool = False
    why: str = ""
    ends: float
    """The end of the lease, by the clock of `now`."""

    def on(self, root: str, number: int) -> Lease:
        """Return this lease as a lease on files of the checkout in the folder `root`, with the id `number`."""
        grant, left = self.grant, max(0.0, self.ends - now())
        base = root.rstrip("/")
        return Lease(
            id=number,
            path=grant.path if grant.folder else f"{base}/{grant.path}".rstrip("/") or "/",
            folder=f"{base}{grant.folder}".rstrip("/") or "/" if grant.folder else "",
            holder=Holder(name=self.holder, host=self.host),
            shared=self.shared,
            why=self.why,
            since=0.0,
            until=time.time() + left,
            grant=grant,
        )


class RemoteLeases:
    """All leases of the other hosts. Replaced by the thread of the team, read by all threads."""

    def __init__(self) -> None:
        self._by_project: dict[str, tuple[RemoteLease, ...]] = {}
        self.version = time.time_ns()
        """A number that changes with every change, and differs from the versions of earlier objects."""
        self._tables: dict[Checkout, tuple[int, LeaseTable]] = {}
        """By checkout: the version of the leases, and the table for that version."""
        self._folders: dict[str, tuple[float, Checkout | None]] = {}
        """By folder: the time at which the entry expires, and the checkout."""
        self._by_folder: dict[str, _FolderTable] = {}

    def replace(self, leases: Iterable[RemoteLease]) -> None:
        """Replace all leases. If they differ from the ones before, `version` changes."""
        by_project: dict[str, tuple[RemoteLease, ...]] = {}
        for lease in leases:
            by_project[lease.grant.project] = (*by_project.get(lease.grant.project, ()), lease)
        if by_project != self._by_project:
            self._by_project = by_project
            self.version += 1

    def __bool__(self) -> bool:
        return bool(self._by_project)

    def all(self) -> list[RemoteLease]:
        """Return the leases that have not expired."""
        at = now()
        return [lease for leases in self._by_project.values() for lease in leases if lease.ends > at]

    def listed(self, folder: str) -> list[Lease]:
        """Return the leases that have not expired.

        Leases of the repository around `folder` have the paths of its checkout. The paths of all other leases start
        with the identity of their repository.
        """
        checkout = self.look_up(folder) if folder.startswith("/") else None
        project = checkout.project if checkout is not None else ""
        rows = [
            lease.on(checkout.root, -number)
            if checkout is not None and lease.grant.project == project
            else _outside_checkout(lease, -number)
            for number, lease in enumerate(self.all(), 1)
        ]
        return sorted(rows, key=lambda lease: (lease.holder.host, lease.title))

    # -- files -----------------------------------------------------------------------------------------

    def covering(self, target: ResolvedPath, *, may_wait: bool = True) -> list[Lease]:
        """Return the leases on a file, or on a folder above it.

        Without `may_wait`, raises `NeedsThread` if the checkout of a folder is not cached.
        """
        leases: list[Lease] = []
        at, version = time.monotonic(), self.version
        for name in target.names:
            folder = name if target.is_folder else name[: name.rfind("/")] or "/"
            known = self._by_folder.get(folder)
            if known is None or known[0] < at or known[1] != version:
                known = self._find_table(folder, version, may_wait=may_wait)
            if known[2] is not None:
                leases += known[2].covering(target)
        return self._in_force({lease.id: lease for lease in leases}.values()) if leases else []

    def _find_table(self, folder: str, version: int, *, may_wait: bool) -> _FolderTable:
        """Return the entry with the leases in the checkout around a folder, and cache it.

        Without `may_wait`, raise `NeedsThread` if the checkout is not cached.
        """
        checkout = self.checkout(folder, may_wait=may_wait)
        has_leases = checkout is not None and checkout.project in self._by_project
        table = self._table(checkout) if checkout is not None and has_leases else None
        if len(self._by_folder) >= _MAX_FOLDERS:
            self._by_folder = {}
        expires, _ = self._folders.get(folder, (0.0, None))
        known = self._by_folder[folder] = expires, version, table
        return known

    def below(self, folder: ResolvedPath) -> list[Lease]:
        """Return the leases on files below a folder, in the checkout around it and in cached checkouts below it."""
        above = tuple(f"{name.rstrip('/')}/" for name in folder.names)
        roots = {found.root: found for found in map(self.checkout, folder.names) if found is not None}
        for _, checkout in list(self._folders.values()):
            if checkout is not None and checkout.root.startswith(above):
                roots[checkout.root] = checkout
        return self._in_force([lease for checkout in roots.values() for lease in self._table(checkout).below(folder)])

    def in_checkout(self, checkout: Checkout) -> LeaseTable:
        """Return the leases on files of a checkout, without expired ones."""
        return LeaseTable(self._in_force(self._table(checkout).leases))

    def checkout(self, folder: str, *, may_wait: bool = True) -> Checkout | None:
        """Return the checkout in which a folder is, from the cache if possible; `None` if there is none.

        Without `may_wait`, raises `NeedsThread` if it is not cached.
        """
        known, at = self._folders.get(folder), time.monotonic()
        if known is not None and known[0] > at:
            return known[1]
        if not may_wait:
            raise NeedsThread
        return self.look_up(folder)

    def look_up(self, folder: str) -> Checkout | None:
        """Return the checkout in which a folder is, read from the disk; `None` if there is none. Caches the result."""
        if len(self._folders) >= _MAX_FOLDERS:
            self._folders = {}
        git = find_git_folders(folder)
        checkout = None if git is None else find_checkout(git.worktree, git.common)
        self._folders[folder] = time.monotonic() + _LIFETIME, checkout
        return checkout

    def _table(self, checkout: Checkout) -> LeaseTable:
        version = self.version
        cached = self._tables.get(checkout)
        if cached is not None and cached[0] == version:
            return cached[1]
        table = table_of(self._by_project.get(checkout.project, ()), checkout.root)
        if len(self._tables) >= _MAX_ROOTS:
            self._tables = {}
        self._tables[checkout] = version, table
        return table

    def _in_force(self, leases: Iterable[Lease]) -> list[Lease]:
        """Return the leases that have not expired, with their ends by the system clock of this host."""
        ends = {lease.grant.id: lease.ends for project_leases in self._by_project.values() for lease in project_leases}
        at, clock = now(), time.time()
        return [
            msgspec.structs.replace(lease, until=clock + ends[lease.grant.id] - at)
            for lease in leases
            if lease.grant is not None and ends.get(lease.grant.id, 0.0) > at
        ]


def _outside_checkout(lease: RemoteLease, number: int) -> Lease:
    """Return a lease on files of another repository. Its title starts with that repository."""
    title = f"{lease.grant.project}:{lease.grant.title}"
    return msgspec.structs.replace(lease.on("/", number), path=title, folder="")


def table_of(leases: Sequence[RemoteLease], root: str) -> LeaseTable:
    """Return leases of other hosts as a table for the checkout in the folder `root`.

    Leases with an invalid pattern are left out.
    """
    made = [lease.on(root, -number) for number, lease in enumerate(leases, 1)]
    try:
        return LeaseTable(made)
    except LeaseError:
        return LeaseTable([lease for lease in made if _is_valid(lease)])


def _is_valid(lease: Lease) -> bool:
    try:
        LeaseTable([lease])
    except LeaseError:
        return False
    return True
