"""A home for each test; no event starts a daemon by itself unless the test wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from daemon.house import house

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.house import House


@pytest.fixture
def home() -> Iterator[House]:
    """A home without a daemon, in which none is started on demand."""
    with house(FAIRLEAD_NO_DAEMON="1") as made:
        yield made


@pytest.fixture
def open_home() -> Iterator[House]:
    """A home without a daemon, in which an event starts one."""
    with house() as made:
        yield made
