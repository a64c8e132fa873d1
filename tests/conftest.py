"""Set-up for all tests."""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from _pytest.assertion import rewrite

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

LONG = ("test_bench.py", "e2e/", "daemon/test_attention.py")
"""Files whose tests take longest, mostly by waiting. They run first, so that no process is left with one at the end."""


def pytest_configure(config: pytest.Config) -> None:
    """Set up the process.

    Commands that are left to a person would see the variables of an agent that runs the tests. In the background
    (`nohup make test &`) a shell ignores some signals: their default handlers are restored.
    """
    for name in ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_SESSION_ID"):
        os.environ.pop(name, None)
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
        (signal.SIGQUIT, signal.SIG_DFL),
    ):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        gc.disable()  # until all is collected: half of that time it would look for garbage, and find none
    if worker is not None and not sys.dont_write_bytecode:
        _compile_share(config, int(worker["workerid"].removeprefix("gw")), worker["workercount"])


def _compile_share(config: pytest.Config, number: int, count: int) -> None:
    """Compile every n-th file of tests with its assertions rewritten, as pytest does when it imports one.

    Each worker imports all files in the same order. On a clean checkout each would compile all of them, for 20 seconds.
    """
    names = (Path(config.invocation_params.dir, word.partition("::")[0]) for word in config.args)
    for file in sorted(_test_files(names))[number::count]:
        compiled = rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"
        if rewrite._read_pyc(file, compiled) is None and rewrite.try_makedirs(compiled.parent):
            source_hash, code = rewrite._rewrite_test(file, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source_hash, compiled)


def pytest_collection_finish() -> None:
    """Leave the tests and all modules out of every later look for garbage."""
    gc.freeze()
    gc.enable()


def _test_files(paths: Iterable[Path]) -> set[Path]:
    files = (file for path in paths for file in (path.rglob("test_*.py") if path.is_dir() else [path]))
    return {file for file in files if file.suffix == ".py" and file.is_file()}


def pytest_xdist_auto_num_workers() -> int:
    """Run twice as many processes as there are cores: many tests wait for a process, a socket or a clock."""
    return 2 * (os.cpu_count() or 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest tests first; the others keep their order."""
    items.sort(key=lambda item: not any(name in item.nodeid for name in LONG))
