"""What agents tell each other: who they are, messages, the ledger. Nothing here knows HTTP, a client or a database.

The office is loaded on first use: a command that only names what it sends needs the values alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.mail._errors import (
    BadMessage,
    BadName,
    MailBusy,
    MailError,
    MailFull,
    MailUnreachable,
    NobodyThere,
    NoSuchAgent,
    NoSuchMessage,
    NotYours,
    TooLarge,
)
from fairlead.mail._port import (
    TOLD_ENDED,
    TOLD_IDLE,
    TOLD_LATE,
    Former,
    Loaded,
    MailBox,
    Owed,
    Post,
    Swept,
    Waiting,
)
from fairlead.mail._types import (
    FAIRLEAD,
    FIRST_ID,
    INTENTS,
    LONGEST_BODY,
    LONGEST_KEY,
    LONGEST_SUBJECT,
    MOST_RECIPIENTS,
    PRIORITIES,
    SCRIPT,
    STAGES,
    USER,
    Agent,
    Draft,
    Intent,
    Letter,
    Message,
    Priority,
    Sent,
    Stage,
    Standing,
    Topic,
)

if TYPE_CHECKING:
    from fairlead.mail._office import Office

__all__ = [
    "FAIRLEAD",
    "FIRST_ID",
    "INTENTS",
    "LONGEST_BODY",
    "LONGEST_KEY",
    "LONGEST_SUBJECT",
    "MOST_RECIPIENTS",
    "PRIORITIES",
    "SCRIPT",
    "STAGES",
    "TOLD_ENDED",
    "TOLD_IDLE",
    "TOLD_LATE",
    "USER",
    "Agent",
    "BadMessage",
    "BadName",
    "Draft",
    "Former",
    "Intent",
    "Letter",
    "Loaded",
    "MailBox",
    "MailBusy",
    "MailError",
    "MailFull",
    "MailUnreachable",
    "Message",
    "NoSuchAgent",
    "NoSuchMessage",
    "NobodyThere",
    "NotYours",
    "Office",
    "Owed",
    "Post",
    "Priority",
    "Sent",
    "Stage",
    "Standing",
    "Swept",
    "TooLarge",
    "Topic",
    "Waiting",
]


def __getattr__(name: str) -> object:
    """Load the office on first use."""
    if name != "Office":
        raise AttributeError(f"module 'fairlead.mail' has no attribute {name!r}")
    from fairlead.mail._office import Office as office  # noqa: N813, PLC0415 - only who uses it pays for it

    globals()[name] = office
    return office
