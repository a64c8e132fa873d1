"""What the tests of the mail share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mail.offices import Desk, opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with opened(tmp_path) as desk:
        yield desk
