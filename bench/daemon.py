"""The daemon under the load of many sessions: events per second, latency, memory, and CPU time per event.

It runs on one CPU, the load (`load.c`) on another. A bare uvicorn that answers nothing is measured in turn with it, as
the cost of any such daemon in Python.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from bench._harness import Timing
from bench._home import NO_COMPILER, TIMEOUT, Clients, bare_server, compiled, daemon, on_cpu, scratch_home, two_cpus
from bench._sessions import write_sessions
from bench._table import Row, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench._harness import Effort
    from bench._home import Daemon, Home

SESSIONS = 100
MANY = 1000
PARALLEL = 8
"""Concurrent events in the comparison of one session, which has subagents, with many."""

RATE = 8000
"""Events per second that a daemon should reach on one CPU."""

STEADY = 0.8
"""The share of that rate at which the latency is measured; of the rate that the daemon reaches, if that is lower."""

STEADY_SECONDS = 60
"""How long that load lasts: long enough for the journal to grow, and for the store to be fed meanwhile."""

_STEADY_ROW = f"p99 at 80 % of {RATE} events/s (of its rate, if lower), for a minute"

_SCHEDSTAT = Path("/proc/self/schedstat")
_ROUNDS = 5
_POLL_INTERVAL = 0.1


def rows(effort: Effort) -> list[Row]:
    with scratch_home() as home:
        if not _SCHEDSTAT.exists() or not compiled(_source(), home.folder / "load"):
            return _table(None)
        server_cpu, load_cpu = two_cpus()
        with Clients() as clients, daemon(home, server_cpu) as server, bare_server(home, server_cpu) as bare:
            return _table(_measured(effort, _Bench(home, clients, load_cpu), server, bare))


@dataclass(frozen=True)
class _Load:
    """The result of a load."""

    rate: float
    p99: float
    cpu: float
    """CPU seconds of the server per event."""
    store_cpu: float
    """CPU seconds per event of the process that fills its store."""


@dataclass(frozen=True)
class _Bench:
    """Runs loads against servers."""

    home: Home
    clients: Clients
    cpu: int | None

    def requests(self, sessions: int) -> Path:
        """Return a file with the events of a number of sessions."""
        file = self.home.folder / f"sessions{sessions}"
        if not file.exists():
            write_sessions(file, self.home, self.clients, sessions)
        return file

    def load(self, server: Daemon, sessions: int, clients: int, events: int, rate: float = 0.0) -> _Load:
        """Send events, all of which must be answered, and wait until the server has finished its work."""
        program, before, store_before = self.home.folder / "load", server.cpu(), server.children_cpu()
        command = [str(word) for word in (program, server.socket, self.requests(sessions), clients, events, rate)]
        with on_cpu(self.cpu):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the load on {server.socket}: exit {done.returncode}: {done.stderr.strip()}")
        result: dict[str, Any] = json.loads(done.stdout)
        if result["bad"]:
            raise RuntimeError(f"{result['bad']} of {events} events were answered wrongly")
        _wait_for_store(server)
        cpu, store_cpu = server.cpu() - before, server.children_cpu() - store_before
        return _Load(events / result["seconds"], result["p99"], cpu / events, store_cpu / events)


def _wait_for_store(server: Daemon) -> None:
    """Wait until the store is up to date: that work belongs to these events, and must not disturb the next ones."""
    deadline = monotonic() + TIMEOUT
    while server.behind():
        if monotonic() > deadline:
            raise RuntimeError(f"the store of {server.socket} is still behind after {TIMEOUT:g} s")
        sleep(_POLL_INTERVAL)


@dataclass(frozen=True)
class _Figures:
    """The results of all rounds."""

    ours: list[_Load]
    bare: list[_Load]
    steady: list[_Load]
    one: list[_Load]
    many: list[_Load]
    events: int
    memory: int


def _measured(effort: Effort, bench: _Bench, server: Daemon, bare: Daemon) -> _Figures:
    rounds, events = min(_ROUNDS, effort.process_rounds), 170 * effort.process_rounds
    for each, sessions in ((server, 1), (server, SESSIONS), (server, MANY), (bare, SESSIONS)):
        bench.load(each, sessions, 1, max(200, events // 8))  # reads the policies and opens the store
    figures = _Figures([], [], [], [], [], events, 0)
    for number in range(rounds):
        effort.tick(f"round {number + 1} of {rounds}")
        figures.ours.append(bench.load(server, SESSIONS, SESSIONS, events))
        figures.bare.append(bench.load(bare, SESSIONS, SESSIONS, events))
        figures.one.append(bench.load(server, 1, PARALLEL, events // 4))
        figures.many.append(bench.load(server, MANY, PARALLEL, events // 4))
    rate = STEADY * min(RATE, max(load.rate for load in figures.ours))
    effort.tick(f"{rate:.0f} events per second")
    figures.steady.append(
        bench.load(server, SESSIONS, SESSIONS, events // 4 if effort.is_quick else int(rate * STEADY_SECONDS), rate)
    )
    total = int(server.status()["events"])
    return _Figures(figures.ours, figures.bare, figures.steady, figures.one, figures.many, total, server.memory())


def _table(figures: _Figures | None) -> list[Row]:
    """Return the rows; without figures they say why there are none."""

    def of(get: Callable[[_Figures], Sequence[_Load]], value: Callable[[_Load], float], best: Any = min) -> Any:
        if figures is None:
            return None
        samples = [value(load) for load in get(figures)]
        return Timing(best(samples), median(samples))

    bare = "bare uvicorn, answers nothing"
    ours, theirs = of(lambda f: f.ours, lambda x: x.rate, max), of(lambda f: f.bare, lambda x: x.rate, max)
    cost, least = of(lambda f: f.ours, lambda x: x.cpu), of(lambda f: f.bare, lambda x: x.cpu)
    store = of(lambda f: f.ours, lambda x: x.store_cpu)
    latency = of(lambda f: f.steady, lambda x: x.p99)
    one, many = of(lambda f: f.one, lambda x: x.cpu), of(lambda f: f.many, lambda x: x.cpu)
    memory = None if figures is None else Timing(figures.memory, figures.memory)
    why = NO_COMPILER if _SCHEDSTAT.exists() else f"not measured: needs {_SCHEDSTAT}"
    table: list[tuple[str, Any, Any, str, Any, Target | None]] = [
        ("100 sessions, one CPU", "/s", ours, bare, theirs, Target("time", RATE, is_floor=True)),
        (_STEADY_ROW, "ms", latency, "", None, Target("time", 5)),
        ("CPU time per event", "µs", cost, bare, least, Target("time", 120)),
        ("CPU time per event, of the store", "µs", store, "", None, None),
        ("the same, 1000 sessions", "µs", many, "the same, 1 session", one, Target("ratio", 1.2)),
        ("memory at the end", "MB", memory, "", None, Target("time", 90)),
    ]
    return [
        Row("daemon", what, unit, ours_, against, theirs_, target=target, absent=why)
        for what, unit, ours_, against, theirs_, target in table
    ]


def _source() -> Path:
    return Path(__file__).with_name("load.c")
