"""Answers across hosts: those that a person gives here to questions of other hosts, and those that come from there.

An answer is a parcel, signed by the host on which a person gave it. It counts at most once: it is given to the agent
after the parcel is recorded as received, so that a crash in between loses it, and never repeats it.
"""

from __future__ import annotations

import asyncio
from secrets import token_urlsafe
from time import time
from typing import TYPE_CHECKING

import msgspec
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
    from fairlead.daemon.team.answers._told import ToldQuestions
    from fairlead.mail import MessageService

RESULT_TIMEOUT = 4.0
"""Seconds to wait until the other host says what became of an answer. Who asks waits for 5 at most."""
MAX_AGE = 60.0
"""Seconds after which an answer does not count any more: what the person saw may be over."""
_MAX_UNCONFIRMED = 100
_OVERTAKEN = 2.0
"""Seconds by which the news that a question is over may be ahead of what became of its answer."""


class NotConfirmed(AnswerError):
    """An answer was sent, and the other host has not told yet what became of it."""


class _Unconfirmed(msgspec.Struct):
    """An answer for which nobody waits any more."""

    target: str
    """The id of the host that it was sent to."""
    question: Question
    is_over: bool = False
    """That host does not list the question any more."""

    @property
    def about(self) -> str:
        return f"{self.question.tool}: {one_line(self.question.text, 100)}"


class RemoteAnswers:
    """The answers of and to other hosts. Belongs to the event loop, except where it says otherwise."""

    def __init__(self, team: TeamService, answers: AnswerService, told: ToldQuestions) -> None:
        self._team = team
        self._answers = answers
        self._told = told
        self._sent: dict[str, tuple[str, asyncio.Future[AnsweredParcel]]] = {}
        """By nonce: the id of the host, and who waits for what becomes of the answer."""
        self._unconfirmed: dict[str, _Unconfirmed] = {}
        """By nonce."""
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
        if age < -MAX_AGE:
            raise AnswerError(f"it says that it was given {-age:.0f} s from now; see fairlead team status on {host}")
        question = self._answers.find(parcel.question)
        if question.asked != parcel.asked:
            raise UnknownQuestion(f"no open question has the id {parcel.question!r}: it is another one now")
        why_not = self._told.why_not_allowed(question)
        if parcel.decision == "allow" and why_not:
            raise AnswerError(f"it can be denied from {host}, and not allowed: {why_not}")
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
        """Return the question of another host that `ID` or `ID@HOST` names; None if no other host has this `ID`.

        Raises `AnswerError` if several have it, `UnknownQuestion` if `HOST` is another one and does not have it.
        """
        name, _, host = question_id.partition("@")
        known = [one for news in self._team.directory.news.values() for one in news.questions]
        found = [one for one in known if one.id == name and host in {"", one.host}]
        if len(found) > 1:
            names = ", ".join(f"{one.id}@{one.host}" for one in found)
            raise AnswerError(f"several hosts have a question {name!r}; name one: {names}")
        if host and not found:
            raise UnknownQuestion(f"no open question has the id {name!r}: {self._why_none(host)}; see fairlead answer")
        return found[0] if found else None

    def _why_none(self, host: str) -> str:
        """Return why a host has no question that can be answered here."""
        team, own = self._team, self._team.own_name
        states = dict.fromkeys(team.directory.names.values(), "member")
        states |= dict(team.roster.known().values()) if team.roster is not None else {}
        if host not in states:
            return f"the team has no host {host!r}"
        if states[host] != "member":
            return f"{host} was removed from the team" if states[host] == "removed" else f"{host} is not confirmed yet"
        if not self.hosts().get(host):
            return f"{host} takes no answers from {own}, see team.answers"
        return f"it was answered on {host}, or went back to the client alone"

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
            self._unconfirmed[nonce] = _Unconfirmed(target, question)
            while len(self._unconfirmed) > _MAX_UNCONFIRMED:
                del self._unconfirmed[next(iter(self._unconfirmed))]
            self.follow_news()
            raise NotConfirmed(
                f"sent to {question.host}, which has not told within {RESULT_TIMEOUT:.0f} s whether it took it; "
                "you get a message when it does, or when the question is over there"
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
            why = team.log.why if team.log.state == "refused" else "the team's relay cannot be reached"
            raise AnswerError(f"the answer cannot be sent to {host}: {why}")
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
        sent = self._unconfirmed.get(parcel.nonce)
        if sent is not None and sent.target == origin:
            del self._unconfirmed[parcel.nonce]
            what = "took" if parcel.is_given else "did not take"
            body = "The agent has it." if parcel.is_given else f"It was not given to the agent: {one_line(parcel.why)}"
            self._start(self._tell(sent, f"{what} your answer", body, f"answer-{parcel.nonce}"))

    def follow_news(self) -> None:
        """Look whether questions are over without a word of what became of the answer: its host was restarted."""
        for nonce, sent in self._unconfirmed.items():
            news = self._team.directory.news.get(sent.target)
            key = sent.question.id, sent.question.asked
            if not sent.is_over and (news is None or all((one.id, one.asked) != key for one in news.questions)):
                sent.is_over = True
                self._start(self._tell_over(nonce))

    async def _tell_over(self, nonce: str) -> None:
        await asyncio.sleep(_OVERTAKEN)
        if (sent := self._unconfirmed.get(nonce)) is not None:
            body = (
                "That host does not list the question any more, and has said nothing about your answer, perhaps "
                "because its daemon was restarted. Its history says whether it was given: fairlead history"
            )
            await self._tell(sent, "has not told what became of your answer", body, f"answer-{nonce}-over")

    async def _tell(self, sent: _Unconfirmed, what: str, body: str, key: str) -> None:
        """Send the person a message about an answer for which nobody waits any more."""
        subject = f"{self._team.host_name(sent.target)} {what}: {sent.about}"
        draft = Draft(to=(USER.name,), subject=subject[:200], body=body, key=key)
        await self._team.with_mail(lambda service: service.send(FAIRLEAD, draft))
