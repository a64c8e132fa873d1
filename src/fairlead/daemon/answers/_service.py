"""Holds the hooks of questions until a person answers, and passes the answer on.

The client asks the user at the same time, and takes the first answer. So a hook that ends without output changes
nothing: the client's own question stays. That is the end of every wait but one, a person's answer.
"""

from __future__ import annotations

import asyncio
from secrets import token_urlsafe
from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import client_named
from fairlead.daemon.answers._questions import AnswerError, UnknownQuestion, ends_question, output_of, question_about
from fairlead.daemon.events._messages import NOT_FOUND, OK, UNAVAILABLE, WAIT, HookReply, error_reply
from fairlead.events import PermissionRequest, encode_json
from fairlead.journal import MAX_REASON_LENGTH, CommandsRecord
from fairlead.policy import load_user_wide
from fairlead.sessions import AttentionNeeded, question_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.daemon.answers._questions import Answer, Answerer, Question
    from fairlead.daemon.events._messages import HookRequest
    from fairlead.daemon.events._recorder import EventRecorder
    from fairlead.daemon.sessions._tracker import SessionTracker
    from fairlead.events import Event

TOKEN_PREFIX = "answer-"  # noqa: S105 - no secret; launcher/exchange.c knows it
_CLAIMED_WITHIN = 10.0
"""Seconds within which a launcher asks for the answer that it was told to wait for."""
_MAX_OUTCOMES = 200
_GONE = "its client no longer waits for an answer"
_TIME_IS_UP = "its time was up, and it went back to the client alone"
_WENT_ON = "it was answered in the client, or its session went on or ended"
_SHUT_DOWN = "the daemon shuts down, and it went back to the client alone"


class _Held:
    """One question and the hook that waits for its answer."""

    def __init__(
        self, token: str, question: Question, event: PermissionRequest, request: HookRequest, stdout: bytes
    ) -> None:
        self.token = token
        self.question = question
        self.event = event
        self.request = request
        self.stdout = stdout
        """What the hook prints whatever comes."""
        self.deadline = monotonic() + question.expires - question.asked
        self.issued_at = monotonic()
        self.reply: asyncio.Future[HookReply] | None = None
        """There once the launcher waits; done once the question is over."""
        self.was_seen = False
        """The session was seen to wait for the user."""
        self.outcome = _GONE

    @property
    def is_open(self) -> bool:
        return self.reply is not None and not self.reply.done()

    def end(self, reply: HookReply | None = None, outcome: str = "") -> None:
        if self.reply is not None and not self.reply.done():
            self.outcome = outcome or self.outcome
            self.reply.set_result(HookReply(OK, stdout=self.stdout) if reply is None else reply)


class AnswerService:
    """The open questions of this daemon. Belongs to the event loop; `hold` and `observe` are for any thread."""

    def __init__(self, tracker: SessionTracker, recorder: EventRecorder) -> None:
        self._tracker = tracker
        self._recorder = recorder
        self._lock = Lock()
        self._held: dict[str, _Held] = {}
        """By the token of the launcher."""
        self._answered: dict[str, asyncio.Event] = {}
        """The same, of answers that are about to be sent: set once they are."""
        self._outcomes: dict[str, str] = {}
        """What became of the latest questions, by id."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_shutting_down = False

    @property
    def is_needed(self) -> bool:
        """Whether somebody waits for an answer."""
        return bool(self._held)

    def shut_down(self) -> None:
        """End all waits, because the daemon shuts down: the questions stay in the client."""
        self._is_shutting_down = True
        for held in list(self._held.values()):
            held.end(error_reply(UNAVAILABLE, "the daemon shuts down"), _SHUT_DOWN)

    # -- a question is asked ---------------------------------------------------------------------------

    def hold(self, event: PermissionRequest, request: HookRequest, seconds: float, stdout: bytes = b"") -> HookReply:
        """Return the reply that makes the hook of a question wait for an answer."""
        project = request.caller.project
        question = question_about(event, event_id=request.id, project=project, asked=time(), seconds=seconds)
        token = f"{TOKEN_PREFIX}{token_urlsafe(16)}"
        with self._lock:
            now = monotonic()
            late = [name for name, one in self._held.items() if one.reply is None]
            for name in late:
                if now - self._held[name].issued_at > _CLAIMED_WITHIN:
                    del self._held[name]
            self._held[token] = _Held(token, question, event, request, stdout)
        return HookReply(WAIT, token=token, milliseconds=int(seconds * 1000))

    def resume(self, payload: bytes, request: HookRequest, stdout: bytes) -> HookReply:
        """Make the hook of a question wait whose commands have run in another process."""
        event = client_named(request.client).parse(payload, request.event)
        settings = load_user_wide().attention
        if not isinstance(event, PermissionRequest) or not settings.answer:
            return HookReply(OK, stdout=stdout)
        return self.hold(event, request, settings.answer_timeout, stdout)

    def holds(self, token: str) -> bool:
        """Return whether a token is of a hook that waits for an answer."""
        return token.startswith(TOKEN_PREFIX)

    async def wait(self, token: str, _is_gone: Callable[[], bool]) -> HookReply:
        """Return the answer of a person, or nothing once nobody can answer any more."""
        held = self._held.get(token)
        if held is None or held.reply is not None:
            return error_reply(NOT_FOUND, "unknown token")
        self._loop = asyncio.get_running_loop()
        held.reply = self._loop.create_future()
        try:
            if self._is_shutting_down:
                return error_reply(UNAVAILABLE, "the daemon shuts down")
            return await self._until_over(held)
        finally:
            with self._lock:
                del self._held[token]
            held.end()
            self._outcomes[held.question.id] = held.outcome
            while len(self._outcomes) > _MAX_OUTCOMES:
                del self._outcomes[next(iter(self._outcomes))]

    async def _until_over(self, held: _Held) -> HookReply:
        assert held.reply is not None  # noqa: S101 - set by the caller
        while not held.reply.done():
            changed = asyncio.ensure_future(self._tracker.changed.wait())
            try:
                left = held.deadline - monotonic()
                if left <= 0 or self._has_gone_on(held):
                    held.end(outcome=_TIME_IS_UP if left <= 0 else _WENT_ON)
                    break
                await asyncio.wait((held.reply, changed), timeout=left, return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
        return held.reply.result()

    def _has_gone_on(self, held: _Held) -> bool:
        """Return whether the session waited for the user, and no longer does: it was answered in the client."""
        session = self._tracker.get(held.question.session_id)
        if session is None:
            return False
        if session.ended is not None:
            return True
        is_waiting = type(session.state) is AttentionNeeded
        held.was_seen = held.was_seen or is_waiting
        return held.was_seen and not is_waiting

    def observe(self, event: Event) -> None:
        """End the questions that an event of the client shows to be over."""
        with self._lock:
            over = [held for held in self._held.values() if ends_question(held.event, event)]
        loop = self._loop
        if over and loop is not None and not loop.is_closed():
            for held in over:
                loop.call_soon_threadsafe(held.end, None, _WENT_ON)

    # -- and answered ----------------------------------------------------------------------------------

    def questions(self) -> list[Question]:
        """Return the open questions, the oldest first."""
        return sorted((held.question for held in self._held.values() if held.is_open), key=lambda one: one.asked)

    async def answer(self, question_id: str, answer: Answer, answerer: Answerer) -> Question:
        """Pass the answer of a person on to the hook that waits for it, once it is in the journal.

        Return once it is sent: from then on it arrives, even if the daemon is killed. Raise `UnknownQuestion` if
        nobody asks that, and `AnswerError` if the answer does not fit.
        """
        held = self._open(question_id)
        output = output_of(held.event, held.question, answer)
        self._record(held, answer, answerer)
        rendered = client_named(held.request.client).render(held.event, output)
        sent = self._answered[held.token] = asyncio.Event()
        reply = HookReply(OK, rendered.exit_code, _merged(held.stdout, rendered.stdout))
        held.end(reply, f"it was answered already: {_done(answer)} by {answerer}")
        self._tracker.set_answered(held.question.session_id, held.question.tool, question_of(held.event))
        await sent.wait()
        return held.question

    def find(self, question_id: str) -> Question:
        """Return an open question. Raise `UnknownQuestion` that says what became of it."""
        return self._open(question_id).question

    def _open(self, question_id: str) -> _Held:
        for held in self._held.values():
            if held.is_open and held.question.id == question_id:
                return held
        outcome = self._outcomes.get(question_id, "it was answered, or went back to the client alone")
        raise UnknownQuestion(f"no open question has the id {question_id!r}: {outcome}; see fairlead answer")

    def on_sent(self, token: str) -> None:
        """Note that the reply to a hook was sent, or that the hook has gone."""
        if (sent := self._answered.pop(token, None)) is not None:
            sent.set()

    def _record(self, held: _Held, answer: Answer, answerer: Answerer) -> None:
        """Write down who answered what. Raise `AnswerError` if that fails: then nothing is answered."""
        about = f": {', '.join(answer.choose)}" if answer.choose else f": {answer.reason}" if answer.reason else ""
        reason = f"{_done(answer)} by {answerer}{about}"
        record = CommandsRecord(
            id=held.request.id,
            at=time(),
            verdict="allowed" if answer.decision == "allow" else "blocked",
            reason=reason[:MAX_REASON_LENGTH],
            seconds=round(monotonic() - held.issued_at, 6),
        )
        try:
            self._recorder.write(record)
        except OSError as error:
            raise AnswerError(f"the answer cannot be recorded, so it is not given: {error}") from None


def _done(answer: Answer) -> str:
    return "allowed" if answer.decision == "allow" else "denied"


def _merged(first: bytes, second: bytes) -> bytes:
    """Return two answers of a hook as one: what others had to say, and the decision."""
    if not first:
        return second
    try:
        return encode_json({**msgspec.json.decode(first), **msgspec.json.decode(second)}) + b"\n"
    except (msgspec.DecodeError, TypeError):
        return second
