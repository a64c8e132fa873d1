"""The open questions of this host as they were published: this decides what other hosts can allow.

Settings may change while a question is open. So a question is not redacted again when an answer arrives: the published
version counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec.structs import replace

from fairlead.daemon.team.answers._questions import MAX_QUESTIONS, redacted_question

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.daemon.answers._questions import Question

NOT_PUBLISHED = "it was not published to other hosts"

_Key: TypeAlias = tuple[str, float]
"""The id and the time of a question. Ids are short, and may be used again."""


class PublishedQuestions:
    """The published questions. Written by the thread of the team, read by all: each value is replaced as a whole."""

    def __init__(self) -> None:
        self._only_deny: dict[_Key, str] = {}
        """The reason why a question cannot be allowed on other hosts, or "".

        A reason is kept while the question is open, because a person may have seen any of its versions.
        """
        self._prepared: frozenset[_Key] = frozenset()
        self._published: frozenset[_Key] = frozenset()

    def prepare(self, questions: Iterable[Question], *, is_on: bool) -> list[msgspec.Raw]:
        """Return the open questions for the snapshot of this host, the oldest first; none unless `is_on`."""
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
