"""Who is a member: a pure function over anchors and signed statements. Knows neither the relay nor a file.

A host trusts its anchors, which a person has seen when it joined. A statement counts if the host that signed it is a
member when the statement is learned:

- `member` binds a name and a key to a host id. A second name or key for that id does not count, nor does a name
  that another member has.
- `removed` ends it for good. What the removed host signed before it was removed stays; what is learned of it
  afterwards does not count, whatever time it bears.

"Before" is the order in which this host learned the statements. It keeps those that counted, in that order, and reads
those of the relay after them: so a relay that was restored from an old backup brings no removed host back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairlead.team._sealing import verify_certificate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fairlead.team._types import Certificate, Host, HostState


class Anchor(msgspec.Struct, frozen=True, kw_only=True):
    """A host that is trusted without a certificate, because a person has compared its fingerprint."""

    host: str
    name: str
    key: bytes


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """Who is a member, and who was removed."""

    members: Mapping[str, Anchor]
    """By host id, with the name and the key that are bound to it."""
    removed: Mapping[str, Anchor]
    """Likewise those that were members, or were removed before."""
    effective: tuple[Certificate, ...]
    """The certificates that counted, in the order in which they did: what a host has to keep."""

    def state(self, host: str) -> HostState:
        """Return the state of a host id. One of which nothing is known is pending."""
        if host in self.removed:
            return "removed"
        return "member" if host in self.members else "pending"

    def state_of(self, host: Host) -> HostState:
        """Return the state of a host as the relay lists it: a member only with the name and key bound to it."""
        state = self.state(host.id)
        if state != "member":
            return state
        bound = self.members[host.id]
        return "member" if (bound.name, bound.key) == (host.name, host.key) else "pending"

    def key(self, host: str) -> bytes | None:
        """Return the public key of a member; None for all others: nothing of theirs is to be applied."""
        member = self.members.get(host)
        return member.key if member else None


def judge(team: str, anchors: Iterable[Anchor], certificates: Iterable[Certificate]) -> Trust:
    """Return who is a member by statements in the order in which this host learned them."""
    ledger = _Ledger(team, anchors)
    for certificate in certificates:
        ledger.learn(certificate)
    return Trust(members=ledger.members, removed=ledger.removed, effective=tuple(ledger.effective))


def merge_certificates(kept: Iterable[Certificate], received: Iterable[Certificate]) -> tuple[Certificate, ...]:
    """Return the certificates that this host keeps, then those of the relay that are new, each once."""
    return tuple(dict.fromkeys((*kept, *received)))


class _Ledger:
    """The statements so far. One whose author is not a member yet waits until it is."""

    def __init__(self, team: str, anchors: Iterable[Anchor]) -> None:
        self._team = team
        self._waiting: dict[str, list[Certificate]] = {}
        self.members: dict[str, Anchor] = {anchor.host: anchor for anchor in anchors}
        self.removed: dict[str, Anchor] = {}
        self.effective: list[Certificate] = []

    def learn(self, certificate: Certificate) -> None:
        todo = [certificate]
        while todo:
            one = todo.pop(0)
            author = self.members.get(one.by)
            if author is None:
                if one.by not in self.removed:
                    self._waiting.setdefault(one.by, []).append(one)
            elif self._has_effect(one) and verify_certificate(one, author.key, self._team):
                self._apply(one)
                todo.extend(self._waiting.pop(one.host, ()))

    def _has_effect(self, certificate: Certificate) -> bool:
        if certificate.host in self.removed:
            return False
        if certificate.verdict == "removed":
            return True
        names = {member.name for member in self.members.values()}
        return certificate.host not in self.members and certificate.name not in names

    def _apply(self, certificate: Certificate) -> None:
        self.effective.append(certificate)
        subject = Anchor(host=certificate.host, name=certificate.name, key=certificate.key)
        if certificate.verdict == "member":
            self.members[certificate.host] = subject
        else:
            self.removed[certificate.host] = self.members.pop(certificate.host, subject)
