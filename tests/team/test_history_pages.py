"""Pages of this host and of the others, merged: every row once, in order, on whatever page."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from fairlead.daemon.team.history._pages import merged_page
from fairlead.daemon.team.history._rows import RemoteResult, RowKey
from fairlead.sessions import HistoryMatch, HistoryPage, HistoryQuery, HistorySession, OtherHostsSummary


class Store:
    """The rows of this host, as the store pages them: sessions by time, texts by their number."""

    def __init__(self, times: list[float]) -> None:
        self.sessions = [HistorySession(id=f"local-{at}", last=at) for at in sorted(times, reverse=True)]
        self.matches = [
            (number, HistoryMatch(f"local-{at}", "/p", at, "prompt", "x")) for number, at in enumerate(times)
        ]

    def find(self, query: HistoryQuery) -> HistoryPage:
        if query.search:
            rows = [row for row in reversed(self.matches) if not query.before or row[0] < int(query.before)]
            page = rows[: query.limit]
            more = str(page[-1][0]) if len(rows) > query.limit else ""
            return HistoryPage(since=0.0, matches=[match for _, match in page], next=more)
        last, _, name = query.before.partition(",")
        sessions = [one for one in self.sessions if not query.before or (one.last, one.id) < (float(last), name)]
        page_of = sessions[: query.limit]
        more = f"{page_of[-1].last!r},{page_of[-1].id}" if len(sessions) > query.limit else ""
        return HistoryPage(since=0.0, sessions=page_of, next=more)


class Reader:
    """The rows of other hosts, as the relay pages them."""

    own_name = "here"

    def __init__(self, times: list[float]) -> None:
        self.rows = [
            RemoteResult(
                (at, f"remote-{at}", "h"),
                HistorySession(id=f"remote-{at}", host="there", last=at),
                HistoryMatch(f"remote-{at}", "/p", at, "prompt", "x", "there"),
            )
            for at in sorted(times, reverse=True)
        ]

    def hosts(self, name: str = "") -> tuple[str, ...]:
        assert name in {"", "there"}
        return ("h",)

    def sessions(
        self, query: HistoryQuery, hosts: tuple[str, ...], before: RowKey | None
    ) -> tuple[list[RemoteResult], OtherHostsSummary]:
        rows = [row for row in self.rows if hosts and (before is None or row.key < before)]
        return rows[: query.limit + 1], OtherHostsSummary(at=1.0)

    search = sessions


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("text", ["", "x"])
def test_every_row_is_on_one_page_in_the_order_of_time(seed: int, text: str) -> None:
    chance = random.Random(seed)
    times = [float(at) for at in chance.sample(range(1000), 40)]
    local = sorted(times[: chance.choice([0, 7, 20, 40])])
    remote = times[len(local) :]
    store, reader, limit = Store(local), Reader(remote), chance.choice([1, 3, 7, 50])
    seen: list[tuple[str, float]] = []
    before = ""
    while True:
        page = merged_page(store.find, reader, HistoryQuery(limit=limit, before=before, search=text))  # type: ignore[arg-type]
        rows = [(one.host, one.at) for one in page.matches] if text else [(one.host, one.last) for one in page.sessions]
        assert len(rows) <= limit
        seen += rows
        before = page.next
        if not before:
            break
    expected = [("here", at) for at in local] + [("there", at) for at in remote]
    assert seen == sorted(expected, key=lambda row: -row[1])


@pytest.mark.parametrize(
    ("local", "remote", "expected"),
    [
        ([], [], (0.0, 0)),
        ([None], [None, None], (None, 3)),
        ([1.5, None], [None], (1.5, 2)),
        ([None], [2.0, None], (2.0, 2)),
        ([], [0.0], (0.0, 0)),
        ([0.0], [], (0.0, 0)),
    ],
)
def test_the_sum_of_costs_leaves_out_those_that_are_unknown(
    local: list[float | None], remote: list[float | None], expected: tuple[float | None, int]
) -> None:
    store, reader = Store([float(at) for at in range(len(local))]), Reader([100.0 + at for at in range(len(remote))])
    store.sessions = [replace(one, cost_usd=cost) for one, cost in zip(store.sessions, local, strict=True)]
    reader.rows = [
        replace(row, session=replace(row.session, cost_usd=cost)) for row, cost in zip(reader.rows, remote, strict=True)
    ]
    known = [cost for cost in local if cost is not None]
    usd = sum(known) if known or not local else None

    def find(query: HistoryQuery) -> HistoryPage:
        return replace(store.find(query), usd=usd, unknown=len(local) - len(known))

    page = merged_page(find, reader, HistoryQuery(limit=50))  # type: ignore[arg-type]
    assert (page.usd, page.unknown) == expected


@pytest.mark.parametrize("text", ["", "x"])
def test_one_host_alone(text: str) -> None:
    def rows(host: str) -> set[str]:
        query = HistoryQuery(limit=50, search=text)
        page = merged_page(Store([1.0, 3.0]).find, Reader([2.0]), query, host)  # type: ignore[arg-type]
        return {one.host for one in (page.matches if text else page.sessions)}

    assert (rows("here"), rows("there"), rows("")) == ({"here"}, {"there"}, {"here", "there"})
