"""Fixtures of the tests of a team."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from team.daemon_hosts import PreparedTeam, TeamHost, member, prepare_team, team_host
from team.postgres_server import PostgresServer, own_server, postgres_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["own_server", "postgres_server"]


@pytest.fixture(scope="session")
def prepared_team(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> PreparedTeam:
    """Two members, as they are once they have joined."""
    folder: Path = tmp_path_factory.mktemp("team")
    return prepare_team(postgres_server, folder)


@pytest.fixture(scope="module")
def shared_database(postgres_server: PostgresServer, prepared_team: PreparedTeam) -> str:
    """The relay of two members, for all tests of a module."""
    return postgres_server.create_database(prepared_team.database)


@pytest.fixture
def database(postgres_server: PostgresServer, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a database of one test: the relay of its team if it wants one, else an empty one."""
    prepared = request.getfixturevalue("prepared_team") if "team" in request.fixturenames else None
    name = postgres_server.create_database(prepared.database) if prepared else postgres_server.create_database()
    yield name
    postgres_server.drop_database(name)


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
def team(alpha: TeamHost, beta: TeamHost, prepared_team: PreparedTeam, database: str) -> tuple[TeamHost, TeamHost]:
    """Two members."""
    return prepared_team.members(alpha, beta, database)


@pytest.fixture
def own_team(alpha: TeamHost, beta: TeamHost, own_server: PostgresServer) -> tuple[TeamHost, TeamHost]:
    """Two members whose relay the test may stop."""
    url = own_server.url(own_server.create_database())
    return member(alpha, url), member(beta, url, alpha)
