"""The hosts of the team, with their states by certificates. Written by the thread of the team."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING

import msgspec

from fairlead.team import (
    Certificate,
    RelayRefused,
    TeamError,
    evaluate_trust,
    fingerprint,
    merge_certificates,
    sign_certificate,
    update_membership,
)

if TYPE_CHECKING:
    from fairlead.team import Host, HostState, Membership, MemberStatus, Trust
    from fairlead.team.relay import Relay


class NoSuchHost(TeamError):
    """The team has no host of that name in the required state."""


class Roster:
    """The hosts of the team. Accepted certificates are stored on disk, so that a removed host stays removed."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.hosts: dict[str, Host] = {}
        """By id, as the relay lists them. Empty until they were read."""
        self.ages: dict[str, float] = {}
        """By id: the seconds since the relay last saw the host, at the time `read_at`."""
        self.read_at = 0.0
        self._kept = membership.certificates
        self.trust: Trust = evaluate_trust(membership.team, membership.anchors, self._kept)

    def read(self, relay: Relay) -> bool:
        """Read hosts and certificates; return whether a state has changed.

        Adds the certificates to the relay that it has lost, for example by restoring a backup.
        """
        hosts = {host.id: host for host in relay.hosts()}
        received = relay.certificates()
        trust = evaluate_trust(self.membership.team, self.membership.anchors, merge_certificates(self._kept, received))
        if trust.effective != self._kept:
            self._keep(trust.effective)
        lacking = [certificate for certificate in trust.effective if certificate not in set(received)]
        for certificate in (*lacking, *self._own_certificate(received)):
            relay.add_certificate(certificate)
        before = self.known()
        self.hosts, self.trust = hosts, trust
        self.ages, self.read_at = relay.ages(), time()
        return self.known() != before

    def _own_certificate(self, received: list[Certificate]) -> list[Certificate]:
        """Return a list with a new certificate of this host for itself, or an empty one if none is needed.

        The first host of a team needs one if the relay has lost it: joining hosts learn from it which host to trust.
        """
        own = self.membership
        is_first = any(anchor.host == own.host for anchor in own.anchors)
        return (
            []
            if not is_first or any(certificate.host == own.host for certificate in received)
            else [self.sign_own("member")]
        )

    def sign_own(self, status: MemberStatus) -> Certificate:
        """Return a signed certificate of this host about itself, as a member or as removed."""
        own = self.membership
        key = own.key
        statement = Certificate(
            host=own.host, name=own.name, key=key.public, status=status, by=own.host, at=round(time(), 3)
        )
        return sign_certificate(statement, key, own.team)

    def _keep(self, certificates: tuple[Certificate, ...]) -> None:
        update_membership(lambda old: msgspec.structs.replace(old, certificates=certificates))
        self._kept = certificates

    def known(self) -> dict[str, tuple[str, HostState]]:
        """Return the name and the state of each host by id, including removed ones that the relay no longer lists."""
        listed: dict[str, tuple[str, HostState]] = {
            host.id: (host.name, self.trust.state_of(host)) for host in self.hosts.values()
        }
        removed: dict[str, tuple[str, HostState]] = {
            anchor.host: (anchor.name, "removed") for anchor in self.trust.removed.values()
        }
        return removed | listed

    def state(self, host: str) -> HostState:
        """Return the state of a host by its id. An unknown host is pending."""
        listed = self.hosts.get(host)
        return self.trust.state(host) if listed is None else self.trust.state_of(listed)

    def name(self, host: str) -> str:
        """Return the name of a host; the start of its id if the name is unknown."""
        known = self.trust.members.get(host) or self.trust.removed.get(host) or self.hosts.get(host)
        return known.name if known is not None else host[:8]

    def others(self, state: HostState) -> list[Host]:
        """Return the other hosts in a state, sorted by name."""
        own = self.membership.host
        hosts = [other for other in self.hosts.values() if other.id != own and self.trust.state_of(other) == state]
        return sorted(hosts, key=lambda host: host.name)

    def fingerprint(self, host: Host) -> str:
        """Return the fingerprint of a host's key."""
        return fingerprint(host.key)

    def certify(self, relay: Relay, name: str, status: MemberStatus, expected: str) -> Host:
        """Sign that a host is a member or was removed, and return the host.

        `expected` is the fingerprint that the person has compared; "" skips the check. Raises `NoSuchHost`, or
        `RelayRefused` if this host is not a member, the key is another one, or the certificate has no effect.
        """
        self.read(relay)
        own = self.membership
        if self.state(own.host) != "member":
            raise RelayRefused(
                f"this host is not confirmed itself, so it cannot confirm others; "
                f"on a host that is, run: fairlead team confirm {own.name}"
            )
        host = self._named(name, status)
        if expected and fingerprint(host.key) != expected:
            raise RelayRefused(f"the key of {host.name} is another one now; look at fairlead team status again")
        certificate = Certificate(
            host=host.id, name=host.name, key=host.key, status=status, by=own.host, at=round(time(), 3)
        )
        relay.add_certificate(sign_certificate(certificate, own.key, own.team))
        self.read(relay)
        wanted = "member" if status == "member" else "removed"
        if self.state(host.id) != wanted:
            raise RelayRefused(f"{host.name} could not be {_DONE[status]}: another member has that name or id")
        return host

    def _named(self, name: str, status: MemberStatus) -> Host:
        """Return the host with a name. If there are several, return one to which the status can be applied.

        Raises `NoSuchHost` if there is none.
        """
        named = [host for host in self.hosts.values() if host.name == name]
        if not named:
            names = ", ".join(sorted(host.name for host in self.hosts.values()))
            raise NoSuchHost(f"the team has no host {name!r}; its hosts are {names}")
        fitting = [host for host in named if self.trust.state_of(host) != _DONE[status]]
        fitting = [host for host in fitting if status == "removed" or self.trust.state_of(host) == "pending"]
        if not fitting:
            raise NoSuchHost(f"{name} is {self.trust.state_of(named[0])} already")
        return fitting[0]


_DONE = {"member": "confirmed", "removed": "removed"}
