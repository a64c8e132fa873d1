"""Every backend fulfils the contract of the mail store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from store.mail_contract import MailContract

if TYPE_CHECKING:
    from pathlib import Path


class TestSQLite(MailContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/mail.db"
