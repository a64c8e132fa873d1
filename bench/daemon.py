"""The daemon under the load of many sessions: events a second, latency, memory, and what an event costs it.

It runs on one processor, the load (`load.c`) on another. Beside it, and in turn with it, runs a bare uvicorn that
answers nothing: what any such daemon in Python has to pay.
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
from bench._home import NO_COMPILER, PATIENCE, Clients, bare_server, compiled, daemon, home, on_processor, processors
from bench._sessions import write_sessions
from bench._table import Row, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench._harness import Effort
    from bench._home import Daemon, Home

SESSIONS = 100
MANY = 1000
PARALLEL = 8
"""Events on their way at the same time where the number of sessions is what differs: one session has subagents."""

STEADY = 0.8
"""Of the rate that was reached: how busy the daemon is when its latency is measured."""

SHORT = 4
"""So many short loads in place of a long one: if the processor is taken from us for 20 ms, that spoils one of them."""

_SCHEDSTAT = Path("/proc/self/schedstat")
_ROUNDS = 5
_TURN = 0.1


def rows(effort: Effort) -> list[Row]:
    with home() as place:
        if not _SCHEDSTAT.exists() or not compiled(_source(), place.folder / "load"):
            return _table(None)
        ours, loads = processors()
        with Clients() as clients, daemon(place, ours) as server, bare_server(place, ours) as bare:
            return _table(_measured(effort, _Bench(place, clients, loads), server, bare))


@dataclass(frozen=True)
class _Load:
    """What a load came to."""

    rate: float
    p99: float
    cpu: float
    """Seconds of the server's processor for each event."""


@dataclass(frozen=True)
class _Bench:
    """Puts servers under load."""

    place: Home
    clients: Clients
    processor: int | None

    def requests(self, sessions: int) -> Path:
        """Give the events of so many sessions, as a file."""
        file = self.place.folder / f"sessions{sessions}"
        if not file.exists():
            write_sessions(file, self.place, self.clients, sessions)
        return file

    def load(self, server: Daemon, sessions: int, clients: int, events: int, rate: float = 0.0) -> _Load:
        """Send so many events, all of which must be answered, and wait until the server has nothing left to do."""
        program, before = self.place.folder / "load", server.cpu()
        words = [str(word) for word in (program, server.socket, self.requests(sessions), clients, events, rate)]
        with on_processor(self.processor):
            done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the load on {server.socket}: exit {done.returncode}: {done.stderr.strip()}")
        told: dict[str, Any] = json.loads(done.stdout)
        if told["bad"]:
            raise RuntimeError(f"{told['bad']} of {events} events were not answered as they should be")
        _wait_for_rest(server)
        return _Load(events / told["seconds"], told["p99"], (server.cpu() - before) / events)


def _wait_for_rest(server: Daemon) -> None:
    """Wait until the store has been fed: that is work for these events, too, and must not disturb the next ones."""
    deadline = monotonic() + PATIENCE
    while server.behind():
        if monotonic() > deadline:
            raise RuntimeError(f"the store of {server.socket} is still being fed after {PATIENCE:g} s")
        sleep(_TURN)


@dataclass(frozen=True)
class _Figures:
    """All that was found out, in the rounds."""

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
        bench.load(each, sessions, 1, max(200, events // 8))  # the policies are read, and the store is opened
    found = _Figures([], [], [], [], [], events, 0)
    for number in range(rounds):
        effort.tick(f"round {number + 1} of {rounds}")
        found.ours.append(bench.load(server, SESSIONS, SESSIONS, events))
        found.bare.append(bench.load(bare, SESSIONS, SESSIONS, events))
        rate = STEADY * median(load.rate for load in found.ours)
        found.steady.extend(bench.load(server, SESSIONS, SESSIONS, events // SHORT, rate) for _ in range(SHORT))
        found.one.append(bench.load(server, 1, PARALLEL, events // 4))
        found.many.append(bench.load(server, MANY, PARALLEL, events // 4))
    total = int(server.status()["events"])
    return _Figures(found.ours, found.bare, found.steady, found.one, found.many, total, server.memory())


def _table(found: _Figures | None) -> list[Row]:
    """Make the rows; without figures, they say why there are none."""

    def of(get: Callable[[_Figures], Sequence[_Load]], value: Callable[[_Load], float], best: Any = min) -> Any:
        if found is None:
            return None
        samples = [value(load) for load in get(found)]
        return Timing(best(samples), median(samples))

    bare = "bare uvicorn, answers nothing"
    ours, theirs = of(lambda f: f.ours, lambda x: x.rate, max), of(lambda f: f.bare, lambda x: x.rate, max)
    cost, least = of(lambda f: f.ours, lambda x: x.cpu), of(lambda f: f.bare, lambda x: x.cpu)
    latency = of(lambda f: f.steady, lambda x: x.p99)
    one, many = of(lambda f: f.one, lambda x: x.cpu), of(lambda f: f.many, lambda x: x.cpu)
    memory = None if found is None else Timing(found.memory, found.memory)
    why = NO_COMPILER if _SCHEDSTAT.exists() else f"not measured: needs {_SCHEDSTAT}"
    table: list[tuple[str, Any, Any, str, Any, Target | None]] = [
        ("100 sessions, one processor", "/s", ours, bare, theirs, Target("time", 4000, is_floor=True)),
        ("p99 at 80 % of that rate", "ms", latency, "", None, Target("time", 10)),
        ("processor time for an event", "µs", cost, bare, least, None),
        ("the same, 1000 sessions", "µs", many, "the same, 1 session", one, Target("ratio", 1.2)),
        ("memory after all of it", "MB", memory, "", None, Target("time", 90)),
    ]
    return [
        Row("daemon", what, unit, ours_, against, theirs_, target=target, absent=why)
        for what, unit, ours_, against, theirs_, target in table
    ]


def _source() -> Path:
    return Path(__file__).with_name("load.c")
