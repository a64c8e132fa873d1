"""PostgreSQL fulfils the contract of a relay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from team.history_contract import HistoryContract
from team.relay_contract import RelayContract

import fairlead.team.postgres._registration as registration

if TYPE_CHECKING:
    from team.postgres_server import PostgresServer


class _Postgres:
    @pytest.fixture
    def relay_url(self, postgres_server: PostgresServer, database: str) -> str:
        return postgres_server.url(database)

    @pytest.fixture
    def hub(self, own_server: PostgresServer) -> PostgresServer:
        return own_server

    @pytest.fixture
    def hub_url(self, own_server: PostgresServer) -> str:
        return own_server.url(own_server.create_database(), tcp=True)


class TestPostgres(_Postgres, RelayContract):
    def shorten_claim(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(registration, "CLAIM_SECONDS", 0.5)


class TestPostgresHistory(_Postgres, HistoryContract):
    pass
