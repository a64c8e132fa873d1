"""Fixtures of the tests of a team."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from team.daemon_hosts import TeamHost, member, team_host
from team.postgres_server import PostgresServer, database, own_server, postgres_server

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["database", "own_server", "postgres_server"]


@pytest.fixture(scope="module")
def shared_database(postgres_server: PostgresServer) -> str:
    """A database for all tests of a module."""
    return postgres_server.create_database()


@pytest.fixture
def url(postgres_server: PostgresServer, database: str) -> str:
    """The relay of one test."""
    return postgres_server.url(database)


@pytest.fixture
def alpha() -> Iterator[TeamHost]:
    with team_host("alpha") as host:
        yield host


@pytest.fixture
def beta() -> Iterator[TeamHost]:
    with team_host("beta") as host:
        yield host


@pytest.fixture
def team(alpha: TeamHost, beta: TeamHost, url: str) -> tuple[TeamHost, TeamHost]:
    """Two members."""
    return member(alpha, url), member(beta, url, alpha)


@pytest.fixture
def own_team(alpha: TeamHost, beta: TeamHost, own_server: PostgresServer) -> tuple[TeamHost, TeamHost]:
    """Two members whose relay the test may stop."""
    url = own_server.url(own_server.create_database())
    return member(alpha, url), member(beta, url, alpha)
