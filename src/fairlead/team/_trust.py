"""Computes who is a member, from anchors and certificates. Knows neither the relay nor a file.

A host trusts its anchors, whose fingerprints a person has compared when it joined. A certificate is accepted if the
host that signed it is a member when the certificate is learned. Its status is one of:

- `member`: binds a name and a key to a host id. A certificate that binds a second name or key to the id is ignored, and
  so is one with the name of another member.
- `removed`: ends the membership permanently. Certificates that the removed host signed before stay valid. Those that
  are learned afterwards are ignored, whatever time is written in them.

"Before" refers to the order in which this host learned the certificates, not to their times. A host keeps the accepted
certificates in that order, and evaluates those of the relay after them. So a relay that was restored from an old backup
does not make a removed host a member again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairlead.team._signatures import verify_certificate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fairlead.team._types import Certificate, Host, HostState


class Anchor(msgspec.Struct, frozen=True, kw_only=True):
    """A host that is trusted without a certificate, because a person has compared its fingerprint."""

    host: str
    name: str
    key: bytes


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """Which hosts are members, and which were removed."""

    members: Mapping[str, Anchor]
    """The members by host id, with the name and the key that are bound to it."""
    removed: Mapping[str, Anchor]
    """The removed hosts by host id, including those that were removed before they became members."""
    effective: tuple[Certificate, ...]
    """The accepted certificates, in the order of acceptance. A host stores them in its `Membership`."""

    def state(self, host: str) -> HostState:
        """Return the state of a host id. An unknown host is pending."""
        if host in self.removed:
            return "removed"
        return "member" if host in self.members else "pending"

    def state_of(self, host: Host) -> HostState:
        """Return the state of a host on the relay.

        A host that has the id of a member, but a different name or key, is pending.
        """
        state = self.state(host.id)
        if state != "member":
            return state
        bound = self.members[host.id]
        return "member" if (bound.name, bound.key) == (host.name, host.key) else "pending"

    def key(self, host: str) -> bytes | None:
        """Return the public key of a member; None for any other host, whose data must not be applied."""
        member = self.members.get(host)
        return member.key if member else None


def evaluate_trust(team: str, anchors: Iterable[Anchor], certificates: Iterable[Certificate]) -> Trust:
    """Return which hosts are members, given the certificates in the order in which this host learned them."""
    evaluation = _Evaluation(team, anchors)
    for certificate in certificates:
        evaluation.add(certificate)
    return Trust(members=evaluation.members, removed=evaluation.removed, effective=tuple(evaluation.effective))


def merge_certificates(kept: Iterable[Certificate], received: Iterable[Certificate]) -> tuple[Certificate, ...]:
    """Return the certificates that this host has kept, followed by new ones received from the relay.

    Duplicates are left out.
    """
    return tuple(dict.fromkeys((*kept, *received)))


class _Evaluation:
    """The members by the certificates added so far. A certificate counts once the host that signed it is a member."""

    def __init__(self, team: str, anchors: Iterable[Anchor]) -> None:
        self._team = team
        self._waiting: dict[str, list[Certificate]] = {}
        self.members: dict[str, Anchor] = {anchor.host: anchor for anchor in anchors}
        self.removed: dict[str, Anchor] = {}
        self.effective: list[Certificate] = []

    def add(self, certificate: Certificate) -> None:
        todo = [certificate]
        while todo:
            next_certificate = todo.pop(0)
            author = self.members.get(next_certificate.by)
            if author is None:
                if next_certificate.by not in self.removed:
                    self._waiting.setdefault(next_certificate.by, []).append(next_certificate)
            elif self._has_effect(next_certificate) and verify_certificate(next_certificate, author.key, self._team):
                self._apply(next_certificate)
                todo.extend(self._waiting.pop(next_certificate.host, ()))

    def _has_effect(self, certificate: Certificate) -> bool:
        if certificate.host in self.removed:
            return False
        if certificate.status == "removed":
            return True
        names = {member.name for member in self.members.values()}
        return certificate.host not in self.members and certificate.name not in names

    def _apply(self, certificate: Certificate) -> None:
        self.effective.append(certificate)
        subject = Anchor(host=certificate.host, name=certificate.name, key=certificate.key)
        if certificate.status == "member":
            self.members[certificate.host] = subject
        else:
            self.removed[certificate.host] = self.members.pop(certificate.host, subject)
