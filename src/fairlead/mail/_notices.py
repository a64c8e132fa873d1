"""Notices from Fairlead to the sender of an unanswered request. A notice never causes another notice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.mail._storage import NOTICE_ENDED, NOTICE_IDLE, NOTICE_OVERDUE, OutgoingMessage
from fairlead.mail._types import FAIRLEAD, MAX_SUBJECT_LENGTH, Message

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from fairlead.mail._directory import AgentDirectory
    from fairlead.mail._storage import UnansweredRequest

ENDED_REASON = "the agent had ended"
"""The reason of a bounce if the recipient had ended before the message was sent."""

_SUMMARIES = {
    NOTICE_ENDED: "ended without answering",
    NOTICE_IDLE: "went idle without answering",
    NOTICE_OVERDUE: "has not answered in time",
}


def build_notices(
    requests: Iterable[UnansweredRequest],
    reason: int,
    agents: AgentDirectory,
    *,
    first_id: int,
    at: float,
    ending: Collection[int] = (),
) -> list[OutgoingMessage]:
    """Return a notice for each request whose sender was not notified for this reason yet.

    `reason` is one of the `NOTICE_…` flags, `first_id` the id of the first notice, and `at` their time. A sender that
    has ended, or ends in the same transaction (`ending` has its id), receives the notice when it is resumed.
    """
    due = [request for request in requests if not request.notified & reason]
    return [
        _build_notice(request, reason, agents, number=number, at=at, ending=ending)
        for number, request in enumerate(due, first_id)
    ]


def _build_notice(
    request: UnansweredRequest,
    reason: int,
    agents: AgentDirectory,
    *,
    number: int,
    at: float,
    ending: Collection[int],
) -> OutgoingMessage:
    sender, recipient = agents.get(request.sender), agents.get(request.recipient)
    has_ended = sender is None or (bool(sender.ended) and not sender.host) or sender.id in ending
    asked = request.message
    # Another host knows neither the number of the message here nor names without a host.
    is_remote = sender is not None and bool(sender.host)
    name = agents.name_for_others(recipient) if recipient and is_remote else recipient.name if recipient else "somebody"
    summary = f"{name} {_SUMMARIES[reason]}"
    numbered = "" if is_remote else f" {asked.id}"
    message = Message(
        id=number,
        at=at,
        sender=FAIRLEAD.name,
        to=(asked.sender,),
        subject=f"{summary}: {asked.subject}"[:MAX_SUBJECT_LENGTH],
        body=f"{summary} your request{numbered}.\n{_stage_text(request)}",
        priority=asked.priority,
        thread=asked.thread,
        reply_to=asked.id,
        project=asked.project,
    )
    return OutgoingMessage(
        message=message,
        sender=FAIRLEAD.id,
        recipients=(request.sender,),
        ended_recipients=(request.sender,) if has_ended else (),
        bounce_reason=ENDED_REASON,
        marks_notified=((asked.id, request.recipient, reason),),
    )


def _stage_text(request: UnansweredRequest) -> str:
    texts = {"queued": "It had not seen it.", "bounced": "It had not seen it.", "shown": "It had seen it."}
    return texts.get(request.delivery.stage, "It had read it.")
