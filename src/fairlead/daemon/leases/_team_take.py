"""Takes leases for the whole team: asks the relay first, then this host. Loads nothing of a team.

Between hosts the relay decides, on a host the host itself. So a lease is taken on the relay, then here; if another
session of this host was faster, it is given up on the relay again.
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
    """Returns which of the leases of other hosts stand against those that are wanted."""

_NO_REPOSITORY = "it is in no git repository"


class RelayNeeded(MailUnreachable):
    """A lease of the team cannot be taken without the relay."""


class TeamLeaseClient(Protocol):
    """The leases of the other hosts, and how this one takes its own. Waits for the relay, and not for long."""

    remote: RemoteLeases

    @property
    def host_name(self) -> str:
        """The name of this host."""

    def grant(
        self, wanted: Sequence[WantedLease], holder: Holder, replaced: Sequence[str], decide: Decide
    ) -> tuple[list[WantedLease], list[Lease]]:
        """Take leases on the relay. Returns them with their grants, or what stands against them.

        They are kept on the relay until `settle` says whether they are held here. Raises `RelayNeeded`.
        """

    def settle(self, wanted: Sequence[WantedLease]) -> None:
        """End what `grant` began: from now on, what this host does not hold is removed from the relay."""

    def synchronize(self) -> bool:
        """Have the relay show what is held here, and wait a little for it. Returns whether it does."""

    def note_change(self) -> None:
        """Have the relay show what is held here, without waiting."""


class Taken(NamedTuple):
    """What became of leases that somebody wanted."""

    leases: list[Lease]
    against: list[Lease]
    """Leases of others. Then none was taken."""
    why_local: dict[str, str]
    """Why a lease is of this host only, by its title."""


class _Place(NamedTuple):
    """A wanted lease, and the checkout that it is in."""

    wanted: WantedLease
    checkout: Checkout | None

    @property
    def is_shareable(self) -> bool:
        return self.checkout is not None and bool(self.checkout.project)

    def granted(self) -> WantedLease:
        """Return the lease as all hosts name it; its time is the relay's to say."""
        assert self.checkout is not None, "it is shareable"  # noqa: S101
        wanted, root, project = self.wanted, self.checkout.root.rstrip("/"), self.checkout.project
        if wanted.folder:
            folder = f"{wanted.folder.rstrip('/')[len(root) :]}/"
            grant = TeamGrant(id=uuid4().hex, project=project, path=wanted.path, folder=folder)
        else:
            grant = TeamGrant(id=uuid4().hex, project=project, path=wanted.path[len(root) :].strip("/"))
        return msgspec.structs.replace(wanted, grant=grant)


def take_leases(leases: LeaseService, wanted: Sequence[WantedLease], holder: Holder, *, local: bool) -> Taken:
    """Take leases, all or none: of the team where that can be, unless they are to be of this host only.

    Raises `LeaseError`, `RelayNeeded`, or `MailUnreachable` for a full disk.
    """
    team = leases.team
    if team is None:
        return Taken(*leases.take(wanted, holder), {})
    places = [_Place(one, _checkout(team, one)) for one in wanted]
    shared = [] if local else [place for place in places if place.is_shareable]
    here = [place for place in places if place not in shared]
    against = [*leases.against(wanted, holder), *_known_against(team, here, holder)]
    if against:
        return Taken([], against, {})
    why_local = {_title(place.wanted): "" if local else _why(place) for place in here}
    if not shared:
        return Taken(*leases.take(wanted, holder), why_local)
    return _take_shared(leases, team, shared, [place.wanted for place in here], holder, why_local)


def _take_shared(  # noqa: PLR0913, PLR0917 - one step of `take_leases`
    leases: LeaseService,
    team: TeamLeaseClient,
    shared: Sequence[_Place],
    here: Sequence[WantedLease],
    holder: Holder,
    why_local: dict[str, str],
) -> Taken:
    from fairlead.daemon.leases._remote import table_of

    def decide(remote: Sequence[RemoteLease]) -> list[Lease]:
        found: dict[str, Lease] = {}
        for place in shared:
            assert place.checkout is not None, "it is shareable"  # noqa: S101
            same = [one for one in remote if one.grant.project == place.checkout.project]
            table = table_of(same, place.checkout.root)
            found |= {one.grant.id: one for one in table.against(place.wanted, holder) if one.grant is not None}
        return list(found.values())

    replaced = [lease.grant.id for lease in leases.held_by(holder, [one.wanted for one in shared]) if lease.grant]
    granted, against = team.grant([place.granted() for place in shared], holder, replaced, decide)
    if against:
        return Taken([], against, {})
    try:
        return Taken(*leases.take([*granted, *here], holder), why_local)
    finally:
        team.settle(granted)


def _known_against(team: TeamLeaseClient, places: Sequence[_Place], holder: Holder) -> list[Lease]:
    """Return what this host knows of other hosts' leases on files that are to be leased here only."""
    return [
        lease
        for place in places
        if place.checkout is not None
        for lease in team.remote.in_checkout(place.checkout).against(place.wanted, holder)
    ]


def _checkout(team: TeamLeaseClient, wanted: WantedLease) -> Checkout | None:
    folder = wanted.folder or (wanted.path if os.path.isdir(wanted.path) else os.path.dirname(wanted.path))
    return team.remote.look_up(folder)


def _why(place: _Place) -> str:
    return _NO_REPOSITORY if place.checkout is None else place.checkout.why


def _title(wanted: WantedLease) -> str:
    return f"{wanted.folder.rstrip('/')}/{wanted.path.lstrip('/')}" if wanted.folder else wanted.path
