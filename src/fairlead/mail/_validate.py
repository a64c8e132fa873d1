"""Validates drafts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.mail._errors import BadMessage, TooLarge
from fairlead.mail._names import quote
from fairlead.mail._types import INTENTS, MAX_BODY_BYTES, MAX_KEY_LENGTH, MAX_SUBJECT_LENGTH, PRIORITIES

if TYPE_CHECKING:
    from fairlead.mail._types import Draft

_REPLY_PREFIX = "Re: "
_MAX_FIRST_WORDS = 60
"""The maximum length of a subject that is taken from the body."""
_MAX_SCANNED = 8000


def validate_draft(draft: Draft, now: float) -> Draft:
    """Return a draft with a subject. Its texts are valid Unicode. Raises `BadMessage`."""
    if draft.priority not in PRIORITIES:
        raise BadMessage(f"priority must be one of {', '.join(PRIORITIES)}, not {quote(str(draft.priority))}")
    if draft.intent not in INTENTS:
        raise BadMessage(f"intent must be one of {', '.join(INTENTS)}, not {quote(str(draft.intent))}")
    _check_deadline(draft, now)
    if not draft.subject.strip() and not draft.body.strip():
        raise BadMessage("the message is empty; give it a subject or a body")
    _check_size(draft)
    return draft if draft.subject.strip() else replace(draft, subject=_first_words(draft.body))


def reply_subject(subject: str) -> str:
    """Return the subject of a reply."""
    prefixed = subject if subject.startswith(_REPLY_PREFIX) else f"{_REPLY_PREFIX}{subject}"
    return prefixed[:MAX_SUBJECT_LENGTH]


def _first_words(body: str) -> str:
    """Return the first words of a text's first line, for use as a subject."""
    line = " ".join(next(filter(str.strip, body[:_MAX_SCANNED].splitlines()), "").split())
    if len(line) <= _MAX_FIRST_WORDS:
        return line
    cut = line[: _MAX_FIRST_WORDS - 1]
    words = cut if line[_MAX_FIRST_WORDS - 1] == " " else cut.rpartition(" ")[0] or cut
    return f"{words.rstrip()}…"


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
