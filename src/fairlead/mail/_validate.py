"""What can be sent: a draft is checked, and made writable, before anything else is done with it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.mail._errors import BadMessage, TooLarge
from fairlead.mail._types import INTENTS, LONGEST_BODY, LONGEST_KEY, LONGEST_SUBJECT, PRIORITIES
from fairlead.text import quoted, replace_surrogates

if TYPE_CHECKING:
    from fairlead.mail._types import Draft

_AGAIN = "Re: "


def checked(draft: Draft, now: float) -> Draft:
    """Give a draft as it can be kept, or say what is wrong with it."""
    if draft.priority not in PRIORITIES:
        raise BadMessage(f"priority must be one of {', '.join(PRIORITIES)}, not {quoted(str(draft.priority))}")
    if draft.intent not in INTENTS:
        raise BadMessage(f"intent must be one of {', '.join(INTENTS)}, not {quoted(str(draft.intent))}")
    _check_deadline(draft, now)
    if not draft.subject.strip() and not draft.body.strip():
        raise BadMessage("the message says nothing; give it a subject or a body")
    _check_size(draft)
    return replace(
        draft,
        subject=replace_surrogates(draft.subject),
        body=replace_surrogates(draft.body),
        key=replace_surrogates(draft.key),
    )


def subject_of_reply(subject: str) -> str:
    """Give the subject under which a message is answered."""
    again = subject if subject.startswith(_AGAIN) else f"{_AGAIN}{subject}"
    return again[:LONGEST_SUBJECT]


def _check_deadline(draft: Draft, now: float) -> None:
    if not draft.deadline:
        return
    if draft.intent != "request":
        raise BadMessage("only a request can have a deadline; send it with the intent request")
    if not math.isfinite(draft.deadline) or draft.deadline <= now:
        raise BadMessage("the deadline is over; give one that is to come")


def _check_size(draft: Draft) -> None:
    if len(draft.subject) > LONGEST_SUBJECT:
        raise TooLarge(f"a subject may have {LONGEST_SUBJECT} characters, not {len(draft.subject)}; use the body")
    if len(draft.key) > LONGEST_KEY:
        raise TooLarge(f"an idempotency key may have {LONGEST_KEY} characters, not {len(draft.key)}")
    size = len(draft.body) if draft.body.isascii() else len(replace_surrogates(draft.body).encode())
    if size > LONGEST_BODY:
        raise TooLarge(
            f"a body may have {LONGEST_BODY} bytes, not {size}; keep it in a file, and send where that file is"
        )
