"""The costs of each session over time, added up from the client's counters. It does no I/O and reads no clock.

A client counts what its process has cost. The counter starts at 0 again if the client is killed and the session
continued. It goes on if the client restores it, or starts another session in the same process (`/clear`, `/resume`). So
a report is compared with the last one of the same process, which is identified by the time of its start:

- If the counter is higher than before, the cost is the difference.
- If it is lower than before, it is an older report that arrived late, and costs nothing. But if the session's events
  now come from another process, the client was killed and continued within moments: then it is a new process.
- If a new process reports at least as much as the session had, it has restored the counter: the cost is the difference.
- If a new process reports less than that, it counts from 0: the cost is the full counter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairlead.durations import DAY
from fairlead.journal import CostRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BUCKET = 900
"""Seconds of a bucket. Time zones differ from UTC by multiples of it, so no bucket belongs to two local days."""
_KEPT_BUCKETS = 48 * 3600 // _BUCKET
_SAME_START = 2.0
"""Seconds by which the start of a process, which is computed, may differ between its reports."""
_MAX_COUNTERS = 4
"""The number of processes of one session whose counters are remembered."""
_MAX_SESSIONS = 20_000
_KEPT_AFTER = 60 * DAY
"""Seconds after the last report for which the cost of a session is kept. Later reports count as a new session's."""
_SMALLEST = 1e-9
"""The smallest difference in US dollars that is not a rounding error."""


class SessionCost(msgspec.Struct, frozen=True, gc=False):
    """The cost of one session in a period."""

    id: str
    usd: float
    folder: str = ""
    """The session's project, or its working folder."""
    at_most: bool = False
    """Whether a part may be from before the period: the session was running by then, but had reported no cost."""


class Costs(msgspec.Struct, frozen=True):
    """The costs of all sessions since a time, including those that have ended."""

    since: float = 0.0
    """The Unix time since which costs are included."""
    usd: float = 0.0
    """The sum of the known costs in US dollars. Sessions whose client has reported no cost are missing."""
    at_most: bool = False
    """Whether a part may be from before `since`: see `SessionCost.at_most`."""
    sessions: list[SessionCost] = []
    """The sessions with costs since that time, the one with the latest report first."""
    unknown: int = 0
    """The number of main sessions in the registry that were active since that time, and whose cost is missing."""


class Counter(msgspec.Struct, frozen=True, gc=False):
    """The last report of one process of the client about a session."""

    began: float
    """The Unix time at which the process started; 0 if that is not known."""
    usd: float
    """The counter of the process."""
    pid: int = 0
    """The process that sent the session's events at that time; 0 if that is not known."""


class CostEntry(msgspec.Struct, omit_defaults=True):
    """What is known about the cost of one session."""

    total: float = 0.0
    """The total cost in US dollars."""
    counters: tuple[Counter, ...] = ()
    """The counters of its processes, in the order of their latest reports."""
    buckets: dict[int, float] = {}
    """US dollars in each quarter of an hour of the last two days, by the number of quarters since 1970."""
    folder: str = ""
    """The session's project, or its working folder."""
    first: float = 0.0
    """The Unix time at which its cost was first reported."""
    began: float = 0.0
    """The Unix time at which the process that first reported it started."""
    last: float = 0.0
    """The Unix time of the latest report."""


class CostLedger:
    """The costs of all sessions. `entries` are those of an earlier ledger, in the order of their latest reports."""

    def __init__(self, entries: dict[str, CostEntry] | None = None) -> None:
        self.entries = entries or {}
        self.changes = 0
        """How many records were applied."""

    def measure(self, report: CostRecord, previous: Sequence[str] = ()) -> CostRecord | None:
        """Return a client's report with `added` set to what it adds to the cost; `None` if it reports nothing new.

        `previous` are the ids that the session had before. The ledger is not changed: call `apply` once the record is
        written.
        """
        entry = self.entries.get(report.session)
        counters = entry.counters if entry else tuple(self._inherited(report, previous))
        same = _counter_for(counters, report)
        if same is not None:
            added = report.counter - same.usd
            if report.began == 0 and added < -_SMALLEST:  # its process is not known
                added = report.counter
            is_new = added > _SMALLEST
        else:
            last = counters[-1].usd if counters else 0.0
            added = report.counter - last if report.counter >= last else report.counter
            is_new = True
        return msgspec.structs.replace(report, added=max(0.0, added)) if is_new or entry is None else None

    def apply(self, record: CostRecord) -> None:
        """Add a record that `measure` has returned to the costs of its session."""
        entry = self.entries.pop(record.session, None)
        if entry is None:
            entry = CostEntry(first=record.at, began=record.began or record.at)
            self._make_room(record.at)
        self.entries[record.session] = entry  # in the order of their last changes
        same = _counter_for(entry.counters, record)
        others = [counter for counter in entry.counters if counter is not same]
        entry.counters = (*others, Counter(record.began, record.counter, record.pid))[-_MAX_COUNTERS:]
        total = entry.total + record.added
        entry.total = record.counter if abs(total - record.counter) < _SMALLEST else total
        entry.folder = record.folder or entry.folder
        entry.last = max(entry.last, record.at)
        bucket = int(record.at // _BUCKET)
        if record.added:
            oldest = bucket - _KEPT_BUCKETS
            entry.buckets = {at: usd for at, usd in entry.buckets.items() if at > oldest}
            entry.buckets[bucket] = entry.buckets.get(bucket, 0.0) + record.added
        self.changes += 1

    def total(self, session: str) -> float | None:
        """Return the total cost of a session in US dollars; `None` if none was reported."""
        entry = self.entries.get(session)
        return None if entry is None else entry.total

    def since(self, at: float) -> Costs:
        """Return the costs since a Unix time within the last two days.

        The quarter of an hour of that time counts in full.
        """
        first = int(at // _BUCKET)
        sessions = []
        for name, entry in reversed(self.entries.items()):
            if entry.last < at:
                break
            usd = sum(usd for bucket, usd in entry.buckets.items() if bucket >= first)
            if usd:
                sessions.append(SessionCost(name, usd, entry.folder, entry.began < at <= entry.first))
        usd, at_most = sum(session.usd for session in sessions), any(session.at_most for session in sessions)
        return Costs(at, usd, at_most, sessions)

    def _inherited(self, report: CostRecord, previous: Sequence[str]) -> Iterator[Counter]:
        """Yield the counter of the reporting process in the previous session, if the report can continue it."""
        entry = self.entries.get(previous[-1]) if previous else None
        counter = _counter_for(entry.counters, report) if entry else None
        if counter is not None and counter.usd <= report.counter:
            yield counter

    def _make_room(self, now: float) -> None:
        while self.entries:
            name, oldest = next(iter(self.entries.items()))
            if len(self.entries) < _MAX_SESSIONS and now - oldest.last < _KEPT_AFTER:
                return
            del self.entries[name]


def _counter_for(counters: Sequence[Counter], report: CostRecord) -> Counter | None:
    """Return the counter of the process that reports; `None` if it has none, because it is a new process."""
    near = [counter for counter in reversed(counters) if abs(counter.began - report.began) <= _SAME_START]
    for counter in near:
        if counter.pid == report.pid:
            return counter
    last = near[0] if near else None
    is_new = last is not None and last.pid and report.pid and report.counter < last.usd - _SMALLEST
    return None if is_new else last
