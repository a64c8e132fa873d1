"""The tables of mail between hosts, and the triggers that fill the table `team_pending`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import BigInteger, Column, Double, Index, LargeBinary, Table, Text

from fairlead.store.events._tables import metadata
from fairlead.store.mail._tables import MESSAGE_ID, AnyText

if TYPE_CHECKING:
    from sqlalchemy import Connection

pending = Table(
    "team_pending",
    metadata,
    Column("id", MESSAGE_ID, primary_key=True, autoincrement=True),
    Column("kind", Text, nullable=False),
    Column("message", BigInteger, nullable=False),
    Column("recipient", BigInteger, nullable=False),
    Index("team_pending_by_message", "message"),
)
"""Deliveries that another host has to know about: a new one (`message`), or one whose stage has changed (`receipt`)."""

outbox = Table(
    "team_outbox",
    metadata,
    Column("id", MESSAGE_ID, primary_key=True, autoincrement=True),
    Column("target", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("message", BigInteger, nullable=False),
    Column("at", Double, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("team_outbox_by_seq", "target", "seq", unique=True),
    Index("team_outbox_by_message", "message"),
    sqlite_autoincrement=True,
)
"""Packets that their targets have not acknowledged. `seq` numbers the packets to one target, without gaps.

The column `message` is 0 for a packet whose kind is not `message`.
"""

links = Table(
    "team_links",
    metadata,
    Column("host", Text, primary_key=True),
    Column("last_sent", BigInteger, nullable=False),
    Column("acknowledged", BigInteger, nullable=False),
    Column("applied", BigInteger, nullable=False),
)
"""For each other host the numbers of the packets last sent to it, last acknowledged by it, and last applied here."""

origins = Table(
    "team_origins",
    metadata,
    Column("message", MESSAGE_ID, primary_key=True, autoincrement=False),
    Column("host", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("others", AnyText, nullable=False),
    Index("team_origins_by_number", "host", "number", unique=True),
)
"""Messages of other hosts: `host` and `number` there, and in `others` the recipients that are not on this host."""

threads = Table(
    "team_threads",
    metadata,
    Column("host", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("thread", BigInteger, nullable=False),
    Index("team_threads_by_thread", "thread"),
)
"""Threads that began on another host: `host` and `number` there, and the local number, `thread`.

A thread is kept here even if its first message never arrived.
"""

hosts = Table(
    "team_hosts",
    metadata,
    Column("host", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("snapshot", LargeBinary, nullable=False),
)
"""The other hosts, each with the newest snapshot of its agents and topics."""

refused = Table(
    "team_refused",
    metadata,
    Column("id", MESSAGE_ID, primary_key=True, autoincrement=True),
    Column("origin", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("kind", AnyText, nullable=False),
    Column("at", Double, nullable=False),
    Column("why", AnyText, nullable=False),
    Column("body", LargeBinary, nullable=False),
)
"""Packets that could not be applied, kept for inspection."""

LINKS_LOST = "team_links_lost"
"""The name of a row in `mail_marks` that exists if a link was lost with a damaged database.

The numbers of the packets that were sent over it are then not known, so nothing is sent to any host.
"""

_TRIGGERS = (
    """
    CREATE TRIGGER team_message_sent AFTER INSERT ON mail_letters WHEN NEW.recipient >= 1099511627776
    BEGIN
        INSERT INTO team_pending (kind, message, recipient) VALUES ('message', NEW.message, NEW.recipient);
    END
    """,
    """
    CREATE TRIGGER team_stage_changed AFTER UPDATE OF stage ON mail_letters
    WHEN NEW.sender >= 1099511627776 AND NEW.stage <> OLD.stage
    BEGIN
        INSERT INTO team_pending (kind, message, recipient) VALUES ('receipt', NEW.message, NEW.recipient);
    END
    """,
)
"""They fill `team_pending`, so that code that changes deliveries need not do it. 1099511627776 is `FIRST_REMOTE_ID`."""


def create_triggers(connection: Connection) -> None:
    """Create the triggers that fill `team_pending`, in a database that does not have them."""
    for trigger in _TRIGGERS:
        connection.exec_driver_sql(trigger)
