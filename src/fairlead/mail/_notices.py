"""Notices: what Fairlead tells the sender of a request that was not answered. Nobody gets a notice about a notice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.mail._storage import TOLD_ENDED, TOLD_IDLE, TOLD_LATE, Post
from fairlead.mail._types import FAIRLEAD, LONGEST_SUBJECT, Message

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from fairlead.mail._directory import AgentDirectory
    from fairlead.mail._storage import Owed

HAD_ENDED = "the agent had ended"
"""Why a letter bounces that comes too late."""

WHAT = {
    TOLD_ENDED: "ended without answering",
    TOLD_IDLE: "went idle without answering",
    TOLD_LATE: "has not answered in time",
}


def untold(owed: Iterable[Owed], reason: int) -> list[Owed]:
    """Leave out those whose senders were told for this reason before."""
    return [one for one in owed if not one.told & reason]


def notices(  # noqa: PLR0913 - each says one thing of it, and has a name
    owed: Iterable[Owed], reason: int, people: AgentDirectory, *, first_id: int, at: float, ending: Collection[int] = ()
) -> list[Post]:
    """Write a notice for each. Those who have ended, or are ending now, find it when they come back."""
    return [
        _notice(one, reason, people, number=number, at=at, ending=ending) for number, one in enumerate(owed, first_id)
    ]


def _notice(  # noqa: PLR0913 - likewise
    owed: Owed, reason: int, people: AgentDirectory, *, number: int, at: float, ending: Collection[int]
) -> Post:
    sender, recipient = people.get(owed.sender), people.get(owed.recipient)
    is_gone = sender is None or bool(sender.ended) or sender.id in ending
    name = recipient.name if recipient else "somebody"
    asked = owed.message
    message = Message(
        id=number,
        at=at,
        sender=FAIRLEAD.name,
        to=(asked.sender,),
        subject=f"{name} {WHAT[reason]}: {asked.subject}"[:LONGEST_SUBJECT],
        body=f"{name} {WHAT[reason]} your request {asked.id}.\n{_stood(owed)}",
        priority=asked.priority,
        thread=asked.thread,
        reply_to=asked.id,
        project=asked.project,
    )
    return Post(
        message=message,
        sender=FAIRLEAD.id,
        recipients=(owed.sender,),
        gone=(owed.sender,) if is_gone else (),
        why=HAD_ENDED,
        tells=((asked.id, owed.recipient, reason),),
    )


def _stood(owed: Owed) -> str:
    seen = {"queued": "It had not seen it.", "bounced": "It had not seen it.", "shown": "It had seen it."}
    return seen.get(owed.letter.stage, "It had read it.")
