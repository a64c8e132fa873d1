"""Where the mail is kept: agents, messages and the ledger, for the office of one daemon."""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager, nullcontext
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from fairlead import paths as places
from fairlead.mail import FAIRLEAD, SCRIPT, USER, Loaded, MailUnreachable, Standing, Swept, Waiting
from fairlead.store._backend import WRITES, insert_or_ignore, parts
from fairlead.store._errors import StoreError
from fairlead.store._health import health_of
from fairlead.store._urls import backend_for
from fairlead.store.mail import _queries as queries
from fairlead.store.mail import _writes as writes
from fairlead.store.mail._errors import translate_store_errors
from fairlead.store.mail._rows import agent_of, agent_row, letter_of, message_of, owed_of
from fairlead.store.mail._tables import agents

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from sqlalchemy import Connection, Select

    from fairlead.mail import Agent, Delivery, Former, Message, Owed, Post, Stage
    from fairlead.store._backend import Backend
    from fairlead.store.events._values import Health

_END = 2**63 - 1
"""Before this comes every message."""


def default_mail_url() -> str:
    """Give the URL of this user's mail."""
    return f"sqlite:///{places.state_folder()}/mail.db"


class MailStore:
    """A `MailBox` in a database. Any thread may call it; the writers among them take turns.

    One process at a time has it open: whoever comes second is refused with `MailBusy`. Every error is a `MailError`.
    """

    warnings: Final[tuple[str, ...]]
    """What a person must be told about the opening; empty if all was well."""

    def __init__(self, backend: Backend, warnings: tuple[str, ...], owner: ExitStack) -> None:
        """Hold a database that was made ready; `open` does that."""
        self._backend = backend
        self._writers = threading.Lock()
        self._owner = owner
        self.warnings = warnings

    @classmethod
    def open(cls, url: str | None = None) -> MailStore:
        """Open the mail at a URL, and bring it to this version. What is damaged is set aside, as `warnings` tell."""
        with ExitStack() as undo:
            try:
                backend = backend_for(default_mail_url() if url is None else url)
            except StoreError as error:
                raise MailUnreachable(str(error)) from error
            undo.callback(backend.engine.dispose)
            owner = undo.enter_context(ExitStack())
            with translate_store_errors(backend):
                owner.enter_context(backend.own())
                store = cls(backend, backend.prepare(), owner)
            with store._writing() as connection:
                known = [agent_row(agent) for agent in (USER, FAIRLEAD, SCRIPT)]
                connection.execute(insert_or_ignore(connection.dialect.name, agents), known)
            undo.pop_all()
            return store

    def close(self) -> None:
        """Let go of the database. What was kept stays."""
        self._backend.engine.dispose()
        self._owner.close()

    def load(self) -> Loaded:
        """Give what an office holds in memory."""
        with self._reading() as connection:
            everybody = [agent_of(row) for row in connection.execute(queries.AGENTS)]
            former = connection.execute(queries.FORMERS).all()
            last = connection.execute(queries.LATEST).scalar_one() or 0
            return Loaded(
                agents=everybody,
                former_sessions={row.text: row.agent for row in former if row.kind == "session"},
                former_names={row.text: row.agent for row in former if row.kind == "name"},
                subscriptions=[(row.topic, row.agent) for row in connection.execute(queries.SUBSCRIPTIONS)],
                waiting=_waiting(connection, [agent.id for agent in everybody]),
                owing=set(connection.execute(queries.OWING).scalars()),
                deadlines=[(row.deadline, row.id) for row in connection.execute(queries.DEADLINES)],
                last_message=max(last, writes.last_deleted(connection)),
            )

    def check(self) -> Health:
        """Look at every page, which takes its time, and say how the store is."""
        with self._reading() as connection:
            return health_of(self._backend, connection)

    # -- agents ----------------------------------------------------------------------------------------

    def put_agents(self, agents: Sequence[Agent], former: Sequence[Former] = ()) -> None:
        """Keep agents, each in place of the one with its id, and what they were called before."""
        with self._writing() as connection:
            writes.put_agents(connection, agents, former)

    def see(self, seen: Sequence[tuple[int, float]]) -> None:
        """Keep when agents were last seen."""
        with self._writing() as connection:
            connection.execute(queries.AGENT, [{"agent": number, "seen": at} for number, at in seen])

    def end(self, agents: Sequence[int], at: float, why: str, posts: Sequence[Post]) -> None:
        """Mark agents as ended, bounce what is queued for them, and take the notices about it."""
        with self._writing(settled=bool(posts)) as connection:
            writes.end_agents(connection, agents, at, why)
            writes.insert_posts(connection, posts)

    def revive(self, agents: Sequence[int]) -> dict[int, Waiting]:
        """Let agents live again, queue what had bounced, and say how much that is."""
        with self._writing() as connection:
            found = {number: writes.revive_agent(connection, number) for number in agents}
        return {number: waiting for number, waiting in found.items() if waiting.queued}

    def subscribe(self, topic: str, agent: int) -> None:
        """Let an agent listen to a topic."""
        with self._writing() as connection:
            writes.subscribe(connection, topic, agent)

    def unsubscribe(self, topic: str, agent: int) -> None:
        """Let it listen no more."""
        with self._writing() as connection:
            writes.unsubscribe(connection, topic, agent)

    # -- messages --------------------------------------------------------------------------------------

    def post(self, posts: Sequence[Post]) -> dict[int, Waiting]:
        """Take messages, with their letters, and mark what they answer; say what left the queues by being answered."""
        with self._writing(settled=True) as connection:
            return writes.insert_posts(connection, posts)

    def sent_before(self, keys: Collection[tuple[int, str]]) -> dict[tuple[int, str], Message]:
        """Find the messages that were sent under these keys, by sender and key."""
        by_sender: dict[int, list[str]] = {}
        for sender, key in keys:
            by_sender.setdefault(sender, []).append(key)
        found: dict[tuple[int, str], Message] = {}
        with self._reading() as connection:
            for sender, named in by_sender.items():
                for part in parts(named):
                    rows = connection.execute(queries.SENT_BEFORE, {"agent": sender, "keys": part})
                    found.update({(row.sender, row.key): message_of(row) for row in rows})
        return found

    def message(self, message: int) -> tuple[Message, int] | None:
        """Give a message and the id of its sender."""
        with self._reading() as connection:
            row = connection.execute(queries.MESSAGE, {"message": message}).one_or_none()
            return None if row is None else (message_of(row), row.sender)

    def letters(self, message: int) -> list[tuple[int, Delivery]]:
        """Give a message's ledger, by the ids of its recipients."""
        with self._reading() as connection:
            rows = connection.execute(queries.LETTERS, {"message": message})
            return [(row.recipient, letter_of(row)) for row in rows]

    def thread(self, thread: int, reader: int, *, limit: int, before: int) -> list[Message]:
        """Give what a reader wrote or got in a thread, the newest first; the reader 0 reads all."""
        return self._messages(queries.thread_of(reader), {"thread": thread, "before": _end(before), "most": limit})

    def search(self, text: str, reader: int, *, limit: int, before: int) -> list[Message]:
        """Find a text in what a reader wrote or got, the newest first; the reader 0 reads all."""
        return self._messages(queries.found(text, reader), {"before": _end(before), "most": limit})

    def inbox(
        self, recipient: int, stages: tuple[Stage, ...], *, limit: int, before: int
    ) -> list[tuple[Delivery, Message]]:
        """Give the letters of an agent, the newest first, from before a message on; 0 is from the end."""
        asked = {"agent": recipient, "before": _end(before), "most": limit}
        with self._reading() as connection:
            found = [
                [
                    (letter_of(row), message_of(row))
                    for row in connection.execute(queries.INBOX, {**asked, "wanted": one})
                ]
                for one in set(stages)
            ]
        return list(islice(merge(*found, key=lambda both: -both[1].id), limit))

    def owed_by(self, agent: int, *, limit: int) -> list[Owed]:
        """Give the requests that an agent has not answered, the oldest first."""
        with self._reading() as connection:
            return [owed_of(row) for row in connection.execute(queries.OWED_BY, {"agent": agent, "most": limit})]

    def owed_to(self, agent: int, *, limit: int) -> list[Owed]:
        """Give the requests of an agent that were not answered, the oldest first."""
        with self._reading() as connection:
            return [owed_of(row) for row in connection.execute(queries.OWED_TO, {"agent": agent, "most": limit})]

    def owed_for(self, messages: Sequence[int]) -> list[Owed]:
        """Give those of these requests that were not answered, by recipient."""
        with self._reading() as connection:
            found = (connection.execute(queries.OWED_FOR, {"messages": part}).all() for part in parts(messages))
            return [owed_of(row) for rows in found for row in rows]

    def standings(self, agents: Collection[int]) -> dict[int, Standing]:
        """Say how much mail these agents have before them; one who has none is left out."""
        with self._reading() as connection:
            return _standings(connection, list(agents))

    # -- showing ---------------------------------------------------------------------------------------

    def show(  # noqa: PLR0913 - each says one thing of it, and has a name
        self, recipient: int, *, event: str, event_id: str, at: float, most: int, urgent_only: bool
    ) -> list[Message]:
        """Mark the first letters of an agent's queue as shown, and give their messages in order."""
        with self._writing() as connection:
            numbers = writes.first_queued(connection, recipient, most, urgent_only=urgent_only)
            found = [message_of(row) for row in connection.execute(queries.MESSAGES, {"messages": numbers})]
            marks = {"shown": at, "event": event, "event_id": event_id or None}
            writes.mark_shown(connection, recipient, numbers, marks)
        return found

    def unshow(self, event_id: str, why_not: str) -> dict[int, Waiting]:
        """Queue again what was shown at an event and not read since, and say how much that is."""
        with self._writing() as connection:
            return writes.queue_again(connection, event_id, why_not)

    def read(self, recipient: int, message: int, at: float) -> Stage | None:
        """Mark a letter as read, and say at which stage it was; None if there is none."""
        with self._writing() as connection:
            return writes.mark_read(connection, recipient, message, at)

    # -- keeping small ---------------------------------------------------------------------------------

    def sweep(self, older_than: float, *, after: tuple[float, int] | None, most: int) -> Swept:
        """Look at some messages from before a time, the oldest first, and delete those that are queued for nobody."""
        with self._writing() as connection:
            rows = connection.execute(queries.old(after), {"horizon": older_than, "most": most}).all()
            gone = [row.id for row in rows if not row.waits]
            writes.delete_messages(connection, gone)
        return Swept(gone=len(gone), after=(rows[-1].at, rows[-1].id) if len(rows) == most else None)

    def forget_agents(self, older_than: float) -> list[int]:
        """Delete the agents that ended before a time and are named by no message, and say which."""
        with self._writing() as connection:
            numbers = list(connection.execute(queries.OLD_AGENTS, {"horizon": older_than}).scalars())
            writes.delete_agents(connection, numbers)
        return numbers

    def tidy(self) -> int:
        """Give a part of the free room back to the disk, and say how many bytes."""
        with self._writers, translate_store_errors(self._backend):
            return self._backend.give_back()

    # -- within ----------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with translate_store_errors(self._backend), self._backend.engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self, *, settled: bool = False) -> Iterator[Connection]:
        """Open a transaction that writes; one that is `settled` outlives a power failure."""
        with self._writers, translate_store_errors(self._backend), self._backend.engine.connect() as connection:
            connection.execution_options(**{WRITES: True})
            with self._backend.settling(connection) if settled else nullcontext(), connection.begin():
                yield connection

    def _messages(self, chosen: Select[Any], asked: dict[str, Any]) -> list[Message]:
        with self._reading() as connection:
            return [message_of(row) for row in connection.execute(chosen, asked)]


def _end(before: int) -> int:
    return min(before, _END) if before > 0 else _END


def _waiting(connection: Connection, numbers: Sequence[int]) -> dict[int, Waiting]:
    urgent = {row.recipient: row.number for row in connection.execute(queries.URGENTS)}
    return {
        row.recipient: Waiting(row.number, urgent.get(row.recipient, 0))
        for part in parts(numbers)
        for row in connection.execute(queries.COUNTS, {"agents": part, "stages": ["queued"]})
    }


def _standings(connection: Connection, numbers: Sequence[int]) -> dict[int, Standing]:
    found: dict[int, dict[str, int]] = {}
    for part in parts(numbers):
        for row in connection.execute(queries.COUNTS, {"agents": part, "stages": ["queued", "shown"]}):
            counts = found.setdefault(row.recipient, {})
            counts["unread"] = counts.get("unread", 0) + row.number
            if row.stage == "queued":
                counts["queued"] = row.number
        for what, query in (("owes", queries.OWES), ("owed", queries.IS_OWED)):
            for row in connection.execute(query, {"agents": part}):
                found.setdefault(row.agent, {})[what] = row.number
    return {number: Standing(**counts) for number, counts in found.items()}
