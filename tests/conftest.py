"""Set-up for all tests."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

LONG = ("test_bench.py", "e2e/", "daemon/test_attention.py")
"""Files whose tests take longest, mostly by waiting. They run first, so that no process is left with one at the end."""


def pytest_configure() -> None:
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


def pytest_xdist_auto_num_workers() -> int:
    """Run twice as many processes as there are cores: many tests wait for a process, a socket or a clock."""
    return 2 * (os.cpu_count() or 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest tests first; the others keep their order."""
    items.sort(key=lambda item: not any(name in item.nodeid for name in LONG))
