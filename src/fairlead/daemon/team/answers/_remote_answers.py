"""Sends a person's answers to questions of other hosts, and applies answers that other hosts send.

An answer is a packet, signed by the host on which the person gave it. It is applied at most once: it is passed on to
the agent after the packet is stored as received, so a crash in between loses the answer but never repeats it.
"""

from __future__ import annotations

import asyncio
from secrets import token_urlsafe
from time import time
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fairlead.daemon.answers._questions import AnswerError, UnknownQuestion
from fairlead.daemon.team._snapshots import answers_setting, takes_answers
from fairlead.daemon.team.answers._packets import (
    ANSWER,
    ANSWER_RESULT,
    AnswerResultPacket,
    answer_packet,
    answer_result_packet,
    decode_answer,
    decode_answer_result,
)
from fairlead.errors import FairleadError
from fairlead.mail import FAIRLEAD, USER, Draft
from fairlead.text import one_line

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from typing import Any

    from fairlead.daemon.answers._questions import Answerer, PersonAnswer, Question
    from fairlead.daemon.answers._service import AnswerService
    from fairlead.daemon.team._service import TeamService
    from fairlead.daemon.team.answers._packets import AnswerPacket
    from fairlead.daemon.team.answers._published import PublishedQuestions
    from fairlead.mail import MessageService

RESULT_TIMEOUT = 4.0
"""Seconds to wait for the result of an answer. The command that sends the answer waits for 5 seconds at most."""
MAX_AGE = 60.0
"""Seconds after which an answer is refused, because the question that the person saw may be over."""
_MAX_UNCONFIRMED = 100
_RESULT_GRACE = 2.0
"""Seconds to wait for the result of an answer after its question has disappeared from the other host's snapshot."""


class NotConfirmed(AnswerError):
    """An answer was sent, and the other host has not reported the result yet."""


class _Unconfirmed(msgspec.Struct):
    """An answer whose result did not arrive in time."""

    target: str
    """The id of the host to which it was sent."""
    question: Question
    is_over: bool = False
    """Whether the host no longer lists the question."""

    @property
    def about(self) -> str:
        return f"{self.question.tool}: {one_line(self.question.text, 100)}"


class RemoteAnswers:
    """Answers to and from other hosts. Used in the event loop, except where a comment says otherwise."""

    def __init__(self, team: TeamService, answers: AnswerService, published: PublishedQuestions) -> None:
        self._team = team
        self._answers = answers
        self._published = published
        self._sent: dict[str, tuple[str, asyncio.Future[AnswerResultPacket]]] = {}
        """By nonce: the id of the host, and the future for the result of the answer."""
        self._unconfirmed: dict[str, _Unconfirmed] = {}
        """By the nonce of the answer."""
        self._received: list[tuple[str, AnswerPacket | AnswerResultPacket]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    # -- the thread of the team ------------------------------------------------------------------------

    def attach(self, service: MessageService) -> None:
        """Register for packets about answers. They are decoded at once, so that invalid ones are refused."""
        service.team.add_handler(ANSWER, lambda origin, body: self._received.append((origin, decode_answer(body))))
        service.team.add_handler(
            ANSWER_RESULT, lambda origin, body: self._received.append((origin, decode_answer_result(body)))
        )

    def discard_uncommitted(self) -> None:
        """Discard packets of a batch that could not be stored. They are received again."""
        self._received.clear()

    def handle_committed(self) -> None:
        """Handle received packets that are stored. They are not received again."""
        if self._received:
            received, self._received = self._received, []
            self._team.in_loop(self._handle, received)

    # -- from other hosts ------------------------------------------------------------------------------

    def _handle(self, received: Sequence[tuple[str, AnswerPacket | AnswerResultPacket]]) -> None:
        for origin, packet in received:
            if isinstance(packet, AnswerResultPacket):
                self._handle_result(origin, packet)
            else:
                self._start(self._handle_answer(origin, packet))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _handle_answer(self, origin: str, packet: AnswerPacket) -> None:
        """Pass the answer of another host on to the agent, and send back the result."""
        host = self._team.host_name(origin)
        try:
            await self._pass_on(packet, host)
            why = ""
        except FairleadError as error:
            why = str(error).removesuffix("; see fairlead answer")
        await self._team.post(origin, ANSWER_RESULT, answer_result_packet(packet.nonce, why))

    async def _pass_on(self, packet: AnswerPacket, host: str) -> None:
        own = self._team.own_name
        setting = await asyncio.to_thread(answers_setting)
        if not takes_answers(setting, host):
            raise AnswerError(f"{own} takes no answers from {host}; see team.answers in the user-wide policy of {own}")
        age = time() + self._team.log.offset - packet.at
        if age > MAX_AGE:
            raise AnswerError(f"it arrived {age:.0f} s after it was given, and counts for {MAX_AGE:.0f} s")
        if age < -MAX_AGE:
            raise AnswerError(f"it says that it was given {-age:.0f} s from now; see fairlead team status on {host}")
        question = self._answers.find(packet.question)
        if question.asked != packet.asked:
            raise UnknownQuestion(f"no open question has the id {packet.question!r}: it is another one now")
        why_not = self._published.why_not_allowed(question)
        if packet.decision == "allow" and why_not:
            raise AnswerError(f"it can be denied from {host}, and not allowed: {why_not}")
        await self._answers.answer(question.id, packet.answer, packet.answerer(host))

    # -- questions of other hosts ----------------------------------------------------------------------

    def questions(self) -> list[Question]:
        """Return the open questions of other hosts that can be answered here, the oldest first.

        Their times are converted to the clock of this host.
        """
        directory = self._team.directory
        questions: list[Question] = []
        for host, remote in directory.members.items():
            shift = directory.clock_shift(host, self._team.log.offset)
            questions += [
                replace(question, asked=question.asked + shift, expires=question.expires + shift)
                for question in remote.questions
            ]
        return sorted(questions, key=lambda question: question.asked)

    def hosts(self) -> dict[str, bool]:
        """Return by the name of each other host whether its questions can be answered here."""
        own = self._team.own_name
        return {name: remote.takes_answers_of(own) for name, remote in self._team.directory.hosts()}

    def find(self, question_id: str) -> Question | None:
        """Return the question of another host for `ID` or `ID@HOST`; `None` if no other host has a question `ID`.

        Raises `AnswerError` if several hosts have it, `UnknownQuestion` if `HOST` is given and does not have it.
        """
        name, _, host = question_id.partition("@")
        known = [question for remote in self._team.directory.members.values() for question in remote.questions]
        matches = [question for question in known if question.id == name and host in {"", question.host}]
        if len(matches) > 1:
            names = ", ".join(f"{match.id}@{match.host}" for match in matches)
            raise AnswerError(f"several hosts have a question {name!r}; name one: {names}")
        if host and not matches:
            why = self._missing_question_reason(host)
            raise UnknownQuestion(f"no open question has the id {name!r}: {why}; see fairlead answer")
        return matches[0] if matches else None

    def _missing_question_reason(self, host: str) -> str:
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

    async def send(self, question: Question, answer: PersonAnswer, answerer: Answerer) -> Question:
        """Send a person's answer to the host of the question, and return once it was passed on to the agent.

        Raises `AnswerError` with the reason if the answer cannot be sent or that host refused it, `NotConfirmed` if
        that host sends no result in time. The user then gets a message when the result arrives.
        """
        target = self._check_target(question, answer)
        nonce = token_urlsafe(12)
        at = time() + self._team.log.offset
        settled = asyncio.get_running_loop().create_future()
        self._sent[nonce] = target, settled
        body = answer_packet(nonce, question.id, question.asked, at, answer, answerer)
        try:
            await self._team.post(target, ANSWER, body)
            result = await asyncio.wait_for(settled, RESULT_TIMEOUT)
        except TimeoutError:
            self._unconfirmed[nonce] = _Unconfirmed(target, question)
            while len(self._unconfirmed) > _MAX_UNCONFIRMED:
                del self._unconfirmed[next(iter(self._unconfirmed))]
            self.check_unconfirmed()
            raise NotConfirmed(
                f"sent to {question.host}, which has not reported within {RESULT_TIMEOUT:.0f} s whether it took it; "
                "you get a message when it does, or when the question is over there"
            ) from None
        finally:
            del self._sent[nonce]
        if not result.is_given:
            raise AnswerError(f"{question.host}: {one_line(result.why)}")
        return question

    def _check_target(self, question: Question, answer: PersonAnswer) -> str:
        """Return the id of the question's host. Raises `AnswerError` if it cannot get or would refuse the answer."""
        host, team = question.host, self._team
        if not team.is_connected:
            why = team.log.why if team.log.state == "refused" else "the team's relay cannot be reached"
            raise AnswerError(f"the answer cannot be sent to {host}: {why}")
        if not team.is_member:
            raise AnswerError(
                f"{team.own_name} is not confirmed yet; on a member, run: fairlead team confirm {team.own_name}"
            )
        target = team.directory.id_of(host)
        if not target or not team.directory.members[target].takes_answers_of(team.own_name):
            raise AnswerError(f"{host} takes no answers from {team.own_name}; see team.answers")
        if question.only_deny and answer.decision == "allow":
            raise AnswerError(f"it can be denied from here, and not allowed: {question.only_deny}")
        return target

    def _handle_result(self, origin: str, packet: AnswerResultPacket) -> None:
        """Handle the result of an answer of this host. Results from hosts to which it was not sent are ignored."""
        target, settled = self._sent.get(packet.nonce, ("", None))
        if settled is not None and target == origin and not settled.done():
            settled.set_result(packet)
            return
        sent = self._unconfirmed.get(packet.nonce)
        if sent is not None and sent.target == origin:
            del self._unconfirmed[packet.nonce]
            what = "took" if packet.is_given else "did not take"
            body = "The agent has it." if packet.is_given else f"It was not given to the agent: {one_line(packet.why)}"
            self._start(self._notify_user(sent, f"{what} your answer", body, f"answer-{packet.nonce}"))

    def check_unconfirmed(self) -> None:
        """Notify the user of unconfirmed answers whose question is over: a host may lose an answer at a restart."""
        for nonce, sent in self._unconfirmed.items():
            remote = self._team.directory.members.get(sent.target)
            key = sent.question.id, sent.question.asked
            if not sent.is_over and (
                remote is None or all((question.id, question.asked) != key for question in remote.questions)
            ):
                sent.is_over = True
                self._start(self._notify_over(nonce))

    async def _notify_over(self, nonce: str) -> None:
        await asyncio.sleep(_RESULT_GRACE)
        if (sent := self._unconfirmed.get(nonce)) is not None:
            body = (
                "That host does not list the question any more, and has said nothing about your answer, perhaps "
                "because its daemon was restarted. Its history says whether it was given: fairlead history"
            )
            await self._notify_user(sent, "has not reported what became of your answer", body, f"answer-{nonce}-over")

    async def _notify_user(self, sent: _Unconfirmed, what: str, body: str, key: str) -> None:
        """Send the user a message about an answer whose result did not arrive in time.

        `what` follows the name of the host in the subject, as in "took your answer". `key` is the idempotency key.
        """
        subject = f"{self._team.host_name(sent.target)} {what}: {sent.about}"
        draft = Draft(to=(USER.name,), subject=subject[:200], body=body, key=key)
        await self._team.with_mail(lambda service: service.send(FAIRLEAD, draft))
