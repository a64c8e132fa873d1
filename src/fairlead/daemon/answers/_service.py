"""Keeps the hooks of questions waiting until a person answers, and passes the answer on.

The client asks the user at the same time, and takes the first answer. If the hook ends without output, the client's
own question stays. So every wait ends without output, unless a person has answered here.
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
from fairlead.errors import FairleadError
from fairlead.events import PermissionRequest, encode_json
from fairlead.journal import MAX_REASON_LENGTH, CommandsRecord
from fairlead.policy import load_user_wide
from fairlead.sessions import AttentionNeeded, question_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.daemon.answers._questions import Answerer, PersonAnswer, Question
    from fairlead.daemon.events._messages import HookRequest
    from fairlead.daemon.events._recorder import EventRecorder
    from fairlead.daemon.sessions._tracker import SessionTracker
    from fairlead.events import Event

TOKEN_PREFIX = "answer-"  # noqa: S105 - no secret; launcher/exchange.c has the same text
_CLAIMED_WITHIN = 10.0
"""Seconds within which a launcher has to request the wait whose token it got."""
_MAX_OUTCOMES = 200
_GONE = "its client no longer waits for an answer"
_TIME_IS_UP = "its time was up, and it went back to the client alone"
_CONTINUED = "it was answered in the client, or its session went on or ended"
_SHUT_DOWN = "the daemon shuts down, and it went back to the client alone"


class _PendingQuestion:
    """One question and the hook that waits for its answer."""

    def __init__(
        self, token: str, question: Question, event: PermissionRequest, request: HookRequest, stdout: bytes
    ) -> None:
        self.token = token
        self.question = question
        self.event = event
        self.request = request
        self.stdout = stdout
        """The output that the hook prints in any case."""
        self.deadline = monotonic() + question.expires - question.asked
        self.issued_at = monotonic()
        self.reply: asyncio.Future[HookReply] | None = None
        """Set once the launcher waits; done once the question is over."""
        self.was_seen = False
        """Whether the session was seen waiting for the user."""
        self.outcome = _GONE

    @property
    def is_open(self) -> bool:
        return self.reply is not None and not self.reply.done()

    def end(self, reply: HookReply | None = None, outcome: str = "") -> None:
        if self.reply is not None and not self.reply.done():
            self.outcome = outcome or self.outcome
            self.reply.set_result(HookReply(OK, stdout=self.stdout) if reply is None else reply)


class AnswerService:
    """The open questions of this daemon.

    Used in the event loop; `ask_user`, `resume` and `observe` may be called in any thread.
    """

    def __init__(self, tracker: SessionTracker, recorder: EventRecorder) -> None:
        self._tracker = tracker
        self._recorder = recorder
        self._lock = Lock()
        self._pending: dict[str, _PendingQuestion] = {}
        """By the token of the wait."""
        self._answered: dict[str, asyncio.Event] = {}
        """By token: an event that is set once the answer is sent."""
        self._outcomes: dict[str, str] = {}
        """How the latest questions ended, by the question's id."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_shutting_down = False
        self.on_change: Callable[[], None] = lambda: None
        """Called when there is a first question, and when there is none any more. In any thread, under a lock."""

    @property
    def is_needed(self) -> bool:
        """Whether a hook waits for an answer."""
        return bool(self._pending)

    def shut_down(self) -> None:
        """End all waits, because the daemon shuts down. The questions stay open in the client."""
        self._is_shutting_down = True
        for pending in list(self._pending.values()):
            pending.end(error_reply(UNAVAILABLE, "the daemon shuts down"), _SHUT_DOWN)

    # -- questions -------------------------------------------------------------------------------------

    def ask_user(
        self, event: PermissionRequest, request: HookRequest, seconds: float, stdout: bytes = b""
    ) -> HookReply:
        """Open a question, and return the reply that makes its hook wait for an answer.

        The question is over after `seconds`. `stdout` is what the hook prints in any case.
        """
        project = request.caller.project
        question = question_about(event, event_id=request.id, project=project, asked=time(), seconds=seconds)
        token = f"{TOKEN_PREFIX}{token_urlsafe(16)}"
        with self._lock:
            now = monotonic()
            late = [name for name, one in self._pending.items() if one.reply is None]
            for name in late:
                if now - self._pending[name].issued_at > _CLAIMED_WITHIN:
                    del self._pending[name]
            self._pending[token] = _PendingQuestion(token, question, event, request, stdout)
            if len(self._pending) == 1:
                self.on_change()
        return HookReply(WAIT, token=token, milliseconds=int(seconds * 1000))

    def resume(self, payload: bytes, request: HookRequest, stdout: bytes) -> HookReply:
        """Make the hook of a question wait, after the caller has run the commands of the event.

        If a person may no longer answer outside of the client, the reply only has `stdout`.
        """
        event = client_named(request.client).parse(payload, request.event)
        settings = load_user_wide().attention
        if not isinstance(event, PermissionRequest) or not settings.answer:
            return HookReply(OK, stdout=stdout)
        return self.ask_user(event, request, settings.answer_timeout, stdout)

    def issued(self, token: str) -> bool:
        """Return whether a token has the prefix of the tokens for questions. The question may be over, or unknown."""
        return token.startswith(TOKEN_PREFIX)

    async def wait(self, token: str, _is_gone: Callable[[], bool]) -> HookReply:
        """Wait until the question is over. Returns the person's answer, or a reply without a decision if there is none.

        Return an error reply for an unknown token, and when the daemon shuts down. Afterwards the question is removed,
        and only how it ended is kept.
        """
        pending = self._pending.get(token)
        if pending is None or pending.reply is not None:
            return error_reply(NOT_FOUND, "unknown token")
        self._loop = asyncio.get_running_loop()
        pending.reply = self._loop.create_future()
        try:
            if self._is_shutting_down:
                return error_reply(UNAVAILABLE, "the daemon shuts down")
            return await self._until_over(pending)
        finally:
            with self._lock:
                del self._pending[token]
                if not self._pending:
                    self.on_change()
            pending.end()
            self._outcomes[pending.question.id] = pending.outcome
            while len(self._outcomes) > _MAX_OUTCOMES:
                del self._outcomes[next(iter(self._outcomes))]

    async def _until_over(self, pending: _PendingQuestion) -> HookReply:
        assert pending.reply is not None
        while not pending.reply.done():
            changed = asyncio.ensure_future(self._tracker.changed.wait())
            try:
                left = pending.deadline - monotonic()
                if left <= 0 or self._has_continued(pending):
                    pending.end(outcome=_TIME_IS_UP if left <= 0 else _CONTINUED)
                    break
                await asyncio.wait((pending.reply, changed), timeout=left, return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
        return pending.reply.result()

    def _has_continued(self, pending: _PendingQuestion) -> bool:
        """Return whether the session has ended, or has stopped waiting for the user: it was answered in the client."""
        session = self._tracker.get(pending.question.session_id)
        if session is None:
            return False
        if session.ended is not None:
            return True
        is_waiting = type(session.state) is AttentionNeeded
        pending.was_seen = pending.was_seen or is_waiting
        return pending.was_seen and not is_waiting

    def observe(self, event: Event) -> None:
        """End the questions that are over according to an event of the client."""
        with self._lock:
            over = [pending for pending in self._pending.values() if ends_question(pending.event, event)]
        loop = self._loop
        if over and loop is not None and not loop.is_closed():
            for pending in over:
                loop.call_soon_threadsafe(pending.end, None, _CONTINUED)

    # -- answers ---------------------------------------------------------------------------------------

    def questions(self) -> list[Question]:
        """Return the open questions, the oldest first."""
        return sorted(
            (pending.question for pending in self._pending.values() if pending.is_open),
            key=lambda question: question.asked,
        )

    async def answer(self, question_id: str, answer: PersonAnswer, answerer: Answerer) -> Question:
        """Write the answer of a person to the journal, and pass it on to the waiting hook.

        Returns the question once the answer is sent: from then on it arrives, even if the daemon is killed. Raises
        `UnknownQuestion` if the question is not open, and `AnswerError` if the answer does not fit or cannot be
        recorded.
        """
        pending = self._open(question_id)
        output = output_of(pending.event, pending.question, answer)
        self._record(pending, answer, answerer)
        rendered = client_named(pending.request.client).render(pending.event, output)
        sent = self._answered[pending.token] = asyncio.Event()
        reply = HookReply(OK, rendered.exit_code, _merged(pending.stdout, rendered.stdout))
        pending.end(reply, f"it was answered already: {_done(answer)} by {answerer}")
        self._tracker.set_answered(pending.question.session_id, pending.question.tool, question_of(pending.event))
        await sent.wait()
        return pending.question

    def find(self, question_id: str) -> Question:
        """Return an open question. If it is not open, raise `UnknownQuestion`, which says how it ended."""
        return self._open(question_id).question

    def _open(self, question_id: str) -> _PendingQuestion:
        for pending in self._pending.values():
            if pending.is_open and pending.question.id == question_id:
                return pending
        outcome = self._outcomes.get(question_id, "it was answered, or went back to the client alone")
        raise UnknownQuestion(f"no open question has the id {question_id!r}: {outcome}; see fairlead answer")

    def on_sent(self, token: str) -> None:
        """End the wait of `answer`: the reply to the hook was sent or the hook has ended."""
        if (sent := self._answered.pop(token, None)) is not None:
            sent.set()

    def _record(self, pending: _PendingQuestion, answer: PersonAnswer, answerer: Answerer) -> None:
        """Write the answer and the person to the journal. Raises `AnswerError` if that fails."""
        about = f": {', '.join(answer.chosen)}" if answer.chosen else f": {answer.reason}" if answer.reason else ""
        reason = f"{_done(answer)} by {answerer}{about}"
        record = CommandsRecord(
            id=pending.request.id,
            at=time(),
            verdict="allowed" if answer.decision == "allow" else "blocked",
            reason=reason[:MAX_REASON_LENGTH],
            seconds=round(monotonic() - pending.issued_at, 6),
        )
        try:
            self._recorder.write(record)
        except (FairleadError, OSError) as error:
            raise AnswerError(f"the answer cannot be recorded, so it is not given: {error}") from None


def _done(answer: PersonAnswer) -> str:
    return "allowed" if answer.decision == "allow" else "denied"


def _merged(first: bytes, second: bytes) -> bytes:
    """Merge two JSON outputs of a hook: the output of other hooks, and the decision, which takes precedence.

    Return the decision alone if one of them is no JSON object.
    """
    if not first:
        return second
    try:
        return encode_json({**msgspec.json.decode(first), **msgspec.json.decode(second)}) + b"\n"
    except (msgspec.DecodeError, TypeError):
        return second
