"""`make fuzz`: tries random inputs on the parsers, the daemon and the launcher, and keeps what was found.

Run in the folder of the tests: python -m fuzz [--minutes 5] [--target NAME] [--seed N]. A finding is written to
tests/fuzz/corpus, which `make test` tries again.
"""

from __future__ import annotations

import argparse
import sys
from hashlib import sha256
from pathlib import Path
from random import Random
from time import monotonic, time_ns
from typing import TYPE_CHECKING

from daemon.daemon_home import scratch_home
from fuzz.sanitized import SanitizedLaunchers
from fuzz.servers import Launchers, Sockets
from fuzz.targets import Commands, Journals, Payloads, Policies, attempt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fuzz.targets import Target

CORPUS = Path(__file__).parent / "corpus"
_TURN = 2.0
"""Seconds for one target, before the next one has its turn."""


def fuzz(
    targets: Iterable[Target], seconds: float, seed: int, keep: Path | None = CORPUS
) -> dict[str, tuple[int, int]]:
    """Try inputs for some seconds. Returns for each target how many, and how many findings there were."""
    random, until = Random(seed), monotonic() + seconds
    targets = list(targets)
    counts = {target.name: (0, 0) for target in targets}
    while monotonic() < until:
        for target in targets:
            turn = monotonic() + min(_TURN, seconds / len(targets))
            while monotonic() < turn:
                tried, found = counts[target.name]
                counts[target.name] = tried + 1, found + (not _passes(target, target.make(random), keep))
    return counts


def _passes(target: Target, case: bytes, keep: Path | None) -> bool:
    if (finding := attempt(target, case)) is not None:
        name = sha256(case).hexdigest()[:12]
        print(f"{target.name} {name}: {finding}", file=sys.stderr)
        if keep is not None:
            (keep / target.name).mkdir(parents=True, exist_ok=True)
            (keep / target.name / name).write_bytes(case)
        return False
    return True


def main() -> int:
    """Fuzz, and print what was tried."""
    parser = argparse.ArgumentParser(description="Try random inputs.")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=time_ns() % 1_000_000)
    parser.add_argument("--target", default="")
    options = parser.parse_args()
    started = monotonic()
    with scratch_home() as home, home.daemon():
        home.policy("preToolUse: {uneditableFiles: [kept.txt]}\n")
        targets: list[Target] = [Payloads(), Commands(), Policies(), Journals(), Sockets(home), Launchers(home)]
        sanitized = SanitizedLaunchers(home.folder)
        targets += [] if sanitized.problem else [sanitized]  # without a compiler there is no C to fuzz
        wanted = [target for target in targets if options.target in {"", target.name}]
        counts = fuzz(wanted, options.minutes * 60, options.seed)
    hours = (monotonic() - started) / 3600
    for name, (tried, found) in counts.items():
        print(f"{name:<10} {tried:>9} cases {found:>4} findings")
    total, findings = sum(tried for tried, _ in counts.values()), sum(found for _, found in counts.values())
    print(f"{total} cases with seed {options.seed}, {total / hours:,.0f} an hour, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
