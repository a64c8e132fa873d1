"""Answers across hosts: those that a person gives here to questions of other hosts, and those that come from there.

An answer is a parcel, signed by the host on which a person gave it. It counts at most once: it is given to the agent
after the parcel is recorded as received, so that a crash in between loses it, and never repeats it.
"""

from __future__ import annotations

import asyncio
from secrets import token_urlsafe
from time import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.daemon.answers._questions import AnswerError, UnknownQuestion
from fairlead.daemon.team._news import answers_setting, takes_answers
from fairlead.daemon.team.answers._parcels import (
    ANSWER,
    ANSWERED,
    AnsweredParcel,
    answer_parcel,
    answered_parcel,
    decode_answer,
    decode_answered,
)
from fairlead.daemon.team.answers._questions import told_question
from fairlead.errors import FairleadError
from fairlead.mail import FAIRLEAD, USER, Draft
from fairlead.text import one_line

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from typing import Any

    from fairlead.daemon.answers._questions import Answer, Answerer, Question
    from fairlead.daemon.answers._service import AnswerService
    from fairlead.daemon.team._service import TeamService
    from fairlead.daemon.team.answers._parcels import AnswerParcel
    from fairlead.mail import MessageService

RESULT_TIMEOUT = 4.0
"""Seconds to wait until the other host says what became of an answer. Who asks waits for 5 at most."""
MAX_AGE = 60.0
"""Seconds after which an answer does not count any more: what the person saw may be over."""
_MAX_UNCONFIRMED = 100


class NotConfirmed(AnswerError):
    """An answer was sent, and the other host has not told yet what became of it."""


class RemoteAnswers:
    """The answers of and to other hosts. Belongs to the event loop, except where it says otherwise."""

    def __init__(self, team: TeamService, answers: AnswerService) -> None:
        self._team = team
        self._answers = answers
        self._sent: dict[str, tuple[str, asyncio.Future[AnsweredParcel]]] = {}
        """By nonce: the id of the host, and who waits for what becomes of the answer."""
        self._unconfirmed: dict[str, tuple[str, str]] = {}
        """By nonce: the id of the host and the question, of answers for which nobody waits any more."""
        self._received: list[tuple[str, AnswerParcel | AnsweredParcel]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    # -- the thread of the team ------------------------------------------------------------------------

    def attach(self, service: MessageService) -> None:
        """Take the parcels of this kind. They are decoded here, so that one that is invalid is refused."""
        service.team.on_parcel(ANSWER, lambda origin, body: self._received.append((origin, decode_answer(body))))
        service.team.on_parcel(ANSWERED, lambda origin, body: self._received.append((origin, decode_answered(body))))

    def forget_uncommitted(self) -> None:
        """Forget parcels of a batch that could not be stored: they come again."""
        self._received.clear()

    def handle_committed(self) -> None:
        """Pass on what was received and is stored: it will not come again."""
        if self._received:
            received, self._received = self._received, []
            self._team.in_loop(self._handle, received)

    # -- from other hosts ------------------------------------------------------------------------------

    def _handle(self, received: Sequence[tuple[str, AnswerParcel | AnsweredParcel]]) -> None:
        for origin, parcel in received:
            if isinstance(parcel, AnsweredParcel):
                self._settle(origin, parcel)
            else:
                self._start(self._take(origin, parcel))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take(self, origin: str, parcel: AnswerParcel) -> None:
        """Pass the answer of another host on to the agent, and send back what became of it."""
        host = self._team.host_name(origin)
        try:
            await self._give(parcel, host)
            why = ""
        except FairleadError as error:
            why = str(error).removesuffix("; see fairlead answer")
        await self._team.post(origin, ANSWERED, answered_parcel(parcel.nonce, why))

    async def _give(self, parcel: AnswerParcel, host: str) -> None:
        own = self._team.own_name
        setting = await asyncio.to_thread(answers_setting)
        if not takes_answers(setting, host):
            raise AnswerError(f"{own} takes no answers from {host}; see team.answers in the user-wide policy of {own}")
        age = time() + self._team.log.offset - parcel.at
        if age > MAX_AGE:
            raise AnswerError(f"it arrived {age:.0f} s after it was given, and counts for {MAX_AGE:.0f} s")
        question = self._answers.find(parcel.question)
        if question.asked != parcel.asked:
            raise UnknownQuestion(f"no open question has the id {parcel.question!r}: it is another one now")
        only_deny = told_question(question).only_deny
        if parcel.decision == "allow" and only_deny:
            raise AnswerError(f"it can be denied from {host}, and not allowed: {only_deny}")
        await self._answers.answer(question.id, parcel.answer, parcel.answerer(host))

    # -- what other hosts ask --------------------------------------------------------------------------

    def questions(self) -> list[Question]:
        """Return the open questions of other hosts that can be answered here, with their times by our clock."""
        directory = self._team.directory
        found: list[Question] = []
        for host, news in directory.news.items():
            shift = directory.clock_shift(host, self._team.log.offset)
            found += [replace(one, asked=one.asked + shift, expires=one.expires + shift) for one in news.questions]
        return sorted(found, key=lambda one: one.asked)

    def hosts(self) -> dict[str, bool]:
        """Return for each other host whether its questions can be answered here."""
        own = self._team.own_name
        return {name: news.takes_answers_of(own) for name, news in self._team.directory.hosts()}

    def find(self, question_id: str) -> Question | None:
        """Return the question of another host that `ID` or `ID@HOST` names. Raises `AnswerError` if several have it."""
        name, _, host = question_id.partition("@")
        known = [one for news in self._team.directory.news.values() for one in news.questions]
        found = [one for one in known if one.id == name and host in {"", one.host}]
        if len(found) > 1:
            names = ", ".join(f"{one.id}@{one.host}" for one in found)
            raise AnswerError(f"several hosts have a question {name!r}; name one: {names}")
        return found[0] if found else None

    # -- to other hosts --------------------------------------------------------------------------------

    async def send(self, question: Question, answer: Answer, answerer: Answerer) -> Question:
        """Send a person's answer to the host that asks, and return once the agent has it.

        Raises `AnswerError` with the reason of that host if it did not take it, `NotConfirmed` if it does not tell.
        """
        target = self._check_target(question, answer)
        nonce = token_urlsafe(12)
        at = time() + self._team.log.offset
        settled = asyncio.get_running_loop().create_future()
        self._sent[nonce] = target, settled
        body = answer_parcel(nonce, question.id, question.asked, at, answer, answerer)
        try:
            await self._team.post(target, ANSWER, body)
            result = await asyncio.wait_for(settled, RESULT_TIMEOUT)
        except TimeoutError:
            self._unconfirmed[nonce] = target, f"{question.tool}: {one_line(question.text, 100)}"
            while len(self._unconfirmed) > _MAX_UNCONFIRMED:
                del self._unconfirmed[next(iter(self._unconfirmed))]
            raise NotConfirmed(
                f"sent to {question.host}, which has not told within {RESULT_TIMEOUT:.0f} s whether it took it; "
                "you get a message when it does"
            ) from None
        finally:
            del self._sent[nonce]
        if not result.is_given:
            raise AnswerError(f"{question.host}: {one_line(result.why)}")
        return question

    def _check_target(self, question: Question, answer: Answer) -> str:
        """Return the id of the host that asks. Raises `AnswerError` if it is known beforehand that it will refuse."""
        host, team = question.host, self._team
        if not team.is_connected:
            raise AnswerError(f"the answer cannot be sent to {host}: the team's relay cannot be reached")
        if not team.is_member:
            raise AnswerError(
                f"{team.own_name} is not confirmed yet; on a member, run: fairlead team confirm {team.own_name}"
            )
        target = team.directory.id_of(host)
        if not target or not team.directory.news[target].takes_answers_of(team.own_name):
            raise AnswerError(f"{host} takes no answers from {team.own_name}; see team.answers")
        if question.only_deny and answer.decision == "allow":
            raise AnswerError(f"it can be denied from here, and not allowed: {question.only_deny}")
        return target

    def _settle(self, origin: str, parcel: AnsweredParcel) -> None:
        """Notice what became of an answer of ours; only the host that it was sent to can tell."""
        target, settled = self._sent.get(parcel.nonce, ("", None))
        if settled is not None and target == origin and not settled.done():
            settled.set_result(parcel)
            return
        target, about = self._unconfirmed.get(parcel.nonce, ("", ""))
        if target == origin:
            del self._unconfirmed[parcel.nonce]
            self._start(self._tell(self._team.host_name(origin), about, parcel))

    async def _tell(self, host: str, about: str, parcel: AnsweredParcel) -> None:
        """Send the person a message about an answer for which nobody waits any more."""
        subject = f"{host} {'took' if parcel.is_given else 'did not take'} your answer: {about}"
        body = "The agent has it." if parcel.is_given else f"It was not given to the agent: {one_line(parcel.why)}"
        draft = Draft(to=(USER.name,), subject=subject[:200], body=body, key=f"answer-{parcel.nonce}")
        await self._team.with_mail(lambda service: service.send(FAIRLEAD, draft))
