"""Builds notices about messages that cannot be delivered to another host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.mail._notices import ENDED_REASON
from fairlead.mail._storage import OutgoingMessage
from fairlead.mail._types import FAIRLEAD, MAX_SUBJECT_LENGTH, Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.mail._cache import MailCache
    from fairlead.mail._storage import MailStorage

_MAX_NAMED = 10


def build_bounce_notices(
    rows: Iterable[tuple[int, int, int]], storage: MailStorage, cache: MailCache, *, host: str, why: str, at: float
) -> list[OutgoingMessage]:
    """Return one notice for each message that was not delivered to a host, addressed to its sender.

    `rows` are the deliveries, as tuples of message, sender and recipient. There is no notice about a notice. `host` is
    the name of the host, and `why` the reason, as the notices contain them.
    """
    by_message: dict[tuple[int, int], list[int]] = {}
    for message, sender, recipient in rows:
        if sender != FAIRLEAD.id:
            by_message.setdefault((message, sender), []).append(recipient)
    notices: list[OutgoingMessage] = []
    for (message, sender), recipients in by_message.items():
        stored, agent = storage.get_message(message), cache.agents.get(sender)
        if stored is None or agent is None:
            continue
        names = [agent.name for agent in map(cache.agents.get, recipients) if agent]
        named = ", ".join(names[:_MAX_NAMED]) + (", …" if len(names) > _MAX_NAMED else "")
        number = cache.last_message + len(notices) + 1
        notice = Message(
            id=number,
            at=at,
            sender=FAIRLEAD.name,
            to=(agent.name,),
            subject=f"not delivered to {host}: {stored[0].subject}"[:MAX_SUBJECT_LENGTH],
            body=f"Your message {message} to {named} was not delivered: {why}.",
            priority=stored[0].priority,
            thread=stored[0].thread,
            reply_to=message,
            project=stored[0].project,
        )
        ended = (sender,) if agent.ended else ()
        notices.append(
            OutgoingMessage(
                message=notice,
                sender=FAIRLEAD.id,
                recipients=(sender,),
                ended_recipients=ended,
                bounce_reason=ENDED_REASON,
            )
        )
    return notices
