"""The contract of a relay. The tests of a kind provide a running one and run all of this."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol

import msgspec
import pytest
from team.relay_hosts import host_id, packet, packets, using
from team.relay_lease_contract import LeaseContract

from fairlead.team import Certificate, CertifiedState, Changes, HostCloned, RelayRefused, RelayUnreachable, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from team.relay_hosts import Relays

    from fairlead.team import Packet
    from fairlead.team.relay import Relay

LONG = 20.0
"""Seconds that nothing takes unless it is broken."""


class Hub(Protocol):
    """A relay that a test may stop, and whose data it may replace."""

    def stop(self, *, hard: bool = False) -> None: ...
    def start(self) -> None: ...
    def backup(self) -> Path: ...
    def restore(self, backup: Path) -> None: ...


def bodies(found: list[Packet]) -> list[bytes]:
    return [one.body for one in found]


def certificate(host: str, verdict: CertifiedState = "member", by: str = "one", at: float = 1.5) -> Certificate:
    signature = f"{host} {verdict} {by} {at}".encode()
    return Certificate(
        host=host_id(host), name=host, key=b"k" * 32, verdict=verdict, by=host_id(by), at=at, signature=signature
    )


def snapshot(host: str, version: int, body: bytes = b"{}") -> Snapshot:
    return Snapshot(host=host_id(host), kind="agents", version=version, body=body, signature=b"s" * 64)


def later(function: Callable[[], object]) -> threading.Timer:
    """Call a function in another thread, most likely while this one waits; before it is right too."""
    timer = threading.Timer(0.05, function)
    timer.start()
    return timer


class RelayContract(LeaseContract):
    """Subclass this with a fixture `relay_url` of an empty relay, and `hub`, an own one with its URL in `hub_url`."""

    @pytest.fixture
    def relays(self, relay_url: str) -> Iterator[Relays]:
        yield from using(relay_url)

    @pytest.fixture
    def faulty(self, hub_url: str) -> Iterator[Relays]:
        yield from using(hub_url)

    # -- joining ---------------------------------------------------------------------------------------

    def test_the_first_host_founds_the_team_and_the_others_find_it(self, relays: Relays) -> None:
        relays.open("one")
        relays.open("two")
        one, two = relays.welcome["one"], relays.welcome["two"]
        assert (one.is_founder, one.is_new, two.is_founder, two.is_new) == (True, True, False, True)
        assert one.team == two.team != ""
        assert abs(one.now - time.time()) < LONG

    def test_the_clocks_are_compared_apart_from_how_long_connecting_takes(self, relays: Relays) -> None:
        before = relays.open("one")
        ending = threading.Timer(1.0, before.close)
        ending.start()
        relays.open("one")  # waits for the end of the one before
        ending.join()
        welcome = relays.welcome["one"]
        assert welcome.round_trip < 1.0
        assert abs(welcome.offset) < 0.5

    def test_hosts_are_listed_in_the_order_in_which_they_joined(self, relays: Relays) -> None:
        relays.open("zeta")
        relay = relays.open("alpha")
        listed = relay.hosts()
        assert [(one.id, one.name, one.version) for one in listed] == [
            (host_id("zeta"), "zeta", "1"),
            (host_id("alpha"), "alpha", "1"),
        ]
        assert listed[0].key == relays.hello("zeta").key
        assert set(relay.ages()) == {host_id("zeta"), host_id("alpha")}
        assert all(0 <= age < LONG for age in relay.ages().values())

    def test_a_host_that_connects_again_is_not_new(self, relays: Relays) -> None:
        relays.open("one").close()
        relays.open("one", team=relays.welcome["one"].team)
        assert (relays.welcome["one"].is_new, relays.welcome["one"].is_founder) == (False, False)

    def test_a_name_that_another_host_has_is_refused(self, relays: Relays) -> None:
        relays.open("one")
        relay = relays.reach()
        hello = relays.hello("two")
        with pytest.raises(RelayRefused, match="another host of the team has the name one; choose another"):
            relay.connect(msgspec.structs.replace(hello, name="one"))

    def test_the_relay_of_another_team_is_refused(self, relays: Relays) -> None:
        relays.open("one")
        with pytest.raises(RelayRefused, match="is the relay of another team; leave the team first"):
            relays.open("two", team="0" * 32)

    def test_a_relay_that_lost_all_data_goes_on_with_the_team_of_a_member(self, relays: Relays) -> None:
        relays.open("one", team="7" * 32)
        assert relays.welcome["one"].team == "7" * 32
        assert relays.welcome["one"].is_founder

    def test_another_key_for_a_known_host_is_refused(self, relays: Relays) -> None:
        relays.open("one").close()
        hello = relays.hello("one")
        with pytest.raises(RelayRefused, match="with another key or name"):
            relays.reach().connect(msgspec.structs.replace(hello, key=b"x" * 32))

    # -- a copied machine ------------------------------------------------------------------------------

    def test_a_copy_is_refused_after_the_original_connected_again(self, relays: Relays) -> None:
        relays.open("one").close()
        copy = relays.copy()
        relays.open("one").close()
        with copy, pytest.raises(HostCloned, match="another machine has connected as this host"):
            copy.open("one")

    def test_the_original_is_refused_after_the_copy_connected(self, relays: Relays) -> None:
        relays.open("one").close()
        with relays.copy() as copy:
            copy.open("one").close()
            for _ in range(2):
                with pytest.raises(HostCloned, match="--new-identity"):
                    relays.open("one")

    def test_a_copy_is_refused_while_the_original_is_connected(
        self, relays: Relays, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.shorten_claim(monkeypatch)
        original = relays.open("one")
        with relays.copy() as copy:
            with pytest.raises(HostCloned, match="another process is connected as this host"):
                copy.open("one")
            original.push([packet("one", "two", 1)])

    def shorten_claim(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have the relay wait less for the previous connection of a host."""

    # -- packets ---------------------------------------------------------------------------------------

    def test_packets_arrive_complete_ordered_by_origin_and_number(self, relays: Relays) -> None:
        one, two, three = relays.open("one"), relays.open("two"), relays.open("three")
        one.push([packet("one", "three", 2, b"b\0\xff", "receipt"), packet("one", "two", 1), packet("one", "three", 1)])
        two.push(packets("two", "three", 1, 2))
        expected = [
            packet("one", "three", 1),
            packet("one", "three", 2, b"b\0\xff", "receipt"),
            *packets("two", "three", 1, 2),
        ]
        assert three.pull() == sorted(expected, key=lambda one: (one.origin, one.seq))
        assert two.pull() == [packet("one", "two", 1)]
        assert one.pull() == []

    def test_a_packet_that_is_pushed_again_is_there_once_and_unchanged(self, relays: Relays) -> None:
        one, two = relays.open("one"), relays.open("two")
        one.push(packets("one", "two", 1, 3))
        one.push([packet("one", "two", 2, b"another"), packet("one", "two", 4, b"4")])
        assert bodies(two.pull()) == [b"1", b"2", b"3", b"4"]

    def test_packets_can_wait_for_a_host_that_has_not_joined_yet(self, relays: Relays) -> None:
        relays.open("one").push(packets("one", "late", 1, 2))
        assert bodies(relays.open("late").pull()) == [b"1", b"2"]

    def test_pull_leaves_out_origins_and_stops_at_the_limit(self, relays: Relays) -> None:
        one, two, three = relays.open("one"), relays.open("two"), relays.open("three")
        one.push(packets("one", "three", 1, 5))
        two.push(packets("two", "three", 1, 5))
        assert {one.origin for one in three.pull(skip=[host_id("one")])} == {host_id("two")}
        assert three.pull(skip=[host_id("one"), host_id("two")]) == []
        assert bodies(three.pull(skip=[host_id("one")], limit=2)) == [b"1", b"2"]

    def test_large_packets_come_in_several_pulls_and_none_is_held_back(self, relays: Relays) -> None:
        one, two = relays.open("one"), relays.open("two")
        size = 3 * 1024 * 1024
        one.push([packet("one", "two", seq, bytes([seq]) * (size if seq < 4 else 8_000_000)) for seq in range(1, 5)])
        seen: list[int] = []
        while found := two.pull():
            seen += [each.seq for each in found]
            two.acknowledge({host_id("one"): seen[-1]})
        assert seen == [1, 2, 3, 4]

    def test_what_is_acknowledged_is_removed_and_the_origin_learns_of_it(self, relays: Relays) -> None:
        one, two, three = relays.open("one"), relays.open("two"), relays.open("three")
        one.push([*packets("one", "two", 1, 3), *packets("one", "three", 1, 1)])
        two.acknowledge({host_id("one"): 2})
        assert bodies(two.pull()) == [b"3"]
        assert one.progress() == {host_id("two"): 2}
        three.acknowledge({host_id("one"): 1})
        assert one.progress() == {host_id("two"): 2, host_id("three"): 1}
        assert two.progress() == {}

    def test_progress_never_goes_back(self, relays: Relays) -> None:
        one, two = relays.open("one"), relays.open("two")
        two.acknowledge({host_id("one"): 5})
        two.acknowledge({host_id("one"): 3})
        two.acknowledge({})
        assert one.progress() == {host_id("two"): 5}

    def test_what_was_acknowledged_is_not_stored_again(self, relays: Relays) -> None:
        one, two = relays.open("one"), relays.open("two")
        one.push(packets("one", "two", 1, 2))
        two.acknowledge({host_id("one"): 2})
        one.push(packets("one", "two", 1, 3))
        assert bodies(two.pull()) == [b"3"]

    def test_missing_are_those_neither_there_nor_acknowledged(self, relays: Relays) -> None:
        one, two = relays.open("one"), relays.open("two")
        one.push([packet("one", "two", seq) for seq in (1, 2, 3, 5)])
        two.acknowledge({host_id("one"): 2})
        assert one.missing(host_id("two"), 1, 7) == [4, 6, 7]
        assert one.missing(host_id("two"), 1, 3) == []
        assert two.missing(host_id("one"), 1, 2) == [1, 2]

    def test_refused_packets_are_removed_without_progress(self, relays: Relays) -> None:
        one, two = relays.open("one"), relays.open("two")
        one.push(packets("one", "two", 1, 3))
        two.refuse(host_id("one"), 2)
        assert bodies(two.pull()) == [b"3"]
        assert one.progress() == {}

    # -- the registry ----------------------------------------------------------------------------------

    def test_certificates_are_kept_once_in_the_order_in_which_they_were_added(self, relays: Relays) -> None:
        one, two = relays.open("one"), relays.open("two")
        added = [certificate("two"), certificate("three", by="two", at=0.1), certificate("two", "removed")]
        for each in (*added, added[0]):
            one.add_certificate(each)
        assert two.certificates() == added

    def test_the_newest_snapshot_replaces_the_others(self, relays: Relays) -> None:
        one, two = relays.open("one"), relays.open("two")
        for version, body in ((1, b"a"), (3, b"c"), (2, b"b")):
            one.publish(snapshot("one", version, body))
        (found,) = two.snapshots({})
        assert (found.host, found.kind, found.version, found.body) == (host_id("one"), "agents", 3, b"c")
        assert abs(found.at - relays.welcome["two"].now) < LONG
        assert one.snapshots({}) == []

    def test_only_newer_snapshots_are_returned(self, relays: Relays) -> None:
        one, two, three = relays.open("one"), relays.open("two"), relays.open("three")
        one.publish(snapshot("one", 4))
        two.publish(snapshot("two", 7))
        known = {(host_id("one"), "agents"): 4, (host_id("two"), "agents"): 6, (host_id("gone"), "sessions"): 1}
        assert [one.version for one in three.snapshots(known)] == [7]  # type: ignore[arg-type]

    def test_a_forgotten_host_leaves_its_name_and_nothing_but_what_it_sent(self, relays: Relays) -> None:
        one, two, three = relays.open("one"), relays.open("two"), relays.open("three")
        two.publish(snapshot("two", 1))
        two.push(packets("two", "one", 1, 2))
        three.push(packets("three", "two", 1, 2))
        one.add_certificate(certificate("two", "removed"))
        two.close()
        assert three.wait(LONG)
        one.delete_host(host_id("two"))
        assert three.wait(LONG)
        assert [each.name for each in one.hosts()] == ["one", "three"]
        assert one.snapshots({}) == []
        assert len(one.certificates()) == 1
        assert bodies(one.pull()) == [b"1", b"2"]
        assert one.load().packets == 2
        again = relays.reach()
        again.connect(msgspec.structs.replace(relays.hello("four"), name="two"))
        assert again.pull() == []

    # -- its size --------------------------------------------------------------------------------------

    def test_prune_deletes_what_waits_for_hosts_that_are_gone(self, relays: Relays) -> None:
        one, two = relays.open("one"), relays.open("two")
        one.push(packets("one", "two", 1, 2))
        assert two.prune(hosts_before=1.0) == 0
        assert two.prune(hosts_before=relays.welcome["one"].now + 3600) == 2
        assert two.pull() == []

    def test_load_counts_what_is_on_its_way(self, relays: Relays) -> None:
        one = relays.open("one")
        assert (one.load().packets, one.load().oldest) == (0, 0.0)
        one.push(packets("one", "two", 1, 3))
        load = one.load()
        assert load.packets == 3
        assert 0 < load.oldest < LONG
        assert load.bytes > 0

    # -- waiting ---------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("change", "what"),
        [
            (lambda one: one.push([packet("one", "two", 1)]), Changes.PACKETS),
            (lambda one: one.acknowledge({host_id("two"): 1}), Changes.PROGRESS),
            (lambda one: one.publish(snapshot("one", 1)), Changes.REGISTRY),
            (lambda one: one.add_certificate(certificate("three")), Changes.REGISTRY),
        ],
        ids=["push", "acknowledge", "publish", "certificate"],
    )
    def test_a_waiting_host_is_notified(self, relays: Relays, change: Callable[[Relay], None], what: Changes) -> None:
        one, two = relays.open("one"), relays.open("two")
        thread = later(lambda: change(one))
        assert two.wait(LONG) == what
        thread.join()
        assert not two.wait(0)

    def test_a_ring_before_the_wait_is_not_lost(self, relays: Relays) -> None:
        one, two = relays.open("one"), relays.open("two")
        one.push([packet("one", "two", 1)])
        assert len(two.pull()) == 1
        assert two.wait(LONG)

    def test_a_host_is_not_rung_by_itself_nor_by_what_concerns_others(self, relays: Relays) -> None:
        one, two = relays.open("one"), relays.open("two")
        one.push([packet("one", "three", 1)])
        two.publish(snapshot("two", 1))
        two.push([packet("two", "two", 1)])
        assert not two.wait(0.1)

    def test_a_packet_that_was_there_notifies_nobody(self, relays: Relays) -> None:
        one, two = relays.open("one"), relays.open("two")
        one.push([packet("one", "two", 1)])
        assert two.wait(LONG)
        one.push([packet("one", "two", 1)])
        assert not two.wait(0.1)

    def test_wake_ends_a_wait_from_another_thread_and_also_the_next_one(self, relays: Relays) -> None:
        one = relays.open("one")
        thread = later(one.wake)
        started = time.monotonic()
        assert not one.wait(LONG)
        thread.join()
        for _ in range(100_000):
            one.wake()
        assert not one.wait(LONG)
        assert time.monotonic() - started < LONG
        assert not one.wait(0.05)

    def test_wake_is_harmless_after_the_end(self, relays: Relays) -> None:
        one = relays.open("one")
        one.close()
        one.wake()
        one.close()
        with pytest.raises(RelayUnreachable):
            one.wait(1)

    # -- faults ----------------------------------------------------------------------------------------

    @pytest.mark.parametrize("hard", [False, True])
    def test_a_lost_relay_is_noticed_and_what_is_pushed_again_is_there_once(
        self, hub: Hub, faulty: Relays, *, hard: bool
    ) -> None:
        one, two = faulty.open("one"), faulty.open("two")
        one.push(packets("one", "two", 1, 2))
        assert two.wait(LONG)
        hub.stop(hard=hard)
        with pytest.raises(RelayUnreachable):
            two.wait(LONG)
        with pytest.raises(RelayUnreachable):
            one.push(packets("one", "two", 3, 3))
        with pytest.raises(RelayUnreachable):
            one.pull()
        with pytest.raises(RelayUnreachable, match="cannot be reached"):
            faulty.open("one")
        hub.start()
        faulty.open("one").push(packets("one", "two", 1, 3))
        assert bodies(faulty.open("two").pull()) == [b"1", b"2", b"3"]

    def test_after_a_restore_from_an_old_backup_what_is_missing_is_known(self, hub: Hub, faulty: Relays) -> None:
        one, two = faulty.open("one"), faulty.open("two")
        one.push(packets("one", "two", 1, 2))
        backup = hub.backup()
        two.acknowledge({host_id("one"): 2})
        one.push(packets("one", "two", 3, 6))
        two.acknowledge({host_id("one"): 4})
        for name in ("one", "two"):  # each has connected since, so the backup has an older nonce of it
            {"one": one, "two": two}[name].close()
            faulty.open(name).close()
        hub.restore(backup)
        one, two = faulty.open("one"), faulty.open("two")
        assert one.progress() == {}
        assert one.missing(host_id("two"), 1, 6) == [3, 4, 5, 6]
        one.push(packets("one", "two", 5, 6))  # the others are receipted, so that their origin has deleted them
        two.acknowledge({host_id("one"): 4})
        assert bodies(two.pull()) == [b"5", b"6"]
        assert one.missing(host_id("two"), 1, 6) == []
