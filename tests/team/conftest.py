"""Fixtures of the tests of a team."""

from team.postgres_server import database, own_server, postgres_server

__all__ = ["database", "own_server", "postgres_server"]
