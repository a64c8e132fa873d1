"""Times variants side by side: every round runs each once, in random order, so a slow moment affects all of them."""

from __future__ import annotations

import gc
import os
import random
import timeit
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from tempfile import TemporaryFile
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    Variant = Callable[[], float]
    """Runs one sample and returns the seconds of one operation."""

ENVIRONMENT = {"PATH": os.defpath, "LANG": "C.UTF-8"}
"""The environment of measured processes."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one operation over all rounds. Noise only adds time, so the minimum is the more stable figure."""

    minimum: float
    median: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Timing:
        """Summarize the rounds."""
        return cls(min(samples), median(samples))

    def per(self, parts: int) -> Timing:
        """Return the time of each of the equal parts of one operation."""
        return Timing(self.minimum / parts, self.median / parts)

    def above(self, floor: Timing) -> Timing:
        """Return the time above a floor; 0 if the difference is within the noise."""
        return Timing(max(0.0, self.minimum - floor.minimum), max(0.0, self.median - floor.median))


@dataclass(frozen=True)
class Effort:
    """How long to measure: rounds, and the seconds of one sample of what runs in this process."""

    rounds: int
    sample: float
    process_rounds: int
    tick: Callable[[str], None]
    """Called with the progress."""
    is_quick: bool = False
    """Few rounds, to show that everything runs."""

    def compare(self, variants: Mapping[str, Variant]) -> dict[str, Timing]:
        """Time variants that run in this process."""
        return self._interleaved(variants, self.rounds)

    def compare_processes(self, variants: Mapping[str, Variant]) -> dict[str, Timing]:
        """Time variants that start processes; the first round warms the caches and is not counted."""
        for run in variants.values():
            run()
        return self._interleaved(variants, self.process_rounds)

    def _interleaved(self, variants: Mapping[str, Variant], rounds: int) -> dict[str, Timing]:
        samples: dict[str, list[float]] = {name: [] for name in variants}
        order = list(variants)
        shuffled = random.Random(2)
        for done in range(rounds):
            self.tick(f"round {done + 1} of {rounds}")
            shuffled.shuffle(order)
            with _no_collection():
                for name in order:
                    samples[name].append(variants[name]())
        return {name: Timing.of(times) for name, times in samples.items()}

    def looped(self, call: Callable[[], object]) -> Variant:
        """Return a variant of a sync call, repeated until it fills a sample."""
        timer = timeit.Timer(call)
        number = self._calls_per_sample(timer.timeit)
        return lambda: timer.timeit(number) / number

    def looped_async(self, call: Callable[[], Awaitable[object]], runner: asyncio.Runner) -> Variant:
        """Return a variant of an async call; the start and end of the event loop are not counted."""

        async def repeat(number: int) -> float:
            start = perf_counter()
            for _ in range(number):
                await call()
            return perf_counter() - start

        number = self._calls_per_sample(lambda number: runner.run(repeat(number)))
        return lambda: runner.run(repeat(number)) / number

    def _calls_per_sample(self, run: Callable[[int], float]) -> int:
        number = 1
        while (took := run(number)) < self.sample / 2:
            number *= 2
        return max(1, round(number * self.sample / took))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect garbage before the measurement, not during it."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def wall_time(command: Sequence[str], **options: Any) -> Variant:
    """Return a variant of a whole process: the wall time from the call to its end."""
    return lambda: _run(command, **options)[0]


def cpu_time(command: Sequence[str], **options: Any) -> Variant:
    """Return a variant of a whole process: its CPU time, which other programs disturb least."""
    return lambda: _run(command, **options)[1]


def _run(
    command: Sequence[str], *, stdin: Path | None = None, home: Path | None = None, env: Mapping[str, str] | None = None
) -> tuple[float, float]:
    """Start a process and wait. `posix_spawn` is the cheapest way in Python; every variant pays for it."""
    environment = {**ENVIRONMENT, **({} if home is None else {"HOME": str(home)}), **(env or {})}
    with TemporaryFile() as errors:
        files = [
            (os.POSIX_SPAWN_OPEN, 0, str(stdin or os.devnull), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, errors.fileno(), 2),
        ]
        start = perf_counter()
        pid = os.posix_spawn(command[0], list(command), environment, file_actions=files)
        _, status, usage = os.wait4(pid, 0)
        wall = perf_counter() - start
        if code := os.waitstatus_to_exitcode(status):
            errors.seek(0)
            message = errors.read().decode(errors="replace").strip()
            raise RuntimeError(f"{' '.join(command)}: exit {code}: {message}")
    return wall, usage.ru_utime + usage.ru_stime
