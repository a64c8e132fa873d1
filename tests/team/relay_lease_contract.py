"""The contract of a relay about leases; part of `relay_contract`."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from team.relay_hosts import host_id

from fairlead.team import Changes, TeamLease

if TYPE_CHECKING:
    from team.relay_hosts import Relays

    from fairlead.team import RelayLeases
    from fairlead.team.relay import Relay

LONG = 20.0


def lease(host: str, name: str, project: str = "p", seconds: float = 600.0) -> TeamLease:
    return TeamLease(
        id=name,
        host=host_id(host),
        project=project,
        until=time.time() + seconds,
        body=name.encode(),
        signature=b"s" * 64,
    )


def take(relay: Relay, *leases: TeamLease, replaced: tuple[str, ...] = ()) -> bool:
    """Take leases by what the relay has now, whatever that is."""
    return relay.take_leases(leases, relay.leases().versions, replaced=replaced)


def names(leases: RelayLeases) -> list[str]:
    return sorted(one.id for one in leases.leases)


class LeaseContract:
    """Leases are stored whole, decided one after the other, and end by the relay's clock."""

    def test_leases_are_kept_as_they_were_given_and_ring_the_others(self, relays: Relays) -> None:
        one, two = relays.open("one"), relays.open("two")
        first, second = lease("one", "a"), lease("one", "b", project="q")

        assert two.has_leases
        assert take(one, first, second)

        assert two.wait(LONG) == Changes.LEASES
        assert two.has_lease_changes
        leases = two.leases()
        assert not two.has_lease_changes
        assert sorted(leases.leases, key=lambda each: each.id) == [first, second]
        assert set(leases.versions) == {"p", "q"}
        assert abs(leases.now - time.time()) < LONG
        assert (one.wait(0.05), one.has_lease_changes) == (Changes(0), False)

    def test_only_the_first_of_two_decisions_by_the_same_leases_counts(self, relays: Relays) -> None:
        one, two = relays.open("one"), relays.open("two")
        for project in ("p", "p", "q"):  # the first lease of a project, and a further one
            leases = one.leases()
            assert one.take_leases([lease("one", f"a{project}", project)], leases.versions)
            assert not two.take_leases([lease("two", "b", project), lease("two", "c", "r")], leases.versions)
            assert "b" not in names(two.leases())
            assert "c" not in names(two.leases()), "all or nothing"
        assert take(two, lease("two", "b", "p"))

    def test_of_many_that_decide_at_once_one_is_first(self, relays: Relays) -> None:
        hosts = {name: relays.open(name) for name in ("one", "two", "three", "four")}
        ready, taken = threading.Barrier(len(hosts)), []

        def race(name: str, round_: int) -> None:
            leases = hosts[name].leases()
            ready.wait(LONG)
            if hosts[name].take_leases([lease(name, f"{name}{round_}")], leases.versions):
                taken.append(f"{name}{round_}")

        for round_ in range(10):
            threads = [threading.Thread(target=race, args=(name, round_)) for name in hosts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(taken) == round_ + 1
        assert names(hosts["one"].leases()) == sorted(taken)

    def test_only_what_changed_is_read_again(self, relays: Relays) -> None:
        one, two = relays.open("one"), relays.open("two")
        take(one, lease("one", "a", "p"), lease("one", "b", "q"))
        known = two.leases().versions
        assert names(two.leases(known=known)) == []
        take(one, lease("one", "c", "q"))
        leases = two.leases(known=known)
        assert (names(leases), set(leases.versions)) == (["b", "c"], {"q"})
        assert names(two.leases(projects=["p"])) == ["a"]
        one.release_leases(["a"])
        leases = two.leases(known=known | leases.versions)
        assert (names(leases), set(leases.versions)) == ([], {"p"})

    def test_a_host_replaces_and_releases_only_its_own(self, relays: Relays) -> None:
        one, two = relays.open("one"), relays.open("two")
        take(one, lease("one", "a"), lease("one", "b"))
        two.release_leases(["a"])
        assert take(two, lease("two", "c"), replaced=("b",))
        assert names(one.leases()) == ["a", "b", "c"]
        assert take(one, lease("one", "d"), replaced=("b",))
        assert two.wait(LONG)
        one.release_leases(["a"])
        assert two.wait(LONG)
        assert names(two.leases()) == ["c", "d"]

    def test_a_lease_ends_with_its_time_by_the_clock_of_the_relay(self, relays: Relays) -> None:
        one = relays.open("one")
        now = one.leases().now
        short = TeamLease(id="a", host=host_id("one"), project="p", until=now + 0.2, body=b"", signature=b"")
        take(one, short, lease("one", "b", seconds=-1.0))
        deadline = time.monotonic() + LONG
        while names(one.leases()) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert names(one.leases()) == []
        assert one.leases().now >= now + 0.2
        assert one.prune(hosts_before=1.0) == 2

    def test_the_leases_of_a_host_that_leaves_or_is_forgotten_are_dropped(self, relays: Relays) -> None:
        one, two, three = (relays.open(name) for name in ("one", "two", "three"))
        for name, relay in (("one", one), ("two", two), ("three", three)):
            take(relay, lease(name, name))
        one.drop_leases(host_id("two"))
        one.delete_host(host_id("three"))
        assert names(two.leases()) == ["one"]
        assert three.wait(LONG)
        assert three.has_lease_changes
