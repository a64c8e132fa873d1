"""The person's own mail in one word, for status lines."""

from __future__ import annotations

from fairlead.cli.support.invocation import current
from fairlead.errors import FairleadError


def with_user_mail(line: str) -> str:
    """Return a status line with the number of messages that wait for the person, and of those to be answered."""
    try:
        counts = current().request("GET", "/v1/mail/user")
        text = to_text(int(counts["unread"]), int(counts["owes"]))
    except (FairleadError, ValueError, KeyError, TypeError):  # a daemon without mail, or an older one
        text = ""
    return " | ".join(filter(None, (text, line)))


def to_text(unread: int, owed: int) -> str:
    """Return the numbers as text; "" if there is nothing."""
    parts = [f"{unread} unread"] if unread else []
    parts += [f"{owed} to answer"] if owed else []
    return f"mail: {', '.join(parts)}" if parts else ""
