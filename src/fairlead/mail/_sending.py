"""Validates and sends messages. Drafts of several threads are stored in one transaction."""

from __future__ import annotations

import math
from collections import deque
from copy import copy
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fairlead.mail._addresses import quote
from fairlead.mail._errors import BadMessage, MailError, MailUnreachable, NoSuchMessage, NotYours, TooLarge
from fairlead.mail._notices import ENDED_REASON
from fairlead.mail._storage import OutgoingMessage
from fairlead.mail._types import (
    FAIRLEAD,
    INTENTS,
    MAX_BODY_BYTES,
    MAX_KEY_LENGTH,
    MAX_SUBJECT_LENGTH,
    PRIORITIES,
    USER,
    Message,
    SendResult,
)
from fairlead.text import replace_surrogates_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fairlead.mail._cache import MailCache
    from fairlead.mail._storage import MailStorage
    from fairlead.mail._types import Agent, Draft

_MAX_ID = 2**63 - 1
"""The largest integer that a database can store."""
_REPLY_PREFIX = "Re: "
_MAX_FIRST_WORDS = 60
"""The maximum length of a subject that is taken from the body."""
_MAX_SCANNED = 8000


class PendingSend(msgspec.Struct):
    """A draft to send, the project if the sender has none, and once it was sent or refused, the result or the error."""

    sender: Agent
    draft: Draft
    project: str
    result: SendResult | None = None
    error: BaseException | None = None

    @property
    def key(self) -> tuple[int, str]:
        """The sender's id and the idempotency key, which may be empty."""
        return self.sender.id, self.draft.key

    @property
    def is_done(self) -> bool:
        """Whether there is a result or an error."""
        return self.result is not None or self.error is not None

    def outcome(self) -> SendResult | MailError:
        """Return the result, or a copy of the error. Must be called after the draft was sent or refused.

        Several threads may raise the same error. Each raises a copy, because raising an error adds a traceback to it.
        An error that is not a `MailError` is returned as `MailUnreachable`.
        """
        if self.result is not None:
            return self.result
        if isinstance(self.error, MailError):
            return copy(self.error)
        return MailUnreachable("the message was not sent: the thread that sent for all was interrupted; send it again")


def _pending(sender: Agent, draft: Draft, project: str) -> PendingSend:
    """Return a `PendingSend` for a draft. Surrogates in its texts are replaced, so that these can be stored."""
    subject, body, key, project = replace_surrogates_in(draft.subject, draft.body, draft.key, project)
    return PendingSend(sender, replace(draft, subject=subject, body=body, key=key), project)


class MessageSender:
    """Sends messages. One thread commits the drafts of all waiting threads, so that they share one sync of the disk."""

    def __init__(self, storage: MailStorage, cache: MailCache, now: Callable[[], float]) -> None:
        self._storage = storage
        self._cache = cache
        self._now = now
        self._pending: deque[PendingSend] = deque()

    def send(self, sender: Agent, draft: Draft, project: str) -> SendResult:
        """Send a message, together with the drafts of all waiting threads. Raises `MailError` if it was not sent."""
        pending = _pending(sender, draft, project)
        self._pending.append(pending)
        with self._cache.locked():
            if not pending.is_done:
                self._commit([self._pending.popleft() for _ in range(len(self._pending))])
        outcome = pending.outcome()
        if isinstance(outcome, MailError):
            raise outcome
        return outcome

    def send_many(self, items: Iterable[tuple[Agent, Draft]], project: str) -> list[SendResult | MailError]:
        """Send messages in one transaction. Return the result or the error of each, in order."""
        batch = [_pending(sender, draft, project) for sender, draft in items]
        with self._cache.locked():
            self._commit(batch)
        return [pending.outcome() for pending in batch]

    def reply(self, sender: Agent, draft: Draft, project: str, *, to_all: bool) -> SendResult:
        """Send a reply to the message `draft.reply_to`.

        The recipient is that message's sender; with `to_all`, or if `sender` wrote it, also its other recipients.
        `draft.to` is ignored, and an empty `draft.subject` is replaced by `Re: …`.
        """
        original, author = self.message_for(sender, draft.reply_to)
        recipients = [author]
        if to_all or author == sender.id:
            recipients += [number for number, _ in self._storage.deliveries(draft.reply_to)]
            if (other_hosts := self._cache.addresses.other_hosts) is not None:
                with self._cache.locked():
                    recipients += other_hosts.other_recipients(draft.reply_to)
            recipients = [number for number in recipients if number not in (sender.id, FAIRLEAD.id)]
        agents = [agent for agent in map(self._cache.agents.get, recipients) if agent]
        others = [agent for agent in agents if agent.remote != FAIRLEAD.id]
        to = tuple(agent.name for agent in others or agents)
        subject = draft.subject or _reply_subject(original.subject)
        return self.send(sender, replace(draft, to=to, subject=subject), project)

    def message_for(self, reader: Agent, message_id: int) -> tuple[Message, int]:
        """Return a message and its sender's id.

        Raises `NoSuchMessage`, and `NotYours` unless the reader wrote or received the message, or is the user.
        """
        stored = self._storage.get_message(message_id) if 0 < message_id <= _MAX_ID else None
        if stored is None:
            raise NoSuchMessage(f"there is no message {message_id}; `fairlead inbox` lists yours")
        may_read = reader.id in (USER.id, stored[1])
        if not may_read and all(number != reader.id for number, _ in self._storage.deliveries(message_id)):
            raise NotYours(f"message {message_id} was neither written by {reader.name} nor sent to it")
        return stored

    def _commit(self, batch: Sequence[PendingSend]) -> None:
        try:
            self._send_all(batch)
        except MailError as error:
            for pending in batch:
                pending.error = pending.error or error
        except BaseException as error:
            for pending in batch:
                pending.error = pending.error or error
            raise

    def _send_all(self, batch: Sequence[PendingSend]) -> None:
        """Store the valid drafts of a batch in one transaction, and set the result or error of each."""
        keys = {pending.key for pending in batch if pending.draft.key}
        sent_before = self._storage.find_by_keys(keys) if keys else {}
        ready: list[tuple[PendingSend, OutgoingMessage, tuple[Agent, ...]]] = []
        repeated: list[tuple[PendingSend, PendingSend]] = []
        first_by_key: dict[tuple[int, str], PendingSend] = {}
        for pending in batch:
            key = pending.key
            try:
                if key in sent_before:
                    pending.result = self._earlier_result(sent_before[key])
                elif key in first_by_key:
                    repeated.append((pending, first_by_key[key]))
                else:
                    ready.append((pending, *self._prepare(pending, self._cache.last_message + len(ready) + 1)))
                    if pending.draft.key:
                        first_by_key[key] = pending
            except MailError as error:
                pending.error = error
        outgoing = [message for _, message, _ in ready]
        if outgoing:
            self._cache.record_sent(outgoing, self._storage.send(outgoing))
        for pending, message, recipients in ready:
            pending.result = SendResult(message=message.message, recipients=recipients)
        for pending, first in repeated:
            pending.result = first.result and replace(first.result, is_new=False)

    def _prepare(self, pending: PendingSend, number: int) -> tuple[OutgoingMessage, tuple[Agent, ...]]:
        at = self._now()
        draft = _validate_draft(pending.draft, at)
        sender = self._cache.agents.current(pending.sender)
        thread = self.message_for(sender, draft.reply_to)[0].thread if draft.reply_to else number
        to, recipients = self._cache.addresses.resolve(sender, draft.to, pending.project)
        message = Message(
            id=number,
            at=at,
            sender=sender.name,
            to=to,
            subject=draft.subject,
            body=draft.body,
            priority=draft.priority,
            intent=draft.intent,
            thread=thread,
            reply_to=draft.reply_to,
            deadline=draft.deadline,
            project=sender.project or pending.project,
        )
        ended = tuple(agent.id for agent in recipients if agent.ended and not agent.host)
        outgoing = OutgoingMessage(
            message=message,
            sender=sender.id,
            recipients=tuple(agent.id for agent in recipients),
            ended_recipients=ended,
            bounce_reason=ENDED_REASON if ended else "",
            key=draft.key,
            answered_by=sender.id if draft.reply_to else 0,
        )
        return outgoing, recipients

    def _earlier_result(self, message: Message) -> SendResult:
        """Return the result for a message that was sent before with the same idempotency key."""
        agents = (self._cache.agents.get(number) for number, _ in self._storage.deliveries(message.id))
        return SendResult(message=message, recipients=tuple(agent for agent in agents if agent), is_new=False)


def _validate_draft(draft: Draft, now: float) -> Draft:
    """Return the draft, with a subject from its body if it has none. Raises `BadMessage` if it is invalid."""
    if draft.priority not in PRIORITIES:
        raise BadMessage(f"priority must be one of {', '.join(PRIORITIES)}, not {quote(str(draft.priority))}")
    if draft.intent not in INTENTS:
        raise BadMessage(f"intent must be one of {', '.join(INTENTS)}, not {quote(str(draft.intent))}")
    _check_deadline(draft, now)
    if not draft.subject.strip() and not draft.body.strip():
        raise BadMessage("the message is empty; give it a subject or a body")
    _check_size(draft)
    return draft if draft.subject.strip() else replace(draft, subject=_first_words(draft.body))


def _reply_subject(subject: str) -> str:
    """Return the subject of a reply to a message with this subject."""
    prefixed = subject if subject.startswith(_REPLY_PREFIX) else f"{_REPLY_PREFIX}{subject}"
    return prefixed[:MAX_SUBJECT_LENGTH]


def _first_words(body: str) -> str:
    """Return the first words of a body's first line that is not blank, for use as a subject."""
    line = " ".join(next(filter(str.strip, body[:_MAX_SCANNED].splitlines()), "").split())
    if len(line) <= _MAX_FIRST_WORDS:
        return line
    cut = line[: _MAX_FIRST_WORDS - 1]
    text = cut if line[_MAX_FIRST_WORDS - 1] == " " else cut.rpartition(" ")[0] or cut
    return f"{text.rstrip()}…"


def _check_deadline(draft: Draft, now: float) -> None:
    if not draft.deadline:
        return
    if draft.intent != "request":
        raise BadMessage("only a request can have a deadline; send it with the intent request")
    if not math.isfinite(draft.deadline) or draft.deadline <= now:
        raise BadMessage("the deadline has passed; give one in the future")


def _check_size(draft: Draft) -> None:
    if len(draft.subject) > MAX_SUBJECT_LENGTH:
        raise TooLarge(f"a subject can have {MAX_SUBJECT_LENGTH} characters, not {len(draft.subject)}; use the body")
    if len(draft.key) > MAX_KEY_LENGTH:
        raise TooLarge(f"an idempotency key can have {MAX_KEY_LENGTH} characters, not {len(draft.key)}")
    size = len(draft.body) if draft.body.isascii() else len(draft.body.encode())
    if size > MAX_BODY_BYTES:
        raise TooLarge(
            f"a body can have {MAX_BODY_BYTES} bytes, not {size}; write it to a file and send the file's path"
        )
