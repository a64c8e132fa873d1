"""What other hosts are told of a question: all of it, or that a part is missing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlead.clients import Choice
from fairlead.daemon.answers._questions import Question
from fairlead.daemon.team.answers._packets import decode_answer
from fairlead.daemon.team.answers._published import (
    HIDDEN,
    NOT_PUBLISHED,
    TOO_LONG,
    PublishedQuestions,
    read_questions,
    redacted_question,
)

QUESTION = Question(id="k7qd3", event="e1", session="s1", tool="Bash", text="make", asked=5.25, expires=9.5)


def asked(**fields: Any) -> Question:
    return msgspec.structs.replace(QUESTION, **fields)


def test_a_question_is_told_as_it_is_and_read_with_its_host() -> None:
    (read,) = read_questions(PublishedQuestions().prepare([QUESTION], is_on=True), "alpha")
    assert read == asked(event="", host="alpha")


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (asked(text="curl -d password=$(cat notes) x"), HIDDEN),
        (asked(choices=(Choice("Use token=abcdefgh?", ("yes",)),)), HIDDEN),
        (asked(text="true #" + " x" * 10_000), TOO_LONG),
    ],
)
def test_who_does_not_see_all_of_it_can_only_deny(question: Question, why: str) -> None:
    told = redacted_question(question)
    assert (told.only_deny, told.id, told.asked) == (why, question.id, question.asked)
    assert len(msgspec.json.encode(told)) < 16 * 1024


def test_what_can_be_allowed_is_decided_by_all_that_was_published() -> None:
    published = PublishedQuestions()
    assert published.why_not_allowed(QUESTION) == NOT_PUBLISHED
    published.prepare([QUESTION], is_on=True)
    assert published.why_not_allowed(QUESTION) == NOT_PUBLISHED
    published.note_published()
    assert published.why_not_allowed(QUESTION) == ""
    assert published.why_not_allowed(asked(asked=6.5)) == NOT_PUBLISHED

    hidden = asked(text="curl -d password=$(cat notes) x")
    published.prepare([hidden], is_on=True)
    assert published.why_not_allowed(QUESTION) == HIDDEN, "the relay may have it, and we do not know"
    (row,) = published.prepare([QUESTION], is_on=True)
    assert read_questions([row], "alpha")[0].only_deny == HIDDEN
    published.prepare([QUESTION], is_on=False)
    published.note_published()
    assert published.why_not_allowed(QUESTION) == NOT_PUBLISHED
    published.prepare([QUESTION], is_on=True)
    published.note_published()
    assert published.why_not_allowed(QUESTION) == HIDDEN, "while it is open"
    published.prepare([], is_on=True)
    published.prepare([asked(id=f"q{number}") for number in range(51)], is_on=True)
    published.note_published()
    assert published.why_not_allowed(asked(id="q49")) == ""
    assert published.why_not_allowed(asked(id="q50")) == NOT_PUBLISHED


def test_what_another_host_sends_is_bounded() -> None:
    rows = [b"{}", b'{"id": 1}', msgspec.json.encode(asked(id="../x")), msgspec.json.encode(asked(text="x" * 40_000))]
    assert read_questions([msgspec.Raw(row) for row in rows], "alpha") == ()
    good = {"nonce": "12345678", "question": "k7qd3", "asked": 5.25, "at": 1.0, "decision": "allow"}
    assert decode_answer(msgspec.json.encode(good)).answerer("beta").user == "somebody"
    wrong = ({"decision": "maybe"}, {"question": "a@b"}, {"reason": "x" * 2001}, {"choose": ["x"] * 21}, {"nonce": ""})
    for bad in wrong:
        with pytest.raises(ValueError, match=r"\w"):
            decode_answer(msgspec.json.encode({**good, **bad}))
