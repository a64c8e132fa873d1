"""`fairlead read`: shows one message and marks it as read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlead.cli.support.caller import CallerOptions, caller_options
from fairlead.cli.support.command import Command
from fairlead.cli.support.completion_values import complete_messages
from fairlead.cli.support.daemon_client import Request, ask_mail, print_document
from fairlead.cli.support.invocation import current
from fairlead.cli.support.param_types import MESSAGE
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.cli.support.daemon_client import Document


def to_request(number: int) -> Request:
    """Return the request for the message with this number."""
    return Request("GET", f"messages/{number}")


def to_text(document: Document, *, body_only: bool = False) -> Iterator[str]:
    """Yield the message, or only its text, with control characters replaced."""
    from fairlead.cli.support.mail_text import message_lines
    from fairlead.text import printable_block

    if body_only:
        yield printable_block(document["message"]["body"])
    else:
        yield from message_lines(document)


@click.command(
    "read",
    cls=Command,
    arguments=(("ID", "the number of the message"),),
    examples=("fairlead read 12", "fairlead read 12 --body | git apply"),
    exit_codes=((0, "shown"), (1, "there is no such message, or it is not yours")),
)
@click.argument("number", metavar="ID", type=MESSAGE, required=False, shell_complete=complete_messages)
@click.option("--body", is_flag=True, help="Print the text alone, byte for byte; made harmless on a terminal.")
@caller_options
def read(caller: CallerOptions, *, number: int | None, body: bool) -> int:
    """Show a whole message and mark it as read.

    Its sender can see that you read it. Each line of the text is quoted with `> `, and characters that would move the
    cursor are shown as signs.
    """
    if number is None:
        raise UsageError("read: which message? Give its number; fairlead inbox lists them")
    document = ask_mail(to_request(number), caller)
    if body and not caller.as_json and not current().stdout_is_terminal():
        current().stdout.buffer.write(document["message"]["body"].encode(errors="replace"))
        return 0
    return print_document(document, caller, to_text(document, body_only=body))
