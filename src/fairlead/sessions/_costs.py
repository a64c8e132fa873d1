"""What each session has cost, and when: the counters of the client, added up. No I/O, no clock.

A client counts what its process has cost. The counter of a session starts again if the client is killed and continued,
and goes on if the client restores it, or keeps it in the next session of the same process (`/clear`, `/resume`). So a
report is compared with the last one of the same process, which is known by the time at which it started:

- More than before: the difference was added.
- Less than before: an older report that arrived late. Nothing was added. But if the session's events now come from
  another process, the client was killed and continued within moments, and this is the counter of a new process.
- Of a new process, at least as much as the session had: the counter was restored, and the difference was added.
- Of a new process, less than that: it counts from 0, and all of it was added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairlead.durations import DAY
from fairlead.journal import CostRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BUCKET = 900
"""Seconds. Every time zone differs from UTC by a multiple of it, so each local day is a number of whole buckets."""
_KEPT_BUCKETS = 48 * 3600 // _BUCKET
_SAME_START = 2.0
"""Seconds by which the computed start of one process may differ between two reports."""
_MAX_COUNTERS = 4
"""Processes of one session whose counters are remembered."""
_MAX_SESSIONS = 20_000
_KEPT_AFTER = 60 * DAY
"""Seconds after which the counter of a session is forgotten. A session that continues later is counted as a new one."""
_SMALLEST = 1e-9
"""US dollars. Rounding errors of sums are smaller."""


class SessionCost(msgspec.Struct, frozen=True, gc=False):
    """What one session has cost in a period."""

    id: str
    usd: float
    folder: str = ""
    """The session's project, or its working folder."""
    at_most: bool = False
    """Part of it may be older than the period: the session was running already when its cost was first reported."""


class Costs(msgspec.Struct, frozen=True):
    """What all sessions have cost since a time, including those that have ended."""

    since: float = 0.0
    usd: float = 0.0
    """What is known: the cost of a session whose client has reported none is missing."""
    at_most: bool = False
    """Part of it may be older than that time."""
    sessions: list[SessionCost] = []
    unknown: int = 0
    """The number of listed sessions that were active since that time, and whose cost is missing."""


class Counter(msgspec.Struct, frozen=True, gc=False):
    """The counter of one process of the client."""

    began: float
    """When the process started; 0 if that is not known."""
    usd: float
    pid: int = 0
    """The process that sent the session's events at that time; 0 if that is not known."""


class CostEntry(msgspec.Struct, omit_defaults=True):
    """What is known about the cost of one session."""

    total: float = 0.0
    counters: tuple[Counter, ...] = ()
    """The counters of its processes, in the order of their latest reports."""
    buckets: dict[int, float] = {}
    """US dollars per quarter of an hour, for the last two days."""
    folder: str = ""
    first: float = 0.0
    """When its cost was first reported."""
    began: float = 0.0
    """When the process started that first reported it."""
    last: float = 0.0


class CostLedger:
    """The costs of all sessions."""

    def __init__(self, entries: dict[str, CostEntry] | None = None) -> None:
        self.entries = entries or {}
        self.changes = 0
        """How often something was added."""

    def measure(self, report: CostRecord, previous: Sequence[str] = ()) -> CostRecord | None:
        """Return the record of a client's report, with the cost that it adds; `None` if it has nothing new.

        `previous` are the ids that the session had before. Changes nothing: call `apply` once the record is written.
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
        """Add a record."""
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
        """Return the total cost of a session; `None` if none was reported."""
        entry = self.entries.get(session)
        return None if entry is None else entry.total

    def since(self, at: float) -> Costs:
        """Return the costs since a time within the last two days."""
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
        """Yield the counter of the same process in the previous session, if this session continues it."""
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
    """Return the counter of the process that reports; `None` if it is a new one."""
    near = [counter for counter in reversed(counters) if abs(counter.began - report.began) <= _SAME_START]
    for counter in near:
        if counter.pid == report.pid:
            return counter
    last = near[0] if near else None
    is_new = last is not None and last.pid and report.pid and report.counter < last.usd - _SMALLEST
    return None if is_new else last
