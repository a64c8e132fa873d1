"""How messages are sent: drafts of many threads become posts, and one commit keeps all that wait for it."""

from __future__ import annotations

from collections import deque
from copy import copy
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fairlead.mail._errors import MailError, MailUnreachable, NoSuchMessage, NotYours
from fairlead.mail._notices import HAD_ENDED
from fairlead.mail._storage import Post
from fairlead.mail._types import FAIRLEAD, USER, Message, Sent
from fairlead.mail._validate import checked, subject_of_reply
from fairlead.text import replace_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fairlead.mail._cache import MailCache
    from fairlead.mail._storage import MailStorage
    from fairlead.mail._types import Agent, Draft

_TOO_HIGH = 2**63
"""No database counts so far."""


class Order(msgspec.Struct):
    """A draft that somebody waits for, and what became of it."""

    sender: Agent
    draft: Draft
    project: str
    sent: Sent | None = None
    error: BaseException | None = None

    @property
    def key(self) -> tuple[int, str]:
        """Under which it is sent only once, if the second part is not empty."""
        return self.sender.id, replace_surrogates(self.draft.key)

    @property
    def is_done(self) -> bool:
        """Whether it was sent or refused."""
        return self.sent is not None or self.error is not None

    def outcome(self) -> Sent | MailError:
        """Give what became of it. Each who waited gets an error of its own: it is going to carry a traceback."""
        if self.sent is not None:
            return self.sent
        if isinstance(self.error, MailError):
            return copy(self.error)
        return MailUnreachable("the message was not sent: another thread was interrupted while it sent for all")


class Sending:
    """Sends. Who comes first commits for all who wait by then, so that they share one sync of the disk."""

    def __init__(self, box: MailStorage, memory: MailCache, now: Callable[[], float]) -> None:
        """Name where messages go, and the clock."""
        self._box = box
        self._memory = memory
        self._now = now
        self._orders: deque[Order] = deque()

    def send(self, sender: Agent, draft: Draft, project: str) -> Sent:
        """Send a message, with those of all who wait."""
        order = Order(sender, draft, project)
        self._orders.append(order)
        with self._memory.turn():
            if not order.is_done:
                self._commit([self._orders.popleft() for _ in range(len(self._orders))])
        outcome = order.outcome()
        if isinstance(outcome, MailError):
            raise outcome
        return outcome

    def send_many(self, items: Iterable[tuple[Agent, Draft]], project: str) -> list[Sent | MailError]:
        """Send messages in one transaction."""
        orders = [Order(sender, draft, project) for sender, draft in items]
        with self._memory.turn():
            self._commit(orders)
        return [order.outcome() for order in orders]

    def reply(self, sender: Agent, draft: Draft, project: str, *, to_all: bool) -> Sent:
        """Send an answer to a message; to whom is told by that message, and its subject if it has none of its own."""
        asked, writer = self.message_for(sender, draft.reply_to)
        meant = [writer]
        if to_all or writer == sender.id:
            meant += [number for number, _ in self._box.letters(draft.reply_to)]
            meant = [number for number in meant if number not in (sender.id, FAIRLEAD.id)]
        to = tuple(agent.name for agent in map(self._memory.people.get, meant) if agent)
        subject = draft.subject or subject_of_reply(asked.subject)
        return self.send(sender, replace(draft, to=to, subject=subject), project)

    def message_for(self, asker: Agent, message_id: int) -> tuple[Message, int]:
        """Give a message and its sender's id to one of those who wrote or got it, or to the person."""
        found = self._box.message(message_id) if 0 < message_id < _TOO_HIGH else None
        if found is None:
            raise NoSuchMessage(f"there is no message {message_id}; `fairlead inbox` lists yours")
        is_known = asker.id in (USER.id, found[1])
        if not is_known and all(number != asker.id for number, _ in self._box.letters(message_id)):
            raise NotYours(f"message {message_id} was neither written by {asker.name} nor sent to it")
        return found

    def _commit(self, orders: Sequence[Order]) -> None:
        try:
            self._send_all(orders)
        except MailError as error:
            for order in orders:
                order.error = order.error or error
        except BaseException as error:
            for order in orders:
                order.error = order.error or error
            raise

    def _send_all(self, orders: Sequence[Order]) -> None:
        """Keep all that can be sent, or nothing; then tell each what became of it."""
        keys = {order.key for order in orders if order.draft.key}
        before = self._box.sent_before(keys) if keys else {}
        ready: list[tuple[Order, Post, tuple[Agent, ...]]] = []
        again: list[tuple[Order, Order]] = []
        firsts: dict[tuple[int, str], Order] = {}
        for order in orders:
            key = order.key
            try:
                if key in before:
                    order.sent = self._sent_before(before[key])
                elif key in firsts:
                    again.append((order, firsts[key]))
                else:
                    ready.append((order, *self._post(order, self._memory.last_message + len(ready) + 1)))
                    if order.draft.key:
                        firsts[key] = order
            except MailError as error:
                order.error = error
        posts = [post for _, post, _ in ready]
        if posts:
            self._memory.posted(posts, self._box.post(posts))
        for order, post, recipients in ready:
            order.sent = Sent(message=post.message, recipients=recipients)
        for order, first in again:
            order.sent = first.sent and replace(first.sent, is_new=False)

    def _post(self, order: Order, number: int) -> tuple[Post, tuple[Agent, ...]]:
        at = self._now()
        draft = checked(order.draft, at)
        people = self._memory.people
        sender = people.current(order.sender)
        thread = self.message_for(sender, draft.reply_to)[0].thread if draft.reply_to else number
        to, recipients = self._memory.directory.resolve(sender, draft.to, order.project)
        message = Message(
            id=number,
            at=at,
            sender=sender.name,
            to=to,
            subject=draft.subject,
            body=draft.body,
            priority=draft.priority,
            intent=draft.intent,
            thread=thread,
            reply_to=draft.reply_to,
            deadline=draft.deadline,
            project=sender.project or replace_surrogates(order.project),
        )
        gone = tuple(agent.id for agent in recipients if agent.ended)
        post = Post(
            message=message,
            sender=sender.id,
            recipients=tuple(agent.id for agent in recipients),
            gone=gone,
            why=HAD_ENDED if gone else "",
            key=draft.key,
            answers=sender.id if draft.reply_to else 0,
        )
        return post, recipients

    def _sent_before(self, message: Message) -> Sent:
        """Give a message that was sent before, to whom it went then."""
        people = self._memory.people
        agents = (people.get(number) for number, _ in self._box.letters(message.id))
        return Sent(message=message, recipients=tuple(agent for agent in agents if agent), is_new=False)
