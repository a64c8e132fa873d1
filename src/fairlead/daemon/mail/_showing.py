"""Shows the mail of an agent at an event: a limited number of messages, and the number of those that are left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.mail import MAX_SHOWN_MESSAGES

if TYPE_CHECKING:
    from fairlead.mail import Agent, Message, MessageService
    from fairlead.mail.render import Left

_POLL = "poll"
"""The event name of polls, which return mail page by page."""


def show_bounded(
    service: MessageService, agent: Agent, event_name: str, showing: str, *, urgent_only: bool
) -> tuple[list[Message], Left]:
    """Mark mail as shown. Returns the first messages, and how many are left for the next events.

    If more are left than the next event could show, the whole queue is summarized and marked as shown. So an agent does
    not have to read 2 000 messages in a hundred turns.
    """
    messages = service.show(agent, event_name, showing, urgent_only=urgent_only, limit=MAX_SHOWN_MESSAGES)
    left = service.queued_count(agent, urgent_only=urgent_only)
    if messages and event_name != _POLL and left > MAX_SHOWN_MESSAGES:
        return messages, service.show_all_counted(agent, event_name, showing)
    return messages, left
