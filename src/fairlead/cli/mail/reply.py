"""`fairlead reply`: an answer to a message."""

from __future__ import annotations

from time import time
from typing import Any

import click

from fairlead.cli.mail.send import MessageOptions, draft_options, to_text
from fairlead.cli.support.caller import CallerOptions, caller_options
from fairlead.cli.support.command import Command
from fairlead.cli.support.completion_values import complete_messages
from fairlead.cli.support.daemon_client import Request, ask_mail, print_document, read_body
from fairlead.cli.support.invocation import current
from fairlead.cli.support.param_types import MESSAGE
from fairlead.errors import UsageError


def to_request(number: int, body: str, draft: MessageOptions, now: float, key: str, *, to_all: bool = False) -> Request:
    """Return the request that answers the message with this number. Raise `UsageError` if `body` is empty.

    `now` is the Unix time, `key` the default idempotency key. With `to_all`, everyone in the thread gets the answer.
    """
    if not body.strip():
        raise UsageError("reply: there is nothing to send; give a text, --file FILE, or a lone dash for stdin")
    return Request("POST", f"messages/{number}/reply", {"body": body, "all": to_all, **draft.fields(now, key)})


@click.command(
    "reply",
    cls=Command,
    arguments=(("ID", "the number of the message"), ("TEXT", "the answer; a lone dash reads it from stdin")),
    examples=('fairlead reply 12 "Done; see commit 4f3a1c."',),
    exit_codes=((0, "sent"), (1, "nothing was sent; stderr says why")),
)
@click.argument("number", metavar="ID", type=MESSAGE, required=False, shell_complete=complete_messages)
@click.argument("text", metavar="[TEXT]", default="")
@click.option("--all", "to_all", is_flag=True, help="Answer everyone in the thread, not only the sender.")
@draft_options
@caller_options
def reply(caller: CallerOptions, *, number: int | None, text: str, to_all: bool, **given: Any) -> int:
    """Answer a message in its thread.

    If it was a request, you no longer owe it. Without --subject, the subject is "Re: ...".
    """
    if number is None:
        raise UsageError("reply: to which message? Give its number; fairlead inbox lists them")
    draft = MessageOptions(**given)
    body, file = draft.body_source(text)
    body = read_body(file) if file else body
    document = ask_mail(to_request(number, body, draft, time(), current().message_key(), to_all=to_all), caller)
    return print_document(document, caller, to_text(document))
