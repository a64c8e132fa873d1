"""The daemon's counters, and their text format for Prometheus."""

from __future__ import annotations

import os
import sys
from bisect import bisect_left
from time import monotonic
from typing import TYPE_CHECKING

from fairlead.daemon.events._extension import EventExtension

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlead.events import Event
    from fairlead.journal import EventRecord

_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0)
"""Upper bounds in seconds of the histogram of decisions."""

_MAX_NAMES = 500
"""The maximum number of pairs of event and verdict that are counted separately.
Unknown event names must not fill the memory.
"""

MAX_LAG = 0.05
"""Seconds after which the loop counts as blocked."""


class Metrics(EventExtension):
    """The daemon's counters. Several threads write them without a lock: a count that is lost in a race does no harm."""

    def __init__(self) -> None:
        self.started_at = monotonic()
        self._counts: dict[tuple[str, str], int] = {}
        self.seconds = 0.0
        self._histogram_counts = [0] * (len(_BUCKETS) + 1)
        self.declined = 0
        self.spooled = 0
        self.duplicates = 0
        self.error_count = 0
        self.lag = 0.0
        """The longest delay of the event loop in the last minute, in seconds."""
        self.blocked = 0

    def after_record(self, record: EventRecord, event: Event | None) -> None:  # noqa: ARG002 - the interface has it
        """Count an event by its name and verdict, and add its duration to the histogram."""
        key, counts = (record.event, record.verdict), self._counts
        if key not in counts and len(counts) >= _MAX_NAMES:
            key = "other", record.verdict
        counts[key] = counts.get(key, 0) + 1
        self.seconds += record.seconds
        self._histogram_counts[bisect_left(_BUCKETS, record.seconds)] += 1

    def add_lag(self, seconds: float) -> None:
        """Record how many seconds the event loop was late."""
        self.lag = max(self.lag, seconds)
        self.blocked += seconds > MAX_LAG

    @property
    def total(self) -> int:
        """The number of recorded events."""
        return sum(self._counts.values())

    def text(self, *, version: str, memory: int, more: Mapping[str, float]) -> str:
        """Return all counters and the gauges in `more`, in Prometheus' text format.

        `memory` is in bytes. The names in `more` lack the prefix `fairlead_`.
        """
        return "".join(f"{line}\n" for line in self._lines(version, memory, more))

    def _lines(self, version: str, memory: int, more: Mapping[str, float]) -> Iterator[str]:
        yield from _head("fairlead_info", "gauge", "The version of the daemon.")
        yield f'fairlead_info{{version="{_escaped(version)}"}} 1'
        yield from _head("fairlead_events_total", "counter", "Events decided, by name and verdict.")
        for (event, verdict), count in sorted(self._counts.items()):
            yield f'fairlead_events_total{{event="{_escaped(event)}",verdict="{verdict}"}} {count}'
        yield from self._histogram()
        for name, kind, value, about in (
            ("elsewhere_total", "counter", self.declined, "Events declined, so that the hook evaluates them locally."),
            ("spooled_total", "counter", self.spooled, "Events taken from the spool."),
            ("doubles_total", "counter", self.duplicates, "Events that arrived twice and were recorded once."),
            ("troubles_total", "counter", self.error_count, "Errors inside the daemon; the journal has the messages."),
            ("loop_lag_seconds", "gauge", self.lag, "The longest that the event loop was late in the last minute."),
            (
                "loop_blocked_total",
                "counter",
                self.blocked,
                f"How often the event loop was late by over {MAX_LAG:g} s.",
            ),
            ("uptime_seconds", "gauge", monotonic() - self.started_at, "Seconds since the daemon started."),
            ("resident_memory_bytes", "gauge", memory, "Memory in use, with that of the store's process."),
        ):
            yield from _head(f"fairlead_{name}", kind, about)
            yield f"fairlead_{name} {value:g}" if isinstance(value, float) else f"fairlead_{name} {value}"
        for name, value in more.items():
            yield from _head(f"fairlead_{name}", "gauge", name.replace("_", " ").capitalize() + ".")
            yield f"fairlead_{name} {value}"

    def _histogram(self) -> Iterator[str]:
        name = "fairlead_decision_seconds"
        yield from _head(name, "histogram", "How long decisions took.")
        cumulative = 0
        for limit, count in zip((*_BUCKETS, "+Inf"), self._histogram_counts, strict=True):
            cumulative += count
            yield f'{name}_bucket{{le="{limit}"}} {cumulative}'
        yield f"{name}_sum {self.seconds:.6f}"
        yield f"{name}_count {cumulative}"


def resident_memory(pid: int | None = None) -> int:
    """Return the resident memory of a process in bytes, by default of this one.

    If it cannot be read, return 0 with a `pid`, and without one the peak of this process.
    """
    try:
        with open(f"/proc/{pid or 'self'}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        if pid is not None:
            return 0
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
