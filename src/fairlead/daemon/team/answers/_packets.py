"""The packets about answers: a person's answer, and its result. Every field is validated when it is read."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from fairlead.daemon.answers._questions import MAX_REASON, Answerer, Consent, PersonAnswer
from fairlead.text import one_line

ANSWER: Final = "answer"
ANSWER_RESULT: Final = "answered"  # hosts of earlier builds send and read this word

_MAX_NAME = 100
_MAX_TEXT = 1000
_MAX_CHOSEN = 20

Name = Annotated[str, Meta(max_length=_MAX_NAME)]
Text = Annotated[str, Meta(max_length=MAX_REASON)]


class AnswerPacket(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer of a person on the host that sends it."""

    nonce: Annotated[str, Meta(min_length=8, max_length=64)]
    """Identifies this answer. Its result has the same nonce."""
    question: Annotated[str, Meta(pattern=r"^[a-z0-9]{1,20}$")]
    """The id of the question."""
    asked: float
    """The time of the question by the clock of the asking host. With the id, it identifies the question."""
    at: float
    """The time of the answer, by the relay's clock."""
    decision: Consent
    reason: Text = ""
    chosen: Annotated[tuple[Text, ...], Meta(max_length=_MAX_CHOSEN)] = msgspec.field(default=(), name="choose")
    """One text for each choice of the question, as in `PersonAnswer`."""
    user: Name = ""
    terminal: Name = ""
    pid: int = 0
    by: Literal["command", "watch"] = "command"
    """The program that was used: `command` (`fairlead answer`) or `watch`."""

    @property
    def answer(self) -> PersonAnswer:
        """The answer without the fields that identify it."""
        return PersonAnswer(decision=self.decision, reason=self.reason, chosen=self.chosen)

    def answerer(self, host: str) -> Answerer:
        """Return who answered, as the sending host claims. `host` is the name of that host."""
        return Answerer(
            user=one_line(self.user) or "somebody",
            pid=self.pid,
            terminal=one_line(self.terminal),
            by=self.by,
            host=host,
        )


class AnswerResultPacket(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of an answer."""

    nonce: Annotated[str, Meta(min_length=8, max_length=64)]
    is_given: bool
    """Whether the answer was passed on to the agent."""
    why: Annotated[str, Meta(max_length=_MAX_TEXT)] = ""
    """The reason if it was not passed on."""


encode = msgspec.json.Encoder().encode
_decode_answer = msgspec.json.Decoder(AnswerPacket).decode
_decode_answer_result = msgspec.json.Decoder(AnswerResultPacket).decode


def decode_answer(body: bytes) -> AnswerPacket:
    """Decode the body of an `AnswerPacket`. Raises `ValueError` if a field is invalid."""
    packet = _decode_answer(body)
    if not (math.isfinite(packet.at) and math.isfinite(packet.asked)):
        raise ValueError("a time is not one")
    return packet


def decode_answer_result(body: bytes) -> AnswerResultPacket:
    """Decode the body of an `AnswerResultPacket`. Raises `ValueError` if a field is invalid."""
    return _decode_answer_result(body)


def answer_packet(  # noqa: PLR0917 - the fields of one
    nonce: str, question: str, asked: float, at: float, answer: PersonAnswer, answerer: Answerer
) -> bytes:
    """Return the body of an `AnswerPacket` with these fields. A long reason, user or terminal is cut."""
    return encode(
        AnswerPacket(
            nonce=nonce,
            question=question,
            asked=asked,
            at=at,
            decision=answer.decision,
            reason=answer.reason[:MAX_REASON],
            chosen=answer.chosen,
            user=answerer.user[:_MAX_NAME],
            terminal=answerer.terminal[:_MAX_NAME],
            pid=answerer.pid,
            by="watch" if answerer.by == "watch" else "command",
        )
    )


def answer_result_packet(nonce: str, why: str) -> bytes:
    """Return the body of an `AnswerResultPacket`. `why` is empty if the answer was passed on to the agent."""
    return encode(AnswerResultPacket(nonce=nonce, is_given=not why, why=why[:_MAX_TEXT]))
