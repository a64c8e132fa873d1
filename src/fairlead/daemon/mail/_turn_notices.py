"""Sends notices that the mail of an agent is held until the user writes to it: to the user and to the senders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.mail import FAIRLEAD, USER, Draft, MailError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.mail import Agent, Message, MessageService

_WITHOUT_NOTICE = frozenset({USER.name, FAIRLEAD.name})
_MAX_SENDERS = 10


def send_hold_notices(service: MessageService, agent: Agent, queued: Sequence[Message], reason: str) -> None:
    """Send the notices. Errors are ignored, because `fairlead status` shows the reason, too."""
    senders = list(dict.fromkeys(message.sender for message in queued if message.sender not in _WITHOUT_NOTICE))
    count = f"{len(queued)} message{'' if len(queued) == 1 else 's'}"
    to_user = Draft(
        to=(USER.name,),
        subject=f"Mail for {agent.name} waits for you: {reason}",
        body=(
            f"{count} from {', '.join(senders) or FAIRLEAD.name} to {agent.name} wait, because mail has kept it going "
            f"for {reason} without you.\nTo let it go on, write a prompt in its session, or send it a message: "
            f'fairlead send {agent.name} "…". The limits are mail.maxTurnsPerThread and mail.maxTurnsPerHour.'
        ),
    )
    to_senders = [
        Draft(
            to=(name,),
            subject=f"Your mail to {agent.name} waits for a person: {reason}",
            body=f"It is shown to {agent.name} after the user's next message to the agent. Do not send it again.",
            priority="low",
        )
        for name in senders[:_MAX_SENDERS]
        if name != agent.name
    ]
    for draft in (to_user, *to_senders):
        try:
            service.send(FAIRLEAD, draft)
        except MailError:
            continue
