"""Fixtures for the mail tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mail.harness import MailHarness, opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def mail(tmp_path: Path) -> Iterator[MailHarness]:
    with opened(tmp_path) as mail:
        yield mail
