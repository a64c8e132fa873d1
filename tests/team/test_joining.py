"""Two hosts become a team: the first founds it, the second waits until a person on the first confirms it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from fairlead.team import (
    Anchor,
    Certificate,
    CertifiedState,
    Host,
    Membership,
    Packet,
    RelaySource,
    Trust,
    evaluate_trust,
    generate_key,
    load_membership,
    merge_certificates,
    new_host_id,
    prepare_hello,
    save_membership,
    sign_certificate,
    sign_packet,
    update_membership,
    verify_packet,
)
from fairlead.team.relay import open_relay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from team.postgres_server import PostgresServer

    from fairlead.team.relay import Relay


class Machine:
    """A host with a state folder of its own."""

    def __init__(self, name: str, folder: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name = name
        self._home = str(folder / name)
        self._url = url
        self._environment = monkeypatch
        self.relay: Relay = open_relay(url)

    def join(self) -> None:
        """Found the team, or trust those whom the relay shows: a person would compare their fingerprints."""
        self._environment.setenv("FAIRLEAD_HOME", self._home)
        key = generate_key()
        source = RelaySource(url=self._url)
        save_membership(Membership(team="", host=new_host_id(), name=self.name, relay=source, private_key=key.secret))
        membership, hello = prepare_hello("1")
        welcome = self.relay.connect(hello)
        shown = [Anchor(host=one.id, name=one.name, key=one.key) for one in self.relay.hosts()]
        anchors = tuple(one for one in shown if welcome.is_founder or one.host != membership.host)
        update_membership(lambda old: msgspec.structs.replace(old, team=welcome.team, anchors=anchors))

    @property
    def membership(self) -> Membership:
        self._environment.setenv("FAIRLEAD_HOME", self._home)
        found = load_membership()
        assert found is not None
        return found

    def trust(self) -> Trust:
        """Read the certificates of the relay after those that are kept, and keep those that counted."""
        known = self.membership
        certificates = merge_certificates(known.certificates, self.relay.certificates())
        trust = evaluate_trust(known.team, known.anchors, certificates)
        update_membership(lambda old: msgspec.structs.replace(old, certificates=trust.effective))
        return trust

    def certify(self, host: Host, verdict: CertifiedState) -> None:
        own = self.membership
        unsigned = Certificate(host=host.id, name=host.name, key=host.key, verdict=verdict, by=own.host, at=1.0)
        self.relay.add_certificate(sign_certificate(unsigned, own.key, own.team))

    def send(self, target: Machine, seq: int) -> None:
        own = self.membership
        unsigned = Packet(origin=own.host, target=target.membership.host, seq=seq, kind="message", body=b"{}")
        self.relay.push([sign_packet(unsigned, own.key, own.team)])

    def accepted(self) -> list[int]:
        """Return the numbers of the packets that are of members and signed by them."""
        trust, team = self.trust(), self.membership.team
        return [
            one.seq for one in self.relay.pull() if (key := trust.key(one.origin)) and verify_packet(one, key, team)
        ]


@pytest.fixture
def machines(
    postgres_server: PostgresServer, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Machine]]:
    made = [Machine(name, tmp_path, postgres_server.url(database), monkeypatch) for name in ("first", "second")]
    yield made
    for one in made:
        one.relay.close()


def test_packets_count_from_the_confirmation_until_the_removal(machines: list[Machine]) -> None:
    first, second = machines
    first.join()
    second.join()
    second_host = first.relay.hosts()[1]
    second.send(first, 1)
    first.send(second, 1)
    assert (first.trust().state_of(second_host), first.accepted()) == ("pending", [])
    assert second.accepted() == [1]

    first.certify(second_host, "member")
    assert (first.trust().state_of(second_host), first.accepted()) == ("member", [1])
    assert second.trust().state_of(second_host) == "member"

    first.certify(second_host, "removed")
    assert (first.trust().state_of(second_host), first.accepted()) == ("removed", [])
    assert first.relay.wait(5)


def test_a_packet_in_the_name_of_another_host_does_not_count(machines: list[Machine]) -> None:
    """Whoever may write to the database could push it."""
    first, second = machines
    first.join()
    second.join()
    first.certify(first.relay.hosts()[1], "member")
    forged = Packet(origin=second.membership.host, target=first.membership.host, seq=1, kind="message", body=b"{}")
    second.relay.push([sign_packet(forged, generate_key(), first.membership.team)])
    assert len(first.relay.pull()) == 1
    assert first.accepted() == []
