"""The tables of the relay, in the schema `fairlead`. Times are Unix times by the clock of the server."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    Identity,
    Index,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)

SCHEMA: Final = "fairlead"
REVISION_TABLE: Final = "revision"

metadata = MetaData(schema=SCHEMA)


def _text(name: str, *, key: bool = False) -> Column[str]:
    return Column(name, Text, primary_key=key, nullable=False)


def _bytes(name: str) -> Column[bytes]:
    return Column(name, LargeBinary, nullable=False)


def _time(name: str) -> Column[float]:
    return Column(name, Double, nullable=False)


team = Table(
    "team",
    metadata,
    Column("single", Boolean, primary_key=True, server_default=text("true")),
    _text("id"),
    _time("founded"),
    CheckConstraint("single", name="team_is_one"),
)
"""The one team of this database."""

hosts = Table(
    "hosts",
    metadata,
    _text("id", key=True),
    _text("name"),
    _bytes("key"),
    _text("version"),
    _text("boot"),
    _time("joined"),
    _time("seen"),
    UniqueConstraint("name", name="hosts_name"),
)

packets = Table(
    "parcels",  # the name in databases of earlier builds
    metadata,
    _text("target", key=True),
    _text("origin", key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    _text("kind"),
    _bytes("body"),
    _bytes("signature"),
    _time("at"),
)
"""Packets that are not acknowledged yet. The order of the key's columns is that in which a target reads packets."""

progress = Table(
    "progress",
    metadata,
    _text("origin", key=True),
    _text("target", key=True),
    Column("seq", BigInteger, nullable=False),
)
"""The number of the last packet of an origin that a target has applied."""

certificates = Table(
    "certificates",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    _text("host"),
    _text("name"),
    _bytes("key"),
    _text("verdict"),  # "member" or "removed"; the name in databases and signatures of earlier builds
    _text("by"),
    _time("at"),
    _bytes("signature"),
    UniqueConstraint("signature", name="certificates_signature"),
)

snapshots = Table(
    "snapshots",
    metadata,
    _text("host", key=True),
    _text("kind", key=True),
    Column("version", BigInteger, nullable=False),
    _bytes("body"),
    _bytes("signature"),
    _time("at"),
)

leases = Table(
    "leases",
    metadata,
    _text("host", key=True),
    _text("id", key=True),
    _text("project"),
    _time("until"),
    _bytes("body"),
    _bytes("signature"),
    Index("leases_by_project", "project"),
)

lease_versions = Table(
    "lease_versions",
    metadata,
    _text("project", key=True),
    Column("version", BigInteger, nullable=False),
    _time("at"),
)
"""The version of each project, which changes with every change of its leases."""

events = Table(
    "events",
    metadata,
    _text("host", key=True),
    _text("id", key=True),
    _time("at"),
    _text("session"),
    _text("event"),
    _text("verdict"),
    _bytes("body"),
    Column("stage", SmallInteger, nullable=False, server_default=text("0")),
    Column("text", Text, nullable=False, server_default=text("''")),
    Column("signature", LargeBinary, nullable=False, server_default=text("'\\x'")),
    Index("events_by_time", "at"),
    Index("events_by_host", "host", "at"),
    Index("events_by_session", "host", "session", "at"),
)
"""Events that hosts have copied for the history of the team."""

history = Table(
    "history",
    metadata,
    _text("host", key=True),
    _text("session", key=True),
    _time("started"),
    _time("last"),
    _text("folder"),
    Column("version", BigInteger, nullable=False),
    _bytes("body"),
    _bytes("signature"),
    Index("history_by_time", "last"),
)
"""Sessions whose events were copied, with their statistics."""

marks = Table(
    "marks",
    metadata,
    _text("host", key=True),
    Column("segment", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
)
"""The position up to which each host has copied its journal. Written in the same transaction as the events."""
