"""Encodes questions for other hosts, where a person can answer them, and decodes the questions of other hosts.

A question is redacted and shortened before it leaves the host. If a part is missing on the other host, it can be
denied there, but not allowed. Otherwise an agent could hide the dangerous part of a command by making it look like a
secret.
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
"""The maximum size of a question that is published in full."""
MAX_QUESTIONS = 50
TOO_LONG = "it is too long to be shown on another host"
HIDDEN = "a part of it looks like a secret, and is not shown on other hosts"

_DECISIVE = ("tool", "text", "choices", "cwd", "project", "agent_type")
"""The fields on which a person bases the decision."""
_ID = re.compile(r"[a-z0-9]{1,20}\Z")


def redacted_question(question: Question) -> Question:
    """Return a question without secrets, for other hosts. If it cannot be allowed there, `only_deny` says why."""
    only_deny = ""
    if len(msgspec.json.encode(question)) > MAX_QUESTION_BYTES:
        question = replace(question, text=bounded_question(question.text), choices=())
        only_deny = TOO_LONG
    redacted = msgspec.json.decode(redact_for_others(msgspec.json.encode(question)), type=Question)
    if any(getattr(redacted, name) != getattr(question, name) for name in _DECISIVE):
        only_deny = only_deny or HIDDEN
    # These fields identify the question. The agent does not set them.
    return replace(
        redacted, id=question.id, asked=question.asked, expires=question.expires, event="", only_deny=only_deny
    )


def read_questions(rows: Sequence[msgspec.Raw], host: str) -> tuple[Question, ...]:
    """Return the questions in the snapshot of a host. Those that cannot be decoded are left out."""
    questions: list[Question] = []
    for row in rows[:MAX_QUESTIONS]:
        try:
            question = msgspec.json.decode(row, type=Question)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue  # from a newer version
        if _ID.match(question.id) and len(row) <= 2 * MAX_QUESTION_BYTES:
            questions.append(replace(question, host=host))
    return tuple(questions)
