"""Who is in the team: the hosts that the relay lists, judged by certificates. Belongs to the thread of the team."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING

import msgspec

from fairlead.team import (
    Certificate,
    RelayRefused,
    TeamError,
    fingerprint,
    judge,
    merge_certificates,
    sign_certificate,
    update_membership,
)

if TYPE_CHECKING:
    from fairlead.team import Host, HostState, Membership, Trust, Verdict
    from fairlead.team.relay import Relay


class NoSuchHost(TeamError):
    """The team has no host of that name, or it is not in the state for this."""


class Roster:
    """The hosts of the team. What counts of the certificates is kept on disk, so that nothing brings one back."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.hosts: dict[str, Host] = {}
        """By id, as the relay lists them; empty until it was asked."""
        self.ages: dict[str, float] = {}
        """Seconds since each was heard of, when `read_at` was."""
        self.read_at = 0.0
        self._kept = membership.certificates
        self.trust: Trust = judge(membership.team, membership.anchors, self._kept)

    def read(self, relay: Relay) -> bool:
        """Read hosts and certificates; add those that a relay from an old backup lacks. Return if a state changed."""
        hosts = {host.id: host for host in relay.hosts()}
        received = relay.certificates()
        trust = judge(self.membership.team, self.membership.anchors, merge_certificates(self._kept, received))
        if trust.effective != self._kept:
            self._keep(trust.effective)
        lacking = [one for one in trust.effective if one not in set(received)]
        for certificate in (*lacking, *self._own_certificate(received)):
            relay.add_certificate(certificate)
        before = self.known()
        self.hosts, self.trust = hosts, trust
        self.ages, self.read_at = relay.ages(), time()
        return self.known() != before

    def _own_certificate(self, received: list[Certificate]) -> list[Certificate]:
        """Return what the first host says of itself, if the relay has lost it: how others learn whom to trust."""
        own = self.membership
        is_first = any(anchor.host == own.host for anchor in own.anchors)
        return [] if not is_first or any(one.host == own.host for one in received) else [self.sign_own("member")]

    def sign_own(self, verdict: Verdict) -> Certificate:
        """Return a statement of this host about itself."""
        own = self.membership
        key = own.key
        statement = Certificate(
            host=own.host, name=own.name, key=key.public, verdict=verdict, by=own.host, at=round(time(), 3)
        )
        return sign_certificate(statement, key, own.team)

    def _keep(self, certificates: tuple[Certificate, ...]) -> None:
        update_membership(lambda old: msgspec.structs.replace(old, certificates=certificates))
        self._kept = certificates

    def known(self) -> dict[str, tuple[str, HostState]]:
        """Return the names and states of all hosts, also of those that were removed and are not listed any more."""
        listed: dict[str, tuple[str, HostState]] = {
            host.id: (host.name, self.trust.state_of(host)) for host in self.hosts.values()
        }
        removed: dict[str, tuple[str, HostState]] = {
            one.host: (one.name, "removed") for one in self.trust.removed.values()
        }
        return removed | listed

    def state(self, host: str) -> HostState:
        """Return the state of a host."""
        listed = self.hosts.get(host)
        return self.trust.state(host) if listed is None else self.trust.state_of(listed)

    def name(self, host: str) -> str:
        """Return the name of a host, as far as it is known."""
        known = self.trust.members.get(host) or self.trust.removed.get(host) or self.hosts.get(host)
        return known.name if known is not None else host[:8]

    def others(self, state: HostState) -> list[Host]:
        """Return the other hosts in a state, by name."""
        own = self.membership.host
        found = [one for one in self.hosts.values() if one.id != own and self.trust.state_of(one) == state]
        return sorted(found, key=lambda host: host.name)

    def fingerprint(self, host: Host) -> str:
        """Return the fingerprint of a host's key."""
        return fingerprint(host.key)

    def certify(self, relay: Relay, name: str, verdict: Verdict, expected: str) -> Host:
        """Sign that a host is a member, or no longer. `expected` is the fingerprint that the person has seen."""
        self.read(relay)
        own = self.membership
        if self.state(own.host) != "member":
            raise RelayRefused(
                f"this host is not confirmed itself, so its word does not count; "
                f"on a host that is, run: fairlead team confirm {own.name}"
            )
        host = self._named(name, verdict)
        if expected and fingerprint(host.key) != expected:
            raise RelayRefused(f"the key of {host.name} is another one now; look at fairlead team status again")
        certificate = Certificate(
            host=host.id, name=host.name, key=host.key, verdict=verdict, by=own.host, at=round(time(), 3)
        )
        relay.add_certificate(sign_certificate(certificate, own.key, own.team))
        self.read(relay)
        wanted = "member" if verdict == "member" else "removed"
        if self.state(host.id) != wanted:
            raise RelayRefused(f"{host.name} could not be {_DONE[verdict]}: another member has that name or id")
        return host

    def _named(self, name: str, verdict: Verdict) -> Host:
        """Return the host that a name means: of several, the one that the verdict can apply to."""
        found = [host for host in self.hosts.values() if host.name == name]
        if not found:
            names = ", ".join(sorted(host.name for host in self.hosts.values()))
            raise NoSuchHost(f"the team has no host {name!r}; its hosts are {names}")
        fitting = [host for host in found if self.trust.state_of(host) != _DONE[verdict]]
        fitting = [host for host in fitting if verdict == "removed" or self.trust.state_of(host) == "pending"]
        if not fitting:
            raise NoSuchHost(f"{name} is {self.trust.state_of(found[0])} already")
        return fitting[0]


_DONE = {"member": "confirmed", "removed": "removed"}
