"""`make soak`: a daemon under load for minutes, then under more events than may be kept.

Run in the folder of the tests: python -m soak [--minutes 10] [--pour 800]. The second number is in megabytes; 0 leaves
that part out.
"""

from __future__ import annotations

import argparse
import sys

from soak.load import Soak, new_daemon
from soak.pour import pour


def main() -> int:
    """Run, and print the figures and the promises that were broken."""
    parser = argparse.ArgumentParser(description="Load a daemon for minutes.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--pour", type=int, default=800)
    options = parser.parse_args()
    with new_daemon() as home:
        soak = Soak(home)
        soak.run(options.minutes * 60)
        problems = soak.problems()
        print(soak.report(), flush=True)
        if options.pour:
            largest, seconds = pour(home, options.pour << 20)
            problems += largest.problems()
            journal, store = (f"{size / 2**20:.1f} MB" for size in largest)
            print(
                f"{options.pour} MB of events in {seconds:.0f} s: a journal of {journal}, databases of {store} at most"
            )
    for problem in problems:
        print(f"broken: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
