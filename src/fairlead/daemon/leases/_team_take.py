"""Takes leases for the whole team, first on the relay and then on this host. Imports nothing of the team.

The relay decides between hosts, and each host between its own sessions. So a lease is taken on the relay first, and
then on this host. If another session of this host was faster, the lease on the relay is released again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import uuid4

import msgspec

from fairlead.leases import TeamGrant, WantedLease
from fairlead.mail import MailUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlead.daemon.leases._remote import RemoteLease, RemoteLeases
    from fairlead.daemon.leases._repository import Checkout
    from fairlead.daemon.leases._service import LeaseService
    from fairlead.leases import Holder, Lease

    Decide = Callable[[Sequence[RemoteLease]], list[Lease]]
    """A function that gets the leases of other hosts, and returns the ones that conflict with the wanted leases."""

_NO_REPOSITORY = "it is in no git repository"


class RelayNeeded(MailUnreachable):
    """A lease of the team cannot be taken without the relay."""


class TeamLeaseClient(Protocol):
    """Access to the leases of the other hosts and to the relay. Its methods wait for the relay for a few seconds."""

    remote: RemoteLeases

    @property
    def host_name(self) -> str:
        """The name of this host in the team."""

    def grant(
        self, wanted: Sequence[WantedLease], holder: Holder, replaced: Sequence[str], decide: Decide
    ) -> tuple[list[WantedLease], list[Lease]]:
        """Take leases on the relay. Returns the granted leases and the conflicting ones; one of the lists is empty.

        `replaced` has the grant ids of leases of this host that the new ones replace; `decide` finds the conflicts. The
        granted leases stay on the relay until `finish_grant` is called, even if this host does not hold them. Raise
        `RelayNeeded` if the relay cannot be used.
        """

    def finish_grant(self, wanted: Sequence[WantedLease]) -> None:
        """Finish a `grant`: leases on the relay that this host does not hold now are removed."""

    def synchronize(self) -> bool:
        """Update the leases of this host on the relay. Returns whether that was done within the timeout."""

    def note_change(self) -> None:
        """Request an update of this host's leases on the relay, without waiting for it."""


class TakeResult(NamedTuple):
    """The result of taking leases."""

    leases: list[Lease]
    conflicts: list[Lease]
    """The conflicting leases of others. If there are any, no lease was taken."""
    why_local: dict[str, str]
    """Title of a lease for this host only → the reason; "" if that was requested."""


class _LocatedLease(NamedTuple):
    """A wanted lease, and the checkout in which its files are."""

    wanted: WantedLease
    checkout: Checkout | None
    """`None` outside of a repository."""

    @property
    def is_shareable(self) -> bool:
        return self.checkout is not None and bool(self.checkout.project)

    def granted(self) -> WantedLease:
        """Return the wanted lease with a grant: the repository and the path in it, as all hosts know them.

        The end of the grant is set later, by the relay's clock.
        """
        assert self.checkout is not None, "it is shareable"
        wanted, root, project = self.wanted, self.checkout.root.rstrip("/"), self.checkout.project
        if wanted.folder:
            folder = f"{wanted.folder.rstrip('/')[len(root) :]}/"
            grant = TeamGrant(id=uuid4().hex, project=project, path=wanted.path, folder=folder)
        else:
            grant = TeamGrant(id=uuid4().hex, project=project, path=wanted.path[len(root) :].strip("/"))
        return msgspec.structs.replace(wanted, grant=grant)


def take_leases(leases: LeaseService, wanted: Sequence[WantedLease], holder: Holder, *, local: bool) -> TakeResult:
    """Take leases, all or none.

    Leases on files of a repository are for the whole team, unless `local` is set; all others are for this host only.
    Raise `LeaseError` if a pattern is invalid or there would be too many leases, `RelayNeeded` if the relay cannot be
    used, and `MailUnreachable` if the leases cannot be stored.
    """
    team = leases.team
    if team is None:
        return TakeResult(*leases.take(wanted, holder), {})
    items = [_LocatedLease(lease, _checkout(team, lease)) for lease in wanted]
    shared = [] if local else [item for item in items if item.is_shareable]
    here = [item for item in items if item not in shared]
    conflicts = [*leases.conflicts(wanted, holder), *_known_conflicts(team, here, holder)]
    if conflicts:
        return TakeResult([], conflicts, {})
    why_local = {_title(item.wanted): "" if local else _why(item) for item in here}
    if not shared:
        return TakeResult(*leases.take(wanted, holder), why_local)
    return _take_shared(leases, team, shared, [item.wanted for item in here], holder, why_local)


def _take_shared(  # noqa: PLR0917 - one step of `take_leases`
    leases: LeaseService,
    team: TeamLeaseClient,
    shared: Sequence[_LocatedLease],
    here: Sequence[WantedLease],
    holder: Holder,
    why_local: dict[str, str],
) -> TakeResult:
    from fairlead.daemon.leases._remote import table_of

    def decide(remote: Sequence[RemoteLease]) -> list[Lease]:
        conflicts: dict[str, Lease] = {}
        for item in shared:
            assert item.checkout is not None, "it is shareable"
            same = [lease for lease in remote if lease.grant.project == item.checkout.project]
            table = table_of(same, item.checkout.root)
            conflicts |= {
                lease.grant.id: lease
                for lease in table.conflicting_with(item.wanted, holder)
                if lease.grant is not None
            }
        return list(conflicts.values())

    replaced = [lease.grant.id for lease in leases.held_by(holder, [item.wanted for item in shared]) if lease.grant]
    granted, conflicts = team.grant([item.granted() for item in shared], holder, replaced, decide)
    if conflicts:
        return TakeResult([], conflicts, {})
    try:
        return TakeResult(*leases.take([*granted, *here], holder), why_local)
    finally:
        team.finish_grant(granted)


def _known_conflicts(team: TeamLeaseClient, items: Sequence[_LocatedLease], holder: Holder) -> list[Lease]:
    """Return the known leases of other hosts that conflict with wanted leases for this host only."""
    return [
        lease
        for item in items
        if item.checkout is not None
        for lease in team.remote.in_checkout(item.checkout).conflicting_with(item.wanted, holder)
    ]


def _checkout(team: TeamLeaseClient, wanted: WantedLease) -> Checkout | None:
    folder = wanted.folder or (wanted.path if os.path.isdir(wanted.path) else os.path.dirname(wanted.path))
    return team.remote.look_up(folder)


def _why(item: _LocatedLease) -> str:
    return _NO_REPOSITORY if item.checkout is None else item.checkout.why


def _title(wanted: WantedLease) -> str:
    return f"{wanted.folder.rstrip('/')}/{wanted.path.lstrip('/')}" if wanted.folder else wanted.path
