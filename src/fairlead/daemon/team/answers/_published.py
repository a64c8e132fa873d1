"""The open questions of this host as they are published to other hosts, where a person can answer them.

A question is redacted and shortened before it leaves the host. If a part of it is missing on the other host, the
question can be denied there, but not allowed. Otherwise an agent could hide the dangerous part of a command by making
it look like a secret. Settings may change while a question is open. So it is not redacted again when an answer arrives:
the published version decides what other hosts can allow.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec.structs import replace

from fairlead.daemon.answers._questions import Question
from fairlead.journal import redact_for_others
from fairlead.sessions import bounded_question

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


NOT_PUBLISHED = "it was not published to other hosts"

_Key: TypeAlias = tuple[str, float]
"""The id and the time of a question. Ids are short, and may be used again."""
MAX_QUESTION_BYTES = 16 * 1024
"""The maximum size of a question that is published in full."""
MAX_QUESTIONS = 50
TOO_LONG = "it is too long to be shown on another host"
HIDDEN = "a part of it looks like a secret, and is not shown on other hosts"

_DECISIVE = ("tool", "text", "choices", "cwd", "project", "agent_type")
"""The fields on which a person bases the decision."""
_ID = re.compile(r"[a-z0-9]{1,20}\Z")


class PublishedQuestions:
    """The published questions. Written by the thread of the team, read by all: each value is replaced as a whole."""

    def __init__(self) -> None:
        self._only_deny: dict[_Key, str] = {}
        """By question: the reason why it cannot be allowed on other hosts; "" if it can be.

        A reason is kept while the question is open, because a person may have seen any of its versions.
        """
        self._prepared: frozenset[_Key] = frozenset()
        self._published: frozenset[_Key] = frozenset()

    def prepare(self, questions: Iterable[Question], *, is_on: bool) -> list[msgspec.Raw]:
        """Return the open questions for the snapshot of this host, the oldest first; none unless `is_on`.

        Returns at most `MAX_QUESTIONS`, redacted, and records them for `note_published` and `why_not_allowed`.
        """
        questions = list(questions)
        keys = {_key(question) for question in questions}
        only_deny = {key: why for key, why in self._only_deny.items() if key in keys}
        redacted = [redacted_question(question) for question in questions[:MAX_QUESTIONS]] if is_on else []
        redacted = [
            replace(question, only_deny=only_deny.get(_key(question)) or question.only_deny) for question in redacted
        ]
        # Recorded before it is published, because an error may occur after the relay has stored it.
        self._only_deny = only_deny | {_key(question): question.only_deny for question in redacted}
        self._prepared = frozenset(_key(question) for question in redacted)
        return [msgspec.Raw(msgspec.json.encode(question)) for question in redacted]

    def note_published(self) -> None:
        """Record that the questions that were prepared last are on the relay."""
        self._published = self._prepared

    def why_not_allowed(self, question: Question) -> str:
        """Return the reason why a question cannot be allowed on another host; "" if it can be allowed."""
        key = _key(question)
        return self._only_deny.get(key, NOT_PUBLISHED) if key in self._published else NOT_PUBLISHED


def _key(question: Question) -> _Key:
    return question.id, question.asked


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
    """Return the questions in the snapshot of the host with the name `host`, at most `MAX_QUESTIONS`.

    Questions that cannot be decoded, are too large or have an invalid id are left out.
    """
    questions: list[Question] = []
    for row in rows[:MAX_QUESTIONS]:
        try:
            question = msgspec.json.decode(row, type=Question)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue  # from a newer version
        if _ID.match(question.id) and len(row) <= 2 * MAX_QUESTION_BYTES:
            questions.append(replace(question, host=host))
    return tuple(questions)
