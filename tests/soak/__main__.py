"""`make soak`: a daemon under load for minutes. Run in the folder of the tests: python -m soak [--minutes 10]."""

from __future__ import annotations

import argparse
import sys

from daemon.daemon_home import scratch_home
from soak.load import Soak


def main() -> int:
    """Run, and print the figures and the promises that were broken."""
    parser = argparse.ArgumentParser(description="Load a daemon for minutes.")
    parser.add_argument("--minutes", type=float, default=10.0)
    options = parser.parse_args()
    with scratch_home() as home, home.daemon():
        soak = Soak(home)
        soak.run(options.minutes * 60)
        problems = soak.problems()
    print(soak.report())
    for problem in problems:
        print(f"broken: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
