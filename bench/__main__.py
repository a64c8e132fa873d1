"""Run every benchmark, or those of some subjects, print the table to stdout and save the figures as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from bench import (
    answers,
    commands,
    daemon,
    daemon_kills,
    fire,
    fire_sync,
    growth,
    history,
    imports,
    in_client,
    integrity,
    launcher,
    leases,
    mail,
    mail_store,
    peers,
    policy,
    policy_corpus,
    sessions,
    team,
    user_hooks,
    values,
    watch,
    without_daemon,
)
from bench._harness import Effort
from bench._table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench._table import Row

SUBJECTS = {
    "fire": fire.rows,
    "fire_sync": fire_sync.rows,
    "parse, encode, merge": values.rows,
    "command": commands.rows,
    "import": imports.rows,
    "without a daemon": without_daemon.rows,
    "policy": policy.rows,
    "policy corpus": policy_corpus.rows,
    "launcher": launcher.rows,
    "user hooks": user_hooks.rows,
    "in the client": in_client.rows,
    "daemon": daemon.rows,
    "integrity": integrity.rows,
    "leases": leases.rows,
    "sessions": sessions.rows,
    "history": history.rows,
    "watch": watch.rows,
    "mail": mail.rows,
    "mail store": mail_store.rows,
    "team": team.rows,
    "answers": answers.rows,
    "daemon kills": daemon_kills.rows,
    "peers": peers.rows,
    "growth": growth.rows,
}
RESULTS = Path(__file__).with_name("results.json")
PACKAGES = ("fairlead", "msgspec", "typing_extensions", "pluggy", "cchooks", "hcom")
"""Packages that the figures depend on. `msgspec` imports `typing_extensions` if it is installed."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if not options.json.parent.is_dir():
        parser.error(f"--json: no such folder: {options.json.parent}")
    if unknown := [name for name in options.subjects if name not in SUBJECTS]:
        parser.error(f"no such subject: {', '.join(unknown)}; there are {', '.join(SUBJECTS)}")
    start = perf_counter()
    subjects = options.subjects or list(SUBJECTS)
    rows = [
        row
        for number, subject in enumerate(subjects, 1)
        for row in _measured(f"{number}/{len(subjects)} {subject}", subject, quick=options.quick)
    ]
    seconds = perf_counter() - start
    print(table(rows))
    print("\nminimum (median) of all rounds, of a rate the maximum; a target is reached if both meet it")
    _save(options.json, rows, quick=options.quick)
    _print_progress(f"{seconds:.0f} s; saved in {_shown(options.json)}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"default: all of {', '.join(SUBJECTS)}")
    parser.add_argument("--quick", action="store_true", help="few rounds: shows that it runs, not how fast")
    parser.add_argument("--json", type=Path, default=RESULTS, metavar="FILE", help="default: bench/results.json")
    return parser


def _measured(label: str, subject: str, *, quick: bool) -> list[Row]:
    tick = _ticker(label)
    effort = Effort(3, 0.001, 2, tick, is_quick=True) if quick else Effort(60, 0.01, 60, tick)
    rows = SUBJECTS[subject](effort)
    _print_progress(f"{label}: done\n")
    return rows


def _ticker(label: str) -> Callable[[str], None]:
    """Return a function that shows each round on a terminal; elsewhere only the end is shown."""
    if not sys.stderr.isatty():
        return lambda _: None
    return lambda text: _print_progress(f"{label}: {text}\r")


def _print_progress(text: str) -> None:
    erase = "\x1b[K" if sys.stderr.isatty() else ""
    print(erase + text, end="", file=sys.stderr, flush=True)


def _shown(path: Path) -> str:
    return os.path.relpath(path)


def _save(path: Path, rows: Sequence[Row], *, quick: bool) -> None:
    document = {"machine": _machine(), "quick": quick, "rows": [row.as_json() for row in rows]}
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _machine() -> dict[str, Any]:
    """Describe the machine, without its host name or anything about its user."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main())
