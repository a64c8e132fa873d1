"""A home for each test; no event starts a daemon by itself unless the test wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from daemon.clients import client
from daemon.daemon_home import scratch_home, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.clients import Client
    from daemon.daemon_home import DaemonHome


@pytest.fixture
def home() -> Iterator[DaemonHome]:
    """A home without a daemon, in which none is started on demand."""
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as made:
        yield made


@pytest.fixture
def new_interpreters(home: DaemonHome) -> None:
    """Start each daemon of the home by a new interpreter, as a hook or a person does."""
    home.is_forked = False


@pytest.fixture
def open_home() -> Iterator[DaemonHome]:
    """A home without a daemon, in which an event starts one."""
    with scratch_home() as made:
        yield made


@pytest.fixture
def posted(home: DaemonHome) -> Iterator[DaemonHome]:
    """A home whose daemon has opened the mail."""
    with home.daemon():
        until(home.has_mail, "there is mail")
        yield home


@pytest.fixture
def fox(posted: DaemonHome) -> Iterator[Client]:
    """An agent."""
    with client(posted, "11111111-1111-4111-8111-111111111111") as made:
        assert made.hook("SessionStart", source="startup").exit_code == 0
        yield made


@pytest.fixture
def owl(posted: DaemonHome) -> Iterator[Client]:
    """Another one."""
    with client(posted, "22222222-2222-4222-8222-222222222222") as made:
        assert made.hook("SessionStart", source="startup").exit_code == 0
        yield made
