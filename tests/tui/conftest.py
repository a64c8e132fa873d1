"""What tests of the view share: the team on a screen, and a speaker at a socket."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tui.speaker import Speaker
from tui.team import team

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times of day are those of one place, whoever runs the tests."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def speaker() -> Iterator[Speaker]:
    with tempfile.TemporaryDirectory(prefix="fl") as folder:  # a socket's path must be short
        made = Speaker(Path(folder) / "daemon.sock", team())
        made.start()
        yield made
        made.stop()
