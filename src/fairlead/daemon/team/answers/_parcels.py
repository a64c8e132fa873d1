"""What hosts send each other about answers: a person's answer, and what became of it. A reader trusts no field."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from fairlead.daemon.answers._questions import MAX_REASON, Answer, Answerer, Decision
from fairlead.text import one_line

ANSWER: Final = "answer"
ANSWERED: Final = "answered"

_MAX_NAME = 100
_MAX_TEXT = 1000
_MAX_CHOSEN = 20

Name = Annotated[str, Meta(max_length=_MAX_NAME)]
Text = Annotated[str, Meta(max_length=MAX_REASON)]


class AnswerParcel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer of a person on the host that sends it."""

    nonce: Annotated[str, Meta(min_length=8, max_length=64)]
    """Of this answer: what became of it is told under the same."""
    question: Annotated[str, Meta(pattern=r"^[a-z0-9]{1,20}$")]
    asked: float
    """When it was asked, by the clock of the asking host: with the id, which question is meant."""
    at: float
    """When it was answered, by the relay's clock."""
    decision: Decision
    reason: Text = ""
    choose: Annotated[tuple[Text, ...], Meta(max_length=_MAX_CHOSEN)] = ()
    user: Name = ""
    terminal: Name = ""
    pid: int = 0
    by: Literal["command", "watch"] = "command"

    @property
    def answer(self) -> Answer:
        """What was answered."""
        return Answer(decision=self.decision, reason=self.reason, choose=self.choose)

    def answerer(self, host: str) -> Answerer:
        """Return who answered, as that host says."""
        return Answerer(
            user=one_line(self.user) or "somebody",
            pid=self.pid,
            terminal=one_line(self.terminal),
            by=self.by,
            host=host,
        )


class AnsweredParcel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of an answer."""

    nonce: Annotated[str, Meta(min_length=8, max_length=64)]
    is_given: bool
    """It was passed on to the agent."""
    why: Annotated[str, Meta(max_length=_MAX_TEXT)] = ""
    """Why it was not."""


encode = msgspec.json.Encoder().encode
_decode_answer = msgspec.json.Decoder(AnswerParcel).decode
_decode_answered = msgspec.json.Decoder(AnsweredParcel).decode


def decode_answer(body: bytes) -> AnswerParcel:
    """Return an answer. Raises `ValueError` if anything in it is out of bounds."""
    parcel = _decode_answer(body)
    if not (math.isfinite(parcel.at) and math.isfinite(parcel.asked)):
        raise ValueError("a time is not one")
    return parcel


def decode_answered(body: bytes) -> AnsweredParcel:
    """Return what became of an answer. Raises `ValueError` if anything in it is out of bounds."""
    return _decode_answered(body)


def answer_parcel(nonce: str, question: str, asked: float, at: float, answer: Answer, answerer: Answerer) -> bytes:  # noqa: PLR0913, PLR0917 - the fields of one
    """Return the body of an answer."""
    return encode(
        AnswerParcel(
            nonce=nonce,
            question=question,
            asked=asked,
            at=at,
            decision=answer.decision,
            reason=answer.reason[:MAX_REASON],
            choose=answer.choose,
            user=answerer.user[:_MAX_NAME],
            terminal=answerer.terminal[:_MAX_NAME],
            pid=answerer.pid,
            by="watch" if answerer.by == "watch" else "command",
        )
    )


def answered_parcel(nonce: str, why: str) -> bytes:
    """Return the body of what became of an answer; `why` is empty if it was given."""
    return encode(AnsweredParcel(nonce=nonce, is_given=not why, why=why[:_MAX_TEXT]))
