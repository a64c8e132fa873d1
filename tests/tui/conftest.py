"""Fixtures for the tests of the view."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tui.fake_daemon import FakeDaemon
from tui.sample_sessions import sample_sessions

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times of day do not depend on where the tests run."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def daemon() -> Iterator[FakeDaemon]:
    with tempfile.TemporaryDirectory(prefix="fl") as folder:  # a socket's path must be short
        daemon = FakeDaemon(Path(folder) / "daemon.sock", sample_sessions())
        daemon.start()
        yield daemon
        daemon.stop()
