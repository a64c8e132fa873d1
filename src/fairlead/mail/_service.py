"""`MessageService`, the entry point of the package: sends messages, tracks deliveries, and shows each one once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fairlead.mail._addresses import validate_topic
from fairlead.mail._cache import MailCache, QueueSize
from fairlead.mail._expiry import AgentExpiry
from fairlead.mail._identity import IdentityService
from fairlead.mail._notices import ENDED_REASON
from fairlead.mail._sending import MessageSender
from fairlead.mail._types import FIRST_ID, FIRST_REMOTE_ID, USER, Draft, MailCounts, Topic, WaitingMail
from fairlead.mail.render import MAX_SHOWN_MESSAGES
from fairlead.text import replace_surrogates, replace_surrogates_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlead.mail._errors import MailError
    from fairlead.mail._storage import MailStorage
    from fairlead.mail._types import (
        Agent,
        Delivery,
        Intent,
        Message,
        Priority,
        QueueSummary,
        SendResult,
        Stage,
    )
    from fairlead.mail.remote._team_mail import TeamMail

_MAX_PAGE_SIZE = 1000


class MessageService:
    """The mail of this host. Thread-safe.

    - Methods may wait for the disk, except those that say "Never blocks".
    - A message survives a power failure once `send` has returned it.
    - Each delivery is shown once, in the order in which messages were accepted. It is marked before `show` returns.
    - Every error is a `MailError`. After an error nothing was changed, and the call can be repeated.
    - An `Agent` argument is identified by its id; its other fields may be out of date.
    """

    def __init__(self, storage: MailStorage, now: Callable[[], float] = time.time) -> None:
        """Load the agents and queues of a storage. No other service may use the storage at the same time."""
        self._storage = storage
        self._now = now
        snapshot = storage.load()
        self._cache = MailCache(snapshot)
        self._agents = self._cache.agents
        self._identity = IdentityService(storage, self._cache, now)
        self._sender = MessageSender(storage, self._cache, now)
        self._expiry = AgentExpiry(storage, self._cache, now)
        self._team: TeamMail | None = None
        if snapshot.hosts:
            self.team.load_hosts(snapshot.hosts)

    @property
    def team(self) -> TeamMail:
        """The mail to and from other hosts. Its modules are imported on first use."""
        if self._team is None:
            from fairlead.mail.remote._team_mail import TeamMail

            with self._cache.locked():
                self._team = self._team or TeamMail(self._storage, self._cache, self._now)
        return self._team

    def add_mail_listener(self, listener: Callable[[Agent], None]) -> None:
        """Call `listener` with the agent after each commit that queued deliveries for it, in the committing thread.

        The listener must be quick. It may call the service. Its errors are ignored.
        """
        self._cache.add_listener(listener)

    # -- agents ----------------------------------------------------------------------------------------

    def ensure_agent(
        self, session: str, *, agent_id: str = "", agent_type: str = "", project: str = "", is_start: bool = False
    ) -> Agent:
        """Return the agent of a session, or of its subagent if `agent_id` is not empty; create it if it does not exist.

        An ended agent is returned unchanged; `revive` marks it as alive. A session id from before a /clear resolves to
        the agent that had it, unless a new session starts with that id (`is_start`) while the agent is alive. Moves the
        session's agents to `project` unless that is empty. Raises `BadName` if `session` is empty.
        """
        return self._identity.ensure_agent(session, agent_id, agent_type, project, is_start=is_start)

    def find_by_session(self, session: str, agent_id: str = "") -> Agent | None:
        """Return the agent of a session, or of its subagent if `agent_id` is not empty; None if there is none.

        Never blocks.
        """
        return self._agents.by_session(session, agent_id)

    def waiting_mail(self, session: str, agent_id: str = "") -> WaitingMail | None:
        """Return the agent of a session, and how much mail waits for it; None if there is no such agent. Never blocks.

        If `agent_id` is not empty, it is the agent of that subagent.
        """
        agent = self._agents.by_session(session, agent_id)
        if agent is None:
            return None
        size = self._cache.queue_size(agent.id)
        return WaitingMail(agent, size.queued, size.urgent, may_owe_reply=agent.id in self._cache.owing_reply)

    def find_by_name(self, name: str) -> Agent:
        """Return the agent of this host that has or had a name, ignoring case.

        Raises `NoSuchAgent`, which lists similar names, if there is none.
        """
        return self._agents.by_name(name)

    def current(self, agent: Agent) -> Agent:
        """Return the current state of an agent. Raises `NoSuchAgent` if it was deleted. Never blocks."""
        return self._agents.current(agent)

    def agents(self, project: str | None = None, *, include_ended: bool = False) -> list[Agent]:
        """Return the sessions and subagents of a project (None: of all projects), sorted by name."""
        with self._cache.locked():
            agents = self._agents.all()
        return [agent for agent in agents if project in (None, agent.project) and (include_ended or not agent.ended)]

    def mail_counts(self) -> dict[int, MailCounts]:
        """Return the counts of the user and all living agents, by agent id. Agents without open mail are left out."""
        return self._storage.mail_counts([USER.id, *(agent.id for agent in self.agents())])

    def mail_counts_of(self, agent: Agent) -> MailCounts:
        """Return the counts of one agent. They are zero for an agent that has ended."""
        current = self._agents.get(agent.id)
        if agent.id != USER.id and (current is None or current.ended or agent.id < FIRST_ID):
            return MailCounts()
        return self._storage.mail_counts([agent.id]).get(agent.id, MailCounts())

    def change_session(self, old_session: str, new_session: str) -> Agent:
        """Move an agent to another session id, with its name, queue and subagents, as after /clear. Return it, alive.

        If the old session has no agent, or the new one has its own, returns the new session's agent instead.
        """
        agent = self._identity.change_session(old_session, new_session) or self.ensure_agent(new_session)
        return self.revive(agent)

    def rename(self, agent: Agent, name: str) -> Agent:
        """Rename the agent of a session and its subagents, and return the agent.

        Raises `BadName` if the name is invalid, if another agent has or had it, or if `agent` does not belong to a
        session itself.
        """
        return self._identity.rename(agent, name)

    def save_status(self, agent: Agent, status: str) -> Agent:
        """Store a text as `Agent.saved`, of which the agent is reminded after a compaction, and return the agent.

        Raises `TooLarge` if the text has more than 20 000 characters.
        """
        return self._identity.save_status(agent, status)

    def mark_seen(self, agent: Agent, at: float) -> None:
        """Record in memory that an agent was active at a Unix time. `flush` stores it. Never blocks."""
        self._agents.mark_seen(agent.id, at, self._now())

    def flush(self) -> None:
        """Store when agents were last active, in one batch."""
        self._identity.flush()

    def end(self, agent: Agent, reason: str) -> None:
        """Mark an agent and its subagents as ended. Deliveries that are queued for them bounce.

        The senders of their unanswered requests receive a notice. `reason` is shown as the reason of the bounces. Does
        nothing if the agent and all its subagents have already ended.
        """
        self._expiry.end(agent, reason)

    def revive(self, agent: Agent) -> Agent:
        """Mark an agent as alive again, as on resume, and queue its bounced deliveries. Its subagents stay ended.

        Does nothing if the agent is alive. Returns its current state.
        """
        return self._expiry.revive(agent)

    def notify_idle(self, agent: Agent) -> None:
        """Send one notice about each request that an idle agent has seen and not answered, to the request's sender.

        A sender is notified only once for each request. Fast if there is no such request.
        """
        self._expiry.notify_idle(agent)

    def process_deadlines(self, now: float) -> int:
        """Send one notice about each request whose deadline is not after `now`, to its sender. Return how many.

        A sender is notified only once for each request and recipient. Fast if there is no such request.
        """
        return self._expiry.process_deadlines(now)

    # -- messages --------------------------------------------------------------------------------------

    def send(self, sender: Agent, draft: Draft, *, project: str = "") -> SendResult:
        """Send a message to all its recipients, or to none. It survives a power failure once this returns.

        Raises `MailError` if it was not sent. `project` determines the recipients of `everyone` if the sender has no
        project.
        """
        return self._sender.send(sender, draft, project)

    def send_many(self, items: Sequence[tuple[Agent, Draft]], *, project: str = "") -> list[SendResult | MailError]:
        """Send messages in one transaction. Return the result or the error of each, in order.

        An invalid draft does not affect the others. An error of the storage fails all.
        """
        return self._sender.send_many(items, project)

    def reply(
        self,
        sender: Agent,
        message_id: int,
        body: str,
        *,
        subject: str = "",
        to_all: bool = False,
        priority: Priority = "normal",
        intent: Intent = "inform",
        deadline: float = 0.0,
        key: str = "",
        project: str = "",
    ) -> SendResult:
        """Reply to the sender of a message; with `to_all`, also to its other recipients.

        If the replying agent wrote the message itself, the reply goes to the recipients of that message. Marks the
        message as answered, and also earlier requests in its thread that a recipient of the reply sent to this agent.
        """
        draft = Draft(
            to=(),
            subject=subject,
            body=body,
            priority=priority,
            intent=intent,
            reply_to=message_id,
            deadline=deadline,
            key=key,
        )
        return self._sender.reply(sender, draft, project, to_all=to_all)

    def read(self, reader: Agent, message_id: int) -> tuple[Message, list[Delivery]]:
        """Return a message and its deliveries, and mark the reader's own delivery as read.

        The message is not shown to the reader any more. Raises `NoSuchMessage`, and `NotYours` unless the reader wrote
        or received the message, or is the user.
        """
        message, _ = self._sender.message_for(reader, message_id)
        with self._cache.locked():
            previous = self._storage.mark_read(reader.id, message_id, self._now())
            if previous == "queued":
                self._cache.dequeue(reader.id, QueueSize(1, int(message.priority == "urgent")))
            if previous is not None and message.intent == "request":
                self._cache.owing_reply.add(reader.id)
            self._cache.note_marked((message,))
        return message, self._deliveries(message_id)

    def ledger(self, reader: Agent, message_id: int) -> list[Delivery]:
        """Return the deliveries of a message.

        Raises `NoSuchMessage`, and `NotYours` unless the reader wrote or received the message, or is the user.
        """
        self._sender.message_for(reader, message_id)
        return self._deliveries(message_id)

    def thread(self, reader: Agent, message_id: int, *, limit: int = 100, before: int = 0) -> list[Message]:
        """Return the last messages in the thread of a message, oldest first.

        Contains only messages that the reader wrote or received, or all if the reader is the user. For the page before,
        pass the first message's id as `before`.
        """
        message, _ = self._sender.message_for(reader, message_id)
        return self._storage.thread(message.thread, _reader_id(reader), limit=_bounded(limit), before=before)[::-1]

    def inbox(
        self, agent: Agent, *, stages: tuple[Stage, ...] = ("queued", "shown"), limit: int = 50, before: int = 0
    ) -> list[tuple[Delivery, Message]]:
        """Return an agent's deliveries in these stages with their messages, newest first.

        For the next page, pass the last message's id as `before`.
        """
        if not self.queued_count(agent):
            stages = tuple(stage for stage in stages if stage != "queued")
        return self._storage.inbox(agent.id, stages, limit=_bounded(limit), before=before)

    def search(self, reader: Agent, text: str, *, limit: int = 50, before: int = 0) -> list[Message]:
        """Return messages with a text in their subject or body, ignoring case, newest first.

        Contains only messages that the reader wrote or received, or all if the reader is the user. For the next page,
        pass the last message's id as `before`.
        """
        return self._storage.search(replace_surrogates(text), _reader_id(reader), limit=_bounded(limit), before=before)

    def index_messages(self, limit: int) -> bool:
        """Add up to `limit` messages of an earlier Fairlead to the index of `search`. Return whether more are left."""
        return self._storage.index_messages(limit)

    def unanswered_by(self, agent: Agent, *, limit: int = 100) -> list[tuple[Delivery, Message]]:
        """Return the requests to an agent that it has not answered, oldest first, without bounced ones."""
        requests = self._storage.unanswered_by(agent.id, limit=_bounded(limit))
        return [(request.delivery, request.message) for request in requests]

    def unanswered_from(self, agent: Agent, *, limit: int = 100) -> list[tuple[Delivery, Message]]:
        """Return the requests of an agent that others have not answered, oldest first, once for each recipient."""
        requests = self._storage.unanswered_from(agent.id, limit=_bounded(limit))
        return [(request.delivery, request.message) for request in requests]

    # -- topics ----------------------------------------------------------------------------------------

    def subscribe(self, agent: Agent, topic: str) -> Topic:
        """Subscribe an agent to a topic, and return the topic. Raises `BadName` if the topic is malformed.

        The topic may be written with or without `#`.
        """
        name = validate_topic(topic)
        with self._cache.locked():
            self._storage.subscribe(name, self._agents.current(agent).id)
            self._cache.topics.add(name, agent.id)
            return self._topic(name)

    def unsubscribe(self, agent: Agent, topic: str) -> Topic:
        """Remove an agent from a topic, and return the topic. Raises `BadName` if the topic is malformed."""
        name = validate_topic(topic)
        with self._cache.locked():
            self._storage.unsubscribe(name, agent.id)
            self._cache.topics.remove(name, agent.id)
            return self._topic(name)

    def topics(self) -> list[Topic]:
        """Return the topics that have subscribers on this host or another, sorted by name."""
        with self._cache.locked():
            remote = self._team.topic_names() if self._team is not None else set()
            return [self._topic(name) for name in sorted({*self._cache.topics.names(), *remote})]

    # -- delivery --------------------------------------------------------------------------------------

    def queued_count(self, agent: Agent, *, urgent_only: bool = False) -> int:
        """Return how many deliveries are queued for an agent, or how many of these are urgent. Never blocks."""
        size = self._cache.queue_size(agent.id)
        return size.urgent if urgent_only else size.queued

    def show(
        self, agent: Agent, event: str, event_id: str, *, urgent_only: bool = False, limit: int = 10
    ) -> list[Message]:
        """Mark the first deliveries of an agent's queue as shown at an event, and return their messages.

        With `urgent_only`, only urgent deliveries, and earlier deliveries in the same threads. `requeue` undoes the
        showing by `event_id`.
        """
        if limit <= 0 or not self.queued_count(agent, urgent_only=urgent_only):
            return []
        event, event_id = replace_surrogates_in(event, event_id)
        with self._cache.locked():
            messages = self._storage.show(
                agent.id,
                event=event,
                event_id=event_id,
                at=self._now(),
                limit=limit,
                urgent_only=urgent_only,
            )
            urgent = sum(message.priority == "urgent" for message in messages)
            self._cache.dequeue(agent.id, QueueSize(len(messages), urgent))
            if any(message.intent == "request" for message in messages):
                self._cache.owing_reply.add(agent.id)
            self._cache.note_marked(messages)
        return messages

    def show_bounded(
        self, agent: Agent, event: str, event_id: str, *, urgent_only: bool = False, has_next_page: bool = False
    ) -> tuple[list[Message], int | QueueSummary]:
        """Show as many messages as fit into one text. Return them, and how many are still queued.

        If more are queued than the next event could show, marks all of them as shown and returns a summary of them
        instead of their number. So an agent does not have to read 2 000 messages in a hundred turns. With
        `has_next_page` they stay queued, because the agent requests one page after the other.
        """
        messages = self.show(agent, event, event_id, urgent_only=urgent_only, limit=MAX_SHOWN_MESSAGES)
        left = self.queued_count(agent, urgent_only=urgent_only)
        if messages and not has_next_page and left > MAX_SHOWN_MESSAGES:
            return messages, self.show_all_counted(agent, event, event_id)
        return messages, left

    def show_all_counted(self, agent: Agent, event: str, event_id: str) -> QueueSummary:
        """Mark all queued deliveries of an agent as shown at an event, and return how many each sender sent."""
        event, event_id = replace_surrogates_in(event, event_id)
        with self._cache.locked():
            summary = self._storage.show_all_counted(agent.id, event=event, event_id=event_id, at=self._now())
            self._cache.clear_queue(agent.id)
            if summary.requests:
                self._cache.owing_reply.add(agent.id)
            self._cache.note_outgoing()
        return summary

    def requeue(self, event_id: str, *, may_repeat: bool = False) -> int:
        """Queue the deliveries again that were shown at an event whose reply was not printed, and return how many.

        Deliveries that were read since stay read, and deliveries to ended agents bounce. Set `may_repeat` if the reply
        may have been printed. The next showing then says that it may be a repeat.
        """
        if not event_id:
            return 0
        with self._cache.locked():
            requeued = self._storage.requeue(replace_surrogates(event_id), ENDED_REASON, may_repeat=may_repeat)
            for number, size in requeued.items():
                self._cache.enqueue(number, size)
            if requeued:
                self._cache.note_outgoing()
        return sum(size.queued for size in requeued.values())

    # -- pruning ---------------------------------------------------------------------------------------

    def prune(self, older_than: float) -> int:
        """Delete messages from before a Unix time that are no longer queued, and return how many.

        Also deletes agents that ended before that time, if they have no messages left.
        """
        return self._expiry.prune(older_than)

    # -- internal --------------------------------------------------------------------------------------

    def _deliveries(self, message_id: int) -> list[Delivery]:
        rows = self._storage.deliveries(message_id)
        if any(number >= FIRST_REMOTE_ID for number, _ in rows):
            return self.team.with_transit_states(message_id, rows)
        return [delivery for _, delivery in rows]

    def _topic(self, name: str) -> Topic:
        agents = (self._agents.get(number) for number in self._cache.topics.subscribers(name))
        names = [agent.name for agent in agents if agent]
        if self._team is not None:
            names += self._team.subscriber_names(name)
        return Topic(name=name, subscribers=tuple(names))


def _bounded(limit: int) -> int:
    return max(0, min(limit, _MAX_PAGE_SIZE))


def _reader_id(reader: Agent) -> int:
    """Return the id by which the storage filters messages; 0 for the user, who may read all."""
    return 0 if reader.id == USER.id else reader.id
