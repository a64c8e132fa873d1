"""A home for each test, in which no event starts a daemon by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import scratch_home

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome


@pytest.fixture
def home() -> Iterator[DaemonHome]:
    """A home without a daemon, in which none is started on demand."""
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as made:
        yield made
