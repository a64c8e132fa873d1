"""Questions that a person on another host can answer: as this host tells them, and as it reads those of others.

What leaves the host is redacted and bounded. Who sees only a part of a question may deny it and not allow it: the part
that is missing could be what matters, and an agent can write a command so that a part of it looks like a secret.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fairlead.daemon.answers._questions import Question
from fairlead.journal import redact_for_others
from fairlead.sessions import bounded_question

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_QUESTION_BYTES = 16 * 1024
"""Of a question that is told as a whole."""
MAX_QUESTIONS = 50
TOO_LONG = "it is too long to be shown on another host"
HIDDEN = "a part of it looks like a secret, and is not shown on other hosts"

_DECISIVE = ("tool", "text", "choices", "cwd", "project", "agent_type")
"""What a person goes by."""
_ID = re.compile(r"[a-z0-9]{1,20}\Z")


def told_question(question: Question) -> Question:
    """Return a question as other hosts are told it; `only_deny` says why they cannot allow it, if they cannot."""
    only_deny = ""
    if len(msgspec.json.encode(question)) > MAX_QUESTION_BYTES:
        question = replace(question, text=bounded_question(question.text), choices=())
        only_deny = TOO_LONG
    redacted = msgspec.json.decode(redact_for_others(msgspec.json.encode(question)), type=Question)
    if any(getattr(redacted, name) != getattr(question, name) for name in _DECISIVE):
        only_deny = only_deny or HIDDEN
    # These identify it, and are not of the agent.
    return replace(
        redacted, id=question.id, asked=question.asked, expires=question.expires, event="", only_deny=only_deny
    )


def read_questions(rows: Sequence[msgspec.Raw], host: str) -> tuple[Question, ...]:
    """Return the questions in the news of a host, as far as they can be read."""
    found: list[Question] = []
    for row in rows[:MAX_QUESTIONS]:
        try:
            question = msgspec.json.decode(row, type=Question)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue  # of a newer version
        if _ID.match(question.id) and len(row) <= 2 * MAX_QUESTION_BYTES:
            found.append(replace(question, host=host))
    return tuple(found)
