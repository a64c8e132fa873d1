"""Every backend fulfils the contract of the event store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from store.contract import StoreContract

if TYPE_CHECKING:
    from pathlib import Path


class TestSQLite(StoreContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/fairlead.db"
