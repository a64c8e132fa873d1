"""What the other hosts were told of the open questions of this host: it decides what can be allowed from there.

Settings may change while a question is open. So nothing is redacted a second time when an answer comes: what counts
is what was published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec.structs import replace

from fairlead.daemon.team.answers._questions import MAX_QUESTIONS, told_question

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.daemon.answers._questions import Question

NOT_TOLD = "other hosts have not been told what it asks"

_Key: TypeAlias = tuple[str, float]
"""The id, and when it was asked: ids are short, and may come again."""


class ToldQuestions:
    """Written by the thread of the team, read by all: each value is replaced as a whole."""

    def __init__(self) -> None:
        self._only_deny: dict[_Key, str] = {}
        """Why it cannot be allowed. It stays while the question is open: who answers may have seen any version."""
        self._prepared: frozenset[_Key] = frozenset()
        self._published: frozenset[_Key] = frozenset()

    def prepare(self, questions: Iterable[Question], *, is_on: bool) -> list[msgspec.Raw]:
        """Return the open questions for the news of this host, the oldest first; none unless `is_on`."""
        questions = list(questions)
        keys = {_key(one) for one in questions}
        only_deny = {key: why for key, why in self._only_deny.items() if key in keys}
        told = [told_question(one) for one in questions[:MAX_QUESTIONS]] if is_on else []
        told = [replace(one, only_deny=only_deny.get(_key(one)) or one.only_deny) for one in told]
        # Before it is published: an error may come after the relay has it.
        self._only_deny = only_deny | {_key(one): one.only_deny for one in told}
        self._prepared = frozenset(_key(one) for one in told)
        return [msgspec.Raw(msgspec.json.encode(one)) for one in told]

    def note_published(self) -> None:
        """Note that the relay has what was prepared last."""
        self._published = self._prepared

    def why_not_allowed(self, question: Question) -> str:
        """Return why a question cannot be allowed from another host; "" if it can."""
        key = _key(question)
        return self._only_deny.get(key, NOT_TOLD) if key in self._published else NOT_TOLD


def _key(question: Question) -> _Key:
    return question.id, question.asked
