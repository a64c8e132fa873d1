"""The office: takes messages, knows who waits for what, shows each letter once. The one service of the mail."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fairlead.mail._cache import MailCache
from fairlead.mail._expiry import Expiry
from fairlead.mail._identity import Identity
from fairlead.mail._names import checked_topic
from fairlead.mail._notices import HAD_ENDED
from fairlead.mail._sending import Sending
from fairlead.mail._storage import Waiting
from fairlead.mail._types import USER, Draft, Topic
from fairlead.text import replace_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlead.mail._errors import MailError
    from fairlead.mail._storage import MailStorage
    from fairlead.mail._types import Agent, Delivery, Intent, Message, Priority, Sent, Stage, Standing

_SWEPT_AT_ONCE = 500
_LONGEST_PAUSE = 0.05
_LONGEST_LIST = 1000


class MessageService:
    """Any thread may call it. `waiting`, `seen`, `known` and `current` never wait; the rest may, for the disk.

    - A message that `send` has given back outlives a power failure.
    - Each letter is shown once: `show` has marked it when it returns, in the order in which messages were accepted.
    - Every error is a `MailError`. After one nothing was changed, and it may be tried again.
    - An `Agent` that is passed in names one by its id; whatever else it says may be out of date.
    """

    def __init__(self, box: MailStorage, now: Callable[[], float] = time.time) -> None:
        """Take over a box: read who there is, and what waits for them."""
        self._box = box
        self._now = now
        self._memory = MailCache(box.load())
        self._people = self._memory.people
        self._identity = Identity(box, self._memory, now)
        self._sending = Sending(box, self._memory, now)
        self._leaving = Expiry(box, self._memory, now)

    def on_mail(self, call: Callable[[Agent], None]) -> None:
        """Have this called after each commit that queued something for an agent, in the thread that made it.

        It must be quick; it may call the office.
        """
        self._memory.listen(call)

    # -- who there is ----------------------------------------------------------------------------------

    def agent_for(
        self, session: str, *, agent_id: str = "", agent_type: str = "", project: str = "", begins: bool = False
    ) -> Agent:
        """Give the agent of a session, or of its subagent; it is made when it is first heard of.

        One that has ended is given as it is: `revived` lets it live again. An id that the agent had before a /clear
        leads to it, unless the session of that id `begins` anew: then it is another agent if the first one lives.
        """
        return self._identity.agent_for(session, agent_id, agent_type, project, begins=begins)

    def known(self, session: str, agent_id: str = "") -> Agent | None:
        """Give the agent of a session, or of its subagent, if there is one. Never waits."""
        return self._identity.known(session, agent_id)

    def current(self, agent: Agent) -> Agent:
        """Give an agent as it is now. Never waits."""
        return self._people.current(agent)

    def find(self, name: str) -> Agent:
        """Give the agent of a name, in whatever case it is written; `NoSuchAgent` tells the nearest names."""
        return self._people.find(name)

    def agents(self, project: str | None = None, *, ended: bool = False) -> list[Agent]:
        """Give sessions and subagents by name, all or those of a project; the ended ones too if asked for."""
        with self._memory.turn():
            everybody = self._people.everybody()
        return [one for one in everybody if project in (None, one.project) and (ended or not one.ended)]

    def standings(self) -> dict[int, Standing]:
        """Say how much mail each agent has before it, by the agents' ids; who has none is left out."""
        return self._box.standings([USER.id, *(agent.id for agent in self.agents())])

    def continue_as(self, old_session: str, new_session: str) -> Agent:
        """Let an agent go on under another session id, with name, queue and subagents, as after /clear."""
        agent = self._identity.continue_as(old_session, new_session) or self.agent_for(new_session)
        return self.revived(agent)

    def rename(self, agent: Agent, name: str) -> Agent:
        """Give a session another name; its subagents go with it. `BadName` if it cannot be had."""
        return self._identity.rename(agent, name)

    def save(self, agent: Agent, status: str) -> Agent:
        """Keep what an agent wants to be told about itself later, in `saved`."""
        return self._identity.save(agent, status)

    def seen(self, agent: Agent, at: float) -> None:
        """Note a sign of life, in memory; `flush` keeps it. Never waits."""
        self._people.see(agent.id, at, self._now())

    def flush(self) -> None:
        """Keep when agents were last seen, all in one batch."""
        self._identity.flush()

    def ended(self, agent: Agent, why: str) -> None:
        """Mark an agent and its subagents as ended: what is queued for them bounces.

        Who asked them something that they did not answer gets a notice. To one that has ended already, nothing happens.
        """
        self._leaving.ended(agent, why)

    def revived(self, agent: Agent) -> Agent:
        """Let an agent live again, as at a resume: what bounced while it was away is queued. Not its subagents."""
        return self._leaving.revived(agent)

    def went_idle(self, agent: Agent) -> None:
        """Give a notice to each whose request the agent has seen and not answered, once. Cheap if there is none."""
        self._leaving.went_idle(agent)

    def due(self, now: float) -> int:
        """Give a notice to each whose request was not answered by its deadline, once; say how many. Cheap."""
        return self._leaving.due(now)

    # -- messages --------------------------------------------------------------------------------------

    def send(self, sender: Agent, draft: Draft, *, project: str = "") -> Sent:
        """Send a message: to all whom it is addressed to, or to none. It outlives a power failure when this returns.

        `project` is where the sender is, if it has no project of its own: that of `everyone`.
        """
        return self._sending.send(sender, draft, project)

    def send_many(self, items: Sequence[tuple[Agent, Draft]], *, project: str = "") -> list[Sent | MailError]:
        """Send messages in one transaction. Each is sent or refused by itself; trouble of the disk refuses all."""
        return self._sending.send_many(items, project)

    def reply(  # noqa: PLR0913 - each says one thing of it, and has a name
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
    ) -> Sent:
        """Answer a message: to its sender, or also to all who got it. Who replies to its own writes to those.

        It answers the request that it replies to, and what the same sender asked earlier in the thread.
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
        return self._sending.reply(sender, draft, project, to_all=to_all)

    def read(self, reader: Agent, message_id: int) -> tuple[Message, list[Delivery]]:
        """Give a message and its ledger to one of those who wrote or got it; the person may read all.

        The reader's own letter is marked as read, and will not be shown any more.
        """
        message, _ = self._sending.message_for(reader, message_id)
        with self._memory.turn():
            was = self._box.read(reader.id, message_id, self._now())
            if was == "queued":
                self._memory.unqueue(reader.id, Waiting(1, int(message.priority == "urgent")))
            if was is not None and message.intent == "request":
                self._memory.owing.add(reader.id)
        return message, self._letters(message_id)

    def ledger(self, asker: Agent, message_id: int) -> list[Delivery]:
        """Say how a message fares with each recipient, to one of those who wrote or got it."""
        self._sending.message_for(asker, message_id)
        return self._letters(message_id)

    def thread(self, asker: Agent, message_id: int, *, limit: int = 100, before: int = 0) -> list[Message]:
        """Give the last of what the asker wrote or got in the thread of a message, in order."""
        message, _ = self._sending.message_for(asker, message_id)
        reader = 0 if asker.id == USER.id else asker.id
        return self._box.thread(message.thread, reader, limit=_bounded(limit), before=before)[::-1]

    def inbox(
        self, agent: Agent, *, stages: tuple[Stage, ...] = ("queued", "shown"), limit: int = 50, before: int = 0
    ) -> list[tuple[Delivery, Message]]:
        """Give an agent's letters, the newest first; to turn the page, give the last message's id as `before`."""
        return self._box.inbox(agent.id, stages, limit=_bounded(limit), before=before)

    def search(self, asker: Agent, text: str, *, limit: int = 50, before: int = 0) -> list[Message]:
        """Find a text in subjects and bodies of what the asker wrote or got, the newest first."""
        reader = 0 if asker.id == USER.id else asker.id
        return self._box.search(replace_surrogates(text), reader, limit=_bounded(limit), before=before)

    def owed_by(self, agent: Agent, *, limit: int = 100) -> list[tuple[Delivery, Message]]:
        """Give the requests that an agent has not answered, the oldest first."""
        return [(one.letter, one.message) for one in self._box.owed_by(agent.id, limit=_bounded(limit))]

    def owed_to(self, agent: Agent, *, limit: int = 100) -> list[tuple[Delivery, Message]]:
        """Give the requests of an agent that were not answered, the oldest first, by recipient."""
        return [(one.letter, one.message) for one in self._box.owed_to(agent.id, limit=_bounded(limit))]

    # -- topics ----------------------------------------------------------------------------------------

    def subscribe(self, agent: Agent, topic: str) -> Topic:
        """Let an agent listen to a topic, with or without its `#`."""
        name = checked_topic(topic)
        with self._memory.turn():
            self._box.subscribe(name, self._people.current(agent).id)
            self._memory.topics.add(name, agent.id)
            return self._topic(name)

    def unsubscribe(self, agent: Agent, topic: str) -> Topic:
        """Let it listen no more."""
        name = checked_topic(topic)
        with self._memory.turn():
            self._box.unsubscribe(name, agent.id)
            self._memory.topics.remove(name, agent.id)
            return self._topic(name)

    def topics(self) -> list[Topic]:
        """Give the topics that somebody listens to, by name."""
        with self._memory.turn():
            return [self._topic(name) for name in self._memory.topics.names()]

    # -- showing ---------------------------------------------------------------------------------------

    def waiting(self, agent: Agent, *, urgent_only: bool = False) -> int:
        """Say how many letters are queued for an agent. Never waits."""
        waiting = self._memory.waiting(agent.id)
        return waiting.urgent if urgent_only else waiting.queued

    def may_owe(self, agent: Agent) -> bool:
        """Tell whether an agent may have seen a request that it did not answer. Never waits."""
        return agent.id in self._memory.owing

    def show(
        self, agent: Agent, event: str, event_id: str, *, urgent_only: bool = False, most: int = 10
    ) -> list[Message]:
        """Take the first letters from an agent's queue, to be shown at an event. They are marked when this returns.

        Of the urgent ones alone, with what is queued before them in their threads.
        """
        if most <= 0 or not self.waiting(agent, urgent_only=urgent_only):
            return []
        at = self._now()
        with self._memory.turn():
            shown = self._box.show(
                agent.id,
                event=replace_surrogates(event),
                event_id=replace_surrogates(event_id),
                at=at,
                most=most,
                urgent_only=urgent_only,
            )
            urgent = sum(message.priority == "urgent" for message in shown)
            self._memory.unqueue(agent.id, Waiting(len(shown), urgent))
            if any(message.intent == "request" for message in shown):
                self._memory.owing.add(agent.id)
        return shown

    def unshow(self, event_id: str) -> int:
        """Queue again what was shown at an event whose answer never arrived; say how many letters that is."""
        if not event_id:
            return 0
        with self._memory.turn():
            again = self._box.unshow(replace_surrogates(event_id), HAD_ENDED)
            for number, waiting in again.items():
                self._memory.queue(number, waiting)
        return sum(waiting.queued for waiting in again.values())

    # -- keeping small ---------------------------------------------------------------------------------

    def retain(self, older_than: float) -> int:
        """Delete the messages from before a Unix time, but none that is still queued; say how many went."""
        gone, after, is_done = 0, None, False
        while not is_done:
            with self._memory.turn():
                began = time.monotonic()
                swept = self._box.sweep(older_than, after=after, most=_SWEPT_AT_ONCE)
                taken = time.monotonic() - began
            gone, after, is_done = gone + swept.gone, swept.after, swept.after is None
            time.sleep(min(taken, _LONGEST_PAUSE))
        with self._memory.turn():
            for number in self._box.forget_agents(older_than):
                self._memory.forget(number)
        while self._box.tidy():
            time.sleep(0)
        return gone

    # -- within ----------------------------------------------------------------------------------------

    def _letters(self, message_id: int) -> list[Delivery]:
        return [letter for _, letter in self._box.letters(message_id)]

    def _topic(self, name: str) -> Topic:
        agents = (self._people.get(number) for number in self._memory.topics.subscribers(name))
        return Topic(name=name, subscribers=tuple(agent.name for agent in agents if agent))


def _bounded(limit: int) -> int:
    return max(0, min(limit, _LONGEST_LIST))
