"""The contract of the history on a relay. The tests of a kind provide a running one and run all of this."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from team.relay_hosts import host_id, using

from fairlead.team import HistoryFilter, JournalMark, RelayUnreachable, TeamEvent, TeamSession
from fairlead.team.relay import open_history

if TYPE_CHECKING:
    from collections.abc import Iterator

    from team.relay_contract import Hub
    from team.relay_hosts import Relays

    from fairlead.team.history import TeamHistory

ONE, TWO = host_id("one"), host_id("two")


def event(number: int, host: str = ONE, stage: int = 0, session: str = "s", text: str = "") -> TeamEvent:
    return TeamEvent(
        host=host,
        id=f"e{number}",
        at=float(number),
        session=session,
        event="Stop",
        verdict="blocked" if stage else "none",
        stage=stage,
        text=text or f"number {number}",
        body=b'{"n": %d, "stage": %d}\0\xff' % (number, stage),
        signature=b"s" * 64,
    )


def session(name: str, last: float, host: str = ONE, version: int = 1, folder: str = "/code/app") -> TeamSession:
    return TeamSession(
        host=host,
        session=name,
        started=last - 1,
        last=last,
        folder=folder,
        version=version,
        body=b"%d" % version,
        signature=b"s" * 64,
    )


def wanted(*hosts: str, **more: object) -> HistoryFilter:
    return HistoryFilter(hosts=hosts or (ONE, TWO), **more)  # type: ignore[arg-type]


class HistoryContract:
    """Subclass this with a fixture `relay_url` of an empty relay, and `hub`, an own one with its URL in `hub_url`."""

    @pytest.fixture
    def relays(self, relay_url: str) -> Iterator[Relays]:
        yield from using(relay_url)

    @pytest.fixture
    def history(self, relays: Relays, relay_url: str) -> Iterator[TeamHistory]:
        relays.open("one")
        relays.open("two")
        opened = open_history(relay_url)
        yield opened
        opened.close()

    def test_what_is_appended_again_is_there_once_and_a_later_stage_replaces_an_earlier_one(
        self, history: TeamHistory
    ) -> None:
        assert history.mark(ONE) is None
        history.append(ONE, [event(1), event(2), event(2, stage=1)], [session("s", 2)], JournalMark(1, 200))
        history.append(ONE, [event(1, text="changed"), event(2), event(3)], [], JournalMark(1, 300))
        history.append(ONE, [event(1, stage=1)], [], JournalMark(1, 2**40))
        history.append(ONE, [event(1)], [], JournalMark(2, 0))
        assert history.events(ONE, "s") == [event(3), event(2, stage=1), event(1, stage=1)]
        assert history.mark(ONE) == JournalMark(2, 0)
        assert history.mark(TWO) is None

    def test_events_of_two_hosts_with_the_same_id_are_two(self, history: TeamHistory) -> None:
        history.append(ONE, [event(1)], [], JournalMark(1, 1))
        history.append(TWO, [event(1, TWO)], [], JournalMark(1, 1))
        assert (history.events(ONE, "s"), history.events(TWO, "s")) == ([event(1)], [event(1, TWO)])

    def test_the_newest_version_of_a_session_stays(self, history: TeamHistory) -> None:
        for version in (1, 3, 2):
            history.append(ONE, [], [session("s", 10 + version, version=version)], JournalMark(1, version))
        assert history.sessions(wanted()) == [session("s", 13, version=3)]

    def test_sessions_come_in_pages_the_last_active_one_first(self, history: TeamHistory) -> None:
        rows = [session(f"s{number}", 10.0 + number // 2) for number in range(5)]
        history.append(ONE, [], rows, JournalMark(1, 1))
        history.append(TWO, [], [session("s1", 10.0, TWO), session("t", 30, TWO)], JournalMark(1, 1))
        seen: list[tuple[str, str]] = []
        before = None
        while page := history.sessions(wanted(before=before, limit=2)):
            seen += [(one.host, one.session) for one in page]
            before = (page[-1].last, page[-1].session, page[-1].host)
        shared = sorted([(ONE, "s1"), (TWO, "s1")], reverse=True)
        assert seen == [(TWO, "t"), (ONE, "s4"), (ONE, "s3"), (ONE, "s2"), *shared, (ONE, "s0")]

    def test_sessions_are_found_by_time_folder_host_and_the_beginning_of_their_id(self, history: TeamHistory) -> None:
        rows = [
            session("abc", 10),
            session("abd", 20, folder="/code/app/sub"),
            session("x%_", 30, folder="/code/apple"),
        ]
        history.append(ONE, [], rows, JournalMark(1, 1))
        history.append(TWO, [], [session("abc", 5, TWO)], JournalMark(1, 1))

        def found(*hosts: str, **more: object) -> list[str]:
            return [one.session for one in history.sessions(wanted(*hosts, **more))]

        assert found(since=15.0) == ["x%_", "abd"]
        assert found(until=10.0) == ["abc", "abc"]
        assert found(folder="/code/app") == ["abd", "abc", "abc"]
        assert found(TWO) == ["abc"]
        assert found("nobody") == []
        begin = [(one.host, one.session) for one in history.find_sessions([ONE, TWO], "ab", 5)]
        assert begin == [(ONE, "abd"), (ONE, "abc"), (TWO, "abc")]
        assert [one.session for one in history.find_sessions([ONE], "x%", 5)] == ["x%_"]

    def test_the_events_of_a_session_come_in_pages(self, history: TeamHistory) -> None:
        history.append(ONE, [event(number) for number in range(1, 6)], [], JournalMark(1, 1))
        history.append(ONE, [event(9, session="other")], [], JournalMark(1, 2))
        first = history.events(ONE, "s", limit=3)
        rest = history.events(ONE, "s", before=(first[-1].at, first[-1].id), limit=3)
        assert [one.id for one in (*first, *rest)] == ["e5", "e4", "e3", "e2", "e1"]

    def test_a_search_finds_texts_as_they_are_written_in_upper_or_lower_case(self, history: TeamHistory) -> None:
        events = [event(1, text="git Push origin"), event(2, text="100% done"), event(3, text="100 done\\")]
        history.append(ONE, events, [session("s", 3)], JournalMark(1, 1))
        history.append(TWO, [event(4, TWO, text="git push")], [], JournalMark(1, 1))

        def found(text: str, **more: object) -> list[str]:
            return [one.id for one in history.search(wanted(text=text, **more))[0]]

        assert found("GIT PUSH") == ["e4", "e1"]
        assert found("100%") == ["e2"]
        assert found("done\\") == ["e3"]
        assert found("1_0") == []
        assert found("git", since=2.0) == ["e4"]
        assert found("git", until=4.0) == ["e1"]
        assert found("git", folder="/code/app") == ["e1"]
        assert found("git", limit=1) == ["e4"]
        assert found("git", limit=1, before=(4.0, "e4", TWO)) == ["e1"]
        assert history.search(wanted(text="git"))[1] == [session("s", 3)]

    def test_prune_deletes_what_is_old_of_this_host_of_silent_ones_and_all_of_those_that_are_gone(
        self, history: TeamHistory, relays: Relays
    ) -> None:
        now = relays.welcome["one"].now
        history.append(ONE, [event(number) for number in range(1, 6)], [session("s", 2)], JournalMark(1, 1))
        history.append(TWO, [event(6, TWO)], [session("t", 6, TWO)], JournalMark(1, 1))
        assert history.prune(ONE, before=3.0, max_events=100) == 3  # two events and a session; TWO is not silent
        assert [one.id for one in history.events(ONE, "s")] == ["e5", "e4", "e3"]
        assert history.prune(ONE, before=1.0, max_events=2) == 1
        assert [one.id for one in history.events(ONE, "s")] == ["e5", "e4"]
        assert history.prune(TWO, before=now + 3600, max_events=100) == 4  # both were last heard of before that
        history.append(ONE, [event(7, ONE)], [], JournalMark(1, 1))
        relays.open("three").delete_host(ONE)
        assert history.prune(TWO, before=1.0, max_events=100) == 1
        assert history.mark(ONE) is None

    def test_a_relay_that_is_restored_from_an_old_backup_has_the_mark_of_what_it_has(
        self, hub: Hub, hub_url: str
    ) -> None:
        for relays in using(hub_url):
            relays.open("one")
        history = open_history(hub_url)
        history.append(ONE, [event(1)], [], JournalMark(1, 100))
        backup = hub.backup()
        history.append(ONE, [event(2)], [], JournalMark(1, 200))
        hub.restore(backup)
        with pytest.raises(RelayUnreachable):
            history.mark(ONE)
        again = open_history(hub_url)
        assert again.mark(ONE) == JournalMark(1, 100)
        assert [one.id for one in again.events(ONE, "s")] == ["e1"]
        again.close()

    def test_a_page_of_a_large_history_is_quick(self, history: TeamHistory) -> None:
        for start in range(0, 20_000, 2_000):
            rows = [event(number, session=f"s{number % 50}") for number in range(start, start + 2_000)]
            history.append(ONE, rows, [session(f"s{n}", start + n) for n in range(50)], JournalMark(1, start))
        started = time.perf_counter()
        assert len(history.events(ONE, "s7", limit=200)) == 200
        assert len(history.sessions(wanted(limit=20))) == 20
        assert len(history.search(wanted(text="number 1999", since=15_000.0))[0]) == 10
        assert time.perf_counter() - started < 1
