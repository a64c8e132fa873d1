"""The mail store: agents, messages and deliveries, for the message service of one daemon."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from functools import cached_property
from heapq import merge
from itertools import islice
from time import time
from typing import TYPE_CHECKING, Any

from fairlead.mail import (
    FAIRLEAD,
    FIRST_REMOTE_ID,
    SCRIPT,
    USER,
    HostRecord,
    MailBusy,
    MailCounts,
    MailFull,
    MailUnreachable,
    PruneStep,
    QueueSize,
    QueueSummary,
    StoredMail,
)
from fairlead.paths import state_folder
from fairlead.store._database import Database, PreparedStatement, batches, insert_or_ignore, translate_errors
from fairlead.store._errors import StoreBusy, StoreError, StoreFull
from fairlead.store._urls import backend_for
from fairlead.store.mail import _queries as queries
from fairlead.store.mail import _search as search
from fairlead.store.mail import _writes as writes
from fairlead.store.mail._losses import report_losses
from fairlead.store.mail._tables import agent_from, agent_row, agents, delivery_from, message_from, unanswered_from

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Select

    from fairlead.mail import Agent, Alias, Delivery, Message, OutgoingMessage, Stage, UnansweredRequest
    from fairlead.mail.remote import TeamStorage
    from fairlead.store._sqlite import SQLite

_MAX_ID = 2**63 - 1

_BY_KEY = PreparedStatement(queries.BY_KEY)
_COUNTS = PreparedStatement(queries.COUNTS)
_DELIVERIES = PreparedStatement(queries.DELIVERIES)
_INBOX = {stage: PreparedStatement(query) for stage, query in queries.INBOX.items()}
_MESSAGE = PreparedStatement(queries.MESSAGE)
_SHOWN_AT_EVENT = PreparedStatement(queries.SHOWN_AT_EVENT)
_UNANSWERED_BY = PreparedStatement(queries.UNANSWERED_BY)
_UNANSWERED_FROM = PreparedStatement(queries.UNANSWERED_FROM)


def default_mail_url() -> str:
    """Return the URL of this user's mail store, a file in the state folder."""
    return f"sqlite:///{state_folder()}/mail.db"


class MailStore(Database):
    """A `MailStorage` in a database. Thread-safe; writers wait for each other.

    It can be open only once: a second `open`, in any process, raises `MailBusy`. Every error is a `MailError`.
    """

    def __init__(self, backend: SQLite, warnings: tuple[str, ...], owner_lock: ExitStack) -> None:
        """Use a database that `open` has prepared, and the lock that it holds. `close` releases the lock."""
        super().__init__(backend, warnings)
        self._owner_lock = owner_lock
        with self._reading() as connection:
            self._is_indexed = search.has_index(connection)

    @classmethod
    def open(cls, url: str | None = None) -> MailStore:
        """Open the mail store at a URL, by default that of `default_mail_url`, and create or upgrade it.

        A damaged store is set aside, which `warnings` reports, and agents are sent notices of lost messages. Raise
        `MailBusy` if it is open already, and `MailUnreachable` if it cannot be opened.
        """
        with ExitStack() as undo:
            try:
                backend = backend_for(default_mail_url() if url is None else url)
            except StoreError as error:
                raise MailUnreachable(str(error)) from error
            undo.callback(backend.engine.dispose)
            owner_lock = undo.enter_context(ExitStack())
            with _translate_errors(backend):
                owner_lock.enter_context(backend.hold_owner_lock())
                store = cls(backend, backend.prepare(), owner_lock)
            with store._writing() as connection:
                fixed = [agent_row(agent) for agent in (USER, FAIRLEAD, SCRIPT)]
                connection.execute(insert_or_ignore(agents), fixed)
                report_losses(connection, time())
            undo.pop_all()
            return store

    def close(self) -> None:
        """Close the database and release its lock."""
        super().close()
        self._owner_lock.close()

    def load(self) -> StoredMail:
        """Return all that a `MailCache` needs at its start."""
        with self._reading() as connection:
            all_agents = [agent_from(row) for row in connection.execute(queries.AGENTS)]
            aliases = connection.execute(queries.ALIASES).all()
            last_message = connection.execute(queries.LAST_MESSAGE).scalar_one() or 0
            return StoredMail(
                agents=all_agents,
                former_sessions={row.text: row.agent for row in aliases if row.kind == "session"},
                former_names={row.text: row.agent for row in aliases if row.kind == "name"},
                subscriptions=[(row.topic, row.agent) for row in connection.execute(queries.SUBSCRIPTIONS)],
                queue_sizes=_queue_sizes(connection, [agent.id for agent in all_agents if agent.id < FIRST_REMOTE_ID]),
                owing_reply=set(connection.execute(queries.OWING_REPLY).scalars()),
                deadlines=[(row.deadline, row.id) for row in connection.execute(queries.DEADLINES)],
                last_message=max(last_message, writes.last_deleted(connection)),
                hosts=[HostRecord(**row._asdict()) for row in connection.execute(queries.HOSTS)],
            )

    @cached_property
    def team(self) -> TeamStorage:
        """The storage of mail to and from other hosts, in the same database."""
        from fairlead.store.mail._team import TeamStore  # loaded only by users with a team

        return TeamStore(self._reading, self._writing, self._sync, self._add_to_index)

    # -- agents ----------------------------------------------------------------------------------------

    def save_agents(self, agents: Sequence[Agent], aliases: Sequence[Alias] = ()) -> None:
        """Store agents, and former names and session ids of agents. Both replace entries with the same key."""
        with self._writing() as connection:
            writes.save_agents(connection, agents, aliases)

    def save_last_seen(self, seen: Sequence[tuple[int, float]]) -> None:
        """Store when agents were last active, given as pairs of the agent's id and a Unix time."""
        with self._writing() as connection:
            connection.execute(queries.UPDATE_AGENT, [{"agent": number, "seen": at} for number, at in seen])

    def end_agents(self, agents: Sequence[int], at: float, reason: str, notices: Sequence[OutgoingMessage]) -> None:
        """Mark agents as ended, bounce their queued deliveries for `reason`, and store notices about the bounces."""
        with self._writing(durable=bool(notices)) as connection:
            writes.end_agents(connection, agents, at, reason)
            writes.insert_messages(connection, notices)
            self._add_to_index(connection, notices)

    def revive_agents(self, agents: Sequence[int]) -> dict[int, QueueSize]:
        """Mark agents as alive, and queue their bounced deliveries again.

        Return for each agent how many were queued again. Agents without any are left out.
        """
        with self._writing() as connection:
            sizes = {number: writes.revive_agent(connection, number) for number in agents}
        return {number: size for number, size in sizes.items() if size.queued}

    def subscribe(self, topic: str, agent: int) -> None:
        """Subscribe an agent to a topic."""
        with self._writing() as connection:
            writes.subscribe(connection, topic, agent)

    def unsubscribe(self, topic: str, agent: int) -> None:
        """Remove an agent from a topic."""
        with self._writing() as connection:
            writes.unsubscribe(connection, topic, agent)

    # -- messages --------------------------------------------------------------------------------------

    def send(self, messages: Sequence[OutgoingMessage]) -> dict[int, QueueSize]:
        """Store messages and deliveries, and mark the deliveries that they answer or notify about.

        Survives a power failure. Return how many answered deliveries left the queue of each answering agent. Agents
        without any are left out.
        """
        with self._writing(durable=True) as connection:
            removed = writes.insert_messages(connection, messages)
            self._add_to_index(connection, messages)
            return removed

    def find_by_keys(self, keys: Collection[tuple[int, str]]) -> dict[tuple[int, str], Message]:
        """Return the messages with these pairs of sender and idempotency key, by that pair.

        Unused pairs are left out.
        """
        by_sender: dict[int, list[str]] = {}
        for sender, key in keys:
            by_sender.setdefault(sender, []).append(key)
        messages: dict[tuple[int, str], Message] = {}
        with self._reading() as connection:
            if len(keys) == 1:
                ((agent, key),) = keys
                stored = _BY_KEY.rows(connection, {"agent": agent, "key": key})
                return {(row.sender, row.key): message_from(row) for row in stored}
            for sender, sender_keys in by_sender.items():
                for batch in batches(sender_keys):
                    rows = connection.execute(queries.BY_KEYS, {"agent": sender, "keys": batch})
                    messages.update({(row.sender, row.key): message_from(row) for row in rows})
        return messages

    def get_message(self, message: int) -> tuple[Message, int] | None:
        """Return a message and the id of its sender; `None` if there is no such message."""
        with self._reading() as connection:
            rows = _MESSAGE.rows(connection, {"message": message})
            return (message_from(rows[0]), rows[0].sender) if rows else None

    def deliveries(self, message: int) -> list[tuple[int, Delivery]]:
        """Return a message's deliveries as pairs of the recipient's id and the delivery, in the order of the names."""
        with self._reading() as connection:
            rows = _DELIVERIES.rows(connection, {"message": message})
            return [(row.recipient, delivery_from(row)) for row in rows]

    def thread(self, thread: int, reader: int, *, limit: int, before: int) -> list[Message]:
        """Return messages of a thread that a reader wrote or received, newest first. Reader 0 sees all.

        Only messages with an id below `before` are returned; 0 starts at the newest.
        """
        return self._messages(queries.thread(reader), {"thread": thread, "before": _before(before), "limit": limit})

    def search(self, text: str, reader: int, *, limit: int, before: int) -> list[Message]:
        """Return messages that contain a text and that a reader wrote or received, newest first. Reader 0 sees all.

        Only messages with an id below `before` are returned; 0 starts at the newest.
        """
        with self._reading() as connection:
            rows = search.find(
                connection, text, reader, limit=limit, before=_before(before), is_indexed=self._is_indexed
            )
            return [message_from(row) for row in rows]

    def index_messages(self, limit: int) -> bool:
        """Add up to `limit` messages that are not in the search index to it. Return whether some may be left.

        Without an index, do nothing and return `False`.
        """
        if not self._is_indexed:
            return False
        with self._writing() as connection:
            return search.add_some(connection, limit)

    def inbox(
        self, recipient: int, stages: tuple[Stage, ...], *, limit: int, before: int
    ) -> list[tuple[Delivery, Message]]:
        """Return an agent's deliveries at these stages with their messages, newest first.

        Only messages with an id below `before` are returned; 0 starts at the newest.
        """
        parameters = {"agent": recipient, "before": _before(before), "limit": limit}
        wanted = set(stages)
        with self._reading() as connection, connection.begin() if len(wanted) > 1 else nullcontext():
            by_stage = [
                [(delivery_from(row), message_from(row)) for row in _INBOX[stage].rows(connection, parameters)]
                for stage in wanted
            ]
        return list(islice(merge(*by_stage, key=lambda pair: -pair[1].id), limit))

    def unanswered_by(self, agent: int, *, limit: int) -> list[UnansweredRequest]:
        """Return requests that an agent has received and not answered, oldest first, without bounced ones."""
        return self._unanswered(_UNANSWERED_BY, {"agent": agent, "limit": limit})

    def unanswered_from(self, agent: int, *, limit: int) -> list[UnansweredRequest]:
        """Return requests that an agent has sent and that were not answered, oldest first, without bounced ones.

        A request to several recipients is returned once for each that has not answered it.
        """
        return self._unanswered(_UNANSWERED_FROM, {"agent": agent, "limit": limit})

    def unanswered_among(self, messages: Sequence[int]) -> list[UnansweredRequest]:
        """Return the unanswered requests among the messages with these ids, including bounced ones.

        A request is returned once for each recipient that has not answered it.
        """
        with self._reading() as connection:
            results = (connection.execute(queries.UNANSWERED_AMONG, {"messages": batch}) for batch in batches(messages))
            return [unanswered_from(row) for rows in results for row in rows.all()]

    def mail_counts(self, agents: Collection[int]) -> dict[int, MailCounts]:
        """Return the mail counts of agents, by id. Agents whose counts are all 0 are left out."""
        with self._reading() as connection:
            return _counts_of(connection, *agents) if len(agents) == 1 else _mail_counts(connection, list(agents))

    # -- delivery --------------------------------------------------------------------------------------

    def show(
        self, recipient: int, *, event: str, event_id: str, at: float, limit: int, urgent_only: bool
    ) -> list[Message]:
        """Mark the first queued deliveries of an agent as shown, and return their messages, oldest first.

        `event` and `event_id` name the event at which they are shown; `requeue` finds them by the id. With
        `urgent_only`, only urgent messages and those queued before them in their threads are shown.
        """
        with self._writing() as connection:
            shown = {"stage": "shown", "shown": at, "event": event, "event_id": event_id or None, "why": ""}
            return writes.show(connection, recipient, limit, shown, urgent_only=urgent_only)

    def show_all_counted(self, recipient: int, *, event: str, event_id: str, at: float) -> QueueSummary:
        """Mark all queued deliveries of an agent as shown. Return how many each sender sent, and how many are requests.

        `event` and `event_id` name the event at which they are shown; `requeue` finds them by the id.
        """
        with self._writing() as connection:
            rows = connection.execute(queries.QUEUED_BY_SENDER, {"agent": recipient}).all()
            shown = {"shown": at, "event": event, "event_id": event_id or None, "why": ""}
            connection.execute(queries.UPDATE_QUEUED, {"agent": recipient, "stage": "shown", **shown})
        return QueueSummary(tuple((row.name, row.number) for row in rows), sum(int(row.requests or 0) for row in rows))

    def requeue(self, event_id: str, bounce_reason: str, *, may_repeat: bool = False) -> dict[int, QueueSize]:
        """Queue the deliveries again that were shown at an event and not read since. Return how many, by agent.

        Those to an agent that has ended bounce for `bounce_reason` instead, and are not counted. With `may_repeat`, the
        next `show` returns the messages with `Message.may_repeat` set.
        """
        with self._reading() as connection:  # usually the event has shown nothing
            if not _SHOWN_AT_EVENT.rows(connection, {"at_event": event_id}):
                return {}
        with self._writing() as connection:
            return writes.requeue(connection, event_id, bounce_reason, may_repeat=may_repeat)

    def mark_read(self, recipient: int, message: int, at: float) -> Stage | None:
        """Mark a delivery as read, unless it is read or answered already.

        Return its previous stage; `None` if there is no such delivery.
        """
        with self._writing() as connection:
            return writes.mark_read(connection, recipient, message, at)

    # -- pruning ---------------------------------------------------------------------------------------

    def prune_messages(self, older_than: float, *, after: tuple[float, int] | None, limit: int) -> PruneStep:
        """Check up to `limit` messages from before a Unix time, oldest first, and delete those that are not in use.

        A message is in use while it is queued for an agent or on its way to another host. `after` is the place at which
        the previous step ended; `None` starts at the oldest.
        """
        with self._writing() as connection:
            parameters = {"horizon": older_than, "limit": limit}
            rows = connection.execute(queries.old_messages(after), parameters).all()
            deleted = [row.id for row in rows if not row.is_queued]
            if self._is_indexed:
                search.remove(connection, deleted)
            writes.delete_messages(connection, deleted)
            is_last = len(rows) < limit
            if is_last:
                writes.delete_empty_threads(connection)
        return PruneStep(deleted=len(deleted), after=None if is_last else (rows[-1].at, rows[-1].id))

    def prune_agents(self, older_than: float) -> list[int]:
        """Delete the agents that ended before a Unix time, and have neither messages nor subagents left.

        Return their ids.
        """
        with self._writing() as connection:
            numbers = list(connection.execute(queries.OLD_AGENTS, {"horizon": older_than}).scalars())
            writes.delete_agents(connection, numbers)
        return numbers

    def release_space(self) -> int:
        """Release some free space to the file system. Return the number of bytes; 0 if there is none."""
        with self._write_lock, self._translate_errors():
            return self._backend.release_space()

    # -- internal --------------------------------------------------------------------------------------

    def _translate_errors(self) -> AbstractContextManager[None]:
        return _translate_errors(self._backend)

    def _add_to_index(self, connection: Connection, messages: Sequence[OutgoingMessage]) -> None:
        if self._is_indexed:
            search.add(connection, [message.message.id for message in messages])

    def _messages(self, query: Select[Any], parameters: dict[str, Any]) -> list[Message]:
        with self._reading() as connection:
            return [message_from(row) for row in connection.execute(query, parameters)]

    def _unanswered(self, query: PreparedStatement, parameters: dict[str, Any]) -> list[UnansweredRequest]:
        with self._reading() as connection:
            return [unanswered_from(row) for row in query.rows(connection, parameters)]


@contextmanager
def _translate_errors(backend: SQLite) -> Iterator[None]:
    """Raise errors of the driver and of the store within the block as `MailError`."""
    try:
        with translate_errors(backend):
            yield
    except StoreFull as error:
        raise MailFull(
            f"{backend.location}: the disk is full, so nothing was sent or marked; free some space and try again"
        ) from error
    except StoreBusy as error:
        raise MailBusy(str(error)) from error
    except StoreError as error:
        raise MailUnreachable(str(error)) from error


def _before(before: int) -> int:
    return min(before, _MAX_ID) if before > 0 else _MAX_ID


def _queue_sizes(connection: Connection, numbers: Sequence[int]) -> dict[int, QueueSize]:
    urgent = {row.recipient: row.number for row in connection.execute(queries.URGENT_COUNTS)}
    return {
        row.recipient: QueueSize(row.number, urgent.get(row.recipient, 0))
        for batch in batches(numbers)
        for row in connection.execute(queries.COUNTS_BY_STAGE, {"agents": batch, "stages": ["queued"]})
    }


def _counts_of(connection: Connection, agent: int) -> dict[int, MailCounts]:
    (row,) = _COUNTS.rows(connection, {"agent": agent})
    counts = MailCounts(queued=row.queued, unread=row.queued + row.shown, owes=row.owes, owed=row.owed)
    return {} if counts == MailCounts() else {agent: counts}


def _mail_counts(connection: Connection, numbers: Sequence[int]) -> dict[int, MailCounts]:
    by_agent: dict[int, dict[str, int]] = {}
    for batch in batches(numbers):
        for row in connection.execute(queries.COUNTS_BY_STAGE, {"agents": batch, "stages": ["queued", "shown"]}):
            counts = by_agent.setdefault(row.recipient, {})
            counts["unread"] = counts.get("unread", 0) + row.number
            if row.stage == "queued":
                counts["queued"] = row.number
        for field, query in (("owes", queries.OWES_COUNTS), ("owed", queries.OWED_COUNTS)):
            for row in connection.execute(query, {"agents": batch}):
                by_agent.setdefault(row.agent, {})[field] = row.number
    return {number: MailCounts(**counts) for number, counts in by_agent.items()}
